//! What a plan says of greedy TCP.

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
        /// Whether the two ends agree on a connection of its own before they open that of the data, which takes three round
        /// trips more. iperf3, which emu runs, always does.
        /// Source: iperf3 3.12, its packets
        #[serde(default)]
        pub control_connection: bool,
        /// Transfers on connections of their own, in place of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub arrivals: Option<Arrivals>,
    }
}
