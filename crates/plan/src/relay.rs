//! Machines that several flows share at one side of the path.

use serde::{Deserialize, Serialize};

use crate::app::AppSpec;

/// A machine that flows pass through. Packets that cross the path between it and the flows' servers are counted under
/// its own name; packets between it and one flow's player, under that flow's.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySpec {
    /// Its name in the scenario, which is no flow's.
    pub name: String,
    /// Where it is.
    pub at: RelaySide,
    /// Its application.
    pub app: AppSpec,
}

/// The side of the path that a relay is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelaySide {
    /// The players': they reach it without crossing the path.
    Client,
    /// The servers': it reaches them without crossing the path.
    Server,
}
