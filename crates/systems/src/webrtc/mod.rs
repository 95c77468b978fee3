//! A video call by str0m, a WebRTC library that others wrote: hosted, unmodified, in both modes.
//!
//! str0m estimates the bandwidth, paces, requests and repeats packets and gathers frames. The live encoder, the
//! jitter buffer and the picture are those of system `call`. One flow carries media one way.
//!
//! Its machines exist where feature `hosted` is on; its description exists everywhere.

#[cfg(feature = "hosted")]
mod receiver;
#[cfg(feature = "hosted")]
mod sender;
mod spec;
#[cfg(all(test, feature = "hosted"))]
mod tests;

pub use spec::WebRtcSpec;

use streamgauge_plan::{DatagramProtocol, Parameter, Protocols};

use crate::describe::{Content, EventKind, Hosted, Refusal, System, events};
use crate::machines::Machines;

impl System for WebRtcSpec {
    const NAME: &'static str = "webrtc";
    const TITLE: &'static str = "A video call by str0m, a WebRTC library";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::Live;
    const HOSTED: Option<Hosted> = Some(Hosted {
        library: "str0m",
        version: "0.25.0",
        is_built: cfg!(feature = "hosted"),
        build: "make setup-hosted",
    });
    const EVENTS: &'static [EventKind] = &events([
        ("playout_start", "s"),
        ("frame_shown", "1"),
        ("frame_late", "s"),
        ("frame_incomplete", "1"),
        ("stall", "1"),
        ("resume", "s"),
        ("live_latency", "s"),
        ("buffer", "s"),
        ("discarded", "packets"),
        ("unrepaired", "packets"),
        ("nack_requests", "1"),
        ("key_frame_asked", "1"),
        ("connected", "s"),
        ("estimate", "bit/s"),
        ("encoder_rate", "bit/s"),
        ("rtcp_rtt", "s"),
        ("key_frame", "B"),
        ("call_failed", "1"),
    ]);

    fn usual() -> Self {
        Self::usual_settings()
    }

    fn parameters() -> Vec<Parameter> {
        Self::fields()
    }

    #[cfg(feature = "hosted")]
    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        self.hosted_machines(flow, seed)
    }

    #[cfg(not(feature = "hosted"))]
    fn machines(&self, _: &str, _: u64) -> Result<Machines, Refusal> {
        let what = "system webrtc is the library str0m, which this build lacks; run `make setup-hosted`";
        Err(("app".into(), what.into()))
    }

    fn protocols(&self) -> Protocols {
        Protocols::udp(DatagramProtocol::Rtp)
    }

    /// Returns the most that the encoder produces.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        Some(self.most_rate_bps as f64 * self.with_headers(link_bytes))
    }
}
