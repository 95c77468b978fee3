//! A plan's settings of a call.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};
use streamgauge_plan::{Kind, setting, settings};
use streamgauge_transport::media_rate::{RateStart, built_in_rate_controls};

use super::packet::HEADERS;
use super::{MAX_PAYLOAD_BYTES, MIN_PAYLOAD_BYTES};
use crate::media::live::LiveEncoderSettings;

settings! {
    /// A live encoder, its packets paced out at a rate that feedback controls, and a receiver with an adaptive jitter buffer.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CallSpec {
        /// Control of the rate; `fixed` never changes it.
        pub controller: String => |p| p.kind(Kind::Words(built_in_rate_controls())),
        /// How the receiver reports packets; `auto` is `rfc8888` for controllers that use ECN, else `twcc`.
        /// Source: draft-holmer-rmcat-transport-wide-cc-extensions-01; RFC 8888.
        pub feedback: FeedbackFormat,
        /// Time between two reports.
        /// Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 section 2; RFC 8888 section 6.
        pub feedback_interval: Duration => |p| p.least(5e6).most(1e9),
        /// The first rate, headers included.
        /// Source: RFC 8867 section 4.3.
        pub start_rate_bps: u64 => |p| p.called("start_rate").least(10e3).most(100e6)
            .not_below(&["least_rate_bps"]).not_above(&["most_rate_bps"]),
        /// The encoder produces no less.
        /// Source: RFC 8867 section 4.3.
        pub least_rate_bps: u64 => |p| p.called("least_rate").least(10e3).most(100e6),
        /// The encoder produces no more.
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
        /// Largest RTP payload of a packet.
        /// Source: RFC 8867 section 4.3.
        pub max_payload: u32 => |p| p.least(MIN_PAYLOAD_BYTES).most(MAX_PAYLOAD_BYTES),
        /// The receiver asks for lost packets and the sender repeats them.
        /// Source: RFC 4585 section 6.2.1; RFC 4588.
        pub retransmission: bool,
        /// Without reports the rate falls to its floor.
        /// Source: RFC 8083 section 4.1.
        pub circuit_breaker: bool,
        /// While the pacer holds more than this, the encoder skips frames.
        pub skip_beyond: Duration => |p| p.least(10e6).most(60e9),
        /// The jitter buffer holds no less.
        pub least_buffer: Duration => |p| p.most(10e9).not_above(&["most_buffer"]),
        /// The jitter buffer holds no more.
        /// Source: libwebrtc's bound on the delay of a frame, 10 s.
        pub most_buffer: Duration => |p| p.most(10e9),
        /// Time that the receiver waits for a frame before it asks for a key frame.
        /// Source: libwebrtc's wait for a frame, 3 s.
        pub patience: Duration => |p| p.least(50e6).most(60e9),
    }
}

/// How a receiver reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackFormat {
    /// The feedback that the controller needs.
    #[default]
    Auto,
    /// Transport-wide feedback.
    Twcc,
    /// Congestion control feedback.
    Rfc8888,
}
setting!(FeedbackFormat => Kind::Words(vec!["auto", "twcc", "rfc8888"]));

/// The encoder that the frame sizes are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoder {
    /// libvpx.
    Vp8,
    /// x264.
    X264,
}
setting!(Encoder => Kind::Words(vec!["vp8", "x264"]));

/// The sequence of pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sequence {
    /// A talking head.
    Carphone,
    /// Motion.
    Bikes,
    /// An animation.
    Bigbuckbunny,
}
setting!(Sequence => Kind::Words(vec!["carphone", "bikes", "bigbuckbunny"]));

impl CallSpec {
    /// Returns the settings of RFC 8867's cases.
    pub(super) fn usual_settings() -> Self {
        CallSpec {
            controller: "gcc".into(),
            feedback: FeedbackFormat::Auto,
            feedback_interval: Duration::from_millis(50),
            start_rate_bps: 300_000,
            least_rate_bps: 150_000,
            most_rate_bps: 1_500_000,
            encoder: Encoder::Vp8,
            sequence: Sequence::Carphone,
            frame_rate: 30.0,
            key_interval: None,
            encoder_lag: Duration::from_millis(100),
            max_payload: 1000,
            retransmission: true,
            circuit_breaker: true,
            skip_beyond: Duration::from_millis(500),
            least_buffer: Duration::from_millis(10),
            most_buffer: Duration::from_secs(10),
            patience: Duration::from_secs(3),
        }
    }

    /// Returns the settings of its encoder.
    pub(crate) fn live(&self) -> LiveEncoderSettings {
        LiveEncoderSettings {
            codec: match self.encoder {
                Encoder::Vp8 => "vp8".into(),
                Encoder::X264 => "x264".into(),
            },
            sequence: match self.sequence {
                Sequence::Carphone => "carphone".into(),
                Sequence::Bikes => "bikes".into(),
                Sequence::Bigbuckbunny => "bigbuckbunny".into(),
            },
            interval: Duration::from_nanos((1e9 / self.frame_rate) as u64),
            key_interval: self.key_interval,
            lag: self.encoder_lag,
            floor: BitRate::from_bps(self.least_rate_bps),
            ceiling: BitRate::from_bps(self.most_rate_bps),
        }
    }

    /// Returns the conditions under which its controller starts, headers included.
    pub(super) fn start(&self, seed: u64) -> RateStart {
        let bps = BitRate::from_bps;
        let most = bps((self.most_rate_bps as f64 * self.with_headers(0)) as u64);
        RateStart { start: bps(self.start_rate_bps), least: bps(self.least_rate_bps), most, seed }
    }

    /// Returns the ratio of packets' bytes to bytes of media, on a link that costs `link` bytes more a
    /// packet.
    pub(super) fn with_headers(&self, link: u32) -> f64 {
        f64::from(self.max_payload + HEADERS + link) / f64::from(self.max_payload)
    }

    /// Returns whether the receiver reports as RFC 8888 has it, for a controller that uses ECN or not.
    pub(super) fn reports_ecn(&self, heeds_ecn: bool) -> bool {
        match self.feedback {
            FeedbackFormat::Auto => heeds_ecn,
            FeedbackFormat::Twcc => false,
            FeedbackFormat::Rfc8888 => true,
        }
    }
}
