//! The retransmission timeout (RFC 6298), with Linux's estimator of the variation.

use streamgauge_base::Duration;

/// Before the first sample (RFC 6298 section 2.1).
const INITIAL: Duration = Duration::from_secs(1);

/// Smoothed round-trip time and the timeout that follows from it. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Rto {
    /// 0 before the first sample.
    srtt: u64,
    /// Four times the smoothed deviation.
    deviation: u64,
    /// The largest value of `deviation` in the round trip that ends when `window_end` is acknowledged.
    largest: u64,
    window_end: u64,
    /// The addition to SRTT: it follows `largest` up at once, and down by a quarter per round trip.
    variation: u64,
    min_rtt: Duration,
    floor: u64,
    ceiling: u64,
    base: u64,
    backoff: u32,
}

impl Rto {
    /// Makes an estimator; `floor` bounds the variance term from below, `ceiling` the whole.
    pub fn new(floor: Duration, ceiling: Duration) -> Self {
        Rto {
            srtt: 0,
            deviation: 0,
            largest: 0,
            window_end: 0,
            variation: 0,
            min_rtt: Duration::MAX,
            floor: floor.as_nanos(),
            ceiling: ceiling.as_nanos(),
            base: INITIAL.as_nanos(),
            backoff: 0,
        }
    }

    /// Adds a measured round trip of a segment sent once (Karn), or one from its timestamp; the bytes outstanding are
    /// `una..next`. Ends any backoff.
    pub fn sample(&mut self, rtt: Duration, una: u64, next: u64) {
        let r = rtt.as_nanos();
        let srtt = match self.srtt {
            0 => {
                self.deviation = 2 * r;
                self.variation = self.deviation.max(self.floor);
                self.largest = self.variation;
                self.window_end = next;
                r
            }
            srtt => {
                let error = srtt.abs_diff(r);
                let excess = error as i64 - (self.deviation / 4) as i64;
                // A round trip that is shorter by more than the deviation makes the estimate less sure by an eighth of
                // the usual amount: it is no reason for a longer timeout.
                let step = if r < srtt && excess > 0 { excess / 8 } else { excess };
                self.deviation = self.deviation.saturating_add_signed(step);
                if self.deviation > self.largest {
                    self.largest = self.deviation;
                    self.variation = self.variation.max(self.largest);
                }
                if una > self.window_end {
                    self.variation -= self.variation.saturating_sub(self.largest) / 4;
                    self.window_end = next;
                    self.largest = self.floor;
                }
                srtt - srtt / 8 + r / 8
            }
        };
        let srtt = srtt.max(1);
        self.srtt = srtt;
        self.base = srtt.saturating_add(self.variation).min(self.ceiling);
        self.backoff = 0;
    }

    /// Notes that the least round trip seen is at most `rtt`.
    pub fn note_least(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
    }
    /// Backs off after the timer expired: the next timeout is twice as long (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }
    /// Ends the backoff after an answer that measured nothing: the next timeout is the measured one again.
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }
    /// Returns the timeout, backed off.
    #[inline]
    pub fn timeout(&self) -> Duration {
        Duration::from_nanos(self.base.saturating_mul(1 << self.backoff).min(self.ceiling))
    }
    /// Returns SRTT; `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        (self.srtt > 0).then(|| Duration::from_nanos(self.srtt))
    }
    /// Returns a quarter of the timeout's addition to SRTT, RFC 6298's RTTVAR.
    pub fn rttvar(&self) -> Duration {
        Duration::from_nanos(self.variation / 4)
    }
    /// Returns the least sample; `Duration::MAX` before the first.
    #[inline]
    pub fn min_rtt(&self) -> Duration {
        self.min_rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn rto() -> Rto {
        Rto::new(Duration::from_millis(200), Duration::from_secs(120))
    }

    /// Adds a sample of its own round trip.
    fn sample(rto: &mut Rto, at: &mut u64, ms: u64) {
        *at += 1;
        rto.sample(Duration::from_millis(ms), *at, *at);
    }

    #[test]
    fn first_samples_follow_rfc_6298_section_2() {
        let (mut rto, mut at) = (rto(), 0);
        assert_eq!(rto.timeout(), Duration::from_secs(1));
        sample(&mut rto, &mut at, 400);
        assert_eq!(rto.timeout(), Duration::from_millis(400 + 4 * 200));
        sample(&mut rto, &mut at, 600);
        // RTTVAR = 3/4 * 200 + 1/4 * 200 = 200, SRTT = 7/8 * 400 + 1/8 * 600 = 425.
        assert_eq!(rto.timeout(), Duration::from_millis(425 + 800));
    }

    #[test]
    fn the_floor_bounds_the_variance_term() {
        let (mut rto, mut at) = (rto(), 0);
        for _ in 0..200 {
            sample(&mut rto, &mut at, 20);
        }
        let timeout = rto.timeout().as_nanos();
        assert!((219 * MS..=220 * MS).contains(&timeout), "{timeout}");
    }

    #[test]
    fn the_variation_rises_at_once_and_falls_once_per_round_trip() {
        let (mut rto, mut at) = (rto(), 0);
        (0..50).for_each(|_| sample(&mut rto, &mut at, 20));
        sample(&mut rto, &mut at, 520);
        let high = rto.timeout();
        assert!(high > Duration::from_millis(550), "{high:?}");
        // Many samples within one round trip leave it where it is, apart from SRTT's own way.
        let variation = rto.rttvar();
        for _ in 0..100 {
            rto.sample(Duration::from_millis(20), at, at + 1000);
        }
        assert_eq!(rto.rttvar(), variation);
        (0..50).for_each(|_| sample(&mut rto, &mut at, 20));
        assert!(rto.timeout() < Duration::from_millis(225));
    }

    #[test]
    fn a_shorter_round_trip_alarms_less_than_a_longer_one() {
        let (mut up, mut down, mut at) = (rto(), rto(), 0);
        for _ in 0..100 {
            sample(&mut up, &mut at, 1000);
            sample(&mut down, &mut at, 1000);
        }
        sample(&mut up, &mut at, 1800);
        sample(&mut down, &mut at, 200);
        assert!(up.rttvar() > down.rttvar(), "{:?} {:?}", up.rttvar(), down.rttvar());
    }

    #[test]
    fn backs_off_by_doubling_up_to_the_ceiling_and_a_sample_ends_it() {
        let (mut rto, mut at) = (rto(), 0);
        sample(&mut rto, &mut at, 100);
        let first = rto.timeout().as_nanos();
        for n in 1..=40u32 {
            rto.back_off();
            let expected = (u128::from(first) << n.min(32)).min(u128::from(120_000 * MS));
            assert_eq!(u128::from(rto.timeout().as_nanos()), expected);
        }
        sample(&mut rto, &mut at, 100);
        assert!(rto.timeout().as_nanos() <= first);
    }
}
