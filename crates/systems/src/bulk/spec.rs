//! A plan's settings of greedy TCP.

use serde::{Deserialize, Serialize};
use streamgauge_plan::{Arrivals, TcpSpec, settings};

settings! {
    /// Greedy TCP, server to player.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct BulkSpec {
        /// The transport.
        pub tcp: TcpSpec,
        /// How much; no end if left out.
        #[serde(default)]
        pub bytes: Option<u64> => |p| p.least(1),
        /// Whether the ends first exchange settings on a TCP connection of their own. Data then begin three
        /// round trips later. iperf3, which emu runs, always does, regardless of this.
        /// Source: iperf3 3.12, its packets
        #[serde(default)]
        pub control_connection: bool,
        /// Transfers on connections of their own, in place of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub arrivals: Option<Arrivals>,
    }
}
