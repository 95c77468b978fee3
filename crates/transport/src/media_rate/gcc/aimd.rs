//! The delay-based estimate: additive or multiplicative increase, multiplicative decrease.
//!
//! Source: libwebrtc's AIMD rate control (branch 7204), which descends from draft-ietf-rmcat-gcc-02 section 5.5.

use streamgauge_base::{Duration, Instant};

use super::super::overuse::Usage;
use super::capacity::Capacity;

/// The fraction of the arriving rate that remains after a reduction, and the amount subtracted from that.
const BACKOFF: f64 = 0.85;
const BACKOFF_BPS: f64 = 5_000.0;
/// A second's growth while no capacity is known.
const GROWTH: f64 = 1.08;
/// Upper bound of the estimate, as a multiple of the arriving rate.
const AHEAD: f64 = 1.5;
const AHEAD_BPS: f64 = 10_000.0;
/// The least growth near the capacity, bit/s in a second.
const LEAST_GROWTH_BPS: f64 = 4_000.0;
/// Time that the path's answer needs beyond its round trip.
const DETECTOR: Duration = Duration::from_millis(100);
const PACKET_BYTES: f64 = 1200.0;
const FRAMES_PER_S: f64 = 30.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
}

#[derive(Clone, Debug)]
pub(super) struct Aimd {
    bps: f64,
    bounds: (f64, f64),
    state: State,
    capacity: Capacity,
    rtt: Duration,
    changed: Option<Instant>,
}

impl Aimd {
    pub fn new(start: f64, bounds: (f64, f64)) -> Self {
        let (capacity, rtt) = (Capacity::default(), Duration::from_millis(200));
        Aimd { bps: start, bounds, state: State::Hold, capacity, rtt, changed: None }
    }

    /// Returns the estimate, bit/s.
    pub fn rate(&self) -> f64 {
        self.bps
    }

    /// Notes that the path's round trip was measured.
    pub fn round_trip(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Notes that a probe measured the path.
    pub fn probed(&mut self, now: Instant, bps: f64) {
        self.capacity.probed(bps);
        self.set(now, bps);
    }

    fn set(&mut self, now: Instant, bps: f64) {
        self.bps = bps.clamp(self.bounds.0, self.bounds.1);
        self.changed = Some(now);
    }

    /// Returns whether an overuse may lower the estimate again: a round trip after the last change, or at once where
    /// less than half of it arrives.
    fn may_decrease(&self, now: Instant, acked: f64) -> bool {
        let wait = self.rtt.as_nanos().clamp(10_000_000, 200_000_000);
        let waited = self.changed.is_none_or(|changed| now.saturating_since(changed).as_nanos() >= wait);
        waited || acked < 0.5 * self.bps
    }

    /// Applies the detector's result and the rate that arrives, if it is known. Returns whether the estimate fell.
    pub fn update(&mut self, now: Instant, usage: Usage, acked: Option<f64>) -> bool {
        match usage {
            Usage::Over => match acked {
                Some(acked) if self.may_decrease(now, acked) => self.decrease(now, acked),
                None if self.may_decrease(now, self.bps) => {
                    self.set(now, self.bps / 2.0);
                    true
                }
                _ => false,
            },
            Usage::Under => {
                self.state = State::Hold;
                false
            }
            Usage::Normal => {
                if self.state == State::Hold {
                    (self.state, self.changed) = (State::Increase, Some(now));
                }
                self.increase(now, acked);
                false
            }
        }
    }

    fn increase(&mut self, now: Instant, acked: Option<f64>) {
        if acked.zip(self.capacity.upper()).is_some_and(|(acked, upper)| acked > upper) {
            self.capacity.reset();
        }
        let since = self.changed.map_or(0.0, |changed| now.saturating_since(changed).as_secs_f64()).min(1.0);
        let more = match self.capacity.mean() {
            Some(_) => self.growth_near_capacity() * since,
            None => (self.bps * (libm::pow(GROWTH, since) - 1.0)).max(1000.0 * since),
        };
        let limit = acked.map_or(f64::INFINITY, |acked| AHEAD * acked + AHEAD_BPS);
        let bps = if self.bps < limit { (self.bps + more).min(limit) } else { self.bps };
        self.set(now, bps);
    }

    /// Returns the growth by a packet each response time, bit/s in a second.
    fn growth_near_capacity(&self) -> f64 {
        let frame_bytes = self.bps / FRAMES_PER_S / 8.0;
        let packets = (frame_bytes / PACKET_BYTES).ceil().max(1.0);
        let response = (self.rtt + DETECTOR).as_secs_f64();
        (frame_bytes / packets * 8.0 / response).max(LEAST_GROWTH_BPS)
    }

    fn decrease(&mut self, now: Instant, acked: f64) -> bool {
        let mut bps = BACKOFF * acked;
        if bps > BACKOFF_BPS {
            bps -= BACKOFF_BPS;
        }
        if bps > self.bps
            && let Some(capacity) = self.capacity.mean()
        {
            bps = BACKOFF * capacity;
        }
        let before = self.bps;
        if self.capacity.lower().is_some_and(|lower| acked < lower) {
            self.capacity.reset();
        }
        self.capacity.overused_at(acked);
        self.state = State::Hold;
        self.set(now, bps.min(self.bps));
        self.bps < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn grown(mut aimd: Aimd, ms: u64, acked: impl Fn(f64) -> f64) -> Aimd {
        for step in 0..=ms / 50 {
            let arrives = acked(aimd.rate());
            aimd.update(at(50 * step), Usage::Normal, Some(arrives));
        }
        aimd
    }

    #[test]
    fn it_doubles_in_nine_seconds() {
        let aimd = grown(Aimd::new(300e3, (1e3, 1e9)), 9_000, |rate| rate);
        // 1.08 ^ 9 = 1.999
        assert!((aimd.rate() / 300e3 - 1.999).abs() < 0.01, "{}", aimd.rate());
    }

    #[test]
    fn one_overuse_leaves_0_85_of_what_arrives_less_5_kbit_s() {
        let mut aimd = Aimd::new(1e6, (1e3, 1e9));
        assert!(aimd.update(at(1_000), Usage::Over, Some(900e3)));
        assert!((aimd.rate() - 760e3).abs() < 1.0);
        assert!(!aimd.update(at(1_100), Usage::Over, Some(700e3)), "a round trip of 200 ms has not passed");
        assert!(aimd.update(at(1_100), Usage::Over, Some(300e3)), "less than half arrives");
        assert!(aimd.update(at(1_301), Usage::Over, Some(240e3)));
    }

    #[test]
    fn near_a_megabit_it_grows_by_55_kbit_s_in_a_second() {
        let mut aimd = Aimd::new(1.3e6, (1e3, 1e9));
        aimd.round_trip(Duration::from_millis(50));
        aimd.update(at(0), Usage::Over, Some(1_182_353.0));
        let before = aimd.rate();
        let after = grown(aimd, 1_000, |rate| rate).rate();
        assert!((before - 1e6).abs() < 1.0);
        assert!((54e3..59e3).contains(&(after - before)), "{}", after - before);
    }

    #[test]
    fn it_is_no_more_than_half_beyond_what_arrives() {
        let aimd = grown(Aimd::new(300e3, (1e3, 1e9)), 60_000, |_| 400e3);
        assert!((aimd.rate() - 610e3).abs() < 1.0, "{}", aimd.rate());
    }

    #[test]
    fn a_path_of_which_nothing_is_known_gets_half() {
        let mut aimd = Aimd::new(1e6, (1e3, 1e9));
        assert!(aimd.update(at(0), Usage::Over, None));
        assert_eq!(aimd.rate(), 500e3);
    }
}
