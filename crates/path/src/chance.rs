//! Probabilities.

use streamgauge_base::Stream;

use crate::error::Problem;

/// A probability, where 0 and 1 are exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub fn new(probability: f64) -> Self {
        Chance(Stream::threshold(probability))
    }

    /// True with that probability: one draw, whatever the probability is.
    #[inline]
    pub fn draw(self, random: &mut Stream) -> bool {
        random.chance(self.0) || self.0 == u64::MAX
    }
}

/// Checks that `probability`, the setting called `of`, is one.
pub(crate) fn probability(of: &'static str, probability: f64) -> Result<(), Problem> {
    if (0.0..=1.0).contains(&probability) { Ok(()) } else { Err(Problem::Probability { of, probability }) }
}
