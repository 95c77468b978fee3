//! Abilities that the traits need beyond today's elements: a flow queue that drops another flow's packet at enqueue, a
//! queue manager that drops and marks at dequeue, a stage that sends an item twice.
//!
//! These are the smallest that have the shape, not the disciplines themselves.

mod common;

use std::collections::{BTreeMap, VecDeque};

use common::*;
use streamgauge_base::{
    Cause, Duration, Ecn, FateSink, FlowId, Instant, Item, Outcome, PacketId, QueueDepth, StageId,
};
use streamgauge_path::spec::Layer;
use streamgauge_path::{
    Bottleneck, Chain, Change, Delay, Departure, Queue, QueuedPacket, Schedule, Stage, TransmitState,
};

/// A queue a flow, served in turn; when all together hold too much, the longest loses its head, even if the new packet
/// is another flow's (as FQ-CoDel at its limit, RFC 8290 section 4.1.3).
struct FlowQueues {
    limit_packets: usize,
    queues: BTreeMap<u32, VecDeque<QueuedPacket>>,
    turns: VecDeque<u32>,
}

impl FlowQueues {
    fn new(limit_packets: usize) -> Self {
        FlowQueues { limit_packets, queues: BTreeMap::new(), turns: VecDeque::new() }
    }
    fn pop_of(&mut self, hash: u32) -> Option<QueuedPacket> {
        let queue = self.queues.get_mut(&hash)?;
        let packet = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&hash);
            self.turns.retain(|&turn| turn != hash);
        }
        packet
    }
}

impl Queue for FlowQueues {
    fn push(
        &mut self,
        _: Instant,
        packet: QueuedPacket,
        _: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        let hash = packet.item.hash;
        if !self.queues.contains_key(&hash) {
            self.turns.push_back(hash);
        }
        self.queues.entry(hash).or_default().push_back(packet);
        if self.depth().packets as usize > self.limit_packets {
            let longest = *self.queues.iter().max_by_key(|(_, queue)| queue.len()).expect("not empty").0;
            drop(self.pop_of(longest).expect("the longest is not empty"), Cause::QueueFull);
        }
    }
    fn pop(
        &mut self,
        _: Instant,
        _: &TransmitState,
        _: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        let hash = *self.turns.front()?;
        self.turns.rotate_left(1);
        self.pop_of(hash)
    }
    fn take(&mut self) -> Option<QueuedPacket> {
        let hash = *self.turns.front()?;
        self.pop_of(hash)
    }
    fn depth(&self) -> QueueDepth {
        let all = || self.queues.values().flatten();
        QueueDepth { bytes: all().map(|packet| packet.bytes).sum(), packets: all().count() as u32 }
    }
}

/// Drops a packet that has waited longer than `target` when its turn is reached, or marks it if it is ECN-capable (the
/// moment at which CoDel decides, RFC 8289 section 5; not its law).
struct Stale {
    target: Duration,
    waiting: VecDeque<QueuedPacket>,
}

impl Queue for Stale {
    fn push(
        &mut self,
        _: Instant,
        packet: QueuedPacket,
        _: &TransmitState,
        _: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        self.waiting.push_back(packet);
    }
    fn pop(
        &mut self,
        now: Instant,
        _: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        loop {
            let mut packet = self.waiting.pop_front()?;
            if now - packet.t_in <= self.target {
                return Some(packet);
            }
            if packet.item.ecn != Ecn::NotEct {
                packet.item.ecn = Ecn::Ce;
                packet.marked = true;
                return Some(packet);
            }
            drop(packet, Cause::Aqm);
        }
    }
    fn take(&mut self) -> Option<QueuedPacket> {
        self.waiting.pop_front()
    }
    fn depth(&self) -> QueueDepth {
        QueueDepth {
            bytes: self.waiting.iter().map(|packet| packet.bytes).sum(),
            packets: self.waiting.len() as u32,
        }
    }
}

/// Sends every `every`-th item twice. The copy's number has the bit of this stage set, so that copies of
/// copies keep numbers of their own.
struct Duplicator {
    id: StageId,
    every: u64,
    copies: VecDeque<Departure>,
}

impl Duplicator {
    fn report(&self, departure: Departure, outcome: Outcome, fates: &mut impl FateSink) {
        fates.fate(&streamgauge_base::Fate {
            item: departure.item,
            stage: self.id,
            t_in: departure.at,
            at: departure.at,
            outcome,
            cause: Cause::None,
            queue: QueueDepth::default(),
            marked: false,
        });
    }
}

impl Stage for Duplicator {
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        self.copies.push_back(Departure { item, at: now });
        if item.id.0.is_multiple_of(self.every) {
            let copy = Item { copy: item.copy | 1 << self.id.0, ..item };
            fates.made(self.id, &item, &copy);
            self.copies.push_back(Departure { item: copy, at: now });
        }
    }
    fn dequeue(&mut self, _: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        let departure = self.copies.pop_front()?;
        self.report(departure, Outcome::Delivered, fates);
        Some(departure)
    }
    fn apply(&mut self, _: Instant, _: Change, _: &mut impl FateSink) {}
    fn next_event(&self) -> Option<Instant> {
        self.copies.front().map(|departure| departure.at)
    }
    fn finish(&mut self, _: Instant, fates: &mut impl FateSink) {
        while let Some(departure) = self.copies.pop_front() {
            self.report(departure, Outcome::Held, fates);
        }
    }
}

/// A chain of these and of real elements, to show that they live together without a table of functions.
enum Shape {
    Flows(Bottleneck<FlowQueues>),
    Stale(Bottleneck<Stale>),
    Twice(Duplicator),
    Delay(Delay),
}

macro_rules! each {
    ($shape:expr, $inner:ident => $call:expr) => {
        match $shape {
            Shape::Flows($inner) => $call,
            Shape::Stale($inner) => $call,
            Shape::Twice($inner) => $call,
            Shape::Delay($inner) => $call,
        }
    };
}

impl Stage for Shape {
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        each!(self, stage => stage.enqueue(now, item, fates));
    }
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        each!(self, stage => stage.dequeue(now, fates))
    }
    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        each!(self, stage => stage.apply(now, change, fates));
    }
    fn next_event(&self) -> Option<Instant> {
        each!(self, stage => stage.next_event())
    }
    fn least_stay(&self) -> Duration {
        each!(self, stage => stage.least_stay())
    }
    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        each!(self, stage => stage.finish(now, fates));
    }
}

fn chain(stages: Vec<Shape>) -> Chain<Shape> {
    Chain::of(stages.into_iter().map(|stage| (stage, Schedule::none())).collect(), 0)
}

fn flows(id: u8, limit_packets: usize) -> Shape {
    Shape::Flows(Bottleneck::new(
        StageId(id),
        Layer::Ethernet,
        bps(8_000_000),
        FlowQueues::new(limit_packets),
    ))
}

fn stale(id: u8, target: Duration) -> Shape {
    let queue = Stale { target, waiting: VecDeque::new() };
    Shape::Stale(Bottleneck::new(StageId(id), Layer::Ethernet, bps(8_000_000), queue))
}

fn twice(id: u8, every: u64) -> Shape {
    Shape::Twice(Duplicator { id: StageId(id), every, copies: VecDeque::new() })
}

fn ids(departures: &[Departure]) -> Vec<u64> {
    departures.iter().map(|departure| departure.item.id.0).collect()
}

#[test]
fn a_flow_queue_drops_another_flows_packet_when_one_arrives() {
    let mut chain = chain(vec![flows(0, 3), Shape::Delay(Delay::new(StageId(1), ms(10)))]);
    let mut log = Log::default();
    // Packet 0 is on the line, 1 to 3 of the same flow wait; the other flow's 4 is one too many.
    let mut entered: Vec<Item> = (0..4).map(|id| item_of(id, 1000, FlowId(0))).collect();
    entered.push(item_of(4, 1000, FlowId(1)));
    for (now, &item) in entered.iter().enumerate() {
        chain.enqueue(at(now as u64), item, &mut log);
    }
    let dropped: Vec<_> = log.fates.iter().filter(|fate| fate.outcome == Outcome::Dropped).collect();
    assert_eq!((dropped.len(), dropped[0].item.id, dropped[0].t_in), (1, PacketId(1), at(1)));
    assert_eq!(dropped[0].queue.packets, 1, "as it was when that packet came");
    // The flows are served in turn, a millisecond each.
    let left = follow(&mut chain, at(1 << 62), &mut log);
    assert_eq!(ids(&left), [0, 2, 4, 3]);
    assert_eq!(left[3].at, at(14_000_000));
    chain.finish(at(1 << 62), &mut log);
    log.assert_conserved(&entered, 2);
}

#[test]
fn a_queue_manager_drops_and_marks_when_the_link_becomes_free() {
    let mut chain = chain(vec![stale(0, ms(2)), Shape::Delay(Delay::new(StageId(1), ms(10)))]);
    let mut log = Log::default();
    let mut entered: Vec<Item> = (0..6).map(|id| item(id, 1000)).collect();
    entered[5].ecn = Ecn::Ect0;
    for &item in &entered {
        chain.enqueue(at(0), item, &mut log);
    }
    // At 3 ms the link is free: 3 and 4 have waited too long, 5 as well, but it can be marked.
    let left = follow(&mut chain, at(1 << 62), &mut log);
    assert_eq!(ids(&left), [0, 1, 2, 5]);
    assert_eq!((left[3].at, left[3].item.ecn), (at(14_000_000), Ecn::Ce));
    let aqm: Vec<_> =
        log.fates.iter().filter(|fate| fate.cause == Cause::Aqm).map(|fate| fate.item.id.0).collect();
    assert_eq!(aqm, [3, 4]);
    assert!(log.at_stage(0).all(|fate| fate.marked == (fate.item.id.0 == 5)));
    assert!(log.at_stage(1).all(|fate| !fate.marked), "the mark is the stage's that set it");
    log.assert_conserved(&entered, 2);
}

#[test]
fn a_queue_manager_may_empty_its_queue_and_the_link_rests() {
    let mut chain = chain(vec![stale(0, Duration::ZERO)]);
    let mut log = Log::default();
    for id in 0..3 {
        chain.enqueue(at(0), item(id, 1000), &mut log);
    }
    assert_eq!(ids(&follow(&mut chain, at(1_000_000), &mut log)), [0]);
    assert_eq!((chain.next_event(), log.count(0, Outcome::Dropped)), (None, 2));
    // The next one finds an idle link, not one that waits for ever.
    chain.enqueue(at(5_000_000), item(3, 1000), &mut log);
    assert_eq!(follow(&mut chain, at(1 << 62), &mut log)[0].at, at(6_000_000));
}

#[test]
fn a_duplicate_departs_twice_under_numbers_of_its_own() {
    let mut chain = chain(vec![twice(0, 2), twice(1, 3), flows(2, 100)]);
    let mut log = Log::default();
    for id in 0..4 {
        chain.enqueue(at(0), item(id, 1000), &mut log);
    }
    chain.finish(at(5_500_000), &mut log);
    let left = drain(&mut chain, at(5_500_000), &mut log);
    let mut copies: Vec<_> = log.at_stage(2).map(|fate| (fate.item.id.0, fate.item.copy)).collect();
    copies.sort_unstable();
    // Packet 0 is doubled by both, 2 by the first, 3 by the second.
    assert_eq!(copies, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (2, 1), (3, 0), (3, 2)]);
    // In + duplicated = out + dropped + held, in each stage: 4 + 2 = 6, 6 + 3 = 9, and 9 = 5 + 4.
    assert_eq!((log.count(0, Outcome::Delivered), log.count(1, Outcome::Delivered)), (6, 9));
    assert_eq!((left.len(), log.count(2, Outcome::Delivered), log.count(2, Outcome::Held)), (5, 5, 4));
}
