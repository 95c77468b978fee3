//! Congestion control: how many bytes may be in flight.
//!
//! The connection detects loss and meters retransmissions (RFC 6675, RFC 6937); a [`Controller`] decides what
//! the window should be. A new one is a file here, a variant of [`AnyController`] and one of
//! [`CongestionControl`].

mod cubic;
mod reno;

use streamgauge_base::{Duration, Instant};

pub use cubic::Cubic;
pub use reno::Reno;

use super::config::{Config, CongestionControl};

/// Least window, and least slow start threshold, after a loss, in segments (RFC 5681 section 3.1).
const MIN_SEGMENTS: u64 = 2;
/// Most segments by which one acknowledgement opens the window in slow start (RFC 3465 section 2.3).
const SLOW_START_LIMIT_SEGMENTS: u64 = 2;

/// An acknowledgement as a controller sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly known to have arrived, by acknowledgement number or by SACK.
    pub delivered: u64,
    /// Round trip of the last segment it covers, if that was sent only once.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// The window, not the writer or the peer's window, held the sender back of late (RFC 7661's reason).
    pub window_limited: bool,
}

/// A congestion controller. Windows are in bytes.
pub trait Controller {
    /// New data was acknowledged outside fast recovery.
    fn on_ack(&mut self, ack: &Ack);
    /// Fast recovery begins: at most once per window of data.
    fn on_congestion_event(&mut self, now: Instant);
    /// The retransmission timer expired. `repeated`: again for the same data, so that the threshold stays
    /// (RFC 5681 section 3.1).
    fn on_timeout(&mut self, now: Instant, repeated: bool);
    /// Sending resumes after nothing was outstanding for `idle`; `rto` is the timeout now. Called only if
    /// idle restart is on and `idle` exceeds `rto`.
    fn on_idle(&mut self, now: Instant, idle: Duration, rto: Duration);
    /// The congestion window.
    fn window(&self) -> u64;
    /// The slow start threshold; `u64::MAX` before the first loss.
    fn ssthresh(&self) -> u64;
}

/// A controller chosen by configuration, called without indirection.
#[derive(Clone, Debug)]
pub enum AnyController {
    /// See [`Reno`].
    Reno(Reno),
    /// See [`Cubic`].
    Cubic(Cubic),
}

impl AnyController {
    /// The controller that `config` asks for, with an initial window of `segments`.
    pub fn new(config: &Config, segments: u32) -> Self {
        match config.congestion {
            CongestionControl::Reno => AnyController::Reno(Reno::new(config.mss, segments)),
            CongestionControl::Cubic => AnyController::Cubic(Cubic::new(config.mss, segments)),
        }
    }
}

macro_rules! forward {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            AnyController::Reno($controller) => $call,
            AnyController::Cubic($controller) => $call,
        }
    };
}

impl Controller for AnyController {
    fn on_ack(&mut self, ack: &Ack) {
        forward!(self, c => c.on_ack(ack));
    }
    fn on_congestion_event(&mut self, now: Instant) {
        forward!(self, c => c.on_congestion_event(now));
    }
    fn on_timeout(&mut self, now: Instant, repeated: bool) {
        forward!(self, c => c.on_timeout(now, repeated));
    }
    fn on_idle(&mut self, now: Instant, idle: Duration, rto: Duration) {
        forward!(self, c => c.on_idle(now, idle, rto));
    }
    fn window(&self) -> u64 {
        forward!(self, c => c.window())
    }
    fn ssthresh(&self) -> u64 {
        forward!(self, c => c.ssthresh())
    }
}

/// The window after `idle`. RFC 5681 section 4.1 goes to the restart window at once; Linux halves the window
/// for every RTO that has passed (RFC 2861 section 3.1) and stops there, which is what this does.
fn window_after_idle(window: u64, restart: u64, idle: Duration, rto: Duration) -> u64 {
    let restart = restart.min(window);
    let halvings = (idle.as_nanos().saturating_sub(1) / rto.as_nanos().max(1)).min(63);
    (window >> halvings).max(restart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idling_halves_per_timeout_down_to_the_restart_window() {
        let rto = Duration::from_millis(200);
        for (idle_ms, window) in
            [(201, 50_000), (399, 50_000), (401, 25_000), (601, 14_480), (90_000, 14_480)]
        {
            assert_eq!(window_after_idle(100_000, 14_480, Duration::from_millis(idle_ms), rto), window);
        }
        assert_eq!(window_after_idle(3_000, 14_480, Duration::from_secs(9), rto), 3_000);
    }
}
