//! A video call: a live encoder, RTP over UDP, and a rate that feedback on each packet controls.
//!
//! The sender paces packets out at the rate of its controller (`streamgauge_transport::media_rate`), repeats
//! requested packets (RFC 4585, RFC 4588) and makes key frames on request. The receiver reports each packet
//! (transport-wide feedback, or RFC 8888 with ECN) and shows frames from an adaptive jitter buffer. One flow
//! carries media one way; a call both ways is two flows, one of them with `direction: up`.

mod packet;
mod receiver;
mod sender;
mod spec;
#[cfg(test)]
mod tests;

#[cfg(feature = "hosted")]
pub(crate) use packet::Place;
pub use receiver::CallReceiver;
#[cfg(feature = "hosted")]
pub(crate) use receiver::Screen;
pub use sender::CallSender;
pub use spec::{CallSpec, Encoder, FeedbackFormat, Sequence};

use streamgauge_base::{BitRate, Ecn, RandomStream};
use streamgauge_plan::{DatagramProtocol, Parameter, Protocols};
use streamgauge_transport::media_rate::rate_control;

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Refusal, System, events};
use crate::machines::{Channel, Machines};
use crate::media::live::LiveEncoder;

/// The one channel: RTP and RTCP (RFC 5761).
pub const MEDIA: ChannelId = ChannelId(0);
/// Its port (RFC 3551 section 8).
pub const PORT: u16 = 5004;
/// Largest payload that an Ethernet frame carries unfragmented, repeated.
pub const MAX_PAYLOAD_BYTES: u32 = 1400;
/// Payloads below this leave no room for the head.
pub const MIN_PAYLOAD_BYTES: u32 = 100;

/// The sources of a sender's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ssrcs {
    media: u32,
    repeated: u32,
}

impl System for CallSpec {
    const NAME: &'static str = "call";
    const TITLE: &'static str = "A video call: a live encoder whose rate feedback controls";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::Live;
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
        ("nack", "packets"),
        ("key_frame_asked", "1"),
        ("estimate", "bit/s"),
        ("encoder_rate", "bit/s"),
        ("pacer_delay", "s"),
        ("rtcp_rtt", "s"),
        ("probe", "bit/s"),
        ("frame_skipped", "1"),
        ("key_frame", "B"),
        ("repeated", "packets"),
        ("circuit_breaker", "bit/s"),
    ]);

    fn usual() -> Self {
        Self::usual_settings()
    }

    fn parameters() -> Vec<Parameter> {
        Self::fields()
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        let at = |key: &str| format!("app.call.{key}");
        if !(MIN_PAYLOAD_BYTES..=MAX_PAYLOAD_BYTES).contains(&self.max_payload) {
            let what = format!("{} B; give {MIN_PAYLOAD_BYTES} to {MAX_PAYLOAD_BYTES} B", self.max_payload);
            return Err((at("max_payload").into(), what));
        }
        if !(1.0..=240.0).contains(&self.frame_rate) {
            let what = format!("{} frames/s; give 1 to 240 frames/s", self.frame_rate);
            return Err((at("frame_rate").into(), what));
        }
        let factory = rate_control(&self.controller).map_err(|what| (at("controller").into(), what))?;
        let mut ids = RandomStream::named(seed, flow, "call");
        let controller = factory.make(&self.start(ids.bits()));
        let first = BitRate::from_bps((self.start_rate_bps as f64 / self.with_headers(0)) as u64);
        let encoder = LiveEncoder::new(self.live(), first, RandomStream::named(seed, flow, "encoder").bits());
        let encoder = encoder.map_err(|error| (at(error.key).into(), error.what))?;
        let media = ids.bits() as u32;
        // Sources of a session differ (RFC 3550 section 8).
        let ssrcs = Ssrcs { media, repeated: media ^ 1 };
        let reports_ecn = self.reports_ecn(controller.ecn() != Ecn::NotEct);
        let sender = CallSender::new(sender::Parts {
            encoder,
            controller,
            breaks: self.circuit_breaker.then_some(self.feedback_interval),
            ssrcs,
            max_payload: self.max_payload,
            skip_beyond: self.skip_beyond,
            floor: BitRate::from_bps(self.least_rate_bps),
        });
        Ok(Machines {
            channels: vec![Channel { id: MEDIA, carrier: Carrier::Udp { port: PORT, ecn: Ecn::NotEct } }],
            server: Box::new(sender),
            player: Box::new(CallReceiver::new(self, reports_ecn, ssrcs, media ^ 2)),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols::udp(DatagramProtocol::Rtp)
    }

    /// Returns the most that the encoder produces.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        Some(self.most_rate_bps as f64 * self.with_headers(link_bytes))
    }
}
