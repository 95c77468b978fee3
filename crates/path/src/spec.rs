//! A path as plain data, in SI units and nanoseconds: what a scenario is lowered to and what sim and the
//! emulator read.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};

/// Both directions of a path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// Server to player. At least one stage.
    pub down: Vec<StageSpec>,
    /// Player to server. At least one stage.
    pub up: Vec<StageSpec>,
}

/// One named stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// Unique within its direction: "loss", "bottleneck", "delay", "wire".
    pub name: String,
    /// What it is.
    pub kind: StageKind,
}

/// What a stage is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StageKind {
    /// Random loss.
    Loss(LossSpec),
    /// The stage with the rate and the queue.
    Bottleneck(BottleneckSpec),
    /// Constant one-way propagation delay. A zero delay is the plain wire of `up: {}`.
    Delay(DelaySpec),
}

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

/// A rate and a queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BottleneckSpec {
    /// Rate over time.
    pub rate: RateSpec,
    /// The queue in front of it.
    pub queue: QueueSpec,
    /// Which bytes rate and limit count.
    #[serde(default)]
    pub layer: Layer,
}

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

/// A rate over time. A rate of zero holds everything until the next change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RateSpec {
    /// The same throughout.
    Constant(BitRate),
    /// From each time (ns, ascending, the first at 0) on, that rate.
    Steps(Vec<(Duration, BitRate)>),
    /// `first` for half a period, then `second` for the other half, and again.
    Square {
        /// The first half's rate.
        first: BitRate,
        /// The second half's rate.
        second: BitRate,
        /// Both halves together, > 0.
        period: Duration,
    },
}

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
