//! The rate of sent bytes, as librist averages it.

use streamgauge_base::{Duration, Instant};

/// A rate that is measured each so long, and of which 1/8 enters the average.
pub(super) struct Meter {
    every: Duration,
    since: Option<Instant>,
    bytes: u64,
    average_bps: f64,
}

impl Meter {
    pub fn new(every: Duration) -> Self {
        Meter { every, since: None, bytes: 0, average_bps: 0.0 }
    }

    /// Counts bytes that are sent now; the first ones begin the time alone.
    pub fn add(&mut self, now: Instant, bytes: usize) {
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        self.bytes += bytes as u64;
        let took = now.saturating_since(since);
        if took >= self.every {
            let rate = 8.0 * self.bytes as f64 / took.as_secs_f64();
            self.average_bps += (rate - self.average_bps) / 8.0;
            (self.since, self.bytes) = (Some(now), 0);
        }
    }

    /// Returns bit/s.
    pub fn bps(&self) -> f64 {
        self.average_bps
    }
}

/// A quick average and a slow one: librist's, each 100 ms and each second.
pub(super) struct Meters {
    pub fast: Meter,
    pub slow: Meter,
}

impl Meters {
    pub fn new() -> Self {
        let ms = Duration::from_millis;
        Meters { fast: Meter::new(ms(100)), slow: Meter::new(ms(1000)) }
    }

    pub fn add(&mut self, now: Instant, bytes: usize) {
        self.fast.add(now, bytes);
        self.slow.add(now, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_reached_by_eighths() {
        let mut meters = Meters::new();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        (0..=1_000).for_each(|ms| meters.add(at(ms), 125));
        // 1 Mbit/s: ten steps of the quick one, one of the slow one.
        let quick = 1e6 * (1.0 - (7.0f64 / 8.0).powi(10));
        assert!((meters.fast.bps() / quick - 1.0).abs() < 0.01, "{}", meters.fast.bps());
        assert!((meters.slow.bps() / 125e3 - 1.0).abs() < 0.01, "{}", meters.slow.bps());
    }
}
