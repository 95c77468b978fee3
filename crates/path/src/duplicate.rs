//! Packets that arrive twice.

use streamgauge_base::{Cause, Item, RandomStream, StageId};

use crate::chance::{Chance, probability};
use crate::error::StageProblem;
use crate::passing::{Effect, Passing};
use crate::schedule::{Schedule, ascending, starts_on};
use crate::spec::DuplicateSpec;

/// Sends packets twice with a probability, the copy right behind the original.
pub type Duplicate = Passing<Duplicating>;

/// Its probability and draws.
#[derive(Clone, Debug)]
pub struct Duplicating {
    probability: f64,
    chance: Chance,
    random: RandomStream,
    /// Set in the number of every copy made here and in no number that arrives, so that copies of copies
    /// keep numbers of their own.
    bit: u8,
}

impl Duplicate {
    /// How many a direction may have: one for each bit of a copy's number.
    pub const MOST: usize = 8;

    /// Makes the `nth` of its direction, counted from 0; its draws use `random` alone.
    pub fn new(id: StageId, spec: &DuplicateSpec, nth: usize, random: RandomStream) -> Self {
        assert!(nth < Self::MOST, "duplicating stage {nth} of at most {}", Self::MOST);
        let chance = Chance::new(spec.probability);
        let effect = Duplicating { probability: spec.probability, chance, random, bit: 1 << nth };
        Passing::with(id, starts_on(&spec.switches), effect)
    }
}

impl Effect for Duplicating {
    fn meet(&mut self, item: Item, make: &mut impl FnMut(Item)) -> Result<Item, Cause> {
        if self.chance.draw(&mut self.random) {
            make(Item { copy: item.copy | self.bit, ..item });
        }
        Ok(item)
    }

    fn setting(&self, on: bool) -> (&'static str, f64, &'static str) {
        ("duplicate_ratio", if on { self.probability } else { 0.0 }, "1")
    }
}

impl DuplicateSpec {
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::switched(&self.switches)
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        probability("probability", self.probability)?;
        ascending("switches", &self.switches)
    }
}
