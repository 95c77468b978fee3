//! A bottleneck computed the long way: every packet's fate from all earlier arrivals, by the integral of the rate. The
//! judge of the real one, with which it shares no code.

use streamgauge_base::{Instant, QueueDepth};
use streamgauge_path::spec::Limit;

use super::at;

/// Rate steps in (ns, bit/s); the first is at 0.
pub type Steps = Vec<(u64, u64)>;

/// The reference's result for one arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    pub accepted: bool,
    /// End of its transmission; `None` if it was dropped or the link stops for ever before that.
    pub ends: Option<Instant>,
    pub depth: QueueDepth,
}

/// Bits times 10^9 that the link can send in [0, t).
pub fn work(steps: &Steps, t: u64) -> u128 {
    let ends = steps.iter().skip(1).map(|step| step.0).chain([u64::MAX]);
    let spans = steps.iter().zip(ends);
    spans.map(|(&(from, rate), to)| u128::from(t.clamp(from, to) - from) * u128::from(rate)).sum()
}

pub fn rate_at(steps: &Steps, t: u64) -> u64 {
    steps.iter().rev().find(|step| step.0 <= t).expect("a step at 0").1
}

/// Returns the first whole nanosecond by which the link can have sent `target`.
fn reached(steps: &Steps, target: u128) -> Option<u64> {
    let after_last = steps.last().expect("a step").0;
    let (mut low, mut high) = (0, after_last);
    while work(steps, high) < target {
        if rate_at(steps, after_last) == 0 {
            return None;
        }
        high = high * 2 + 1_000_000;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if work(steps, middle) < target { low = middle + 1 } else { high = middle }
    }
    Some(low)
}

/// Returns the fates of `arrivals` in (ns, bytes), ascending.
pub fn reference(steps: &Steps, limit: Limit, arrivals: &[(u64, u32)]) -> Vec<Verdict> {
    let mut accepted: Vec<(u32, Option<u64>)> = Vec::new();
    let mut target = 0;
    let mut verdicts = Vec::new();
    for &(now, bytes) in arrivals {
        let held = || accepted.iter().filter(|(_, ends)| ends.is_none_or(|ends| ends > now));
        let depth = QueueDepth { bytes: held().map(|held| held.0).sum(), packets: held().count() as u32 };
        let fits = match limit {
            Limit::Bytes(limit) => u64::from(depth.bytes + bytes) <= limit,
            Limit::Packets(limit) => depth.packets < limit,
            Limit::Time(limit) => {
                let drained = u128::from(rate_at(steps, now)) * u128::from(limit.as_nanos()) / 8_000_000_000;
                u128::from(depth.bytes + bytes) <= drained
            }
        };
        let mut ends = None;
        if fits {
            // A busy link continues where it was, to a fraction of a nanosecond; an idle one starts now.
            let busy = depth.packets > 0;
            target = if busy { target } else { work(steps, now) } + u128::from(bytes) * 8_000_000_000;
            ends = reached(steps, target);
            accepted.push((bytes, ends));
        }
        verdicts.push(Verdict { accepted: fits, ends: ends.map(at), depth });
    }
    verdicts
}
