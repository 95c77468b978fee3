//! Which bytes count.

use serde::{Deserialize, Serialize};

/// Which bytes a bottleneck counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// IP + 14, as `tc`.
    #[default]
    Ethernet,
    /// IP bytes.
    Ip,
}
