//! Packets that arrive damaged.

use streamgauge_base::{Cause, Item, RandomStream, StageId};

use crate::chance::{Chance, probability};
use crate::error::StageProblem;
use crate::passing::{Effect, Passing};
use crate::schedule::{Schedule, ascending, starts_on};
use crate::spec::CorruptSpec;

/// Corrupts packets with a probability, independently. They travel on, and the receiving host throws them away.
pub type Corrupt = Passing<Corrupting>;

/// Its probability and draws.
#[derive(Clone, Debug)]
pub struct Corrupting {
    probability: f64,
    chance: Chance,
    random: RandomStream,
}

impl Corrupt {
    /// Makes the stage; its draws use `random` alone.
    pub fn new(id: StageId, spec: &CorruptSpec, random: RandomStream) -> Self {
        let chance = Chance::new(spec.probability);
        Passing::with(
            id,
            starts_on(&spec.switches),
            Corrupting { probability: spec.probability, chance, random },
        )
    }
}

impl Effect for Corrupting {
    fn meet(&mut self, item: Item, _: &mut impl FnMut(Item)) -> Result<Item, Cause> {
        let corrupted = item.corrupted | self.chance.draw(&mut self.random);
        Ok(Item { corrupted, ..item })
    }

    fn setting(&self, on: bool) -> (&'static str, f64, &'static str) {
        ("corrupt_ratio", if on { self.probability } else { 0.0 }, "1")
    }
}

impl CorruptSpec {
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::switched(&self.switches)
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        probability("probability", self.probability)?;
        ascending("switches", &self.switches)
    }
}
