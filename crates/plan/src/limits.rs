//! Bounds on the cost of a simulated trial.

use serde::{Deserialize, Serialize};

/// Most that a trial in virtual time may do before it is given up. A trial in real time is bounded by its duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialLimits {
    /// Turns of the trial's loop: a packet's step through a path, a timer, an action of the plan.
    pub events: u64,
    /// Bytes of packets under way and of the record's rows and events, as they lie in memory without compression.
    pub memory_bytes: u64,
}

impl Default for TrialLimits {
    fn default() -> Self {
        TrialLimits { events: 1_000_000_000, memory_bytes: 8_000_000_000 }
    }
}
