//! Our instants as those of the standard library, and back.

use std::time::{Duration as StdDuration, Instant as StdInstant};

use streamgauge_base::Instant;

/// Later answers of a library mean "never".
const NEVER: StdDuration = StdDuration::from_secs(365 * 24 * 3600);

/// Maps a trial's time, from 0, to instants of the standard library, by a fixed base.
///
/// A library that takes its instants as arguments sees nothing of the system's clock but this base. A library
/// that also turns instants into dates needs a base that is chosen with care (`webrtc::epoch`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    base: StdInstant,
}

impl Clock {
    /// Returns the clock with its time 0 at `base`.
    pub fn from_base(base: StdInstant) -> Self {
        Clock { base }
    }

    /// Returns the library's instant of the trial's time `at`.
    pub fn to_std(&self, at: Instant) -> StdInstant {
        self.base + StdDuration::from_nanos(at.as_nanos())
    }

    /// Returns the trial's time of the library's instant: 0 for all before it, `None` for
    /// instants a year or more away, which libraries return for "never".
    pub fn from_std(&self, at: StdInstant) -> Option<Instant> {
        let since = at.saturating_duration_since(self.base);
        let ns = u64::try_from(since.as_nanos()).ok()?;
        (since < NEVER).then_some(Instant::from_nanos(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_comes_back_to_the_nanosecond() {
        let clock = Clock::from_base(StdInstant::now());
        for ns in [0, 1, 999_999_999, 86_400_000_000_000] {
            let at = Instant::from_nanos(ns);
            assert_eq!(clock.from_std(clock.to_std(at)), Some(at));
        }
    }

    #[test]
    fn the_past_is_now_and_the_far_future_never() {
        let base = StdInstant::now() + StdDuration::from_secs(10);
        let clock = Clock::from_base(base);
        assert_eq!(clock.from_std(base - StdDuration::from_secs(1)), Some(Instant::ZERO));
        assert_eq!(clock.from_std(base + NEVER), None);
    }
}
