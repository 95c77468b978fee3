//! The retransmission timeout.

use super::millis;
use super::settings::ServerSettings;

/// The mean round trip and its mean deviation (Jacobson and Karels, "Congestion Avoidance and Control",
/// appendix A), kept in integer milliseconds times 8 and times 4, and the timeout that follows from them, in
/// milliseconds. The first sample sets the mean and leaves the deviation to grow from its difference, which
/// is 0.
pub struct Timeout {
    mean_x8: i64,
    deviation_x4: i64,
    unclamped: i64,
    timeout: i64,
    min: i64,
    max: i64,
    fixed: Option<i64>,
}

impl Timeout {
    pub fn new(settings: &ServerSettings) -> Self {
        let initial = millis(settings.initial_timeout);
        Timeout {
            mean_x8: 0,
            deviation_x4: 0,
            unclamped: initial,
            timeout: initial,
            min: millis(settings.min_timeout),
            max: millis(settings.max_timeout),
            fixed: settings.fixed_timeout.map(millis),
        }
    }

    /// Adds a measured round trip.
    pub fn sample(&mut self, round_trip: i64) {
        if self.mean_x8 == 0 {
            self.mean_x8 = round_trip * 8;
        }
        let difference = round_trip - self.mean_x8 / 8;
        self.mean_x8 += difference;
        self.deviation_x4 += difference.abs() - self.deviation_x4 / 4;
        self.unclamped = self.mean_x8 / 8 + self.deviation_x4;
        self.timeout = self.unclamped.clamp(self.min, self.max);
    }

    /// Returns the mean round trip in milliseconds; the initial timeout before the first sample.
    pub fn mean(&self) -> i64 {
        if self.mean_x8 > 0 { self.mean_x8 / 8 } else { self.unclamped }
    }

    /// Returns the time that a packet waits for its acknowledgement now.
    pub fn current(&self) -> i64 {
        self.fixed.unwrap_or(self.timeout)
    }

    /// Returns the mean plus four mean deviations, as they are.
    pub fn unclamped(&self) -> i64 {
        self.unclamped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::Preset;
    use super::*;

    #[test]
    fn the_first_samples_give_what_the_formula_gives() {
        let mut timeout = Timeout::new(&ServerSettings::of(Preset::Source));
        assert_eq!((timeout.current(), timeout.unclamped()), (600, 600));
        timeout.sample(400);
        assert_eq!((timeout.current(), timeout.unclamped()), (600, 400), "mean 400, no deviation");
        timeout.sample(800);
        // Mean 400 + 400 / 8, four deviations 400.
        assert_eq!((timeout.current(), timeout.unclamped()), (850, 850));
        timeout.sample(450);
        assert_eq!(timeout.unclamped(), 450 + 400 - 100);
    }

    #[test]
    fn a_fixed_timeout_listens_to_no_sample() {
        let mut timeout = Timeout::new(&ServerSettings::of(Preset::Paper));
        assert_eq!(timeout.current(), 250);
        timeout.sample(5000);
        assert_eq!(timeout.current(), 250);
    }

    proptest! {
        #[test]
        fn the_timeout_stays_between_its_bounds_and_follows_a_steady_round_trip(
            samples in prop::collection::vec(0i64..60_000, 0..40), steady in 1i64..20_000,
        ) {
            let mut timeout = Timeout::new(&ServerSettings::of(Preset::Source));
            for sample in samples {
                timeout.sample(sample);
                prop_assert!((600..=24_000).contains(&timeout.current()));
            }
            (0..200).for_each(|_| timeout.sample(steady));
            // The integers stop moving up to 8 ms short in the mean and 4 ms in each deviation.
            let end = timeout.unclamped();
            prop_assert!((steady - 8..=steady + 40).contains(&end), "{}", end);
        }
    }
}
