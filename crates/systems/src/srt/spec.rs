//! A plan's settings of SRT.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, setting, settings};

use super::MOST_LATENCY;
use crate::media::ClipSpec;

settings! {
    /// A clip as MPEG-TS in SRT's live mode, without encryption.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct SrtSpec {
        /// Its frames.
        pub clip: ClipSpec,
        /// The latency that the receiver asks for: packets are delivered so long after they would arrive without loss.
        /// Source: draft-sharabayko-srt-01 section 4.5.1; libsrt's SRTO_RCVLATENCY.
        pub latency: Duration => |p| p.most(MOST_LATENCY.as_nanos() as f64),
        /// The latency that the sender asks for; the larger of the two is used.
        /// Source: draft-sharabayko-srt-01 section 4.3.1.2; libsrt's SRTO_PEERLATENCY.
        pub peer_latency: Duration => |p| p.most(MOST_LATENCY.as_nanos() as f64),
        /// The end that opens the connection; the other one listens.
        /// Source: draft-sharabayko-srt-01 section 4.3.1.
        pub caller: Caller,
        /// The receiver skips packets that are not there when the next one is due, and the sender drops old ones.
        /// Source: draft-sharabayko-srt-01 section 4.6.
        pub too_late_drop: bool,
        /// How the sender repeats packets that are reported lost. `efficient` ignores a report of a packet that it repeated
        /// less than a round trip ago, `aggressive` repeats at each report, `off` never.
        /// Source: libsrt's SRTO_RETRANSMITALGO.
        pub retransmission: Retransmission,
        /// The receiver reports all missing packets again and again.
        /// Source: draft-sharabayko-srt-01 section 4.8.2; libsrt's SRTO_NAKREPORT.
        pub periodic_nak: bool,
        /// The least time between two periodic reports.
        /// Source: draft-sharabayko-srt-01 section 5.1.2.
        pub nak_interval: Duration => |p| p.least(1e6).most(10e9),
        /// Time between full acknowledgements.
        /// Source: draft-sharabayko-srt-01 section 4.8.1.
        pub ack_interval: Duration => |p| p.least(1e6).most(10e9),
        /// Packets after which a light acknowledgement is sent.
        /// Source: draft-sharabayko-srt-01 section 4.8.1.
        pub light_ack: u32 => |p| p.kind(Kind::Packets).least(1).most(100_000),
        /// The round trip before the first measurement.
        /// Source: draft-sharabayko-srt-01 section 4.10.
        pub first_rtt: Duration => |p| p.least(1e6).most(10e9),
        /// Its variance.
        /// Source: draft-sharabayko-srt-01 section 4.10.
        pub first_rtt_variance: Duration => |p| p.most(10e9),
        /// The greatest rate, repeated packets and SRT's headers included; 0 for the input rate and its overhead.
        /// Source: draft-sharabayko-srt-01 section 5.1.1; libsrt's SRTO_MAXBW, whose -1 is 1 Gbit/s in live mode.
        pub maxbw_bps: u64 => |p| p.called("maxbw").most(100e9),
        /// The input rate where `maxbw` is 0; 0 to measure it.
        /// Source: draft-sharabayko-srt-01 section 5.1.1; libsrt's SRTO_INPUTBW.
        pub inputbw_bps: u64 => |p| p.called("inputbw").most(100e9),
        /// Overhead over the input rate where `maxbw` is 0.
        /// Source: draft-sharabayko-srt-01 section 5.1.1; libsrt's SRTO_OHEADBW.
        pub oheadbw_percent: u32 => |p| p.called("oheadbw").least(5).most(100),
        /// The sender drops packets that are older than this multiple of the latency.
        /// Source: draft-sharabayko-srt-01 section 4.6.
        pub drop_after: f64 => |p| p.least(1).most(100),
        /// The sender keeps packets for no less.
        /// Source: draft-sharabayko-srt-01 section 4.6.
        pub least_hold: Duration => |p| p.most(60e9),
        /// Packets that may be in flight without an acknowledgement.
        /// Source: libsrt's SRTO_FC.
        pub flight: u32 => |p| p.kind(Kind::Packets).least(32).most(100_000),
        /// Packets that each end's buffer has room for.
        /// Source: libsrt's SRTO_RCVBUF and SRTO_SNDBUF.
        pub buffer: u32 => |p| p.kind(Kind::Packets).least(32).most(100_000),
        /// MPEG-TS packets of 188 B in a datagram.
        /// Source: libsrt's SRTO_PAYLOADSIZE, 1316 B in live mode.
        pub ts_packets: u32 => |p| p.least(1).most(7),
        /// Time without sending after which a keep-alive is sent.
        /// Source: draft-sharabayko-srt-01 section 3.2.3.
        pub keep_alive: Duration => |p| p.least(10e6).most(60e9),
        /// Time without any packet after which the connection is broken.
        /// Source: libsrt's SRTO_PEERIDLETIMEO.
        pub idle_timeout: Duration => |p| p.least(100e6).most(3600e9),
        /// Time after which a caller without an answer gives up.
        /// Source: libsrt's SRTO_CONNTIMEO.
        pub connect_timeout: Duration => |p| p.least(100e6).most(3600e9),
        /// Time after which a caller repeats its handshake.
        /// Source: libsrt's interval of handshakes, 250 ms.
        pub handshake_interval: Duration => |p| p.least(10e6).most(60e9),
    }
}

/// The end that opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The end that sends media.
    Sender,
    /// The end that receives it.
    Receiver,
}
setting!(Caller => Kind::Words(vec!["sender", "receiver"]));

/// How reported packets are repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retransmission {
    /// Once in a round trip.
    Efficient,
    /// At each report.
    Aggressive,
    /// Never.
    Off,
}
setting!(Retransmission => Kind::Words(vec!["efficient", "aggressive", "off"]));

impl SrtSpec {
    /// Returns the defaults of libsrt in live mode.
    pub(super) fn usual_settings() -> Self {
        let ms = Duration::from_millis;
        SrtSpec {
            clip: ClipSpec::default(),
            latency: ms(120),
            peer_latency: Duration::ZERO,
            caller: Caller::Sender,
            too_late_drop: true,
            retransmission: Retransmission::Efficient,
            periodic_nak: true,
            nak_interval: ms(20),
            ack_interval: ms(10),
            light_ack: 64,
            first_rtt: ms(100),
            first_rtt_variance: ms(50),
            maxbw_bps: 1_000_000_000,
            inputbw_bps: 0,
            oheadbw_percent: 25,
            drop_after: 1.25,
            least_hold: ms(1000),
            flight: 25_600,
            buffer: 8192,
            ts_packets: 7,
            keep_alive: ms(1000),
            idle_timeout: ms(5000),
            connect_timeout: ms(3000),
            handshake_interval: ms(250),
        }
    }

    /// Returns the bytes of the largest payload of a datagram.
    pub(super) fn payload_bytes(&self) -> usize {
        self.ts_packets as usize * crate::media::mpegts::PACKET_BYTES
    }

    /// Returns the time that the sender keeps a packet under this latency.
    pub(super) fn hold(&self, latency: Duration) -> Duration {
        let scaled = Duration::from_nanos((latency.as_nanos() as f64 * self.drop_after) as u64);
        if scaled > self.least_hold { scaled } else { self.least_hold }
    }
}
