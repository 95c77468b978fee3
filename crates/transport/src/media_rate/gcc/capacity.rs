//! The link's capacity as overuses have shown it: a mean and its deviation.
//!
//! Source: libwebrtc's link capacity estimator (branch 7204), in kbit/s.

#[derive(Clone, Debug)]
pub(super) struct Capacity {
    kbps: Option<f64>,
    /// Variance of the error, relative to the mean.
    deviation: f64,
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity { kbps: None, deviation: 0.4 }
    }
}

impl Capacity {
    /// Notes that an overuse was seen while `bps` arrived.
    pub fn overused_at(&mut self, bps: f64) {
        self.update(bps / 1e3, 0.05);
    }

    /// Notes that a probe measured it.
    pub fn probed(&mut self, bps: f64) {
        self.update(bps / 1e3, 0.5);
    }

    /// Forgets it.
    pub fn reset(&mut self) {
        self.kbps = None;
    }

    fn update(&mut self, sample: f64, weight: f64) {
        let mean = self.kbps.map_or(sample, |kbps| (1.0 - weight) * kbps + weight * sample);
        self.kbps = Some(mean);
        let error = mean - sample;
        let squared = error * error / mean.max(1.0);
        self.deviation = ((1.0 - weight) * self.deviation + weight * squared).clamp(0.4, 2.5);
    }

    /// Returns it in bit/s.
    pub fn mean(&self) -> Option<f64> {
        self.kbps.map(|kbps| kbps * 1e3)
    }

    fn bound(&self, sigmas: f64) -> Option<f64> {
        self.kbps.map(|kbps| (kbps + sigmas * (self.deviation * kbps).sqrt()).max(0.0) * 1e3)
    }

    /// Returns three deviations above the mean, bit/s.
    pub fn upper(&self) -> Option<f64> {
        self.bound(3.0)
    }

    /// Returns the mean less three deviations, bit/s.
    pub fn lower(&self) -> Option<f64> {
        self.bound(-3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_deviations_around_the_mean() {
        let mut capacity = Capacity::default();
        assert_eq!((capacity.mean(), capacity.upper()), (None, None));
        capacity.overused_at(1e6);
        // Deviation 0.4 of 1000 kbit/s: three times its root of 400 is 60 kbit/s.
        let near = |value: Option<f64>, wanted: f64| (value.unwrap() - wanted).abs() < 1e-3;
        assert!(near(capacity.upper(), 1.06e6) && near(capacity.lower(), 0.94e6));
        capacity.probed(2e6);
        assert!(near(capacity.mean(), 1.5e6));
        capacity.reset();
        assert_eq!(capacity.lower(), None);
    }
}
