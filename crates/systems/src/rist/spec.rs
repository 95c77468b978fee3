//! A plan's settings of RIST.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, setting, settings};

use super::MOST_LATENCY;
use crate::media::ClipSpec;
use crate::media::mpegts::PACKET_BYTES;

settings! {
    /// A clip as MPEG-TS in RIST's simple profile.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RistSpec {
        /// Its frames.
        pub clip: ClipSpec,
        /// The buffer of the receiver: packets are delivered so long after they would arrive without loss. The sender keeps
        /// them for so long and two of the longest round trips.
        /// Source: VSF TR-06-1 appendix B, 1000 ms; librist's `buffer`.
        pub latency: Duration => |p| p.least(1e6).most(MOST_LATENCY.as_nanos() as f64),
        /// The least time from a gap to the first request; half a round trip if that is longer.
        /// Source: librist 0.2.7's RIST_DEFAULT_RECOVERY_REORDER_BUFFER (TR-06-1 appendix B suggests 70 ms).
        pub reorder: Duration => |p| p.most(10e9),
        /// A shorter round trip counts as this one.
        /// Source: librist 0.2.7's RIST_DEFAULT_RECOVERY_RTT_MIN.
        pub rtt_min: Duration => |p| p.least(1e6).most(10e9),
        /// A longer round trip counts as this one.
        /// Source: librist 0.2.7's RIST_DEFAULT_RECOVERY_RTT_MAX.
        pub rtt_max: Duration => |p| p.least(1e6).most(60e9),
        /// Requests for one packet, and repetitions of one packet, at most.
        /// Source: librist 0.2.7's RIST_DEFAULT_MAX_RETRIES (TR-06-1 appendix B suggests 7).
        pub max_retries: u32 => |p| p.least(1).most(100),
        /// Round trips between two requests for the same packet.
        /// Source: librist 0.2.7, 10 % above the round trip.
        pub request_spacing: f64 => |p| p.least(0.1).most(100),
        /// A packet is asked for until it is this multiple of the latency old.
        /// Source: librist 0.2.7, 1.1 times the buffer.
        pub request_until: f64 => |p| p.least(0.1).most(100),
        /// Which requests the sender leaves out. `normal` repeats a packet once in a round trip, `aggressive` once in two,
        /// `off` at each request.
        /// Source: librist's congestion control, modes 1, 2 and 0; 1 unless set.
        pub congestion_control: RepairControl,
        /// The greatest rate, repeated packets included: above it the sender repeats none.
        /// Source: librist's RIST_DEFAULT_RECOVERY_MAXBITRATE.
        pub maxbitrate_bps: u64 => |p| p.called("maxbitrate").least(1e3).most(100e9),
        /// The form of requests: ranges of numbers, or a number and 16 bits for those behind it.
        /// Source: VSF TR-06-1 sections 5.3.1.2 and 5.3.1.1; librist's default is ranges.
        pub request_form: RequestForm,
        /// Packets that one request names at most.
        /// Source: librist's RIST_MAX_NACKS.
        pub request_packets: u32 => |p| p.kind(Kind::Packets).least(1).most(5_000),
        /// Time between two reports of an end.
        /// Source: VSF TR-06-1 section 5.2.1, 100 ms at most.
        pub report_interval: Duration => |p| p.least(1e6).most(10e9),
        /// Requests and repetitions are looked after each so long, and when a packet comes.
        /// Source: librist's RIST_MAX_JITTER.
        pub loop_interval: Duration => |p| p.least(100e3).most(1e9),
        /// The sender waits for the receiver's first report.
        /// Source: librist; VSF TR-06-1 has no set-up.
        pub waits_for_receiver: bool,
        /// MPEG-TS packets of 188 B in a datagram.
        /// Source: VSF TR-06-1 section 5.1 with RFC 2250; 7 fill an Ethernet frame.
        pub ts_packets: u32 => |p| p.least(1).most(7),
        /// Time without any packet after which the other end is given up.
        /// Source: librist's RIST_DEFAULT_SESSION_TIMEOUT.
        pub idle_timeout: Duration => |p| p.least(100e6).most(3600e9),
    }
}

/// The sender's choice among requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairControl {
    /// Mode 0: each is answered.
    Off,
    /// Mode 1: one in a round trip.
    Normal,
    /// Mode 2: one in two round trips.
    Aggressive,
}
setting!(RepairControl => Kind::Words(vec!["off", "normal", "aggressive"]));

/// The form of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestForm {
    /// RIST's own APP.
    Ranges,
    /// The generic NACK of RFC 4585.
    Bits,
}
setting!(RequestForm => Kind::Words(vec!["ranges", "bits"]));

impl RistSpec {
    /// Returns the defaults of librist 0.2.7.
    pub(super) fn usual_settings() -> Self {
        let ms = Duration::from_millis;
        RistSpec {
            clip: ClipSpec::default(),
            latency: ms(1000),
            reorder: ms(25),
            rtt_min: ms(50),
            rtt_max: ms(500),
            max_retries: 20,
            request_spacing: 1.1,
            request_until: 1.1,
            congestion_control: RepairControl::Normal,
            maxbitrate_bps: 100_000_000,
            request_form: RequestForm::Ranges,
            request_packets: 200,
            report_interval: ms(100),
            loop_interval: ms(5),
            waits_for_receiver: true,
            ts_packets: 7,
            idle_timeout: ms(2000),
        }
    }

    /// Returns the bytes of the largest payload of a datagram.
    pub(super) fn payload_bytes(&self) -> usize {
        self.ts_packets as usize * PACKET_BYTES
    }

    /// Returns a round trip within its bounds.
    pub(super) fn clamped(&self, rtt: Duration) -> Duration {
        rtt.max(self.rtt_min).min(self.rtt_max)
    }

    /// Returns the time from a gap to the first request.
    pub(super) fn first_wait(&self, rtt: Duration) -> Duration {
        self.clamped(rtt).div(2).max(self.reorder)
    }

    /// Returns the time between two requests for one packet.
    pub(super) fn spacing(&self, rtt: Duration) -> Duration {
        scaled(self.clamped(rtt), self.request_spacing)
    }

    /// Returns the age from which a packet is not asked for.
    pub(super) fn asked_until(&self) -> Duration {
        scaled(self.latency, self.request_until)
    }

    /// Returns the time that the sender keeps a packet: librist's buffer and two of the longest round trips.
    pub(super) fn hold(&self) -> Duration {
        self.latency + self.rtt_max * 2
    }

    /// Returns the time in which the sender repeats a packet once; `None` where it repeats at each request.
    pub(super) fn repeat_spacing(&self, last_rtt: Duration) -> Option<Duration> {
        match self.congestion_control {
            RepairControl::Off => None,
            RepairControl::Normal => Some(self.clamped(last_rtt)),
            RepairControl::Aggressive => Some(self.clamped(last_rtt) * 2),
        }
    }

    /// Returns how many packets may be missing at once: librist's, of the buffer in ms, the rate in Mbit/s and 24 B.
    pub(super) fn most_missing(&self) -> usize {
        let (ms, mbps) = (self.latency.as_nanos() / 1_000_000, (self.maxbitrate_bps / 1_000_000).max(1));
        ((ms * mbps / 24) as usize).clamp(1, 32_768)
    }

    /// Returns how many packets are repeated in one turn of the loop: librist's, of packets of 1400 B.
    pub(super) fn most_repeated(&self) -> u64 {
        let (kbps, loop_ms) = (self.maxbitrate_bps / 1_000, self.loop_interval.as_nanos() / 1_000_000);
        let ms = (self.latency.as_nanos() / 1_000_000).max(1);
        2 * (kbps * loop_ms.max(1) / (8 * 1400) * 1_000 / ms).max(1)
    }
}

fn scaled(time: Duration, by: f64) -> Duration {
    Duration::from_nanos((time.as_nanos() as f64 * by) as u64)
}
