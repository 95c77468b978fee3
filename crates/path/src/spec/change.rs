//! A setting that changes while a path runs.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};

use super::Limit;

/// A setting that changes at a time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// The bottleneck's rate.
    Rate(BitRate),
    /// One-way propagation delay.
    Delay(Duration),
    /// Switches the stage's effect on or off: loss, jitter, reordering, duplication, corruption, fragmentation,
    /// blocking.
    On(bool),
    /// How much the queue holds. Packets that wait stay, however many they are.
    Limit(Limit),
    /// Whether the queue marks ECN-capable packets where it would drop them.
    Ecn(bool),
    /// Jitter that is uniform between minus and plus this time, in the place of any other.
    Jitter(Duration),
    /// Random loss with this probability, independently, in the place of any other model.
    Loss(f64),
}
