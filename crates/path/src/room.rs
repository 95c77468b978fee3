//! The number of packets that a path can have inside at once: the room that a driver needs.

use streamgauge_base::{BitRate, Duration};

use crate::spec::Change;
use crate::spec::{
    BottleneckSpec, DelaySpec, Distribution, Limit, RateSpec, ShaperSpec, StageKind, StageSpec,
};

/// Returns the most packets that `stages` hold at once, if at most `arrivals_per_s` packets arrive in a second.
///
/// A limit in bytes, or in time, is filled by the smallest packets that there are, an IP header alone. Behind a
/// bottleneck as many of those are under way as its highest rate sends; before one as many as arrive. Jitter counts
/// with the value that one packet in a million exceeds. Copies and fragments are of their packet and need no room of
/// their own.
pub fn most_packets(stages: &[StageSpec], arrivals_per_s: u64) -> u64 {
    let mut per_s = arrivals_per_s;
    let mut most = 0u64;
    for stage in stages {
        let inside = match &stage.kind {
            StageKind::Bottleneck(bottleneck) => {
                let (held, sent_per_s) = bottleneck.most(arrivals_per_s, &stage.changes);
                per_s = per_s.min(sent_per_s);
                held
            }
            StageKind::Delay(delay) => in_time(delay.longest(&stage.changes), per_s),
            StageKind::Reorder(reorder) => in_time(reorder.extra, per_s),
            // Nothing waits here.
            StageKind::Loss(_)
            | StageKind::Duplicate(_)
            | StageKind::Corrupt(_)
            | StageKind::Mtu(_)
            | StageKind::Block(_) => 0,
        };
        most = most.saturating_add(inside);
    }
    most
}

/// Returns the packets that arrive in `time`, and one more at its end.
fn in_time(time: Duration, per_s: u64) -> u64 {
    let packets = u128::from(time.as_nanos()) * u128::from(per_s) / 1_000_000_000;
    u64::try_from(packets).unwrap_or(u64::MAX).saturating_add(1)
}

impl BottleneckSpec {
    /// Returns the packets that it holds and that it sends in a second, at most.
    fn most(&self, arrivals_per_s: u64, changes: &[(Duration, Change)]) -> (u64, u64) {
        let smallest = self.layer.smallest_packet();
        let highest = match &self.rate {
            // Opportunities are in bursts.
            RateSpec::Opportunities(_) => BitRate::from_bps(self.rate.initial().as_bps().saturating_mul(4)),
            rate => rate.rates().into_iter().max().unwrap_or(rate.initial()),
        };
        let highest = changes.iter().fold(highest, |highest, change| match change.1 {
            Change::Rate(rate) => highest.max(rate),
            _ => highest,
        });
        let holds = |limit| match limit {
            Limit::Packets(packets) => u64::from(packets),
            Limit::Bytes(bytes) => bytes / smallest,
            Limit::Time(time) => {
                let bytes = highest.nanobits_in(time) / 8_000_000_000;
                u64::try_from(bytes).unwrap_or(u64::MAX) / smallest
            }
        };
        let held = changes.iter().fold(holds(self.queue.limit()), |held, change| match change.1 {
            Change::Limit(limit) => held.max(holds(limit)),
            _ => held,
        });
        let mut per_s = highest.as_bps() / 8 / smallest;
        if let ShaperSpec::TokenBucket(bucket) = &self.shaper {
            // A full bucket leaves at once.
            per_s = per_s.saturating_add(u64::from(bucket.burst) / smallest);
        }
        (held.saturating_add(1), per_s.min(arrivals_per_s))
    }
}

impl DelaySpec {
    /// Returns the longest that a packet stays, but for one in a million where there is jitter.
    fn longest(&self, changes: &[(Duration, Change)]) -> Duration {
        let base = self.steps.iter().map(|step| step.1).fold(self.delay, Duration::max);
        let flow = self.flows.iter().map(|flow| flow.1).max().unwrap_or(Duration::ZERO);
        let jitter = self.jitter.as_ref().map_or(Duration::ZERO, |jitter| jitter.distribution.far_out());
        let (base, jitter) = changes.iter().fold((base, jitter), |(base, jitter), change| match change.1 {
            Change::Delay(delay) => (base.max(delay), jitter),
            Change::Jitter(spread) => (base, jitter.max(spread)),
            _ => (base, jitter),
        });
        base + flow + jitter
    }
}

impl Distribution {
    fn far_out(&self) -> Duration {
        let times = |unit: Duration, factor: f64| {
            Duration::from_nanos((unit.as_nanos() as f64 * factor).min(MOST_JITTER.as_nanos() as f64) as u64)
        };
        match self {
            Distribution::Uniform { spread } => *spread,
            // 1 - Phi(4.76) = 1e-6.
            Distribution::Normal { deviation } => times(*deviation, 4.76),
            // P(X > x) = (1 + x / scale)^-shape.
            Distribution::Pareto { scale, shape } => times(*scale, libm::pow(1e6, 1.0 / shape) - 1.0),
            // Mean and deviation are shape and its root, in scales; ten deviations are beyond it for any shape
            // above 0.3, and 14 scales for the others.
            Distribution::Gamma { shape, scale } => times(*scale, shape + 10.0 * shape.sqrt() + 14.0),
            Distribution::Table { quantiles } => quantiles.last().copied().unwrap_or(Duration::ZERO),
        }
    }
}

/// Room is not made for heavier tails than this.
const MOST_JITTER: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Layer, QueueSpec};

    fn bottleneck(bps: u64, limit: Limit) -> StageSpec {
        let kind = StageKind::Bottleneck(BottleneckSpec {
            rate: RateSpec::Constant(BitRate::from_bps(bps)),
            shaper: ShaperSpec::Serial,
            queue: QueueSpec::Droptail(limit),
            layer: Layer::Ethernet,
        });
        StageSpec { name: "bottleneck".into(), kind, changes: vec![] }
    }

    fn delay(ms: u64) -> StageSpec {
        let kind = StageKind::Delay(DelaySpec::constant(Duration::from_millis(ms)));
        StageSpec { name: "delay".into(), kind, changes: vec![] }
    }

    #[test]
    fn by_hand() {
        let packets = [bottleneck(1_000_000, Limit::Packets(100))];
        assert_eq!(most_packets(&packets, 1_000), 101);
        // 10 kB in packets of 34 B, and one more.
        assert_eq!(most_packets(&[bottleneck(1_000_000, Limit::Bytes(10_000))], 1_000), 294 + 1);
        // 300 ms at 1 Mbit/s are 37,500 B.
        let limit = Limit::Time(Duration::from_millis(300));
        assert_eq!(most_packets(&[bottleneck(1_000_000, limit)], 1_000), 1_102 + 1);
        // The arrivals of 100 ms; behind the bottleneck the packets it sends, 3,676 packets/s of 34 B.
        assert_eq!(most_packets(&[delay(100)], 10_000), 1_000 + 1);
        let both = [bottleneck(1_000_000, Limit::Packets(100)), delay(1000)];
        assert_eq!(most_packets(&both, 10_000), 101 + 3_676 + 1);
    }
}
