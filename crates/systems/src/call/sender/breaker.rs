//! The circuit breaker: reports that fail to come lower the rate to its floor.
//!
//! Source: RFC 8083 section 4.1: three intervals of reports without one are a fault of the path. It then
//! makes a sender stop by steps: the rate is halved each second.

use streamgauge_base::{Duration, Instant};

/// Intervals without a report.
const INTERVALS: u64 = 3;
/// The least wait, and the time between two steps.
const STEP: Duration = Duration::from_secs(1);

pub(super) struct Breaker {
    limit: Duration,
    /// Time of the last report, or of the first packet sent since there was nothing to report on.
    since: Option<Instant>,
    next: Option<Instant>,
    cap: Option<f64>,
}

impl Breaker {
    /// Returns the breaker for a receiver with this interval of reports.
    pub fn new(interval: Duration) -> Self {
        let limit = Duration::from_nanos((interval.as_nanos() * INTERVALS).max(STEP.as_nanos()));
        Breaker { limit, since: None, next: None, cap: None }
    }

    /// Returns the rate that it leaves, bit/s.
    pub fn cap(&self) -> Option<f64> {
        self.cap
    }

    /// Returns when it is to be asked.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Notes that a packet was sent.
    pub fn sent(&mut self, now: Instant) {
        if self.since.is_none() {
            self.since = Some(now);
            self.next = Some(now + self.limit);
        }
    }

    /// Notes a report. Returns the rate that it leaves, where it had tripped: twice as much each second.
    pub fn heard(&mut self, now: Instant) -> Option<f64> {
        let had = self.since.replace(now);
        self.next = Some(now + self.limit);
        let cap = self.cap?;
        let since = had.map_or(0.0, |had| now.saturating_since(had).as_secs_f64()).min(1.0);
        self.cap = (cap < 1e9).then_some(cap * libm::exp2(since));
        self.cap
    }

    /// Notes that nothing is sent for a while.
    pub fn rest(&mut self) {
        (self.since, self.next) = (None, None);
    }

    /// Returns the part of `bps` that it allows at `now`, where that has changed.
    pub fn check(&mut self, now: Instant, bps: f64, floor: f64) -> Option<f64> {
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        let cap = (bps / 2.0).max(floor);
        self.next = (cap > floor).then(|| now + STEP);
        let is_new = self.cap.is_none_or(|known| cap < known);
        self.cap = Some(cap);
        is_new.then_some(cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn silence_halves_the_rate_each_second_down_to_the_floor() {
        let mut breaker = Breaker::new(Duration::from_millis(50));
        breaker.sent(at(0));
        assert_eq!(breaker.check(at(999), 800e3, 150e3), None);
        let mut bps = 800e3;
        let mut seen = Vec::new();
        while let Some(next) = breaker.next() {
            bps = breaker.check(next, bps, 150e3).unwrap();
            seen.push((next, bps));
        }
        assert_eq!(seen, [(at(1_000), 400e3), (at(2_000), 200e3), (at(3_000), 150e3)]);
        assert!(breaker.heard(at(9_000)).is_some());
        assert!((breaker.heard(at(10_000)).unwrap() - 600e3).abs() < 1.0, "twice as much each second");
    }

    #[test]
    fn reports_hold_it_closed_and_a_pause_is_no_silence() {
        let mut breaker = Breaker::new(Duration::from_millis(400));
        breaker.sent(at(0));
        for ms in (100..5_000).step_by(400) {
            assert_eq!((breaker.heard(at(ms)), breaker.check(at(ms + 300), 1e6, 1e5)), (None, None));
        }
        breaker.rest();
        assert_eq!(breaker.check(at(60_000), 1e6, 1e5), None);
    }
}
