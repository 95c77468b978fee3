//! The path as the emulator's pre-flight measures it.

use crate::spec::{LossModel, LossSpec, RateSpec, ShaperSpec, StageKind, StageSpec};

/// The same path without loss, at rest: what varies over time keeps its value at time zero, and a trace its mean,
/// sent serially whatever the shaper. A rate that is zero then keeps the first that is not, since a link that
/// holds everything cannot be measured.
///
/// Stages stay where they are (loss with probability zero takes the place of loss), so ids mean the same.
pub fn without_loss(stages: &[StageSpec]) -> Vec<StageSpec> {
    let mut stages = stages.to_vec();
    for stage in &mut stages {
        match &mut stage.kind {
            StageKind::Loss(loss) => {
                *loss = LossSpec { model: LossModel::Bernoulli { probability: 0.0 }, switches: Vec::new() };
            }
            StageKind::Bottleneck(bottleneck) => {
                let rates = bottleneck.rate.rates();
                let moving = rates.into_iter().find(|rate| rate.as_bps() > 0);
                bottleneck.rate = RateSpec::Constant(moving.unwrap_or(bottleneck.rate.initial()));
                bottleneck.shaper = ShaperSpec::Serial;
            }
            StageKind::Delay(delay) => {
                delay.delay = delay.initial();
                delay.steps.clear();
            }
        }
    }
    stages
}
