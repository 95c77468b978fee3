//! Propagation delay.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

/// Constant delay.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// One way.
    pub delay: Duration,
    /// From each time (ns, ascending) on, that delay.
    #[serde(default)]
    pub steps: Vec<(Duration, Duration)>,
}
