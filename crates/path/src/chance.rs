//! Probabilities.

use streamgauge_base::RandomStream;

use crate::error::StageProblem;

/// A probability, where 0 and 1 are exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub fn new(probability: f64) -> Self {
        Chance(RandomStream::threshold(probability))
    }

    /// Returns true with that probability: one draw, for any probability.
    #[inline]
    pub fn draw(self, random: &mut RandomStream) -> bool {
        random.chance(self.0) || self.0 == u64::MAX
    }
}

/// Checks that `probability`, the setting called `of`, is one.
pub(crate) fn probability(of: &'static str, probability: f64) -> Result<(), StageProblem> {
    if (0.0..=1.0).contains(&probability) {
        Ok(())
    } else {
        Err(StageProblem::Probability { of, probability })
    }
}
