//! Both directions of the path, and what becomes of the packets in them.

use streamgauge_base::{
    Direction, Ecn, Event, Fate, FateSink, FlowId, Instant, Item, Outcome, PacketInfo, PacketKind, StageId,
};
use streamgauge_path::Path;
use streamgauge_path::spec::{PathSpec, StageKind, StageSpec};
use streamgauge_record::{Classifier, direction_name};

use crate::error::SimError;
use crate::recorder::Recorder;
use crate::store::{Body, Store};

/// Where an endpoint's packets go.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub flow: FlowId,
    pub direction: Direction,
    /// They enter at the bottleneck.
    pub at_router: bool,
}

/// The path, with the packets inside it.
pub struct Network<R> {
    paths: [Path; 2],
    /// Of each direction: the stage at which packets enter, at the end and at the router.
    entries: [[StageId; 2]; 2],
    pub fates: Fates<R>,
    classifier: Classifier,
    /// When a packet last entered or left.
    pub last_crossing: Instant,
}

/// The sink of a path's fates.
pub struct Fates<R> {
    pub store: Store,
    pub recorder: R,
    stage_names: Vec<String>,
    down_stages: u8,
    /// Down's bottleneck, or its last stage if it has none.
    bottleneck: StageId,
    /// Packets with payload that left it.
    pub bottleneck_packets: u64,
}

impl<R: Recorder> Network<R> {
    pub fn new(spec: &PathSpec, seed: u64, subjects: &[bool], recorder: R) -> Result<Self, SimError> {
        let down = Path::new(&spec.down, StageId(0), seed, Direction::Down)?;
        let down_stages = spec.down.len() as u8;
        let up = Path::new(&spec.up, StageId(down_stages), seed, Direction::Up)?;
        let bottleneck = |stages: &[StageSpec]| {
            stages.iter().position(|s| matches!(s.kind, StageKind::Bottleneck(_))).map(|index| index as u8)
        };
        let entries = |stages: &[StageSpec], first: u8| {
            [StageId(first), StageId(first + bottleneck(stages).unwrap_or(0))]
        };
        let named = |direction, stages: &[StageSpec]| {
            stages
                .iter()
                .map(|s| format!("path.{}.{}", direction_name(direction), s.name))
                .collect::<Vec<_>>()
        };
        let stage_names = [named(Direction::Down, &spec.down), named(Direction::Up, &spec.up)].concat();
        Ok(Network {
            paths: [down, up],
            entries: [entries(&spec.down, 0), entries(&spec.up, down_stages)],
            fates: Fates {
                store: Store::default(),
                recorder,
                stage_names,
                down_stages,
                bottleneck: StageId(bottleneck(&spec.down).unwrap_or(down_stages - 1)),
                bottleneck_packets: 0,
            },
            classifier: Classifier::new(subjects),
            last_crossing: Instant::ZERO,
        })
    }

    /// A packet of `line` is sent. `hash` tells its connection.
    pub fn send(&mut self, now: Instant, line: Line, hash: u32, body: Body) {
        let ecn = match &body {
            Body::Segment(_, segment) => segment.ecn,
            _ => Ecn::NotEct,
        };
        let item = Item {
            hash,
            ecn,
            protocol: body.protocol(),
            ..Item::new(self.fates.store.next_id(), line.flow, body.ip_bytes())
        };
        let info = if R::PACKETS {
            self.classifier.classify(line.flow, line.direction, hash, &body.headers())
        } else {
            PacketInfo { kind: PacketKind::Other, flags: 0, payload_bytes: body.payload_bytes(), seq: None }
        };
        self.fates.store.insert(body, info);
        let entry = self.entries[line.direction as usize][usize::from(line.at_router)];
        self.fates.recorder.entered(entry, line.flow, item.bytes);
        self.last_crossing = now;
        let path = &mut self.paths[line.direction as usize];
        if line.at_router {
            path.enqueue_at_bottleneck(now, item, &mut self.fates);
        } else {
            path.enqueue(now, item, &mut self.fates);
        }
    }

    /// When [`Network::receive`] has something to do.
    #[inline]
    pub fn next_event(&self, direction: Direction) -> Instant {
        self.paths[direction as usize].next_event().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The next packet that has left the path: whose, when, and what it carries.
    #[inline]
    pub fn receive(&mut self, now: Instant, direction: Direction) -> Option<(FlowId, Instant, Body)> {
        let departure = self.paths[direction as usize].dequeue(now, &mut self.fates)?;
        let item = departure.item;
        self.fates.recorder.left(direction, item.flow, item.bytes);
        self.last_crossing = now;
        let mut body = self.fates.store.take(item.id);
        if let Body::Segment(_, segment) = &mut body {
            segment.ecn = item.ecn;
        }
        Some((item.flow, departure.at, body))
    }

    /// The trial ends at `now`.
    pub fn finish(&mut self, now: Instant) {
        for direction in [Direction::Down, Direction::Up] {
            let path = &mut self.paths[direction as usize];
            debug_assert_eq!(path.clamped(), 0, "the clock never goes back");
            path.finish(now, &mut self.fates);
            // What leaves at the very end has left, though nobody looks at it any more.
            while self.receive(now, direction).is_some() {}
        }
    }
}

impl<R: Recorder> FateSink for Fates<R> {
    #[inline]
    fn fate(&mut self, fate: &Fate) {
        let id = fate.item.id;
        if fate.outcome == Outcome::Delivered && fate.stage == self.bottleneck {
            self.bottleneck_packets += u64::from(self.store.info(id).payload_bytes > 0);
        }
        if R::PACKETS {
            let direction = if fate.stage.0 < self.down_stages { Direction::Down } else { Direction::Up };
            self.recorder.row(fate, self.store.info(id), direction);
        }
        if fate.outcome != Outcome::Delivered {
            self.store.take(id);
        }
    }

    fn made(&mut self, _: StageId, _: &Item, _: &Item) {
        unreachable!("no stage of today makes packets");
    }

    fn changed(&mut self, stage: StageId, at: Instant, what: &'static str, value: f64, unit: &'static str) {
        self.recorder.event(Event {
            at,
            flow: None,
            name: what.into(),
            value: Some(value),
            unit: unit.into(),
            reason: self.stage_names[usize::from(stage.0)].clone().into(),
        });
    }
}
