//! The trend of the queueing delay: the slope of a line through the last twenty smoothed delays.
//!
//! Source: libwebrtc's trendline estimator (branch 7204): window 20, smoothing 0.9, gain 4, at most 60 groups weigh.

use std::collections::VecDeque;

use super::super::groups::Apart;

const WINDOW: usize = 20;
const SMOOTHING: f64 = 0.9;
const GAIN: f64 = 4.0;
const MOST_GROUPS: f64 = 60.0;

#[derive(Clone, Debug, Default)]
pub(super) struct Trendline {
    first: Option<f64>,
    delay: f64,
    smoothed: f64,
    groups: f64,
    trend: f64,
    /// When, since the first, and the smoothed delay, ms.
    points: VecDeque<(f64, f64)>,
}

impl Trendline {
    /// Adds the distance of two groups; the later one arrived at `arrived` ms. Returns the signal for the detector.
    pub fn add(&mut self, apart: Apart, arrived: f64) -> f64 {
        let first = *self.first.get_or_insert(arrived);
        self.groups = (self.groups + 1.0).min(1000.0);
        self.delay += apart.arrived - apart.sent;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.delay;
        self.points.push_back((arrived - first, self.smoothed));
        if self.points.len() > WINDOW {
            self.points.pop_front();
        }
        if self.points.len() == WINDOW
            && let Some(slope) = slope(&self.points)
        {
            self.trend = slope;
        }
        if self.groups < 2.0 { 0.0 } else { self.groups.min(MOST_GROUPS) * self.trend * GAIN }
    }
}

/// Returns the slope of the line through `points` by least squares; `None` if they lie above one another.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / n, y / n);
    let (mut over, mut under) = (0.0, 0.0);
    for point in points {
        over += (point.0 - x) * (point.1 - y);
        under += (point.0 - x) * (point.0 - x);
    }
    (under != 0.0).then(|| over / under)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_grows_by_a_tenth_of_the_time_has_a_trend_of_a_tenth() {
        let mut line = Trendline::default();
        let mut signal = 0.0;
        for group in 1..200 {
            signal = line.add(Apart { sent: 30.0, arrived: 33.0 }, 33.0 * f64::from(group));
        }
        // 3 ms in 33 ms of arrivals, 60 groups, gain 4.
        assert!((signal - 60.0 * 4.0 * 3.0 / 33.0).abs() < 1e-3, "{signal}");
    }

    #[test]
    fn a_steady_path_has_none() {
        let mut line = Trendline::default();
        assert!(
            (1..100)
                .all(|group| line.add(Apart { sent: 30.0, arrived: 30.0 }, 30.0 * f64::from(group)) == 0.0)
        );
    }
}
