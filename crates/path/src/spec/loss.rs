//! Packets lost on the way.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

/// Random loss, on from the start unless `switches` says otherwise.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossSpec {
    /// The model.
    pub model: LossModel,
    /// Times (ns) at which loss is switched on or off, ascending; on at time zero unless the first entry is
    /// at zero.
    #[serde(default)]
    pub switches: Vec<(Duration, bool)>,
}

/// How packets are lost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LossModel {
    /// Each packet is lost with this probability, independently.
    Bernoulli {
        /// In [0, 1].
        probability: f64,
    },
    /// Two-state Markov chain; good delivers, bad drops (Gilbert 1960). Given by mean run lengths.
    Gilbert {
        /// Mean run of delivered packets, >= 1.
        good_packets: f64,
        /// Mean run of lost packets, >= 1.
        bad_packets: f64,
    },
}
