//! Packets lost on the way.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

/// Loss, on from the start unless `switches` changes that.
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

/// How packets are lost. While loss is off, a model draws nothing, counts nothing and keeps its state.
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
    /// Two-state Markov chain in which each state loses with a probability of its own (Elliott 1963). It starts
    /// in its stationary distribution.
    GilbertElliott {
        /// Mean stay in the good state in packets, >= 1.
        good_packets: f64,
        /// Mean stay in the bad state in packets, >= 1.
        bad_packets: f64,
        /// Loss probability in the good state, in [0, 1].
        loss_good: f64,
        /// Loss probability in the bad state, in [0, 1].
        loss_bad: f64,
    },
    /// Exactly these packets.
    List {
        /// Their numbers, ascending, counted from 0 over the arrivals at this stage while loss is on.
        packets: Vec<u64>,
    },
}
