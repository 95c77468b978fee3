//! Queue disciplines and their limits.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

/// The queue's discipline and limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// Drops arrivals that do not fit.
    Droptail(Limit),
}

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
