//! How much a queue holds.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

/// How much a queue holds, the packet being sent included.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// Bytes of the bottleneck's layer.
    Bytes(u64),
    /// Packets.
    Packets(u32),
    /// The bytes that the rate in force drains in this time (ns).
    Time(Duration),
}
