//! One direction of a path, built from its specification.

use streamgauge_base::{Direction, Duration, FateSink, Instant, Item, QueueDepth, RandomStream, StageId};

use crate::block::Block;
use crate::bottleneck::Bottleneck;
use crate::chain::Chain;
use crate::codel::Codel;
use crate::corrupt::Corrupt;
use crate::delay::{Delay, VaryingDelay};
use crate::drd::Drd;
use crate::droptail::Droptail;
use crate::dualpi2::Dualpi2;
use crate::duplicate::Duplicate;
use crate::error::{SpecError, StageProblem};
use crate::fq_codel::FqCodel;
use crate::loss::Loss;
use crate::mtu::Mtu;
use crate::nistnet::Nistnet;
use crate::pie::Pie;
use crate::red::Red;
use crate::reorder::Reorder;
use crate::schedule::Schedule;
use crate::spec::Change;
use crate::spec::{BottleneckSpec, QueueSpec, StageKind, StageSpec};
use crate::stage::{Departure, Stage};

/// One direction of a path, which sim and the emulator drive. See [`Chain`] for how.
pub type Path = Chain<AnyStage>;

impl Path {
    /// Makes the path of `stages`; their ids count up from `first_stage`: zero for down, and for up the number of
    /// down's stages. Random draws depend on `seed`, `direction` and a stage's name alone, so adding a stage changes no
    /// other stage's draws.
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
        let mut duplicates = 0;
        for (index, spec) in stages.iter().enumerate() {
            if stages[..index].iter().any(|other| other.name == spec.name) {
                return Err(SpecError::DuplicateName(direction, spec.name.clone()));
            }
            let refuse = |problem| SpecError::Stage { direction, stage: spec.name.clone(), problem };
            spec.check().map_err(refuse)?;
            let copier = duplicates;
            duplicates += usize::from(matches!(spec.kind, StageKind::Duplicate(_)));
            if duplicates > Duplicate::MOST {
                return Err(refuse(StageProblem::TooManyDuplicates(duplicates)));
            }
            let id = StageId(first_stage.0 + index as u8);
            let (stage, mut schedule) = AnyStage::build(spec, id, seed, direction, copier);
            for &(at, change) in &spec.changes {
                schedule.add(Instant::ZERO + at, change);
            }
            built.push((stage, schedule));
        }
        let bottleneck = stages.iter().position(|spec| matches!(spec.kind, StageKind::Bottleneck(_)));
        Ok(Chain::of(built, bottleneck.unwrap_or(0)))
    }
}

/// Every kind of stage, so that a path calls them without a table of functions.
#[derive(Clone, Debug)]
pub enum AnyStage {
    /// Loss.
    Loss(Loss),
    /// A rate behind a drop-tail queue.
    Droptail(Bottleneck<Droptail>),
    /// A rate behind NIST Net's drop-tail queue.
    Nistnet(Box<Bottleneck<Nistnet>>),
    /// A rate behind a DRD queue.
    Drd(Box<Bottleneck<Drd>>),
    /// A rate behind a RED queue.
    Red(Box<Bottleneck<Red>>),
    /// A rate behind a CoDel queue.
    Codel(Bottleneck<Codel>),
    /// A rate behind flow queues.
    FqCodel(Bottleneck<FqCodel>),
    /// A rate behind a PIE queue.
    Pie(Box<Bottleneck<Pie>>),
    /// A rate behind two coupled queues.
    Dualpi2(Box<Bottleneck<Dualpi2>>),
    /// Constant propagation delay.
    Delay(Delay),
    /// Propagation delay with jitter, or of some flows.
    VaryingDelay(VaryingDelay),
    /// Packets that others overtake.
    Reorder(Reorder),
    /// Packets that arrive twice.
    Duplicate(Duplicate),
    /// Packets that arrive damaged.
    Corrupt(Corrupt),
    /// IP fragmentation.
    Mtu(Mtu),
    /// A firewall.
    Block(Block),
}

impl AnyStage {
    /// Builds a stage; `copier` counts the stages before it in its direction that duplicate.
    fn build(
        spec: &StageSpec,
        id: StageId,
        seed: u64,
        direction: Direction,
        copier: usize,
    ) -> (Self, Schedule) {
        let owner = match direction {
            Direction::Down => format!("down.{}", spec.name),
            Direction::Up => format!("up.{}", spec.name),
        };
        let random = |purpose| RandomStream::named(seed, &owner, purpose);
        match &spec.kind {
            StageKind::Loss(loss) => (AnyStage::Loss(Loss::new(id, loss, random("loss"))), loss.schedule()),
            StageKind::Bottleneck(spec) => {
                let BottleneckSpec { rate, shaper, queue, layer } = spec;
                let layer = *layer;
                let stage = match queue {
                    QueueSpec::Droptail(limit) => {
                        AnyStage::Droptail(Bottleneck::shaped(id, layer, rate, shaper, Droptail::new(*limit)))
                    }
                    QueueSpec::Nistnet(spec) => {
                        let queue = Nistnet::new(spec);
                        AnyStage::Nistnet(Box::new(Bottleneck::shaped(id, layer, rate, shaper, queue)))
                    }
                    QueueSpec::Drd(spec) => {
                        let queue = Drd::new(spec, random("drop"));
                        AnyStage::Drd(Box::new(Bottleneck::shaped(id, layer, rate, shaper, queue)))
                    }
                    QueueSpec::Red(spec) => {
                        let queue = Red::new(spec, random("drop"));
                        AnyStage::Red(Box::new(Bottleneck::shaped(id, layer, rate, shaper, queue)))
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
            StageKind::Delay(delay) if delay.is_plain() && !spec.changes.iter().any(is_jitter) => {
                (AnyStage::Delay(Delay::new(id, delay.initial())), delay.schedule())
            }
            StageKind::Delay(delay) => {
                let stage = VaryingDelay::new(id, delay, random("jitter"));
                (AnyStage::VaryingDelay(stage), delay.schedule())
            }
            StageKind::Reorder(reorder) => {
                let stage = Reorder::new(id, reorder, random("reorder"));
                (AnyStage::Reorder(stage), reorder.schedule())
            }
            StageKind::Duplicate(duplicate) => {
                let stage = Duplicate::new(id, duplicate, copier, random("duplicate"));
                (AnyStage::Duplicate(stage), duplicate.schedule())
            }
            StageKind::Corrupt(corrupt) => {
                let stage = Corrupt::new(id, corrupt, random("corrupt"));
                (AnyStage::Corrupt(stage), corrupt.schedule())
            }
            StageKind::Mtu(mtu) => (AnyStage::Mtu(Mtu::new(id, mtu)), mtu.schedule()),
            StageKind::Block(block) => (AnyStage::Block(Block::new(id, block)), block.schedule()),
        }
    }
}

fn is_jitter(change: &(Duration, Change)) -> bool {
    matches!(change.1, Change::Jitter(_))
}

impl StageSpec {
    fn check(&self) -> Result<(), StageProblem> {
        if self.name.is_empty() {
            return Err(StageProblem::EmptyName);
        }
        for &(_, change) in &self.changes {
            self.takes(change)?;
        }
        if let Some(pair) = self.changes.windows(2).find(|pair| pair[1].0 < pair[0].0) {
            let given = format!("{:?} behind {:?}", pair[1].0, pair[0].0);
            return Err(StageProblem::value("changes", "times that never go back", given));
        }
        match &self.kind {
            StageKind::Loss(loss) => loss.check(),
            StageKind::Bottleneck(BottleneckSpec { rate, shaper, queue, layer }) => {
                rate.check()?;
                shaper.check(rate, *layer)?;
                queue.check(*layer, rate.rates().into_iter().max().unwrap_or(rate.initial()))
            }
            StageKind::Delay(delay) => delay.check(),
            StageKind::Reorder(reorder) => reorder.check(),
            StageKind::Duplicate(duplicate) => duplicate.check(),
            StageKind::Corrupt(corrupt) => corrupt.check(),
            StageKind::Mtu(mtu) => mtu.check(),
            StageKind::Block(block) => block.check(),
        }
    }
}

impl AnyStage {
    /// Returns a bottleneck's content, the packet being sent included; none of other stages.
    pub fn depth(&self) -> QueueDepth {
        match self {
            AnyStage::Droptail(bottleneck) => bottleneck.depth(),
            AnyStage::Nistnet(bottleneck) => bottleneck.depth(),
            AnyStage::Drd(bottleneck) => bottleneck.depth(),
            AnyStage::Red(bottleneck) => bottleneck.depth(),
            AnyStage::Codel(bottleneck) => bottleneck.depth(),
            AnyStage::FqCodel(bottleneck) => bottleneck.depth(),
            AnyStage::Pie(bottleneck) => bottleneck.depth(),
            AnyStage::Dualpi2(bottleneck) => bottleneck.depth(),
            _ => QueueDepth::default(),
        }
    }
}

macro_rules! each {
    ($stage:expr, $inner:ident => $call:expr) => {
        match $stage {
            AnyStage::Loss($inner) => $call,
            AnyStage::Droptail($inner) => $call,
            AnyStage::Nistnet($inner) => $call,
            AnyStage::Drd($inner) => $call,
            AnyStage::Red($inner) => $call,
            AnyStage::Codel($inner) => $call,
            AnyStage::FqCodel($inner) => $call,
            AnyStage::Pie($inner) => $call,
            AnyStage::Dualpi2($inner) => $call,
            AnyStage::Delay($inner) => $call,
            AnyStage::VaryingDelay($inner) => $call,
            AnyStage::Reorder($inner) => $call,
            AnyStage::Duplicate($inner) => $call,
            AnyStage::Corrupt($inner) => $call,
            AnyStage::Mtu($inner) => $call,
            AnyStage::Block($inner) => $call,
        }
    };
}

/// As [`each`], with the two that nearly every path is made of looked for first: they are called in line.
macro_rules! usual_first {
    ($stage:expr, $inner:ident => $call:expr, $other:ident => $otherwise:expr) => {
        match $stage {
            AnyStage::Delay($inner) => $call,
            AnyStage::Droptail($inner) => $call,
            $other => $otherwise,
        }
    };
}

impl AnyStage {
    fn enqueue_unusual(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        each!(self, stage => stage.enqueue(now, item, fates));
    }

    fn dequeue_unusual(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        each!(self, stage => stage.dequeue(now, fates))
    }

    fn next_event_unusual(&self) -> Option<Instant> {
        each!(self, stage => stage.next_event())
    }
}

impl Stage for AnyStage {
    #[inline]
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        usual_first!(self, stage => stage.enqueue(now, item, fates), other => other.enqueue_unusual(now, item, fates));
    }
    #[inline]
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        usual_first!(self, stage => stage.dequeue(now, fates), other => other.dequeue_unusual(now, fates))
    }
    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        each!(self, stage => stage.apply(now, change, fates));
    }
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        usual_first!(self, stage => stage.next_event(), other => other.next_event_unusual())
    }
    fn least_stay(&self) -> Duration {
        each!(self, stage => stage.least_stay())
    }
    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        each!(self, stage => stage.finish(now, fates));
    }
}
