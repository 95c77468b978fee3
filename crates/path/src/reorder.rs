//! Packets that others overtake.

use streamgauge_base::{FateSink, Instant, Item, RandomStream, StageId};

use crate::chance::{Chance, probability};
use crate::error::StageProblem;
use crate::heap::DueHeap;
use crate::schedule::{Schedule, ascending, starts_on};
use crate::spec::Change;
use crate::spec::ReorderSpec;
use crate::stage::{Departure, Stage};

/// Lets chosen packets wait while all others pass at once. While it is off it chooses none, draws nothing and counts
/// nothing; packets that wait then still wait for their time.
#[derive(Clone, Debug)]
pub struct Reorder {
    id: StageId,
    on: bool,
    spec: ReorderSpec,
    chance: Option<Chance>,
    random: RandomStream,
    /// Arrivals since the last that was chosen by its number.
    arrived: u64,
    waiting: DueHeap,
}

impl Reorder {
    /// Makes an empty stage; its draws use `random` alone.
    pub fn new(id: StageId, spec: &ReorderSpec, random: RandomStream) -> Self {
        Reorder {
            id,
            on: starts_on(&spec.switches),
            chance: spec.probability.map(Chance::new),
            spec: spec.clone(),
            random,
            arrived: 0,
            waiting: DueHeap::default(),
        }
    }

    fn chooses(&mut self) -> bool {
        match (self.chance, self.spec.every) {
            (Some(chance), _) => chance.draw(&mut self.random),
            (None, Some(every)) => {
                self.arrived += 1;
                let chosen = self.arrived == every;
                if chosen {
                    self.arrived = 0;
                }
                chosen
            }
            (None, None) => false,
        }
    }
}

impl Stage for Reorder {
    fn enqueue(&mut self, now: Instant, item: Item, _fates: &mut impl FateSink) {
        let due = if self.on && self.chooses() { now + self.spec.extra } else { now };
        self.waiting.push(now, item, due);
    }

    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        self.waiting.pop(now, self.id, fates)
    }

    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        if let Change::On(on) = change {
            self.on = on;
            fates.changed(self.id, now, "reorder_ratio", if on { self.spec.ratio() } else { 0.0 }, "1");
        }
    }

    fn next_event(&self) -> Option<Instant> {
        self.waiting.next_due()
    }

    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        self.waiting.finish(now, self.id, fates);
    }
}

impl ReorderSpec {
    /// Returns the mean share of packets that wait.
    pub fn ratio(&self) -> f64 {
        self.probability.unwrap_or_else(|| self.every.map_or(0.0, |every| 1.0 / every as f64))
    }

    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::switched(&self.switches)
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        match (self.probability, self.every) {
            (Some(p), None) => probability("probability", p)?,
            (None, Some(0)) => return Err(StageProblem::EveryZeroth),
            (None, Some(_)) => {}
            _ => return Err(StageProblem::ReorderChoice),
        }
        ascending("switches", &self.switches)
    }
}
