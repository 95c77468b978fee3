//! The stages of a path, and the bottleneck as a whole.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

use super::{
    BlockSpec, Change, CorruptSpec, DelaySpec, DuplicateSpec, Layer, LossSpec, MtuSpec, QueueSpec, RateSpec,
    ReorderSpec, ShaperSpec,
};

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
    /// Its kind.
    pub kind: StageKind,
    /// Settings that change beside those with steps of their own: times (ns) that never decrease.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<(Duration, Change)>,
}

/// The kinds of a stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StageKind {
    /// Loss.
    Loss(LossSpec),
    /// The stage with the rate and the queue.
    Bottleneck(BottleneckSpec),
    /// One-way propagation delay. A zero delay is the plain wire of `up: {}`.
    Delay(DelaySpec),
    /// Packets that others overtake.
    Reorder(ReorderSpec),
    /// Packets that arrive twice.
    Duplicate(DuplicateSpec),
    /// Packets that arrive damaged.
    Corrupt(CorruptSpec),
    /// The longest packet that passes whole.
    Mtu(MtuSpec),
    /// A protocol that does not pass.
    Block(BlockSpec),
}

/// A rate and a queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BottleneckSpec {
    /// Rate over time.
    pub rate: RateSpec,
    /// How packets are sent at it.
    #[serde(default)]
    pub shaper: ShaperSpec,
    /// The queue in front of it.
    pub queue: QueueSpec,
    /// Which bytes rate and limit count.
    #[serde(default)]
    pub layer: Layer,
}
