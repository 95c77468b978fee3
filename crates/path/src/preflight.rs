//! The path as the emulator's pre-flight measures it.

use streamgauge_base::{BitRate, Duration};

use crate::spec::{Limit, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec};

/// A rate so high that it has no visible effect.
const WIDE: BitRate = BitRate::from_bps(100_000_000_000);

/// It holds any train.
const WIDE_PACKETS: u32 = 100_000;

/// Returns the same path at rest: a setting that varies over time keeps its value at time zero, and a trace its mean,
/// sent serially with any shaper; nothing is lost, reordered, duplicated, corrupted or blocked; delay has no jitter and
/// is the same for every flow. A rate that is zero then keeps the first that is not, since a link that holds everything
/// cannot be measured. An MTU stays if it is in force then: sent packets must fit. Any queue discipline is replaced by
/// drop-tail of the same limit, because the pre-flight overfills the queue to find the rate, the delay and the limit of
/// the machinery, in which an active queue manager would interfere; that manager's decisions are checked when the
/// trial's record is replayed.
///
/// All bottlenecks but the measured one ([`measured_bottleneck`]) are so wide that they do not show: a train behind a
/// queue yields no measurement if another queue spaces it out. Their decisions are in the record too.
///
/// Stages stay where they are, switched off for good, so ids mean the same.
pub fn at_rest(stages: &[StageSpec]) -> Vec<StageSpec> {
    let measured = measured_bottleneck(stages);
    let mut stages = stages.to_vec();
    for (place, stage) in stages.iter_mut().enumerate() {
        stage.changes.clear();
        match &mut stage.kind {
            StageKind::Loss(loss) => loss.switches = off(),
            StageKind::Reorder(reorder) => reorder.switches = off(),
            StageKind::Duplicate(duplicate) => duplicate.switches = off(),
            StageKind::Corrupt(corrupt) => corrupt.switches = off(),
            StageKind::Block(block) => block.switches = off(),
            StageKind::Mtu(mtu) => mtu.switches = vec![(Duration::ZERO, mtu.initial().is_some())],
            StageKind::Bottleneck(bottleneck) if Some(place) != measured => {
                bottleneck.rate = RateSpec::Constant(WIDE);
                bottleneck.shaper = ShaperSpec::Serial;
                bottleneck.queue = QueueSpec::Droptail(Limit::Packets(WIDE_PACKETS));
            }
            StageKind::Bottleneck(bottleneck) => {
                bottleneck.rate = RateSpec::Constant(resting(&bottleneck.rate));
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

/// Returns the first rate that is not zero.
fn resting(rate: &RateSpec) -> BitRate {
    rate.rates().into_iter().find(|rate| rate.as_bps() > 0).unwrap_or(rate.initial())
}

/// Returns the place of the bottleneck that is slowest at rest, which the pre-flight measures: the first of equals.
pub fn measured_bottleneck(stages: &[StageSpec]) -> Option<usize> {
    let rate = |stage: &StageSpec| match &stage.kind {
        StageKind::Bottleneck(bottleneck) => Some(resting(&bottleneck.rate).as_bps()),
        _ => None,
    };
    let rates = stages.iter().enumerate().filter_map(|(place, stage)| Some((rate(stage)?, place)));
    rates.min().map(|(_, place)| place)
}

fn off() -> Vec<(Duration, bool)> {
    vec![(Duration::ZERO, false)]
}
