//! Queue disciplines and their limits.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};

use crate::error::Problem;
use crate::spec::{CodelSpec, Dualpi2Spec, FqCodelSpec, Layer, PieSpec};

/// The queue's discipline and limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// Drops arrivals that do not fit.
    Droptail(Limit),
    /// Controlled delay.
    Codel(CodelSpec),
    /// Flow queues with controlled delay.
    FqCodel(FqCodelSpec),
    /// Proportional integral controller enhanced.
    Pie(PieSpec),
    /// Dual queue, coupled, for L4S.
    Dualpi2(Dualpi2Spec),
}

impl QueueSpec {
    /// What it holds at most.
    pub fn limit(&self) -> Limit {
        match self {
            QueueSpec::Droptail(limit) => *limit,
            QueueSpec::Codel(spec) => spec.limit,
            QueueSpec::FqCodel(spec) => spec.limit,
            QueueSpec::Pie(spec) => spec.limit,
            QueueSpec::Dualpi2(spec) => spec.limit,
        }
    }

    /// The same discipline with another limit.
    pub fn with_limit(mut self, limit: Limit) -> Self {
        match &mut self {
            QueueSpec::Droptail(own) => *own = limit,
            QueueSpec::Codel(spec) => spec.limit = limit,
            QueueSpec::FqCodel(spec) => spec.limit = limit,
            QueueSpec::Pie(spec) => spec.limit = limit,
            QueueSpec::Dualpi2(spec) => spec.limit = limit,
        }
        self
    }

    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), Problem> {
        match self {
            QueueSpec::Droptail(limit) => limit.check(layer, highest),
            QueueSpec::Codel(spec) => spec.check(layer, highest),
            QueueSpec::FqCodel(spec) => spec.check(layer, highest),
            QueueSpec::Pie(spec) => spec.check(layer, highest),
            QueueSpec::Dualpi2(spec) => spec.check(layer, highest),
        }
    }
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
