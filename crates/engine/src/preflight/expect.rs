//! Expectations of a direction of the plan at time zero.

use std::time::Duration;

use streamgauge_base::ETHERNET_HEADER_BYTES;
use streamgauge_path::spec::{Layer, Limit, StageKind, StageSpec};
use streamgauge_path::{at_rest, measured_bottleneck};

/// One direction.
pub struct Expected {
    /// Sum of its delays, s.
    pub delay_s: f64,
    /// Ethernet bytes of the longest packet that passes whole.
    pub frame: f64,
    /// Its bottleneck, if it has one: of several the slowest.
    pub bottleneck: Option<ExpectedBottleneck>,
}

/// A rate and a queue at time zero.
pub struct ExpectedBottleneck {
    /// Bit/s.
    pub rate_bps: u64,
    /// Its capacity.
    pub limit: Limit,
    /// The layer of its counts.
    pub layer: Layer,
}

/// How a train is sent.
pub struct Train {
    /// Ethernet bytes of a packet.
    pub frame: usize,
    /// Packets at once.
    pub burst: u32,
    /// Packets/s after that.
    pub pace: f64,
    /// When it ends, from its start.
    pub lasts: Duration,
}

/// A train's queue should drain in this time, s, where the choice of packet size allows.
const DRAIN: f64 = 1.2;

/// Stamps tens of us off must not show in a rate: the train lasts at least this long, s.
const LEAST: f64 = 0.25;

/// Ethernet bytes of the longest and the shortest packet of a train.
const FRAMES: (f64, f64) = (1514.0, 120.0);

impl ExpectedBottleneck {
    /// Returns the bytes of a packet that it counts.
    pub fn counted(&self, frame: usize) -> u64 {
        match self.layer {
            Layer::Ethernet => frame as u64,
            Layer::Ip => frame as u64 - u64::from(ETHERNET_HEADER_BYTES),
        }
    }

    /// Its limit in bytes, if it has one of that kind.
    pub fn limit_bytes(&self) -> Option<u64> {
        match self.limit {
            Limit::Bytes(bytes) => Some(bytes),
            Limit::Time(time) => {
                Some((u128::from(self.rate_bps) * u128::from(time.as_nanos()) / 8_000_000_000) as u64)
            }
            Limit::Packets(_) => None,
        }
    }
}

impl Expected {
    /// Returns the expectations of these stages.
    pub fn of(stages: &[StageSpec]) -> Self {
        let mut expected = Expected { delay_s: 0.0, frame: FRAMES.0, bottleneck: None };
        let measured = measured_bottleneck(stages);
        for (place, stage) in at_rest(stages).into_iter().enumerate() {
            match stage.kind {
                StageKind::Delay(delay) => expected.delay_s += delay.delay.as_secs_f64(),
                StageKind::Bottleneck(_) if Some(place) != measured => {}
                StageKind::Bottleneck(spec) => {
                    let rate_bps = spec.rate.initial().as_bps();
                    expected.bottleneck =
                        Some(ExpectedBottleneck { rate_bps, limit: spec.queue.limit(), layer: spec.layer });
                }
                StageKind::Mtu(mtu) => {
                    if let Some(bytes) = mtu.initial() {
                        expected.frame = expected.frame.min(f64::from(bytes + ETHERNET_HEADER_BYTES));
                    }
                }
                // At rest these let everything pass.
                StageKind::Loss(_)
                | StageKind::Reorder(_)
                | StageKind::Duplicate(_)
                | StageKind::Corrupt(_)
                | StageKind::Block(_) => {}
            }
        }
        expected
    }

    /// Its rate.
    pub fn rate_bps(&self) -> Option<u64> {
        self.bottleneck.as_ref().map(|b| b.rate_bps)
    }

    /// Its queue's limit, if in bytes or time.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.bottleneck.as_ref().and_then(ExpectedBottleneck::limit_bytes)
    }

    /// Its queue's limit, if in packets.
    pub fn limit_packets(&self) -> Option<u64> {
        match self.bottleneck.as_ref()?.limit {
            Limit::Packets(packets) => Some(packets.into()),
            _ => None,
        }
    }

    /// Returns how long a frame takes at the bottleneck, s; 0 without one.
    pub fn transmission(&self, frame: usize) -> f64 {
        self.bottleneck.as_ref().map_or(0.0, |b| b.counted(frame) as f64 * 8.0 / b.rate_bps as f64)
    }

    /// Returns a train that overfills the queue.
    pub fn train(&self) -> Train {
        let Some(bottleneck) = &self.bottleneck else {
            return Train { frame: 0, burst: 0, pace: 0.0, lasts: Duration::ZERO };
        };
        let rate = bottleneck.rate_bps as f64 / 8.0;
        let (frame, holds) = match (bottleneck.limit, bottleneck.limit_bytes()) {
            (Limit::Packets(packets), _) => (
                (rate * DRAIN / f64::from(packets)).clamp(FRAMES.1.min(self.frame), self.frame),
                f64::from(packets),
            ),
            (_, bytes) => {
                let bytes = bytes.unwrap_or_default() as f64;
                // At least four packets: the limit can then be distinguished from a packet more or less.
                let frame = (bytes / 4.0).clamp(FRAMES.1.min(self.frame), self.frame);
                (frame, bytes / frame)
            }
        };
        let burst = holds + (holds / 4.0).max(10.0);
        let pace = 1.5 * rate / frame;
        let drains = holds * frame / rate;
        let lasts = if drains >= LEAST { 0.0 } else { LEAST };
        Train {
            frame: frame as usize,
            burst: burst.ceil() as u32,
            pace,
            lasts: Duration::from_secs_f64(lasts),
        }
    }
}
