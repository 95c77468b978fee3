//! Congestion control: how many bytes may be in flight.
//!
//! The connection detects loss and meters retransmissions (RFC 6675, RFC 6937); a [`Controller`] decides what
//! the window should be. A new one is a file here, a variant of [`AnyController`] and one of
//! [`CongestionControl`].

mod bandwidth;
mod bbr;
mod bbr3;
mod bic;
mod cubic;
pub mod equation;
mod fixed;
mod reno;
mod tfrc;
mod vegas;
mod window;
mod windowed_max;

use streamgauge_base::{Duration, Instant};

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use bic::Bic;
pub use cubic::Cubic;
pub use fixed::Fixed;
pub use reno::Reno;
pub use tfrc::Tfrc;
pub use vegas::Vegas;

use super::config::{Config, CongestionControl};
use super::rate_sample::RateSample;

/// What the connection is repairing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Repair {
    /// Nothing.
    #[default]
    None,
    /// Losses that acknowledgements told of: fast recovery.
    Recovery,
    /// Whatever was outstanding when the retransmission timer expired.
    Timeout,
}

/// An acknowledgement as a controller sees it. Sequence numbers are 64 bits wide; bytes count payload and FIN.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly known to have arrived, by acknowledgement number or by SACK.
    pub delivered: u64,
    /// Bytes newly judged lost.
    pub lost: u64,
    /// First byte not acknowledged.
    pub una: u64,
    /// First byte not sent.
    pub next: u64,
    /// Bytes thought to be in the network before it arrived (RFC 6675's pipe).
    pub prior_in_flight: u64,
    /// And now.
    pub in_flight: u64,
    /// Round trip of the last segment it covers, if that was sent only once.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Least round trip of the connection.
    pub min_rtt: Duration,
    /// The window, not the writer or the peer's window, held the sender back of late (RFC 7661's reason).
    pub window_limited: bool,
    /// What is being repaired now that it has been taken.
    pub repair: Repair,
    /// The delivery rate that it tells; `None` where nothing was delivered, or in too short a time, or if the
    /// controller does not ask for rates.
    pub rate: Option<RateSample>,
    /// When pacing lets the next segment leave; `now` or before if at once.
    pub departs: Instant,
}

/// A congestion controller. Windows are in bytes.
pub trait Controller {
    /// New data was acknowledged: outside fast recovery, or, if it [governs recovery](Self::governs_recovery), on
    /// every acknowledgement that teaches anything.
    fn on_ack(&mut self, ack: &Ack);
    /// Fast recovery begins: at most once per window of data.
    fn on_congestion_event(&mut self, now: Instant);
    /// The retransmission timer expired. `repeated`: again for the same data, so that the threshold stays
    /// (RFC 5681 section 3.1).
    fn on_timeout(&mut self, now: Instant, repeated: bool);
    /// Sending resumes after nothing was outstanding for `idle`; `rto` is the timeout now. Called only if
    /// idle restart is on and `idle` exceeds `rto`.
    fn on_idle(&mut self, now: Instant, idle: Duration, rto: Duration);
    /// A segment goes out with nothing in flight, `since` after the one before it; `next` is the first byte that
    /// has never been sent; `app_limited`: the writer had nothing to send, as far as rates are sampled. After
    /// `on_idle`, if that was due too. Default: nothing.
    fn on_start(&mut self, _now: Instant, _since: Duration, _next: u64, _app_limited: bool) {}
    /// The congestion window.
    fn window(&self) -> u64;
    /// The slow start threshold; `u64::MAX` before the first loss.
    fn ssthresh(&self) -> u64;
    /// The last reduction was for nothing: what it was for has arrived after all. Default: nothing is undone.
    fn on_undo(&mut self, _now: Instant) {}
    /// The handshake is done; `rtt` is the round trip that it measured. Comes before everything else.
    fn on_open(&mut self, _now: Instant, _rtt: Option<Duration>) {}
    /// It needs [`Ack::rate`].
    fn samples_rates(&self) -> bool {
        false
    }
    /// Its own window, not the path, sets the rate now: samples of what is on the way count as the writer's.
    fn limits_itself(&self) -> bool {
        false
    }
    /// Bytes per second at which to send; `None`, from [`Self::on_open`] on: as fast as the window allows, in bursts.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// Segments that a paced sender sends back to back at the least (Linux's `tcp_min_tso_segs`).
    fn least_burst(&self) -> u64 {
        2
    }
    /// Its window holds in fast recovery too, in place of proportional rate reduction (RFC 6937).
    fn governs_recovery(&self) -> bool {
        false
    }
}

/// A controller chosen by configuration, called without indirection.
#[derive(Clone, Debug)]
pub enum AnyController {
    /// See [`Reno`].
    Reno(Reno),
    /// See [`Bic`].
    Bic(Bic),
    /// See [`Cubic`].
    Cubic(Cubic),
    /// See [`Vegas`].
    Vegas(Vegas),
    /// See [`Fixed`].
    Fixed(Fixed),
    /// See [`Tfrc`].
    Tfrc(Box<Tfrc>),
    /// See [`Bbr`].
    Bbr(Box<Bbr>),
    /// See [`Bbr3`].
    Bbr3(Box<Bbr3>),
}

impl AnyController {
    /// The controller that `config` asks for, with an initial window of `segments`.
    pub fn new(config: &Config, segments: u32) -> Self {
        let mss = config.mss;
        match config.congestion {
            CongestionControl::Reno => AnyController::Reno(Reno::new(mss, segments)),
            CongestionControl::Bic => {
                AnyController::Bic(Bic::new(mss, segments, config.mechanisms.bic_per_round))
            }
            CongestionControl::Cubic => AnyController::Cubic(Cubic::new(mss, segments, config.hystart)),
            CongestionControl::Vegas => AnyController::Vegas(Vegas::new(mss, segments)),
            CongestionControl::Bbr => {
                let fine = config.mechanisms.fine_bandwidth;
                AnyController::Bbr(Box::new(Bbr::new(mss, segments, config.seed, fine)))
            }
            CongestionControl::Bbr3 => AnyController::Bbr3(Box::new(Bbr3::new(mss, segments, config.seed))),
            CongestionControl::Tfrc => AnyController::Tfrc(Box::new(Tfrc::new(mss))),
            CongestionControl::Fixed => {
                let initial = u64::from(config.initial_window) * u64::from(mss);
                AnyController::Fixed(Fixed::new(mss, config.fixed_window.unwrap_or(initial)))
            }
        }
    }
}

macro_rules! forward {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            AnyController::Reno($controller) => $call,
            AnyController::Bic($controller) => $call,
            AnyController::Cubic($controller) => $call,
            AnyController::Vegas($controller) => $call,
            AnyController::Fixed($controller) => $call,
            AnyController::Tfrc($controller) => $call,
            AnyController::Bbr($controller) => $call,
            AnyController::Bbr3($controller) => $call,
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
    fn on_start(&mut self, now: Instant, since: Duration, next: u64, app_limited: bool) {
        forward!(self, c => c.on_start(now, since, next, app_limited));
    }
    fn window(&self) -> u64 {
        forward!(self, c => c.window())
    }
    fn ssthresh(&self) -> u64 {
        forward!(self, c => c.ssthresh())
    }
    fn on_undo(&mut self, now: Instant) {
        forward!(self, c => c.on_undo(now));
    }
    fn on_open(&mut self, now: Instant, rtt: Option<Duration>) {
        forward!(self, c => c.on_open(now, rtt));
    }
    fn samples_rates(&self) -> bool {
        forward!(self, c => c.samples_rates())
    }
    fn limits_itself(&self) -> bool {
        forward!(self, c => c.limits_itself())
    }
    fn pacing_rate(&self) -> Option<u64> {
        forward!(self, c => c.pacing_rate())
    }
    fn least_burst(&self) -> u64 {
        forward!(self, c => c.least_burst())
    }
    fn governs_recovery(&self) -> bool {
        forward!(self, c => c.governs_recovery())
    }
}

/// An acknowledgement for tests, of `delivered` bytes in a round trip of `rtt`: nothing lost, the window full.
#[cfg(test)]
pub(crate) fn test_ack(now: Instant, delivered: u64, rtt: Duration) -> Ack {
    Ack {
        now,
        delivered,
        lost: 0,
        una: 0,
        next: 0,
        prior_in_flight: 0,
        in_flight: 0,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        window_limited: true,
        repair: Repair::None,
        rate: None,
        departs: now,
    }
}
