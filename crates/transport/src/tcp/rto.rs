//! The retransmission timeout (RFC 6298).

use streamgauge_base::Duration;

/// Before the first sample (RFC 6298 section 2.1).
const INITIAL: Duration = Duration::from_secs(1);

/// Smoothed round-trip time and the timeout that follows from it.
#[derive(Clone, Debug)]
pub struct Rto {
    srtt: Option<u64>,
    rttvar: u64,
    min_rtt: Duration,
    floor: u64,
    ceiling: u64,
    base: u64,
    backoff: u32,
}

impl Rto {
    /// `floor` bounds the variance term from below, `ceiling` the whole.
    pub fn new(floor: Duration, ceiling: Duration) -> Self {
        Rto {
            srtt: None,
            rttvar: 0,
            min_rtt: Duration::MAX,
            floor: floor.as_nanos(),
            ceiling: ceiling.as_nanos(),
            base: INITIAL.as_nanos(),
            backoff: 0,
        }
    }

    /// A measured round trip of a segment sent once (Karn), or one told by its timestamp. Ends any backoff.
    pub fn sample(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        let r = rtt.as_nanos();
        let srtt = match self.srtt {
            None => {
                self.rttvar = r / 2;
                r
            }
            Some(srtt) => {
                self.rttvar = self.rttvar - self.rttvar / 4 + srtt.abs_diff(r) / 4;
                srtt - srtt / 8 + r / 8
            }
        };
        self.srtt = Some(srtt);
        // The timer's granularity G of section 2.3 is a nanosecond here, far below the floor.
        self.base = srtt.saturating_add((4 * self.rttvar).max(self.floor)).min(self.ceiling);
        self.backoff = 0;
    }

    /// The timer expired: the next timeout is twice as long (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }
    /// The peer answered, which measured nothing: the next timeout is the measured one again.
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }
    /// The timeout, backed off.
    pub fn timeout(&self) -> Duration {
        Duration::from_nanos(self.base.saturating_mul(1 << self.backoff).min(self.ceiling))
    }
    /// SRTT; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt.map(Duration::from_nanos)
    }
    /// RTTVAR.
    pub fn rttvar(&self) -> Duration {
        Duration::from_nanos(self.rttvar)
    }
    /// Least sample; `Duration::MAX` before the first.
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

    #[test]
    fn first_samples_follow_rfc_6298_section_2() {
        let mut rto = rto();
        assert_eq!(rto.timeout(), Duration::from_secs(1));
        rto.sample(Duration::from_millis(400));
        assert_eq!(rto.timeout(), Duration::from_millis(400 + 4 * 200));
        rto.sample(Duration::from_millis(200));
        // RTTVAR = 3/4 * 200 + 1/4 * 200 = 200, SRTT = 7/8 * 400 + 1/8 * 200 = 375.
        assert_eq!(rto.timeout(), Duration::from_millis(375 + 800));
    }

    #[test]
    fn the_floor_bounds_the_variance_term() {
        let mut rto = rto();
        for _ in 0..200 {
            rto.sample(Duration::from_millis(20));
        }
        let timeout = rto.timeout().as_nanos();
        assert!((219 * MS..=220 * MS).contains(&timeout), "{timeout}");
    }

    #[test]
    fn backs_off_by_doubling_up_to_the_ceiling_and_a_sample_ends_it() {
        let mut rto = rto();
        rto.sample(Duration::from_millis(100));
        let first = rto.timeout().as_nanos();
        for n in 1..=40u32 {
            rto.back_off();
            let expected = (u128::from(first) << n.min(32)).min(u128::from(120_000 * MS));
            assert_eq!(u128::from(rto.timeout().as_nanos()), expected);
        }
        rto.sample(Duration::from_millis(100));
        assert!(rto.timeout().as_nanos() <= first);
    }
}
