//! The queue managers of the emulators and routers of the first papers: their settings, and the refused values.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};

use crate::error::{StageProblem, refuse};
use crate::spec::{Layer, Limit};

/// Random early detection (Floyd and Jacobson 1993).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedSpec {
    /// Below this average nothing is dropped. In bytes or packets, which is also how the average counts.
    pub min: Limit,
    /// The average at which the probability reaches `max_probability`. In the unit of `min`, and above it.
    pub max: Limit,
    /// The buffer's size; an arrival beyond it is dropped. At least `max` where it has the same unit.
    pub limit: Limit,
    /// Probability of a drop at `max`, in (0, 1]; 0.1 (Floyd 1997).
    #[serde(default = "tenth")]
    pub max_probability: f64,
    /// Weight of the newest queue length in the average, in (0, 1]; 0.002 (Floyd and Jacobson 1993, section 6).
    #[serde(default = "two_thousandths")]
    pub weight: f64,
    /// From `max` to twice `max` the probability rises to 1, instead of being 1 from `max` on (Floyd 2000).
    #[serde(default = "yes")]
    pub gentle: bool,
    /// Mark ECN-capable packets instead of dropping them while the probability is below 1 (RFC 3168 section 7).
    #[serde(default)]
    pub ecn: bool,
    /// Bytes of a typical packet: how many could have left while the queue was empty, and in byte mode the packet
    /// that meets the probability as it is. 1000.
    #[serde(default = "thousand")]
    pub mean_packet: u32,
}

/// Derivative random drop, NIST Net's own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrdSpec {
    /// drdmin: up to this many packets held nothing is dropped.
    pub min_packets: u32,
    /// drdmax: from this many on, 95 % are dropped. It exceeds `min_packets`.
    pub max_packets: u32,
    /// drdcongest: from this many packets on, accepted ECN-capable packets are marked; never if left out.
    #[serde(default)]
    pub congested_packets: Option<u32>,
    /// The buffer's size; without it only the probability bounds the queue, as in NIST Net.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// The fixed delay behind the queue (ns), in which NIST Net counts packets too; 0 counts none there.
    #[serde(default)]
    pub delay: Duration,
}

/// Drop-tail as NIST Net counts: packets that wait, that are being sent, and that are still in the fixed delay.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NistnetSpec {
    /// How many there may be, the arrival included, >= 1.
    pub packets: u32,
    /// The fixed delay behind the queue (ns).
    pub delay: Duration,
}

fn tenth() -> f64 {
    0.1
}
fn two_thousandths() -> f64 {
    0.002
}
fn yes() -> bool {
    true
}
fn thousand() -> u32 {
    1000
}

fn share(setting: &'static str, value: f64) -> Result<(), StageProblem> {
    if value > 0.0 && value <= 1.0 { Ok(()) } else { refuse(setting, value, "above 0 and at most 1") }
}

impl RedSpec {
    /// Returns `min` and `max`, and whether they count bytes.
    pub(crate) fn thresholds(&self) -> Option<(u64, u64, bool)> {
        match (self.min, self.max) {
            (Limit::Bytes(min), Limit::Bytes(max)) => Some((min, max, true)),
            (Limit::Packets(min), Limit::Packets(max)) => Some((min.into(), max.into(), false)),
            _ => None,
        }
    }

    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        let both = || format!("{:?} beside a max of {:?}", self.min, self.max);
        let Some((min, max, bytes)) = self.thresholds() else {
            return refuse("min", both(), "in bytes or packets, as max is");
        };
        if min == 0 {
            return refuse("min", both(), "more than 0");
        }
        if min >= max {
            return refuse("min", both(), "less than max");
        }
        let limit = match self.limit {
            Limit::Bytes(limit) if bytes => Some(limit),
            Limit::Packets(limit) if !bytes => Some(limit.into()),
            _ => None,
        };
        if limit.is_some_and(|limit| max > limit) {
            let given = format!("{:?} with a limit of {:?}", self.max, self.limit);
            return refuse("max", given, "within the limit, or the limit drops before RED does");
        }
        share("max_probability", self.max_probability)?;
        share("weight", self.weight)?;
        if self.mean_packet == 0 {
            return refuse("mean_packet", 0, "at least 1 byte");
        }
        self.limit.check(layer, highest)
    }
}

impl DrdSpec {
    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        if self.min_packets >= self.max_packets {
            let given = format!("{} beside a max_packets of {}", self.min_packets, self.max_packets);
            return refuse("min_packets", given, "less than max_packets");
        }
        if self.congested_packets == Some(0) {
            return refuse("congested_packets", 0, "at least 1 packet");
        }
        if let Some(Limit::Packets(limit)) = self.limit
            && self.max_packets > limit
        {
            let given = format!("{} with a limit of {limit} packets", self.max_packets);
            return refuse("max_packets", given, "within the limit, or the limit drops first");
        }
        self.limit.map_or(Ok(()), |limit| limit.check(layer, highest))
    }
}

impl NistnetSpec {
    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        if self.packets == 0 { Err(StageProblem::LimitPackets) } else { Ok(()) }
    }
}
