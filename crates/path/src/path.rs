//! One direction of a path, built from its specification.

use streamgauge_base::{Direction, Duration, FateSink, Instant, Item, StageId, Stream};

use crate::bottleneck::Bottleneck;
use crate::chain::Chain;
use crate::codel::Codel;
use crate::delay::Delay;
use crate::droptail::Droptail;
use crate::dualpi2::Dualpi2;
use crate::error::{Problem, SpecError};
use crate::fq_codel::FqCodel;
use crate::loss::Loss;
use crate::pie::Pie;
use crate::schedule::Schedule;
use crate::spec::{BottleneckSpec, QueueSpec, StageKind, StageSpec};
use crate::stage::{Change, Departure, Stage};

/// One direction of a path: what sim and the emulator drive. See [`Chain`] for how.
pub type Path = Chain<AnyStage>;

impl Path {
    /// The path of `stages`, whose ids count up from `first_stage`: zero for down, and for up the number of
    /// down's stages. Random draws depend on `seed`, `direction` and a stage's name alone, so adding a
    /// stage changes no other stage's draws.
    pub fn new(
        stages: &[StageSpec],
        first_stage: StageId,
        seed: u64,
        direction: Direction,
    ) -> Result<Path, SpecError> {
        if stages.is_empty() {
            return Err(SpecError::NoStages(direction));
        }
        if usize::from(first_stage.0) + stages.len() > 256 {
            return Err(SpecError::TooManyStages(direction, usize::from(first_stage.0) + stages.len()));
        }
        let mut built = Vec::with_capacity(stages.len());
        for (index, spec) in stages.iter().enumerate() {
            if stages[..index].iter().any(|other| other.name == spec.name) {
                return Err(SpecError::DuplicateName(direction, spec.name.clone()));
            }
            spec.check().map_err(|problem| SpecError::Stage {
                direction,
                stage: spec.name.clone(),
                problem,
            })?;
            built.push(AnyStage::build(spec, StageId(first_stage.0 + index as u8), seed, direction));
        }
        let bottleneck = stages.iter().position(|spec| matches!(spec.kind, StageKind::Bottleneck(_)));
        Ok(Chain::of(built, bottleneck.unwrap_or(0)))
    }
}

/// Every kind of stage, so that a path calls them without a table of functions.
#[derive(Clone, Debug)]
pub enum AnyStage {
    /// Random loss.
    Loss(Loss),
    /// A rate behind a drop-tail queue.
    Droptail(Bottleneck<Droptail>),
    /// A rate behind a CoDel queue.
    Codel(Bottleneck<Codel>),
    /// A rate behind flow queues.
    FqCodel(Bottleneck<FqCodel>),
    /// A rate behind a PIE queue.
    Pie(Box<Bottleneck<Pie>>),
    /// A rate behind two coupled queues.
    Dualpi2(Box<Bottleneck<Dualpi2>>),
    /// Propagation delay.
    Delay(Delay),
}

impl AnyStage {
    fn build(spec: &StageSpec, id: StageId, seed: u64, direction: Direction) -> (Self, Schedule) {
        let owner = match direction {
            Direction::Down => format!("down.{}", spec.name),
            Direction::Up => format!("up.{}", spec.name),
        };
        let random = |purpose| Stream::named(seed, &owner, purpose);
        match &spec.kind {
            StageKind::Loss(loss) => (AnyStage::Loss(Loss::new(id, loss, random("loss"))), loss.schedule()),
            StageKind::Bottleneck(spec) => {
                let BottleneckSpec { rate, shaper, queue, layer } = spec;
                let layer = *layer;
                let stage = match queue {
                    QueueSpec::Droptail(limit) => {
                        AnyStage::Droptail(Bottleneck::shaped(id, layer, rate, shaper, Droptail::new(*limit)))
                    }
                    QueueSpec::Codel(spec) => {
                        AnyStage::Codel(Bottleneck::shaped(id, layer, rate, shaper, Codel::new(spec)))
                    }
                    QueueSpec::FqCodel(spec) => {
                        let queue = FqCodel::new(spec, random("hash"));
                        AnyStage::FqCodel(Bottleneck::shaped(id, layer, rate, shaper, queue))
                    }
                    QueueSpec::Pie(spec) => {
                        let queue = Pie::new(spec, random("drop"));
                        AnyStage::Pie(Box::new(Bottleneck::shaped(id, layer, rate, shaper, queue)))
                    }
                    QueueSpec::Dualpi2(spec) => {
                        let queue = Dualpi2::new(spec);
                        AnyStage::Dualpi2(Box::new(Bottleneck::shaped(id, layer, rate, shaper, queue)))
                    }
                };
                (stage, rate.schedule())
            }
            StageKind::Delay(delay) => (AnyStage::Delay(Delay::new(id, delay.initial())), delay.schedule()),
        }
    }
}

impl StageSpec {
    fn check(&self) -> Result<(), Problem> {
        if self.name.is_empty() {
            return Err(Problem::EmptyName);
        }
        match &self.kind {
            StageKind::Loss(loss) => loss.check(),
            StageKind::Bottleneck(BottleneckSpec { rate, shaper, queue, layer }) => {
                rate.check()?;
                shaper.check(rate, *layer)?;
                queue.check(*layer, rate.rates().into_iter().max().unwrap_or(rate.initial()))
            }
            StageKind::Delay(delay) => delay.check(),
        }
    }
}

macro_rules! each {
    ($stage:expr, $inner:ident => $call:expr) => {
        match $stage {
            AnyStage::Loss($inner) => $call,
            AnyStage::Droptail($inner) => $call,
            AnyStage::Codel($inner) => $call,
            AnyStage::FqCodel($inner) => $call,
            AnyStage::Pie($inner) => $call,
            AnyStage::Dualpi2($inner) => $call,
            AnyStage::Delay($inner) => $call,
        }
    };
}

impl Stage for AnyStage {
    #[inline]
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        each!(self, stage => stage.enqueue(now, item, fates));
    }
    #[inline]
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        each!(self, stage => stage.dequeue(now, fates))
    }
    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        each!(self, stage => stage.apply(now, change, fates));
    }
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        each!(self, stage => stage.next_event())
    }
    #[inline]
    fn least_stay(&self) -> Duration {
        each!(self, stage => stage.least_stay())
    }
    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        each!(self, stage => stage.finish(now, fates));
    }
}
