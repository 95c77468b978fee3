//! Both directions of the path, and the fates of the packets in them.

use std::collections::VecDeque;

use streamgauge_base::{
    Direction, Duration, ETHERNET_HEADER_BYTES, Ecn, Event, Fate, FateSink, FlowId, Fragment,
    IPV4_HEADER_BYTES, Instant, Item, Outcome, PacketId, PacketInfo, PacketKind, Protocol, StageId,
    packet_flags,
};
use streamgauge_path::spec::{PathSpec, StageKind, StageSpec};
use streamgauge_path::{Change, Departure, Path};
use streamgauge_plan::direction_name;
use streamgauge_record::Classifier;

use crate::error::SimError;
use crate::peers::PeerLink;
use crate::pending::Pending;
use crate::reassembly::{HostCounts, Reassembly};
use crate::recorder::{Recorder, Steer};
use crate::store::{Body, Handle, Store};

/// The longest IP packet that a host sends: Ethernet's limit.
const HOST_MTU: u32 = 1500;

/// The part of a datagram in one packet: as much as fits, in units of 8 bytes (RFC 791 section 3.2).
const FRAGMENT_PAYLOAD: u32 = (HOST_MTU - IPV4_HEADER_BYTES) & !7;

/// From one machine to another at the same side of the path: the delay of a switch and two hosts.
const LOCAL_DELAY: Duration = Duration::from_micros(20);

/// A packet that the receiving host passes on. Its content stays in the store until it is read.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Time when it left the path.
    pub at: Instant,
    pub flow: FlowId,
    /// As the path left them.
    pub ecn: Ecn,
    pub body: Handle,
}

/// A packet between two machines at one side of the path, which is no traffic of it.
#[derive(Debug)]
pub struct Local {
    /// Time when it arrives.
    pub at: Instant,
    /// At this endpoint.
    pub to: u32,
    pub body: Body,
}

/// The path, with the packets inside it.
pub struct Network<R> {
    paths: [Path; 2],
    /// Per direction: the stage at which packets enter, at the end and at the router.
    entries: [[StageId; 2]; 2],
    pub fates: NetworkSink<R>,
    /// Pending work of the end in hand.
    pub pending: Pending,
    classifier: Classifier,
    /// The hosts that receive packets of down, and of up.
    hosts: [Reassembly; 2],
    /// In order of arrival, as all have the same delay.
    pub local: VecDeque<Local>,
    next_id: u64,
    /// Time when a packet of a subject last entered or left.
    pub last_crossing: Instant,
    /// By flow: it is no subject, and a trial may end beside it.
    beside: Box<[bool]>,
}

/// The sink of a path's fates.
pub struct NetworkSink<R> {
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
    pub fn new(spec: &PathSpec, seed: u64, classifier: Classifier, recorder: R) -> Result<Self, SimError> {
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
            fates: NetworkSink {
                store: Store::default(),
                recorder,
                stage_names,
                down_stages,
                bottleneck: StageId(bottleneck(&spec.down).unwrap_or(down_stages - 1)),
                bottleneck_packets: 0,
            },
            pending: Pending::default(),
            classifier,
            hosts: Default::default(),
            local: VecDeque::new(),
            next_id: 0,
            last_crossing: Instant::ZERO,
            beside: Box::default(),
        })
    }

    /// Paces as [`Recorder::pace`].
    pub fn pace(&mut self, now: Instant, done: Instant) -> Steer {
        let held = self.paths.each_ref().map(|path| {
            path.stages().iter().map(|stage| stage.depth().bytes).find(|&bytes| bytes > 0).unwrap_or(0)
        });
        self.fates.recorder.pace(now, done, held)
    }

    /// Changes stages' settings at `at`.
    pub fn change(&mut self, at: Instant, changes: &[(usize, usize, Change)]) {
        for &(way, place, change) in changes {
            self.paths[way].schedule(place, at, change);
        }
    }

    /// Leaves out packets of these flows, by their numbers: they do not keep the trial from ending.
    pub fn leave_out(&mut self, beside: Box<[bool]>) {
        self.beside = beside;
    }

    #[inline]
    fn crossed(&mut self, now: Instant, flow: FlowId) {
        if self.beside.get(usize::from(flow.0)) != Some(&true) {
            self.last_crossing = now;
        }
    }

    /// Sends a packet by `link`; see [`Network::send_across`].
    #[inline]
    pub fn send(&mut self, now: Instant, link: &PeerLink, hash: u32, body: Body) {
        match link.local {
            None => self.send_across(now, link, hash, body),
            Some(to) => self.local.push_back(Local { at: now + LOCAL_DELAY, to, body }),
        }
    }

    /// Sends a packet of `link` into the path. `hash` identifies its connection. A packet too long for the host's own
    /// link is sent in fragments; routers may cut up any packet, as if the host's path MTU discovery were off.
    fn send_across(&mut self, now: Instant, link: &PeerLink, hash: u32, body: Body) {
        let line = &link.line;
        let ecn = match &body {
            Body::Segment(_, segment) => segment.ecn,
            _ => line.ecn,
        };
        let is_read = R::PACKETS || (R::MESSAGES && self.classifier.reads_messages(line.flow));
        let info = if is_read {
            let mut info = self.classifier.classify(
                line.flow,
                line.direction,
                body.connection(line.direction),
                &body.headers(),
            );
            info.flags |= packet_flags::of_arrived(ecn);
            if self.classifier.has_messages() {
                self.say_messages(now);
            }
            info
        } else {
            let (kind, payload_bytes) = (PacketKind::Other, body.payload_bytes());
            PacketInfo { kind, flags: 0, header_bytes: 0, payload_bytes, seq: None, connection: None }
        };
        let (protocol, ports, ip_bytes) = (body.protocol(), body.ports(), body.ip_bytes());
        // As Linux sends TCP, where path MTU discovery (RFC 1191 section 3) asks for it.
        let fragment = if protocol == Protocol::Tcp { Fragment::WHOLE_DF } else { Fragment::WHOLE };
        let number = PacketId(self.next_id);
        let mut item =
            Item { hash, ports, ecn, protocol, fragment, ..Item::new(number, line.flow, ip_bytes) };
        self.next_id += 1;
        if ip_bytes > HOST_MTU {
            return self.send_in_fragments(now, link, item, body, info);
        }
        item.body = self.fates.store.insert(body, info, 1);
        self.enter(now, link, item);
    }

    #[cold]
    fn say_messages(&mut self, now: Instant) {
        for message in self.classifier.take_messages() {
            self.fates.recorder.event(message.event(now));
        }
    }

    #[cold]
    fn send_in_fragments(
        &mut self,
        now: Instant,
        link: &PeerLink,
        whole: Item,
        body: Body,
        info: PacketInfo,
    ) {
        let payload = whole.ip_bytes - IPV4_HEADER_BYTES;
        let body = self.fates.store.insert(body, info, payload.div_ceil(FRAGMENT_PAYLOAD));
        for offset in (0..payload).step_by(FRAGMENT_PAYLOAD as usize) {
            let bytes = FRAGMENT_PAYLOAD.min(payload - offset);
            let fragment = Fragment::part((offset / 8) as u16, offset + bytes < payload);
            let ip_bytes = bytes + IPV4_HEADER_BYTES;
            let bytes = ip_bytes + ETHERNET_HEADER_BYTES;
            self.enter(now, link, Item { body, fragment, ip_bytes, bytes, ..whole });
        }
    }

    #[inline]
    fn enter(&mut self, now: Instant, link: &PeerLink, item: Item) {
        let line = &link.line;
        if R::FRAMES {
            let NetworkSink { store, recorder, .. } = &mut self.fates;
            recorder.sent(now, link, &item, store.body(item.body));
        }
        let entry = self.entries[line.direction as usize][usize::from(line.at_router)];
        self.fates.recorder.entered(entry, line.flow, item.bytes);
        self.crossed(now, line.flow);
        let path = &mut self.paths[line.direction as usize];
        if line.at_router {
            path.enqueue_at_bottleneck(now, item, &mut self.fates);
        } else {
            path.enqueue(now, item, &mut self.fates);
        }
    }

    /// Returns when [`Network::receive`] next has an event.
    #[inline]
    pub fn next_event(&self, direction: Direction) -> Instant {
        self.paths[direction as usize].next_event().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Returns the next packet that the receiving host passes on of those that have left the path. `None` too where a
    /// packet left but the host did not pass it on.
    #[inline]
    pub fn receive(&mut self, now: Instant, direction: Direction) -> Option<Arrived> {
        let Departure { item, at } = self.leave(now, direction)?;
        let body = if item.fragment.is_whole() && !item.corrupted {
            item.body
        } else {
            self.arrive_harmed(at, direction, &item)?
        };
        Some(Arrived { at, flow: item.flow, ecn: item.ecn, body })
    }

    #[cold]
    fn arrive_harmed(&mut self, at: Instant, direction: Direction, item: &Item) -> Option<Handle> {
        self.hosts[direction as usize].arrive(at, item, &mut self.fates.store)
    }

    #[inline]
    fn leave(&mut self, now: Instant, direction: Direction) -> Option<Departure> {
        let departure = self.paths[direction as usize].dequeue(now, &mut self.fates)?;
        self.fates.recorder.left(direction, departure.item.flow, departure.item.bytes);
        self.crossed(now, departure.item.flow);
        if R::FRAMES {
            let NetworkSink { store, recorder, .. } = &mut self.fates;
            recorder.arrived(departure.at, direction, &departure.item, store.body(departure.item.body));
        }
        Some(departure)
    }

    /// Returns the receiving hosts' counts in `direction`, other than of deliveries.
    pub fn host_counts(&self, direction: Direction) -> HostCounts {
        self.hosts[direction as usize].counts
    }

    /// Ends the trial at `now`.
    pub fn finish(&mut self, now: Instant) {
        for direction in [Direction::Down, Direction::Up] {
            let path = &mut self.paths[direction as usize];
            debug_assert_eq!(path.clamped(), 0, "the clock never goes back");
            path.finish(now, &mut self.fates);
            // A packet that leaves at the very end has left, though no host reads it any more.
            while let Some(departure) = self.leave(now, direction) {
                self.fates.store.release(departure.item.body);
            }
            self.hosts[direction as usize].finish(now, &mut self.fates.store);
        }
        debug_assert_eq!(self.fates.store.len(), 0, "every item has been let go of");
    }
}

impl<R: Recorder> FateSink for NetworkSink<R> {
    #[inline]
    fn fate(&mut self, fate: &Fate) {
        let body = fate.item.body;
        if fate.outcome == Outcome::Delivered && fate.stage == self.bottleneck {
            self.bottleneck_packets += u64::from(self.store.info(body).payload_bytes > 0);
        }
        if R::PACKETS {
            let direction = if fate.stage.0 < self.down_stages { Direction::Down } else { Direction::Up };
            self.recorder.row(fate, self.store.info(body), direction);
        }
        if fate.outcome != Outcome::Delivered {
            self.store.release(body);
        }
    }

    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.store.hold(made.body);
        if R::PACKETS {
            self.recorder.made(stage, from, made);
        }
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
