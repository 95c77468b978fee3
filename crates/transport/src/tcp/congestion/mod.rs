//! Congestion control: how many bytes may be in flight.
//!
//! The connection detects loss and meters retransmissions (RFC 6675, RFC 6937); a [`Controller`] sets the window. A
//! [`Factory`] makes one for each sender. Those of this crate are in [`CongestionControl::NAMED`]; another crate adds
//! its own with [`register`].

mod bandwidth;
mod bbr;
mod bbr3;
mod bic;
mod cubic;
mod dctcp;
pub mod equation;
mod factory;
mod fixed;
mod leaving;
mod mark_share;
mod prague;
mod reno;
mod tfrc;
mod vegas;
mod window;
mod windowed_max;

use std::fmt::Debug;

use streamgauge_base::{Duration, Instant};

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use bic::Bic;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use factory::{
    CongestionControl, Factory, FunctionMaker, Marks, NameTaken, Start, call_functions_by, is_function,
    register,
};
pub use fixed::Fixed;
pub use leaving::Hystart;
pub use prague::Prague;
pub use reno::Reno;
pub use tfrc::Tfrc;
pub use vegas::Vegas;

use super::rate_sample::RateSample;

/// The kind of repair in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Repair {
    /// Nothing.
    #[default]
    None,
    /// Losses that acknowledgements reported: fast recovery.
    Recovery,
    /// All data outstanding when the retransmission timer expired.
    Timeout,
}

/// An acknowledgement as a controller sees it. Sequence numbers are 64 bits wide; bytes count payload and FIN.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ack {
    /// Time when it arrived.
    pub now: Instant,
    /// Bytes newly known to have arrived, by acknowledgement number or by SACK.
    pub delivered: u64,
    /// The same in segments.
    pub segments: u32,
    /// Segments newly known to have arrived with congestion experienced, where feedback is accurate (RFC 9768); else 0.
    pub marked: u32,
    /// Bytes newly judged lost.
    pub lost: u64,
    /// First byte not acknowledged.
    pub una: u64,
    /// First byte not sent.
    pub next: u64,
    /// Bytes thought to be in the network before it arrived (RFC 6675's pipe).
    pub prior_in_flight: u64,
    /// The same now.
    pub in_flight: u64,
    /// Round trip of the last segment it covers, if that was sent only once.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Least round trip of the connection.
    pub min_rtt: Duration,
    /// The window, not the writer or the peer's window, held the sender back of late (RFC 7661's reason).
    pub window_limited: bool,
    /// The repair in progress after this acknowledgement.
    pub repair: Repair,
    /// The delivery rate that it measures; `None` where nothing was delivered, or in too short a time, or if the
    /// controller does not ask for rates.
    pub rate: Option<RateSample>,
    /// Time when pacing lets the next segment leave; `now` or before if at once.
    pub departs: Instant,
}

/// A congestion controller of one sender. Windows are in bytes.
///
/// It reads no clock and draws no chance but from its seed: equal calls, equal answers. The sender asks for windows and
/// rates after each call, several times, so that they are worth keeping.
pub trait Controller: Debug + Send {
    /// Handles newly acknowledged data: outside fast recovery, or, if it [governs recovery](Self::governs_recovery), on
    /// every acknowledgement with new information.
    fn on_ack(&mut self, ack: &Ack);
    /// Handles the start of fast recovery: at most once per window of data.
    fn on_congestion_event(&mut self, now: Instant);
    /// Handles an expired retransmission timer. `repeated`: again for the same data, so that the threshold stays (RFC
    /// 5681 section 3.1).
    fn on_timeout(&mut self, now: Instant, repeated: bool);
    /// Handles the resumption of sending after nothing was outstanding for `idle`; `rto` is the timeout now. Called
    /// only if idle restart is on and `idle` exceeds `rto`.
    fn on_idle(&mut self, now: Instant, idle: Duration, rto: Duration);
    /// Handles a segment sent with nothing in flight, `since` after the one before it; `next` is the first byte that
    /// has never been sent; `app_limited`: the writer had nothing to send, as far as rates are sampled. After
    /// `on_idle`, if that was due too. Default: nothing.
    fn on_start(&mut self, _now: Instant, _since: Duration, _next: u64, _app_limited: bool) {}
    /// Returns the congestion window.
    fn window(&self) -> u64;
    /// Returns the slow start threshold; `u64::MAX` before the first loss.
    fn ssthresh(&self) -> u64;
    /// Undoes the last reduction, which was for nothing: the data that it counted as lost has arrived. Default: nothing
    /// is undone.
    fn on_undo(&mut self, _now: Instant) {}
    /// Handles the end of the handshake; `rtt` is the round trip that it measured. Runs before everything else.
    fn on_open(&mut self, _now: Instant, _rtt: Option<Duration>) {}
    /// Returns whether it needs [`Ack::rate`].
    fn samples_rates(&self) -> bool {
        false
    }
    /// Returns whether its own window, not the path, sets the rate now: samples of data in flight count as the
    /// writer's.
    fn limits_itself(&self) -> bool {
        false
    }
    /// Returns the bytes per second at which to send; `None`, from [`Self::on_open`] on: as fast as the window allows,
    /// in bursts.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// Returns the segments that a paced sender sends back to back at the least (Linux's `tcp_min_tso_segs`).
    fn least_burst(&self) -> u64 {
        2
    }
    /// Returns the segments that a paced sender sends back to back at the most.
    fn most_burst(&self) -> u64 {
        u64::MAX
    }
    /// Returns whether its window holds in fast recovery too, in place of proportional rate reduction (RFC 6937).
    fn governs_recovery(&self) -> bool {
        false
    }
}

/// Returns an acknowledgement for tests, of `delivered` bytes in a round trip of `rtt`: nothing lost, the window full.
#[cfg(test)]
pub(crate) fn test_ack(now: Instant, delivered: u64, rtt: Duration) -> Ack {
    Ack {
        now,
        delivered,
        segments: (delivered / 1000) as u32,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        window_limited: true,
        departs: now,
        ..Ack::default()
    }
}
