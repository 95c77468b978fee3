//! One level throughout.

use super::{Decision, Rule, Situation, Tuning};

/// Asks for the same level always.
pub struct Fixed {
    level: usize,
}

impl Fixed {
    /// At the tuning's level.
    pub fn new(tuning: &Tuning) -> Self {
        Fixed { level: tuning.level }
    }
}

impl Rule for Fixed {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        Decision::at_once(self.level.min(now.ladder.top()), None, "the level that was set")
    }
}
