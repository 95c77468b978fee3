//! Counts between two samples. Room is made once; counting allocates nothing.

use streamgauge_base::{Direction, Fate, FlowId, Outcome, StageId};
use streamgauge_path::spec::{PathSpec, StageKind};

use crate::histogram::Histogram;

/// Causes of [`streamgauge_base::Cause`].
const CAUSES: usize = 6;
/// Most flows with counts of their own; the others are counted together, as `other`.
const MOST_FLOWS: usize = 64;

/// One flow, or all of them, in one direction.
#[derive(Clone, Debug)]
pub struct Way {
    /// Packets and Ethernet bytes that entered the path.
    pub offered: [u64; 2],
    /// Packets and bytes that left it.
    pub delivered: [u64; 2],
    /// Packets and bytes that a stage dropped.
    pub lost: [u64; 2],
    /// Those packets by cause.
    pub dropped: [u64; CAUSES],
    /// Packets that a stage set CE on.
    pub marked: u64,
    /// Packets that left the bottleneck.
    pub served: u64,
    /// The most that the bottleneck held at an arrival, bytes.
    pub queue_bytes: u32,
    /// The sum over `served`.
    pub queue_bytes_sum: u64,
    /// The longest stay in the bottleneck, ns.
    pub queue_ns: u64,
    /// The sum over `served`.
    pub queue_ns_sum: u64,
    /// One-way delays of packets that left.
    pub delays: Histogram,
}

impl Default for Way {
    fn default() -> Self {
        Way::with(Histogram::default())
    }
}

impl Way {
    fn clear(&mut self) {
        let mut delays = std::mem::replace(&mut self.delays, Histogram::none());
        delays.clear();
        *self = Way::with(delays);
    }

    fn with(delays: Histogram) -> Way {
        Way {
            offered: [0; 2],
            delivered: [0; 2],
            lost: [0; 2],
            dropped: [0; CAUSES],
            marked: 0,
            served: 0,
            queue_bytes: 0,
            queue_bytes_sum: 0,
            queue_ns: 0,
            queue_ns_sum: 0,
            delays,
        }
    }

    fn fate(&mut self, fate: &Fate, at_bottleneck: bool) {
        self.marked += u64::from(fate.marked && fate.outcome != Outcome::Held);
        match fate.outcome {
            Outcome::Dropped => {
                self.lost[0] += 1;
                self.lost[1] += u64::from(fate.item.bytes);
                self.dropped[fate.cause as usize] += 1;
            }
            Outcome::Delivered if at_bottleneck => {
                let stayed = fate.at.saturating_since(fate.t_in).as_nanos();
                self.served += 1;
                self.queue_ns = self.queue_ns.max(stayed);
                self.queue_ns_sum += stayed;
                self.queue_bytes_sum += u64::from(fate.queue.bytes);
            }
            _ => {}
        }
        if at_bottleneck {
            self.queue_bytes = self.queue_bytes.max(fate.queue.bytes);
        }
    }
}

/// Counts of all flows in both directions since they were cleared.
#[derive(Clone, Debug)]
pub struct Aggregates {
    /// Down, up.
    pub ways: [Way; 2],
    /// By code; the last is `other`.
    pub flows: Vec<[Way; 2]>,
    /// How late packets left, ns, on a real clock.
    pub lateness: Histogram,
    bottlenecks: [Option<StageId>; 2],
}

impl Aggregates {
    /// Returns room for this many flows and relays on `path`.
    pub fn new(flows: usize, path: &PathSpec) -> Self {
        let bottleneck = |stages: &[streamgauge_path::spec::StageSpec], first: usize| {
            let place = stages.iter().position(|stage| matches!(stage.kind, StageKind::Bottleneck(_)))?;
            Some(StageId((first + place) as u8))
        };
        Aggregates {
            ways: Default::default(),
            flows: vec![Default::default(); flows.min(MOST_FLOWS) + 1],
            lateness: Histogram::default(),
            bottlenecks: [bottleneck(&path.down, 0), bottleneck(&path.up, path.down.len())],
        }
    }

    /// Returns the stage that has its queue counted.
    pub fn bottleneck(&self, direction: Direction) -> Option<StageId> {
        self.bottlenecks[direction as usize]
    }

    #[inline]
    fn both(&mut self, direction: Direction, flow: FlowId) -> [&mut Way; 2] {
        let other = self.flows.len() - 1;
        let way = direction as usize;
        [&mut self.ways[way], &mut self.flows[usize::from(flow.0).min(other)][way]]
    }

    /// Counts a packet of this many Ethernet bytes that entered the path.
    #[inline]
    pub fn entered(&mut self, direction: Direction, flow: FlowId, bytes: u32) {
        for way in self.both(direction, flow) {
            way.offered[0] += 1;
            way.offered[1] += u64::from(bytes);
        }
    }

    /// Counts a packet that left it.
    #[inline]
    pub fn left(&mut self, direction: Direction, flow: FlowId, bytes: u32) {
        for way in self.both(direction, flow) {
            way.delivered[0] += 1;
            way.delivered[1] += u64::from(bytes);
        }
    }

    /// Counts its time on the way.
    #[inline]
    pub fn stayed(&mut self, direction: Direction, flow: FlowId, ns: u64) {
        for way in self.both(direction, flow) {
            way.delays.add(ns);
        }
    }

    /// Its stay in a stage has ended.
    #[inline]
    pub fn fate(&mut self, direction: Direction, fate: &Fate) {
        let at_bottleneck = self.bottlenecks[direction as usize] == Some(fate.stage);
        if at_bottleneck || fate.outcome == Outcome::Dropped || fate.marked {
            for way in self.both(direction, fate.item.flow) {
                way.fate(fate, at_bottleneck);
            }
        }
    }

    /// Resets all counts, with the same room.
    pub fn clear(&mut self) {
        self.ways.iter_mut().chain(self.flows.iter_mut().flatten()).for_each(Way::clear);
        self.lateness.clear();
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::{Cause, Instant, Item, PacketId, QueueDepth};

    use super::*;

    fn fate(outcome: Outcome, cause: Cause, marked: bool) -> Fate {
        let item = Item::new(PacketId(1), FlowId(3), 1486);
        let queue = QueueDepth { bytes: 3000, packets: 2 };
        let (t_in, at) = (Instant::from_nanos(1_000), Instant::from_nanos(5_000));
        Fate { item, stage: StageId(0), t_in, at, outcome, cause, queue, marked }
    }

    #[test]
    fn what_happened_is_counted_for_its_flow_and_for_all_and_cleared() {
        let path = serde_json::from_value(serde_json::json!({
            "down": [{"name": "link", "kind": {"bottleneck": {"rate": {"constant": 1_000_000},
                      "queue": {"droptail": {"bytes": 9000}}}}}],
            "up": [{"name": "wire", "kind": {"delay": {"delay": 0, "steps": []}}}]}))
        .unwrap();
        let mut counts = Aggregates::new(2, &path);
        counts.entered(Direction::Down, FlowId(3), 1500);
        counts.fate(Direction::Down, &fate(Outcome::Delivered, Cause::None, true));
        counts.left(Direction::Down, FlowId(3), 1500);
        counts.stayed(Direction::Down, FlowId(3), 4_000);
        counts.fate(Direction::Down, &fate(Outcome::Dropped, Cause::QueueFull, false));
        // Beyond the flows that there are is `other`, the last.
        for way in [&counts.ways[0], &counts.flows[2][0]] {
            assert_eq!((way.offered, way.delivered, way.lost), ([1, 1500], [1, 1500], [1, 1500]));
            assert_eq!((way.dropped[Cause::QueueFull as usize], way.marked, way.served), (1, 1, 1));
            assert_eq!((way.queue_bytes, way.queue_ns, way.queue_bytes_sum), (3000, 4000, 3000));
            assert_eq!(way.delays.quantile(0.5), Some(4000));
        }
        assert_eq!(counts.ways[1].offered, [0, 0]);
        counts.clear();
        assert_eq!((counts.ways[0].offered, counts.ways[0].delays.count()), ([0, 0], 0));
        assert_eq!(counts.bottleneck(Direction::Up), None);
    }
}
