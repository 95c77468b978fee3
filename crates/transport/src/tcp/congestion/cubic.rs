//! CUBIC (RFC 9438): the window as a cubic function of the time since the last loss.
//!
//! Kept in segments as `f64`, with only +, -, *, / (which IEEE 754 fixes to the last bit) and `libm::cbrt`,
//! so that a run is the same on every machine. As Linux does, and section 4.6 allows, the reduction starts
//! from the window rather than from the bytes in flight. Slow start is the standard one, without HyStart.

use streamgauge_base::{Duration, Instant};

use super::{Ack, Controller, MIN_SEGMENTS, SLOW_START_LIMIT_SEGMENTS, window_after_idle};

/// Multiplicative decrease factor (section 4.6).
const BETA: f64 = 0.7;
/// Aggressiveness in segments/s^3 (section 5).
const C: f64 = 0.4;
/// Additive increase that is fair to Reno given `BETA` (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// One stretch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Time from `start` to the plateau, in seconds.
    k: f64,
    /// The plateau in segments.
    w_max: f64,
    /// Window that Reno would have, in segments.
    w_est: f64,
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    mss: u64,
    initial: u64,
    /// Segments.
    cwnd: f64,
    /// Bytes.
    ssthresh: u64,
    /// Window just before the last reduction after fast convergence, in segments; 0 if none counts.
    w_max: f64,
    /// Window just before the last reduction, in segments.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

impl Cubic {
    /// For segments of `mss` bytes, starting with `initial` of them.
    pub fn new(mss: u32, initial: u32) -> Self {
        let mss = u64::from(mss);
        Cubic {
            mss,
            initial: mss * u64::from(initial),
            cwnd: f64::from(initial),
            ssthresh: u64::MAX,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mss as f64
    }

    /// Remembers the window before a reduction and sets the threshold after it (sections 4.6 and 4.7).
    fn reduce(&mut self) {
        self.epoch = None;
        self.cwnd_prior = self.cwnd;
        // Fast convergence: a flow whose plateau fell gives way to newer ones.
        self.w_max = if self.cwnd < self.w_max { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
        self.ssthresh = bytes(self.cwnd * BETA, self.mss).max(MIN_SEGMENTS * self.mss);
    }

    fn begin_epoch(&self, now: Instant) -> Epoch {
        let (k, w_max) = if self.cwnd < self.w_max {
            (libm::cbrt((self.w_max - self.cwnd) / C), self.w_max)
        } else {
            (0.0, self.cwnd)
        };
        Epoch { start: now, k, w_max, w_est: self.cwnd }
    }

    /// Congestion avoidance (sections 4.2 to 4.5) for `acked` segments.
    fn avoid(&mut self, now: Instant, srtt: Duration, acked: f64) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(now),
        };
        let alpha = if epoch.w_est < self.cwnd_prior { ALPHA } else { 1.0 };
        epoch.w_est += alpha * acked / self.cwnd;
        let t = now.saturating_since(epoch.start).as_secs_f64();
        if w_cubic(&epoch, t) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            let target = w_cubic(&epoch, t + srtt.as_secs_f64()).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) / self.cwnd * acked;
        }
        self.epoch = Some(epoch);
    }
}

/// To the nearest byte, so that a whole number of segments stays one.
fn bytes(segments: f64, mss: u64) -> u64 {
    (segments * mss as f64 + 0.5) as u64
}

/// Equation 1: the window in segments `t` seconds into `epoch`.
fn w_cubic(epoch: &Epoch, t: f64) -> f64 {
    let d = t - epoch.k;
    C * (d * d * d) + epoch.w_max
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.window_limited {
            return;
        }
        let mut delivered = ack.delivered;
        let window = self.window();
        if window < self.ssthresh {
            let growth = delivered.min(SLOW_START_LIMIT_SEGMENTS * self.mss).min(self.ssthresh - window);
            self.cwnd += self.segments(growth);
            delivered -= growth;
            if self.window() < self.ssthresh {
                return;
            }
        }
        if delivered > 0 {
            self.avoid(ack.now, ack.srtt, self.segments(delivered));
        }
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        self.reduce();
        self.cwnd = self.segments(self.ssthresh);
    }

    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            self.reduce();
        }
        // The plateau after a timeout is where avoidance begins again (section 4.8).
        self.w_max = 0.0;
        self.epoch = None;
        self.cwnd = 1.0;
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        let window = self.window();
        self.ssthresh = self.ssthresh.max(window / 4 * 3);
        self.cwnd = self.segments(window_after_idle(window, self.initial, idle, rto));
        // Time spent idle is not time spent probing (section 5.8).
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }

    fn window(&self) -> u64 {
        bytes(self.cwnd, self.mss)
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    const MSS: u64 = 1000;

    /// Acknowledges `rounds` windows of data, one round trip of `rtt_ms` each, spread evenly.
    fn run(cubic: &mut Cubic, now: &mut Instant, rtt_ms: u64, rounds: u32) {
        for _ in 0..rounds {
            let acks = (cubic.window() / MSS).max(1);
            for _ in 0..acks {
                *now += Duration::from_nanos(rtt_ms * 1_000_000 / acks);
                cubic.on_ack(&test_ack(*now, MSS, Duration::from_millis(rtt_ms)));
            }
        }
    }

    fn at_window(segments: u32) -> Cubic {
        Cubic::new(MSS as u32, segments)
    }

    #[test]
    fn a_loss_reduces_to_seven_tenths() {
        let mut cubic = at_window(1000);
        cubic.on_congestion_event(Instant::ZERO);
        assert_eq!((cubic.window(), cubic.ssthresh()), (700 * MSS, 700 * MSS));
    }

    #[test]
    fn the_plateau_stands_at_w_max_after_k_seconds() {
        let mut cubic = at_window(1000);
        cubic.on_congestion_event(Instant::ZERO);
        let epoch = cubic.begin_epoch(Instant::ZERO);
        // K = cbrt(W_max (1 - beta) / C) = cbrt(1000 * 0.3 / 0.4).
        assert!((epoch.k - 9.0856).abs() < 1e-4, "{}", epoch.k);
        assert_eq!(w_cubic(&epoch, epoch.k), 1000.0);
        assert!((w_cubic(&epoch, 0.0) - 700.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_follows_the_curve_back_to_w_max_and_beyond() {
        let mut cubic = at_window(1000);
        cubic.on_congestion_event(Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut last = 0.0;
        let mut growth = Vec::new();
        for _ in 0..180 {
            run(&mut cubic, &mut now, 100, 1);
            growth.push(cubic.cwnd - last);
            last = cubic.cwnd;
            let epoch = cubic.epoch.unwrap();
            let t = now.saturating_since(epoch.start).as_secs_f64();
            assert!((cubic.cwnd / w_cubic(&epoch, t) - 1.0).abs() < 0.02, "at {t} s: {}", cubic.cwnd);
        }
        // Concave, then flat near K (9.1 s), then convex.
        assert!(growth[10] > growth[50] && growth[50] > growth[88], "{growth:?}");
        assert!(growth[179] > growth[130] && growth[130] > growth[95], "{growth:?}");
    }

    #[test]
    fn fast_convergence_lowers_the_plateau_of_a_shrinking_flow() {
        let mut cubic = at_window(1000);
        cubic.on_congestion_event(Instant::ZERO);
        cubic.on_congestion_event(Instant::ZERO);
        assert!((cubic.w_max - 700.0 * 1.7 / 2.0).abs() < 1e-9);
        assert_eq!(cubic.window(), 490 * MSS);
    }

    #[test]
    fn at_a_small_product_it_grows_as_reno_would() {
        // 20 segments at 20 ms: the cubic curve needs 2.5 s, Reno's line 12 / 0.53 round trips = 0.45 s.
        let mut cubic = at_window(20);
        cubic.on_congestion_event(Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut rounds = 0;
        while cubic.cwnd < 20.0 {
            run(&mut cubic, &mut now, 20, 1);
            rounds += 1;
        }
        let expected = (6.0 / ALPHA) as i32;
        assert!((rounds - expected).abs() <= 2, "{rounds} round trips, {expected} expected");
        // From cwnd_prior on, one segment per round trip.
        let before = cubic.cwnd;
        run(&mut cubic, &mut now, 20, 10);
        assert!((cubic.cwnd - before - 10.0).abs() < 1.0, "{}", cubic.cwnd - before);
    }

    #[test]
    fn after_a_timeout_the_curve_starts_at_its_plateau() {
        let mut cubic = at_window(100);
        cubic.on_timeout(Instant::ZERO, false);
        assert_eq!((cubic.window(), cubic.ssthresh()), (MSS, 70 * MSS));
        let mut now = Instant::ZERO;
        run(&mut cubic, &mut now, 100, 8);
        let epoch = cubic.epoch.unwrap();
        assert_eq!(epoch.k, 0.0);
        assert!((epoch.w_max - 70.0).abs() < 0.5, "{}", epoch.w_max);
    }

    #[test]
    fn an_idle_time_does_not_count_as_probing() {
        let mut cubic = at_window(100);
        cubic.on_congestion_event(Instant::ZERO);
        let mut now = Instant::ZERO;
        run(&mut cubic, &mut now, 100, 3);
        cubic.initial = 10 * MSS;
        let (start, window) = (cubic.epoch.unwrap().start, cubic.window());
        cubic.on_idle(now, Duration::from_millis(700), Duration::from_millis(300));
        assert_eq!(cubic.epoch.unwrap().start, start + Duration::from_millis(700));
        assert_eq!(cubic.window(), window / 4);
    }
}
