//! The path as the emulator's pre-flight measures it.

use streamgauge_base::Duration;

use crate::spec::{QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec};

/// The same path at rest: what varies over time keeps its value at time zero, and a trace its mean, sent
/// serially whatever the shaper; nothing is lost, reordered, duplicated, corrupted or blocked; delay has no
/// jitter and is the same for every flow. A rate that is zero then keeps the first that is not, since a link
/// that holds everything cannot be measured. An MTU stays if it is in force then: what is sent must fit. Any
/// queue discipline gives way to drop-tail of the same limit, because the pre-flight overfills the queue to
/// find the rate, the delay and the limit of the machinery, in which an active queue manager would interfere;
/// what that one did is checked when the trial's record is replayed.
///
/// Stages stay where they are, switched off for good, so ids mean the same.
pub fn at_rest(stages: &[StageSpec]) -> Vec<StageSpec> {
    let mut stages = stages.to_vec();
    for stage in &mut stages {
        match &mut stage.kind {
            StageKind::Loss(loss) => loss.switches = off(),
            StageKind::Reorder(reorder) => reorder.switches = off(),
            StageKind::Duplicate(duplicate) => duplicate.switches = off(),
            StageKind::Corrupt(corrupt) => corrupt.switches = off(),
            StageKind::Block(block) => block.switches = off(),
            StageKind::Mtu(mtu) => mtu.switches = vec![(Duration::ZERO, mtu.initial().is_some())],
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
                delay.jitter = None;
                delay.flows.clear();
            }
        }
    }
    stages
}

fn off() -> Vec<(Duration, bool)> {
    vec![(Duration::ZERO, false)]
}
