//! The round trip and its variance (draft-sharabayko-srt-01 section 4.10).

use streamgauge_base::Duration;

/// Smoothed measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RoundTrip {
    pub smoothed: Duration,
    pub variance: Duration,
}

impl RoundTrip {
    pub fn new(smoothed: Duration, variance: Duration) -> Self {
        RoundTrip { smoothed, variance }
    }

    /// Takes a measurement: the variance has a weight of 1/4 for the new one, the round trip of 1/8.
    pub fn measured(&mut self, rtt: Duration) {
        let off = self.smoothed.saturating_sub(rtt) + rtt.saturating_sub(self.smoothed);
        self.variance = (self.variance * 3 + off).div(4);
        self.smoothed = (self.smoothed * 7 + rtt).div(8);
    }

    /// Returns the round trip with four variances.
    pub fn upper(&self) -> Duration {
        self.smoothed + self.variance * 4
    }

    /// Returns the round trip without four variances.
    pub fn lower(&self) -> Duration {
        self.smoothed.saturating_sub(self.variance * 4)
    }

    /// Returns microseconds of both, as in an acknowledgement.
    pub fn micros(&self) -> (u32, u32) {
        let us = |time: Duration| u32::try_from(time.as_nanos() / 1_000).unwrap_or(u32::MAX);
        (us(self.smoothed), us(self.variance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_round_trip_is_reached_from_the_first_value() {
        let ms = Duration::from_millis;
        let mut rtt = RoundTrip::new(ms(100), ms(50));
        rtt.measured(ms(20));
        assert_eq!(rtt, RoundTrip::new(ms(90), Duration::from_micros(57_500)));
        (0..100).for_each(|_| rtt.measured(ms(20)));
        let (smoothed, variance) = rtt.micros();
        assert!((20_000..20_100).contains(&smoothed) && variance < 100, "{smoothed} {variance}");
        assert!(rtt.lower() < rtt.smoothed && rtt.smoothed < rtt.upper());
    }
}
