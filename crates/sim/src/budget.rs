//! Bounds of a trial that would otherwise run for days or fill the machine's memory.

use streamgauge_base::{Duration, Instant};
use streamgauge_plan::TrialLimits;

use crate::error::SimError;

/// Memory is checked once in this many events: a trial grows by some megabytes in between.
const BETWEEN_CHECKS: u64 = 1 << 16;

/// Counts a trial's events against its limits.
#[derive(Debug)]
pub struct Budget {
    limits: TrialLimits,
    events: u64,
    next_check: u64,
}

impl Budget {
    pub fn new(limits: TrialLimits) -> Self {
        Budget { limits, events: 0, next_check: next_check(0, limits) }
    }

    /// Counts one event; true if [`Budget::check`] must be called.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.events += 1;
        self.events == self.next_check
    }

    /// Refuses a trial of `duration` that is beyond a limit at `now`, where it holds `memory_bytes`.
    #[cold]
    pub fn check(&mut self, now: Instant, duration: Duration, memory_bytes: u64) -> Result<(), SimError> {
        let TrialLimits { events, memory_bytes: most_bytes } = self.limits;
        let at = format!("at {} s of at most {} s", now.as_secs_f64(), duration.as_secs_f64());
        let remedy = "shorten the trial, lower its rates, or raise this key";
        if self.events > events {
            return Err(SimError::plan("limits.events", format!("more than {events} events {at}; {remedy}")));
        }
        if memory_bytes > most_bytes {
            let what = format!("{memory_bytes} B of packets and record {at}; the limit is {most_bytes} B");
            return Err(SimError::plan("limits.memory", format!("{what}; {remedy}")));
        }
        self.next_check = next_check(self.events, self.limits);
        Ok(())
    }
}

/// Returns when to check next: the first event beyond the limit is always checked.
fn next_check(events: u64, limits: TrialLimits) -> u64 {
    (events + BETWEEN_CHECKS).min(limits.events.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(limits: TrialLimits, events: u64, bytes_per_event: u64) -> Result<u64, (u64, String)> {
        let mut budget = Budget::new(limits);
        for event in 1..=events {
            if budget.is_due() {
                let found = budget.check(Instant::ZERO, Duration::from_secs(1), event * bytes_per_event);
                found.map_err(|error| (event, error.to_string()))?;
            }
        }
        Ok(events)
    }

    #[test]
    fn the_first_event_beyond_the_limit_is_refused_and_none_before_it() {
        for events in [1, 2, BETWEEN_CHECKS - 1, BETWEEN_CHECKS, BETWEEN_CHECKS + 1, 3 * BETWEEN_CHECKS] {
            let limits = TrialLimits { events, ..TrialLimits::default() };
            assert_eq!(run(limits, events, 0), Ok(events));
            let (at, why) = run(limits, events + 5, 0).unwrap_err();
            assert_eq!(at, events + 1);
            assert!(why.starts_with(&format!("limits.events: more than {events} events")), "{why}");
        }
    }

    #[test]
    fn memory_is_refused_within_one_interval_of_its_limit() {
        let limits = TrialLimits { memory_bytes: 10 * BETWEEN_CHECKS, ..TrialLimits::default() };
        assert!(run(limits, 10 * BETWEEN_CHECKS, 1).is_ok());
        let (at, why) = run(limits, 12 * BETWEEN_CHECKS, 1).unwrap_err();
        assert_eq!(at, 11 * BETWEEN_CHECKS);
        assert!(why.starts_with("limits.memory: 720896 B") && why.contains("655360 B"), "{why}");
    }
}
