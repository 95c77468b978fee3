//! The path as the emulator's pre-flight measures it.

use crate::spec::{LossModel, LossSpec, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec};

/// The same path without loss, at rest: what varies over time keeps its value at time zero, and a trace its mean,
/// sent serially whatever the shaper. A rate that is zero then keeps the first that is not, since a link that
/// holds everything cannot be measured. Any queue discipline gives way to drop-tail of the same limit, because the
/// pre-flight overfills the queue to find the rate, the delay and the limit of the machinery, in which an active queue
/// manager would interfere; what that one did is checked when the trial's record is replayed.
///
/// Stages stay where they are (loss with probability zero takes the place of loss), so ids mean the same.
pub fn at_rest(stages: &[StageSpec]) -> Vec<StageSpec> {
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
                bottleneck.queue = QueueSpec::Droptail(bottleneck.queue.limit());
            }
            StageKind::Delay(delay) => {
                delay.delay = delay.initial();
                delay.steps.clear();
            }
        }
    }
    stages
}
