//! Queue disciplines.

use serde::{Deserialize, Serialize};
use streamgauge_base::BitRate;

use crate::error::StageProblem;
use crate::spec::{
    CodelSpec, DrdSpec, Dualpi2Spec, FqCodelSpec, Layer, Limit, NistnetSpec, PieSpec, RedSpec,
};

/// The queue's discipline and limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// Drops arrivals that do not fit.
    Droptail(Limit),
    /// Drop-tail that counts packets in the delay behind it too.
    Nistnet(NistnetSpec),
    /// Derivative random drop.
    Drd(DrdSpec),
    /// Random early detection.
    Red(RedSpec),
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
    /// Returns its upper bound; for DRD without a limit, the packets from which it drops nearly everything.
    pub fn limit(&self) -> Limit {
        match self {
            QueueSpec::Droptail(limit) => *limit,
            QueueSpec::Nistnet(spec) => Limit::Packets(spec.packets),
            QueueSpec::Drd(spec) => spec.limit.unwrap_or(Limit::Packets(spec.max_packets)),
            QueueSpec::Red(spec) => spec.limit,
            QueueSpec::Codel(spec) => spec.limit,
            QueueSpec::FqCodel(spec) => spec.limit,
            QueueSpec::Pie(spec) => spec.limit,
            QueueSpec::Dualpi2(spec) => spec.limit,
        }
    }

    /// Returns the same discipline with another limit; NIST Net's drop-tail accepts packets only.
    pub fn with_limit(mut self, limit: Limit) -> Self {
        match &mut self {
            QueueSpec::Droptail(own) => *own = limit,
            QueueSpec::Nistnet(spec) => {
                if let Limit::Packets(packets) = limit {
                    spec.packets = packets;
                }
            }
            QueueSpec::Drd(spec) => spec.limit = Some(limit),
            QueueSpec::Red(spec) => spec.limit = limit,
            QueueSpec::Codel(spec) => spec.limit = limit,
            QueueSpec::FqCodel(spec) => spec.limit = limit,
            QueueSpec::Pie(spec) => spec.limit = limit,
            QueueSpec::Dualpi2(spec) => spec.limit = limit,
        }
        self
    }

    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        match self {
            QueueSpec::Droptail(limit) => limit.check(layer, highest),
            QueueSpec::Nistnet(spec) => spec.check(),
            QueueSpec::Drd(spec) => spec.check(layer, highest),
            QueueSpec::Red(spec) => spec.check(layer, highest),
            QueueSpec::Codel(spec) => spec.check(layer, highest),
            QueueSpec::FqCodel(spec) => spec.check(layer, highest),
            QueueSpec::Pie(spec) => spec.check(layer, highest),
            QueueSpec::Dualpi2(spec) => spec.check(layer, highest),
        }
    }
}
