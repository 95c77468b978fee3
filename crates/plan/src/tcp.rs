//! TCP's settings, for every system that uses it.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

use crate::parameter::{Kind, Parameter};

crate::settings! {
    /// TCP settings that a flow may choose. A setting that a plan leaves out has the value of `default`.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TcpSpec {
        /// A congestion controller by its scenario name.
        pub congestion_control: String => Parameter::elsewhere,
        /// Limit of the player's TCP receive window; the default is Linux's upper bound.
        pub receive_window: u64 => |p| p.least(1_000).most(TcpSpec::MOST_WINDOW).not_below(&["mss"]),
        /// Most bytes in the server's TCP send buffer; without a value it grows with the congestion window, as Linux's.
        pub send_buffer: Option<u64> => |p| p.least(2_000).most(TcpSpec::MOST_WINDOW).not_below(&["mss"]),
        /// Largest TCP payload of a segment; the default fills 1500 B with timestamps on.
        pub mss: u32 => |p| p.kind(Kind::Size).least(*TcpSpec::MSS.start()).most(*TcpSpec::MSS.end()),
        /// Initial congestion window in segments.
        /// Source: RFC 6928.
        pub initial_window: u32 => |p| {
            let bounds = TcpSpec::INITIAL_WINDOW;
            p.kind(Kind::Packets).least(*bounds.start()).most(*bounds.end())
        },
        /// How long an acknowledgement may wait for a second segment; emu: Linux's, or 0 s for not at all.
        /// Source: RFC 9293 section 3.8.6.3, which bounds it; Linux's `TCP_DELACK_MIN`, the default.
        pub delayed_ack: Duration => |p| p.most(TcpSpec::MAX_DELAYED_ACK.as_nanos() as f64),
        /// How cubic leaves slow start before a loss: as Linux, as HyStart++, or not; emu: as Linux.
        /// Source: RFC 9406 (HyStart++).
        pub hystart: String,
        /// The window that congestion control fixed keeps; sim only.
        pub fixed_window: Option<u64> => |p| p.called("window").most(TcpSpec::MOST_WINDOW).not_below(&["mss"]),
        /// Asks for ECN (RFC 3168).
        pub ecn: bool => Parameter::elsewhere,
        /// With ECN: sends ECT(1) and counts marks (RFC 9331, RFC 9768); sim only.
        pub l4s: bool => Parameter::elsewhere,
        /// Mechanisms of TCP that are switched off, to measure their effect; sim only.
        pub without: Vec<String>,
    }
}

/// The TCP settings of a flow with third-party programs, which no other settings give.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowTcp {
    /// A congestion control by its Linux name.
    pub congestion_control: String,
    /// Asks for ECN (RFC 3168).
    pub ecn: bool,
}

impl TcpSpec {
    /// Payload of a segment in bytes: Linux accepts no less (`TCP_MIN_MSS`), and an Ethernet frame carries no more
    /// beside the timestamps option (1500 - 20 - 32).
    pub const MSS: RangeInclusive<u32> = 88..=1448;
    /// The greatest window that window scaling can express (RFC 7323 section 2.3).
    pub const MOST_WINDOW: u32 = 1 << 30;
    /// Segments beyond this are a line's rate of bursts, not a start.
    pub const INITIAL_WINDOW: RangeInclusive<u32> = 1..=1000;
    /// RFC 9293, section 3.8.6.3: an acknowledgement must not wait longer.
    pub const MAX_DELAYED_ACK: Duration = Duration::from_millis(500);
}

impl Default for TcpSpec {
    /// Makes CUBIC with Linux's settings, and the window that Linux grows to.
    fn default() -> Self {
        TcpSpec {
            congestion_control: "cubic".into(),
            receive_window: 3 << 20,
            send_buffer: None,
            mss: 1448,
            initial_window: 10,
            delayed_ack: Duration::from_millis(40),
            hystart: "linux".into(),
            fixed_window: None,
            ecn: false,
            l4s: false,
            without: Vec::new(),
        }
    }
}
