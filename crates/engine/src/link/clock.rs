//! From the kernel's stamps (CLOCK_REALTIME) to CLOCK_MONOTONIC, by an offset that is watched.

use nix::libc;

use crate::sys::{clock_ns, monotonic_ns};

/// A change of the offset larger than this is a set clock, not the noise of reading two clocks in turn.
const STEP_NS: i64 = 20_000;

/// The offset in use and how good it was.
#[derive(Clone, Debug)]
pub struct Clock {
    offset_ns: i64,
    skew_ns: i64,
    drift_ns: i64,
    steps: u64,
    min_age_ns: Option<i64>,
}

/// Returns CLOCK_REALTIME minus CLOCK_MONOTONIC, and the distance of the readings around it.
fn measure() -> (i64, i64) {
    let before = monotonic_ns();
    let real = clock_ns(libc::CLOCK_REALTIME);
    let after = monotonic_ns();
    (real - before - (after - before) / 2, after - before)
}

/// Returns the best of several measurements.
fn measure_well() -> i64 {
    (0..20).map(|_| measure()).min_by_key(|&(_, width)| width).map_or(0, |(offset, _)| offset)
}

impl Clock {
    /// Returns a clock with a fresh offset.
    pub fn new() -> Self {
        Clock { offset_ns: measure_well(), skew_ns: 0, drift_ns: 0, steps: 0, min_age_ns: None }
    }

    /// Looks whether CLOCK_REALTIME was set, and follows it. Costs three clock readings.
    #[inline]
    pub fn watch(&mut self) {
        let (fresh, width) = measure();
        // An interrupted measurement has no result; the next one will have.
        if (fresh - self.offset_ns).abs() > STEP_NS + width {
            self.follow();
        }
    }

    #[cold]
    fn follow(&mut self) {
        let fresh = measure_well();
        if (fresh - self.offset_ns).abs() > STEP_NS {
            self.drift_ns = self.drift_ns.max((fresh - self.offset_ns).abs());
            self.steps += 1;
            self.offset_ns = fresh;
        }
    }

    /// Returns a stamp on CLOCK_MONOTONIC.
    #[inline]
    pub fn monotonic(&self, stamp_ns: i64) -> i64 {
        stamp_ns - self.offset_ns - self.skew_ns
    }

    /// Returns a time of CLOCK_MONOTONIC as a stamp.
    #[inline]
    pub fn realtime(&self, monotonic_ns: i64) -> i64 {
        monotonic_ns + self.offset_ns
    }

    /// Injects a fault: adds to the offset in use, not to the one that is measured.
    pub fn skew(&mut self, ns: i64) {
        self.skew_ns = ns;
    }

    /// Notes that a packet stamped at `stamp_ns` is read when CLOCK_MONOTONIC reads `now_ns`.
    #[inline]
    pub fn saw(&mut self, stamp_ns: i64, now_ns: i64) {
        let age = now_ns - self.monotonic(stamp_ns);
        if self.min_age_ns.is_none_or(|least| age < least) {
            self.min_age_ns = Some(age);
        }
    }

    /// Compares the offset in use with a fresh measurement.
    pub fn check(&mut self) {
        let error = (self.offset_ns + self.skew_ns - measure_well()).abs();
        self.drift_ns = self.drift_ns.max(error);
    }

    /// Forgets all earlier measurements.
    pub fn reset(&mut self) {
        *self = Clock { skew_ns: self.skew_ns, ..Clock::new() };
    }

    /// Returns the largest |offset in use - true offset| seen, ns.
    pub fn drift_ns(&self) -> i64 {
        self.drift_ns
    }
    /// Returns how often CLOCK_REALTIME was set.
    pub fn steps(&self) -> u64 {
        self.steps
    }
    /// Returns the smallest age of a packet when it was read, ns.
    pub fn min_age_ns(&self) -> Option<i64> {
        self.min_age_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_stamp_converts_to_the_time_it_was_taken() {
        let mut clock = Clock::new();
        let stamp = clock_ns(libc::CLOCK_REALTIME);
        let now = monotonic_ns();
        clock.saw(stamp, now);
        let age = clock.min_age_ns().unwrap();
        // The two readings may be interrupted, which only makes the stamp older.
        assert!(age > -5_000, "{age}");
        clock.check();
        assert!(clock.drift_ns() < STEP_NS, "{}", clock.drift_ns());
    }

    #[test]
    fn a_skew_shows_as_drift_and_as_age() {
        let mut clock = Clock::new();
        clock.skew(2_000_000);
        clock.saw(clock_ns(libc::CLOCK_REALTIME), monotonic_ns());
        clock.check();
        assert!(clock.drift_ns() > 1_900_000, "{}", clock.drift_ns());
        assert!(clock.min_age_ns().unwrap() > 1_900_000);
    }
}
