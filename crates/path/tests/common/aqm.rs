//! Queue managers in lockstep: the real one and a slow, literal reading of its RFC see the same arrivals and
//! the same departures, and every decision of theirs is written down.

use proptest::prelude::*;
use streamgauge_base::{Cause, Ecn, FlowId, Item, Outcome, PacketId, QueueDepth, RandomStream, StageId};
use streamgauge_path::spec::{BottleneckSpec, Layer, Limit, QueueSpec, RateSpec, ShaperSpec, StageKind};
use streamgauge_path::{Path, Queue, QueuedPacket, TransmitState};

use super::*;

/// One packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: u64,
    pub bytes: u32,
    pub hash: u32,
    pub ecn: Ecn,
}

/// The fate of a packet, and the controller's probability right after.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Verdict {
    pub id: u64,
    pub at: u64,
    pub t_in: u64,
    pub bytes: u32,
    /// `None` for sent.
    pub cause: Cause,
    pub ecn: Ecn,
    pub marked: bool,
    pub probability: f64,
}

/// The methods of a discipline that lockstep needs.
pub trait Discipline {
    fn push(&mut self, now: u64, packet: QueuedPacket, link: &TransmitState, drop: &mut Drops);
    fn pop(&mut self, now: u64, link: &TransmitState, drop: &mut Drops) -> Option<QueuedPacket>;
    fn probability(&self) -> f64 {
        0.0
    }
}

pub type Drops = Vec<(QueuedPacket, Cause)>;

/// The real thing.
pub struct Real<Q>(pub Q, pub fn(&Q) -> f64);

impl<Q: Queue> Discipline for Real<Q> {
    fn push(&mut self, now: u64, packet: QueuedPacket, link: &TransmitState, drops: &mut Drops) {
        self.0.push(at(now), packet, link, &mut |packet, cause| drops.push((packet, cause)));
    }
    fn pop(&mut self, now: u64, link: &TransmitState, drops: &mut Drops) -> Option<QueuedPacket> {
        self.0.pop(at(now), link, &mut |packet, cause| drops.push((packet, cause)))
    }
    fn probability(&self) -> f64 {
        self.1(&self.0)
    }
}

/// Lets `arrivals` pass a link that needs `ns_per_byte`, and drains it.
pub fn lockstep(queue: &mut impl Discipline, ns_per_byte: u64, arrivals: &[Arrival]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut sending: Option<(u64, QueuedPacket)> = None;
    let verdict = |packet: &QueuedPacket, at: u64, cause, probability| Verdict {
        id: packet.item.id.0,
        at,
        t_in: packet.t_in.as_nanos(),
        bytes: packet.bytes,
        cause,
        ecn: packet.item.ecn,
        marked: packet.marked,
        probability,
    };
    let link = |sending: &Option<(u64, QueuedPacket)>| TransmitState {
        rate: bps(8_000_000_000 / ns_per_byte),
        sending_bytes: sending.map_or(0, |(_, packet)| packet.bytes),
        sending_packets: u32::from(sending.is_some()),
    };
    let end = Arrival { at: u64::MAX, bytes: 0, hash: 0, ecn: Ecn::NotEct };
    for (id, arrival) in arrivals.iter().chain([&end]).enumerate() {
        while let Some((ends, packet)) = sending.filter(|(ends, _)| *ends <= arrival.at) {
            verdicts.push(verdict(&packet, ends, Cause::None, queue.probability()));
            sending = next(queue, ends, ns_per_byte, &link(&None), &mut |packet, probability| {
                verdicts.push(verdict(packet, ends, Cause::Aqm, probability));
            });
        }
        if arrival.bytes == 0 {
            break;
        }
        let now = arrival.at;
        let item = Item {
            hash: arrival.hash,
            ecn: arrival.ecn,
            ..Item::new(PacketId(id as u64), FlowId(arrival.hash as u16), arrival.bytes - 14)
        };
        let packet = QueuedPacket {
            item,
            t_in: at(now),
            queue: QueueDepth::default(),
            bytes: arrival.bytes,
            marked: false,
        };
        let mut drops = Drops::new();
        queue.push(now, packet, &link(&sending), &mut drops);
        verdicts
            .extend(drops.iter().map(|(packet, cause)| verdict(packet, now, *cause, queue.probability())));
        if sending.is_none() {
            sending = next(queue, now, ns_per_byte, &link(&None), &mut |packet, probability| {
                verdicts.push(verdict(packet, now, Cause::Aqm, probability));
            });
        }
    }
    verdicts
}

fn next(
    queue: &mut impl Discipline,
    now: u64,
    ns_per_byte: u64,
    link: &TransmitState,
    dropped: &mut impl FnMut(&QueuedPacket, f64),
) -> Option<(u64, QueuedPacket)> {
    let mut drops = Drops::new();
    let packet = queue.pop(now, link, &mut drops);
    for (packet, cause) in &drops {
        assert_eq!(*cause, Cause::Aqm, "a dequeue is not when a queue is full");
        dropped(packet, queue.probability());
    }
    packet.map(|packet| (now + u64::from(packet.bytes) * ns_per_byte, packet))
}

/// Makes arrivals from stretches of load in (packets, mean gap ns) and the rest that fills them up.
pub fn arrivals_of(stretches: &[(usize, u64)], flows: u64, seed: u64) -> Vec<Arrival> {
    let mut random = RandomStream::named(seed, "arrivals", "test");
    let mut now = 0;
    let mut arrivals = Vec::new();
    for &(packets, gap) in stretches {
        for _ in 0..packets {
            // Now and then several at once.
            now += if random.below(4) == 0 { 0 } else { random.below(gap * 8 / 3 + 1) };
            let bytes = [1514, 1514, 1514, 600, 54][random.below(5) as usize];
            let ecn = [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct]
                [random.below(6) as usize];
            arrivals.push(Arrival { at: now, bytes, hash: random.below(flows) as u32, ecn });
        }
    }
    arrivals
}

/// Loads of a link that needs 1 us a byte (8 Mbit/s) and about 1.04 ms a packet: from a third of its rate to three
/// times it, with rests.
pub fn loads() -> impl Strategy<Value = Vec<Arrival>> {
    let stretch = prop_oneof![
        4 => (20..400usize, 300_000..1_200_000u64),
        2 => (20..200usize, 1_000_000..3_000_000u64),
        1 => (1..4usize, 50_000_000..2_000_000_000u64),
    ];
    (prop::collection::vec(stretch, 1..6), 1..8u64, any::<u64>())
        .prop_map(|(stretches, flows, seed)| arrivals_of(&stretches, flows, seed))
}

pub const NS_PER_BYTE: u64 = 1000;

pub fn managed(queue: QueueSpec, rate: u64) -> StageSpec {
    let (rate, shaper) = (RateSpec::Constant(bps(rate)), ShaperSpec::Serial);
    stage("bottleneck", StageKind::Bottleneck(BottleneckSpec { rate, shaper, queue, layer: Layer::Ethernet }))
}

/// Sends `arrivals` through a bottleneck with `queue`, as a driver lets them.
pub fn through(queue: &QueueSpec, seed: u64, arrivals: &[Arrival]) -> (Vec<Item>, Log) {
    let spec = managed(queue.clone(), 8_000_000_000 / NS_PER_BYTE);
    let mut path = Path::new(&[spec], StageId(0), seed, streamgauge_base::Direction::Down).unwrap();
    let (mut log, mut entered) = (Log::default(), Vec::new());
    for (id, arrival) in arrivals.iter().enumerate() {
        follow(&mut path, at(arrival.at), &mut log);
        let flow = FlowId(arrival.hash as u16);
        let item = Item {
            hash: arrival.hash,
            ecn: arrival.ecn,
            ..Item::new(PacketId(id as u64), flow, arrival.bytes - 14)
        };
        entered.push(item);
        path.enqueue(at(arrival.at), item, &mut log);
    }
    // Half of the last queue drains, so that some is held at the end.
    let end = at(arrivals.last().map_or(0, |last| last.at) + 20_000_000);
    follow(&mut path, end, &mut log);
    path.finish(end, &mut log);
    (entered, log)
}

/// Checks the properties of any discipline of a bottleneck: nothing is lost from the books, order is kept within a
/// flow, the limit holds, the rate is never exceeded, the link never rests while a packet waits, marks only where they
/// may be.
pub fn assert_sound(queue: &QueueSpec, seed: u64, arrivals: &[Arrival]) {
    let (entered, log) = through(queue, seed, arrivals);
    log.assert_conserved(&entered, 1);
    let Limit::Packets(limit) = queue.limit() else { panic!("these tests count packets") };
    let mut ends = 0;
    let mut latest_of_flow = std::collections::HashMap::new();
    for fate in &log.fates {
        assert!(fate.queue.packets <= limit, "{fate:?}");
        let before = entered[fate.item.id.0 as usize].ecn;
        assert_eq!(fate.marked, fate.item.ecn != before, "{fate:?}");
        assert!(!fate.marked || fate.item.ecn == Ecn::Ce && before != Ecn::NotEct, "{fate:?}");
        if fate.outcome != Outcome::Delivered {
            continue;
        }
        // ECT(1) and CE may have a queue of their own.
        let key = (fate.item.hash, matches!(before, Ecn::Ect1 | Ecn::Ce));
        let earlier = latest_of_flow.insert(key, fate.item.id);
        assert!(earlier < Some(fate.item.id), "{:?} after {earlier:?}", fate.item.id);
        let starts = fate.at.as_nanos() - u64::from(fate.item.bytes) * NS_PER_BYTE;
        assert!(starts >= ends, "two at once: {fate:?}");
        if starts > ends {
            // The link has rested: all earlier arrivals have left, or were dropped on arrival.
            let waited = log.fates.iter().find(|other| {
                other.t_in.as_nanos() < starts
                    && other.at > at(ends).max(other.t_in)
                    && other.item.id != fate.item.id
            });
            assert_eq!(waited, None, "it waited while the link rested before {starts}");
            assert_eq!(starts, fate.t_in.as_nanos());
        }
        ends = fate.at.as_nanos();
    }
    let (_, again) = through(queue, seed, arrivals);
    assert_eq!(log.fates, again.fates, "the same seed, the same fates");
}
