//! The plan's settings for paced RTP.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{TcpSpec, settings};

use super::{MAX_PAYLOAD_BYTES, MIN_PAYLOAD_BYTES, MIN_RTCP_INTERVAL};
use crate::media::ClipSpec;
use crate::playout::Decoder;

settings! {
    /// A clip paced out as RTP with RTCP reports and no congestion response.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RtpSpec {
        /// Its frames.
        pub clip: ClipSpec,
        /// Largest RTP payload of a packet; 1400 B with the RTP header by default.
        /// Source: GStreamer's rtph264pay, property mtu.
        pub max_payload: u32 => |p| p.least(MIN_PAYLOAD_BYTES).most(MAX_PAYLOAD_BYTES),
        /// Over UDP, or interleaved over TCP (RFC 2326 section 10.12) with these settings.
        #[serde(default)]
        pub tcp: Option<TcpSpec>,
        /// Mean time between RTCP reports.
        /// Source: RFC 3550 section 6.2.
        pub rtcp_interval: Duration => |p| p.least(MIN_RTCP_INTERVAL.as_nanos() as f64),
        /// How long the player holds a frame before it is due.
        /// Source: GStreamer's rtspsrc, property latency.
        pub playout_delay: Duration,
        /// The decoder of the pictures over UDP: `libavcodec` discards some that arrived whole, as GStreamer's
        /// avdec_h264 does where others were lost.
        /// Source: ITU-T H.264 section 8.2.1.3; FFmpeg 5.1 in GStreamer 1.22.
        #[serde(default)]
        pub decoder: Decoder,
    }
}
