//! Short transfers that arrive one by one.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

use crate::parameter::{Parameter, Setting};

/// One transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Time when it arrives, in trial time.
    pub at: Duration,
    /// Bytes that it moves.
    pub bytes: u64,
}

/// The transfers of a flow in order of their arrivals, every draw made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Arrivals(pub Vec<Transfer>);

/// A scenario gives them for a flow, and not among its parameters.
impl Setting for Arrivals {
    fn tell(_: &'static str, _: &[&str]) -> Vec<Parameter> {
        Vec::new()
    }
}
