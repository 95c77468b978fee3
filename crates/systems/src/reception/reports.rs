//! When RTCP reports go out.

use streamgauge_base::{Duration, Instant, RandomStream};

/// When to send RTCP: a random 0.5 to 1.5 of the mean interval, so that reports do not lock on to anything
/// (RFC 3550 section 6.3.1; with two members its compensation for reconsideration does not apply).
pub struct Reports {
    mean: Duration,
    draws: RandomStream,
}

impl Reports {
    /// Reports `mean` apart on average, drawn from `draws`.
    pub fn new(mean: Duration, draws: RandomStream) -> Self {
        Reports { mean, draws }
    }

    /// Returns the report after one at `now`.
    pub fn next(&mut self, now: Instant) -> Instant {
        let mean = self.mean.as_nanos();
        now + Duration::from_nanos(mean / 2 + self.draws.below(mean))
    }
}
