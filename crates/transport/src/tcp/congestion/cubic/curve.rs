//! The cubic function in Linux's integers (net/ipv4/tcp_cubic.c).
//!
//! It decides how many segments must be acknowledged for the window to grow by one. Windows are in segments, times in
//! jiffies or in 1/1024 s.

use streamgauge_base::{Duration, Instant};

use super::super::window::{HZ, JIFFY_NS, jiffies};

/// The window's fraction after a loss, in 1/1024 (RFC 9438's beta of 0.7).
const BETA: u64 = 717;
/// `C` of 0.4 segments/s^3, as 410 / 1024.
const C: u64 = 410;
/// Segments acknowledged per window for a segment of Reno-friendly growth, in eighths: 8 (1 + beta) / 3 (1 - beta), of
/// RFC 9438's equation 4.
const FRIENDLY: u32 = (8 * (1024 + BETA) / 3 / (1024 - BETA)) as u32;
/// Most segments acknowledged per segment of growth while no loss has revealed a maximum: 5 % per round trip.
const UNKNOWN: u32 = 20;
/// The least value ever: half a window per round trip.
const LEAST: u32 = 2;
/// Jiffies for which the figure holds while the window does not change.
const STANDS: u32 = HZ / 32;

/// One stretch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// In jiffies.
    start: u32,
    /// Time from `start` to the plateau, in 1/1024 s.
    k: u32,
    /// The plateau.
    origin: u32,
    /// Window that Reno would have, and the segments acknowledged towards its next.
    reno: u32,
    acked: u32,
}

/// The state of congestion avoidance; as new after a timeout.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    /// Window before the last reduction, after fast convergence; 0 if unknown.
    max: u32,
    epoch: Option<Epoch>,
    /// Segments acknowledged per segment of growth; the window and the time of its computation.
    per: u32,
    per_window: u32,
    per_at: u32,
}

impl Curve {
    /// Ends the epoch at a loss with `window`; returns the threshold.
    pub fn reduce(&mut self, window: u32) -> u32 {
        self.epoch = None;
        // Fast convergence: a flow with a lower plateau than before yields to newer ones (RFC 9438 section 4.7).
        self.max = if window < self.max { scaled(window, 1024 + BETA) / 2 } else { window };
        scaled(window, BETA)
    }

    /// Leaves out idle time, which is not time spent probing (RFC 9438 section 5.8).
    pub fn pause(&mut self, now: Instant, since: Duration) {
        if let Some(epoch) = &mut self.epoch {
            let now_jiffies = jiffies(now);
            let idle = now_jiffies - jiffies(Instant::from_nanos(now.as_nanos() - since.as_nanos()));
            epoch.start = (epoch.start + idle).min(now_jiffies);
        }
    }

    /// Returns whether an epoch began less than a second ago: delays may still be those of the queue before the loss.
    pub fn fresh(&self, now: Instant) -> bool {
        self.epoch.is_some_and(|epoch| jiffies(now) - epoch.start < HZ)
    }

    /// Returns the segments acknowledged per segment of growth at `window`, now that `acked` more are; `base` is the
    /// least round trip.
    pub fn per(&mut self, now: Instant, window: u32, acked: u32, base: Duration) -> u32 {
        let now = jiffies(now);
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        if self.per_window == window && now - self.per_at <= STANDS {
            return self.per;
        }
        // Within a jiffy the curve does not move.
        if self.epoch.is_none() || now != self.per_at {
            (self.per_window, self.per_at) = (window, now);
            let max = self.max;
            let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, window, max, acked));
            let target = epoch.target(now, base);
            self.per = if target > window { window / (target - window) } else { 100 * window };
            if self.max == 0 {
                self.per = self.per.min(UNKNOWN);
            }
        }
        if let Some(epoch) = &mut self.epoch {
            self.per = self.per.min(epoch.friendly(window)).max(LEAST);
        }
        self.per
    }

    #[cfg(test)]
    pub fn epoch_start(&self) -> Option<u32> {
        self.epoch.map(|epoch| epoch.start)
    }
    #[cfg(test)]
    pub fn max(&self) -> u32 {
        self.max
    }
}

impl Epoch {
    fn new(now: u32, window: u32, max: u32, acked: u32) -> Self {
        let (k, origin) = if max <= window {
            (0, window)
        } else {
            // Equation 2: K = cbrt((W_max - cwnd) / C).
            let cube = ((1u64 << 40) / C) as f64 * f64::from(max - window);
            (libm::cbrt(cube) as u32, max)
        };
        Epoch { start: now, k, origin, reno: window, acked }
    }

    /// Returns the window of equation 1 a round trip ahead.
    fn target(&self, now: u32, base: Duration) -> u32 {
        let ahead = base.as_nanos().div_ceil(JIFFY_NS);
        let t = ((u64::from(now - self.start) + ahead) << 10) / u64::from(HZ);
        let offset = u128::from(t.abs_diff(self.k.into()));
        let delta = ((u128::from(C) * offset * offset * offset) >> 40).min(u128::from(u32::MAX / 2)) as u32;
        if t < u64::from(self.k) {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        }
    }

    /// Returns the most that may have to be acknowledged for the window not to fall behind Reno's (section 4.3).
    fn friendly(&mut self, window: u32) -> u32 {
        let each = (window * FRIENDLY) >> 3;
        while self.acked > each {
            self.acked -= each;
            self.reno += 1;
        }
        if self.reno > window { window / (self.reno - window) } else { u32::MAX }
    }
}

/// Returns `segments` times `factor` / 1024.
fn scaled(segments: u32, factor: u64) -> u32 {
    (u64::from(segments) * factor / 1024) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_constants_are_those_of_linux() {
        // beta_scale as the module works it out.
        assert_eq!((FRIENDLY, STANDS), (15, 7));
    }

    #[test]
    fn the_plateau_stands_at_w_max_after_k_seconds() {
        let epoch = Epoch::new(0, 700, 1000, 0);
        // K = cbrt(W_max (1 - beta) / C) = cbrt(1000 * 0.3 / 0.4).
        assert!((f64::from(epoch.k) / 1024.0 - 9.0856).abs() < 0.01, "{}", epoch.k);
        let at = |seconds: f64| epoch.target((seconds * f64::from(HZ)) as u32, Duration::ZERO);
        assert!(at(0.0).abs_diff(700) <= 1, "{}", at(0.0));
        assert_eq!(at(9.08), 1000);
        // C * 1^3 is less than half a segment, C * 10^3 is 400.
        assert_eq!(at(10.0), 1000);
        assert!(at(19.0856).abs_diff(1400) <= 2, "{}", at(19.0856));
    }

    #[test]
    fn it_looks_a_least_round_trip_ahead() {
        let epoch = Epoch::new(0, 700, 1000, 0);
        assert_eq!(epoch.target(1000, RTT), epoch.target(1025, Duration::ZERO));
    }

    #[test]
    fn fast_convergence_lowers_the_plateau_of_a_shrinking_flow() {
        let mut curve = Curve::default();
        assert_eq!((curve.reduce(1000), curve.max), (700, 1000));
        assert_eq!((curve.reduce(700), curve.max), (490, 595));
    }

    #[test]
    fn a_figure_stands_for_28_ms_while_the_window_does_not_change() {
        let mut curve = Curve::default();
        curve.reduce(1000);
        let mut per = |ms: u64, window| curve.per(Instant::from_nanos(ms * 1_000_000), window, 1, RTT);
        let first = per(4_000, 700);
        assert_eq!(per(4_028, 700), first);
        assert_ne!(per(4_032, 700), first);
        assert_ne!(per(4_032, 650), first);
    }

    #[test]
    fn the_window_grows_by_half_per_round_trip_at_most() {
        let mut curve = Curve::default();
        curve.reduce(20);
        curve.per(Instant::ZERO, 14, 1, RTT);
        assert_eq!(curve.per(Instant::from_nanos(60_000_000_000), 14, 1, RTT), 2);
    }

    #[test]
    fn without_a_maximum_it_grows_by_a_twentieth_per_round_trip() {
        let mut curve = Curve::default();
        assert_eq!(curve.per(Instant::ZERO, 100, 1, RTT), 20);
    }
}
