//! A plan's settings of a call by str0m.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, settings};

use crate::call::{Encoder, Sequence};

/// Bounds of `datagram`: str0m's least target, and the payload of an Ethernet frame.
const LEAST_DATAGRAM_BYTES: u32 = 576;
const MOST_DATAGRAM_BYTES: u32 = 1472;
/// Headers of IP and UDP; and of RTP with its extensions, VP8's descriptor and the tag, roughly.
const IP_UDP_BYTES: u32 = 28;
const RTP_BYTES: u32 = 56;

settings! {
    /// A live encoder, sent by the library str0m, and str0m's receiver with an adaptive jitter buffer of ours.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WebRtcSpec {
        /// The encoder's share of the estimate; the rest is for headers and repeated packets.
        /// Source: str0m's issue 581 leaves both to the application.
        pub encoder_share: f64 => |p| p.least(0.1).most(1),
        /// The first estimate.
        /// Source: RFC 8867 section 4.3.
        pub start_rate_bps: u64 => |p| p.called("start_rate").least(10e3).most(100e6),
        /// The encoder produces no less.
        /// Source: RFC 8867 section 4.3.
        pub least_rate_bps: u64 => |p| p.called("least_rate").least(10e3).most(100e6),
        /// The encoder produces no more, and str0m probes for what it needs.
        /// Source: RFC 8867 section 4.3.
        pub most_rate_bps: u64 => |p| p.called("most_rate").least(10e3).most(100e6).not_below(&["least_rate_bps"]),
        /// The encoder that the frame sizes are from.
        pub encoder: Encoder,
        /// The encoded sequence: a talking head, bikes or an animation.
        pub sequence: Sequence,
        /// Frames per second.
        pub frame_rate: f64 => |p| p.kind(Kind::Frequency).least(1).most(240),
        /// Time between key frames; without a value only the first and requested ones.
        #[serde(default)]
        pub key_interval: Option<Duration> => |p| p.least(100e6),
        /// The time constant with which the encoder follows its target.
        pub encoder_lag: Duration => |p| p.most(10e9),
        /// Largest UDP payload.
        /// Source: str0m's default.
        pub datagram: u32 => |p| p.least(LEAST_DATAGRAM_BYTES).most(MOST_DATAGRAM_BYTES),
        /// The jitter buffer holds no less.
        pub least_buffer: Duration => |p| p.most(10e9).not_above(&["most_buffer"]),
        /// The jitter buffer holds no more.
        /// Source: libwebrtc's bound on the delay of a frame, 10 s.
        pub most_buffer: Duration => |p| p.most(10e9),
        /// Fraction of a second at which str0m's clock begins; without a value the seed draws it.
        /// Source: str0m rounds its dates, and another phase gives another course.
        #[serde(default)]
        pub clock_phase: Option<Duration> => |p| p.most(999_999_999),
    }
}

impl WebRtcSpec {
    /// Returns the settings of RFC 8867's cases.
    pub(super) fn usual_settings() -> Self {
        WebRtcSpec {
            encoder_share: 0.75,
            start_rate_bps: 300_000,
            least_rate_bps: 150_000,
            most_rate_bps: 1_500_000,
            encoder: Encoder::Vp8,
            sequence: Sequence::Carphone,
            frame_rate: 30.0,
            key_interval: None,
            encoder_lag: Duration::from_millis(100),
            datagram: 1150,
            least_buffer: Duration::from_millis(10),
            most_buffer: Duration::from_secs(10),
            clock_phase: None,
        }
    }

    /// Returns the ratio of packets' bytes to bytes of media, on a link that costs `link` bytes more a packet.
    pub(super) fn with_headers(&self, link: u32) -> f64 {
        f64::from(self.datagram + IP_UDP_BYTES + link) / f64::from(self.datagram - RTP_BYTES)
    }
}

#[cfg(feature = "hosted")]
mod hosted {
    use streamgauge_base::{BitRate, Duration, Ecn, RandomStream};
    use streamgauge_hosted::webrtc::Call;

    use super::super::receiver::WebRtcReceiver;
    use super::super::sender::WebRtcSender;
    use super::{LEAST_DATAGRAM_BYTES, MOST_DATAGRAM_BYTES, WebRtcSpec};
    use crate::call::{CallSpec, MEDIA, PORT};
    use crate::carrier::Carrier;
    use crate::describe::{Refusal, System};
    use crate::machines::{Channel, Machines};
    use crate::media::live::LiveEncoder;

    impl WebRtcSpec {
        /// Returns the same settings of our own call, as far as both have them.
        fn call(&self) -> CallSpec {
            CallSpec {
                least_rate_bps: self.least_rate_bps,
                most_rate_bps: self.most_rate_bps,
                encoder: self.encoder,
                sequence: self.sequence,
                frame_rate: self.frame_rate,
                key_interval: self.key_interval,
                encoder_lag: self.encoder_lag,
                ..CallSpec::usual()
            }
        }

        pub(in super::super) fn hosted_machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
            let at = |key: &str| format!("app.webrtc.{key}");
            if !(LEAST_DATAGRAM_BYTES..=MOST_DATAGRAM_BYTES).contains(&self.datagram) {
                let what =
                    format!("{} B; give {LEAST_DATAGRAM_BYTES} to {MOST_DATAGRAM_BYTES} B", self.datagram);
                return Err((at("datagram").into(), what));
            }
            if !(1.0..=240.0).contains(&self.frame_rate) {
                let what = format!("{} frames/s; give 1 to 240 frames/s", self.frame_rate);
                return Err((at("frame_rate").into(), what));
            }
            if !(0.1..=1.0).contains(&self.encoder_share) {
                return Err((at("encoder_share").into(), format!("{}; give 0.1 to 1", self.encoder_share)));
            }
            let start = BitRate::from_bps(self.start_rate_bps);
            let first = BitRate::from_bps((self.start_rate_bps as f64 * self.encoder_share) as u64);
            let seed_of = |purpose| RandomStream::named(seed, flow, purpose);
            let encoder = LiveEncoder::new(self.call().live(), first, seed_of("encoder").bits());
            let encoder = encoder.map_err(|error| (at(error.key).into(), error.what))?;
            let drawn = Duration::from_nanos(seed_of("clock").below(1_000_000_000));
            let call = Call {
                seed: seed_of("webrtc").bits(),
                phase: self.clock_phase.unwrap_or(drawn),
                start,
                desired: BitRate::from_bps((self.most_rate_bps as f64 / self.encoder_share) as u64),
                datagram_bytes: self.datagram,
            };
            let player = WebRtcReceiver::new(call.clone(), self.least_buffer, self.most_buffer);
            Ok(Machines {
                channels: vec![Channel { id: MEDIA, carrier: Carrier::Udp { port: PORT, ecn: Ecn::NotEct } }],
                server: Box::new(WebRtcSender::new(call, encoder, self.encoder_share)),
                player: Box::new(player),
            })
        }
    }
}
