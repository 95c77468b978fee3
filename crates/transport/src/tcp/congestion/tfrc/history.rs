//! The loss event rate: the inverse of a weighted mean of loss intervals (RFC 5348 sections 5.3 to 5.5).

/// Weights of the eight last intervals, the newest first (section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Least discount of the past while the present interval grows long (section 5.5).
const LEAST_DISCOUNT: f64 = 0.25;

/// Packets between the starts of two loss events, and its discount.
#[derive(Clone, Copy, Debug)]
struct Interval {
    packets: f64,
    discount: f64,
}

/// The present loss interval and those before it.
#[derive(Clone, Debug, Default)]
pub struct LossIntervals {
    /// Packets since the last loss event began.
    open: f64,
    /// Newest first; empty before the first loss event.
    closed: [Option<Interval>; 8],
}

impl LossIntervals {
    /// Counts `packets` more that were sent and are now known to be lost or received.
    pub fn count(&mut self, packets: f64) {
        self.open += packets;
    }

    /// Returns true before the first loss event.
    pub fn is_empty(&self) -> bool {
        self.closed[0].is_none()
    }

    /// Begins a loss event. `first`: the interval that replaces everything before the first one (section 6.3.1).
    pub fn event(&mut self, first: impl FnOnce() -> f64) {
        let discount = self.discount();
        for interval in self.closed.iter_mut().flatten() {
            interval.discount *= discount;
        }
        let packets = if self.is_empty() { first() } else { self.open };
        self.closed.rotate_right(1);
        self.closed[0] = Some(Interval { packets, discount: 1.0 });
        self.open = 0.0;
    }

    /// Returns the loss event rate p; 0 before the first loss event. The open interval counts only where it lowers it.
    pub fn rate(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let discount = self.discount();
        let (mut total, mut weight) = (self.open * WEIGHTS[0], WEIGHTS[0]);
        for (interval, w) in self.closed.iter().flatten().zip(&WEIGHTS[1..]) {
            total += interval.packets * w * interval.discount * discount;
            weight += w * interval.discount * discount;
        }
        1.0 / (total / weight).max(self.mean_closed()).max(1.0)
    }

    fn mean_closed(&self) -> f64 {
        let (mut total, mut weight) = (0.0, 0.0);
        for (interval, w) in self.closed.iter().flatten().zip(&WEIGHTS) {
            total += interval.packets * w * interval.discount;
            weight += w * interval.discount;
        }
        if weight == 0.0 { 0.0 } else { total / weight }
    }

    /// Returns how much the past counts while the open interval is more than twice its mean.
    fn discount(&self) -> f64 {
        let twice = 2.0 * self.mean_closed();
        if self.open > twice { (twice / self.open).max(LEAST_DISCOUNT) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the intervals after loss events every `packets` packets.
    fn steady(packets: f64, events: usize) -> LossIntervals {
        let mut intervals = LossIntervals::default();
        for _ in 0..events {
            intervals.count(packets);
            intervals.event(|| packets);
        }
        intervals
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    #[test]
    fn steady_intervals_give_their_inverse() {
        for events in [1, 3, 8, 20] {
            assert!(near(steady(100.0, events).rate(), 0.01), "{events}");
        }
        assert_eq!(LossIntervals::default().rate(), 0.0);
    }

    #[test]
    fn an_open_interval_counts_only_once_it_raises_the_mean() {
        let mut intervals = steady(100.0, 8);
        intervals.count(99.0);
        assert!(near(intervals.rate(), 0.01));
        // (199 + 100 * (3 + 0.8 + 0.6 + 0.4 + 0.2)) / 6.
        intervals.count(100.0);
        assert!(near(intervals.rate(), 6.0 / 699.0), "{}", intervals.rate());
    }

    #[test]
    fn a_long_interval_discounts_the_past() {
        let mut intervals = steady(100.0, 8);
        intervals.count(400.0);
        // DF = 2 * 100 / 400.
        assert!(near(intervals.rate(), (1.0 + 5.0 * 0.5) / (400.0 + 500.0 * 0.5)), "{}", intervals.rate());
        intervals.count(9_600.0);
        // It never falls below a quarter.
        assert!(near(intervals.rate(), (1.0 + 5.0 * 0.25) / (10_000.0 + 500.0 * 0.25)));
        // A new loss event keeps the discount of the intervals before the long one.
        intervals.event(|| unreachable!());
        assert!(near(intervals.rate(), (1.0 + 5.0 * 0.25) / (10_000.0 + 500.0 * 0.25)));
    }

    #[test]
    fn eight_intervals_are_remembered() {
        let mut intervals = steady(1_000.0, 8);
        for _ in 0..8 {
            intervals.count(50.0);
            intervals.event(|| unreachable!());
        }
        assert!(near(intervals.rate(), 0.02));
    }
}
