//! A plan's settings of ICMP echo.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::settings;

use super::{MAX_PAYLOAD_BYTES, MIN_INTERVAL};

settings! {
    /// ICMP echo from server to player and back.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PingSpec {
        /// Time between requests.
        pub interval: Duration => |p| p.least(MIN_INTERVAL.as_nanos() as f64),
        /// Bytes above the ICMP header.
        pub payload_bytes: u32 => |p| p.called("size").least(16).most(MAX_PAYLOAD_BYTES),
    }
}
