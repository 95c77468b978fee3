//! Adaptive bit rate: which of a content's levels a player asks for next. A rule a file; each decision has its reason,
//! with the numbers that it was made on.

mod throughput;

pub use throughput::Throughput;

use std::fmt;

use streamgauge_base::{BitRate, Duration};

/// What a rule may look at before a segment is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Situation<'a> {
    /// The levels' rates, ascending; at least one.
    pub rates: &'a [BitRate],
    /// The level of the segment before; `None` before the first.
    pub level: Option<usize>,
    /// Media held: from where play is to the end of what came.
    pub buffer: Duration,
    /// The rate at which each segment so far came, the newest last.
    pub throughput: &'a [BitRate],
}

/// What a rule decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// Index of the level in `Situation::rates`.
    pub level: usize,
    /// Why this one.
    pub reason: Reason,
}

/// Why a level was chosen. Its text is what an event's reason says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// Nothing was measured yet: the lowest.
    NothingMeasured,
    /// The highest level within a share of the throughput.
    Within {
        /// What the throughput is taken to be.
        estimate: BitRate,
        /// So much of it may be used.
        allowed: BitRate,
    },
    /// Every level is above that share: the lowest.
    AllAbove {
        /// What the throughput is taken to be.
        estimate: BitRate,
        /// So much of it may be used.
        allowed: BitRate,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |allowed: &BitRate, estimate: &BitRate| {
            format!("{} of an estimated {} kbit/s", allowed.as_bps() / 1000, estimate.as_bps() / 1000)
        };
        match self {
            Reason::NothingMeasured => write!(f, "no throughput measured yet"),
            Reason::Within { estimate, allowed } => write!(f, "the highest within {}", of(allowed, estimate)),
            Reason::AllAbove { estimate, allowed } => write!(f, "all are above {}", of(allowed, estimate)),
        }
    }
}

/// A rule. What it knows of the past beyond the situation it keeps itself; it reads no clock.
pub trait Rule {
    /// The level of the next segment.
    ///
    /// # Panics
    ///
    /// If there is no level.
    fn decide(&mut self, situation: &Situation<'_>) -> Decision;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_the_numbers_it_was_made_on() {
        let (estimate, allowed) = (BitRate::from_bps(2_000_000), BitRate::from_bps(1_800_000));
        let within = Reason::Within { estimate, allowed }.to_string();
        assert_eq!(within, "the highest within 1800 of an estimated 2000 kbit/s");
        let above = Reason::AllAbove { estimate, allowed }.to_string();
        assert_eq!(above, "all are above 1800 of an estimated 2000 kbit/s");
        assert_eq!(Reason::NothingMeasured.to_string(), "no throughput measured yet");
    }
}
