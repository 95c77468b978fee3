//! A record checked against the path: its arrivals, entered again, must meet the same fates.
//!
//! A path is deterministic: its plan, its seed and its arrivals decide every departure, drop and mark to the
//! nanosecond. A record of the emulator must therefore replay without a difference. A record that does not was not made
//! by the path in the plan, with any queue, shaper or loss model.

use std::path::Path as FilePath;

use serde::{Deserialize, Serialize};
use streamgauge_base::{
    Cause, Direction, Fate, FateSink, FlowId, Fragment, IPV4_HEADER_BYTES, Instant, Item, PacketId, Ports,
    Protocol, StageId, packet_flags,
};
use streamgauge_path::Path;
use streamgauge_path::spec::{PathSpec, StageKind, StageSpec};
use streamgauge_record::{PacketRow, read_packets};

use crate::error::SimError;

/// The parts of a trial's plan that a replay needs, independent of the rest.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct PathPlan {
    /// The path.
    pub path: PathSpec,
    /// The seed of its random streams.
    pub seed: u64,
}

/// The result of a replay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Replay {
    /// Packets that entered the path, a datagram's fragments one by one.
    pub packets: u64,
    /// Rows of the record.
    pub rows: u64,
    /// Rows that the record or the replay has alone, or that differ.
    pub different: u64,
    /// The first of these in order of packets, and how it differs.
    pub first: Option<String>,
}

/// Replays the rows of `packets` (a `packets.parquet`) through a fresh path of `plan`.
///
/// A row is the decision of one stage about one packet: time of arrival and of departure or drop, outcome, cause, mark,
/// corruption, the stage's content. A packet's state on entry is in its row at its first stage.
///
/// # Errors
///
/// Fails if the file cannot be read or has an older schema, which lacks fields that a replay needs, or if the path
/// cannot be built.
pub fn replay(plan: &PathPlan, packets: &FilePath) -> Result<Replay, SimError> {
    let mut recorded = Vec::new();
    read_packets(packets, |row| recorded.push(row.decided()))?;
    replay_rows(plan, recorded)
}

/// Replays the rows of a record, in the order in which they were decided.
fn replay_rows(plan: &PathPlan, rows: Vec<PacketRow>) -> Result<Replay, SimError> {
    let PathPlan { path: spec, seed } = plan;
    let mut places: Vec<u32> = (0..rows.len() as u32).collect();
    places.sort_unstable_by_key(|&place| rows[place as usize].key());
    let recorded: Vec<_> = places.iter().map(|&place| rows[place as usize]).collect();
    drop(rows);
    let recorded = &recorded[..];
    let seed = *seed;
    let down_stages = spec.down.len() as u8;
    let mut paths = [
        ReplayPath::new(&spec.down, 0, seed, Direction::Down)?,
        ReplayPath::new(&spec.up, down_stages, seed, Direction::Up)?,
    ];
    let mut replayed = Rows { rows: Vec::with_capacity(recorded.len()), arrived: Vec::new() };
    let way = |row: &PacketRow| usize::from(row.stage >= down_stages);
    let firewalls = Firewalls::of(spec);
    let mut arrivals = Vec::new();
    let mut at = 0;
    for rows in recorded.chunk_by(|a, b| a.pkt == b.pkt) {
        // The rows of a packet at the stage where it entered are first, its original before the copies.
        let first = rows.chunk_by(|a, b| (a.stage, a.copy) == (b.stage, b.copy)).next().unwrap_or(rows);
        replayed.saw(&first[0]);
        let (mut place, ports) = (at, firewalls.ports(rows));
        for rows in paths[way(&first[0])].arrivals(first) {
            arrivals.push(Arrival { rows, place: places[place], ports });
            place += rows.len();
        }
        at += rows.len();
    }
    in_order(&mut arrivals);
    for Arrival { rows, ports, .. } in &arrivals {
        paths[way(&rows[0])].enter(rows, *ports, &mut replayed);
    }
    let times = recorded.iter().map(|row| row.t_out.or(row.t_drop).unwrap_or(row.t_in));
    let end = Instant::from_nanos(times.max().unwrap_or(0));
    for one in &mut paths {
        one.path.finish(end, &mut replayed);
        while one.path.dequeue(end, &mut replayed).is_some() {}
    }
    let mut replayed = replayed.rows;
    replayed.sort_unstable_by_key(PacketRow::key);
    let names: Vec<_> =
        spec.down.iter().map(|stage| ("down", stage)).chain(spec.up.iter().map(|s| ("up", s))).collect();
    let (different, first) = compare(recorded, &replayed, |row| match names.get(usize::from(row.stage)) {
        Some((direction, stage)) => format!("packet {} at path.{direction}.{}", row.pkt, stage.name),
        None => format!("packet {} at stage {}, which the plan has not", row.pkt, row.stage),
    });
    Ok(Replay { packets: arrivals.len() as u64, rows: recorded.len() as u64, different, first })
}

/// A packet, or a fragment as its host sent it, that entered the path.
struct Arrival<'a> {
    /// At its first stage: one, or one for each fragment made there.
    rows: &'a [PacketRow],
    /// Where the record has the first of them.
    place: u32,
    ports: Ports,
}

/// Per stage that blocks certain ports, one of these: a record has no ports, so that a packet's fate shows whether it
/// had one. That none with one of them passes, it cannot detect.
struct Firewalls(Vec<Option<u16>>);

impl Firewalls {
    fn of(spec: &PathSpec) -> Self {
        let port = |stage: &StageSpec| match &stage.kind {
            StageKind::Block(block) => block.ports.first().copied(),
            _ => None,
        };
        let ports: Vec<_> = spec.down.iter().chain(&spec.up).map(port).collect();
        Firewalls(if ports.iter().any(Option::is_some) { ports } else { Vec::new() })
    }

    /// Returns the ports of the packet of these `rows`.
    fn ports(&self, rows: &[PacketRow]) -> Ports {
        if self.0.is_empty() {
            return Ports::NONE;
        }
        let blocked = rows.iter().find(|row| row.cause == Cause::Blocked as u8);
        let port = blocked.and_then(|row| *self.0.get(usize::from(row.stage))?);
        port.map_or(Ports::NONE, |source| Ports { source, destination: 0 })
    }
}

/// Puts them in the order in which they entered, from that of their numbers.
///
/// A datagram has its number from its first fragment; others may arrive before the rest of it, in the same nanosecond
/// too. Then, among those that entered at one stage, the record's order shows the sequence where it passed them at
/// once, and elsewhere the queue's content does.
fn in_order(arrivals: &mut [Arrival]) {
    arrivals.sort_by_key(|arrival| arrival.rows[0].t_in);
    for equal in arrivals.chunk_by_mut(|a, b| a.rows[0].t_in == b.rows[0].t_in) {
        let stage = equal[0].rows[0].stage;
        if !equal.iter().any(|arrival| arrival.rows[0].fragment_offset > 0)
            || equal.iter().any(|arrival| arrival.rows[0].stage != stage)
        {
            continue;
        }
        let at_once = |row: &PacketRow| row.t_out.or(row.t_drop) == Some(row.t_in);
        if equal.iter().all(|arrival| at_once(&arrival.rows[0])) {
            equal.sort_by_key(|arrival| arrival.place);
        } else {
            equal.sort_by_key(|arrival| (arrival.rows[0].queue_packets, arrival.place));
        }
    }
}

/// One direction.
struct ReplayPath {
    path: Path,
    first: u8,
    bottleneck: u8,
    /// Payload of the fragments that the first stage makes, if it makes any.
    cut: Option<u32>,
}

impl ReplayPath {
    fn new(stages: &[StageSpec], first: u8, seed: u64, direction: Direction) -> Result<Self, SimError> {
        let at = stages.iter().position(|stage| matches!(stage.kind, StageKind::Bottleneck(_))).unwrap_or(0);
        let path = Path::new(stages, StageId(first), seed, direction)?;
        let cut = match stages.first().map(|stage| &stage.kind) {
            Some(StageKind::Mtu(mtu)) => Some((mtu.bytes - IPV4_HEADER_BYTES) & !7),
            _ => None,
        };
        Ok(ReplayPath { path, first, bottleneck: first + at as u8, cut })
    }

    /// Returns the arrivals of a packet's `rows` at its first stage: a row each, since a host sends fragments one by
    /// one, but those that the stage itself cut up belong together. The departures are the same whether an arrival is
    /// cut up again or had the stage's length already.
    fn arrivals<'a>(&self, rows: &'a [PacketRow]) -> impl Iterator<Item = &'a [PacketRow]> + use<'a> {
        let cut = self.cut.filter(|_| rows[0].stage == self.first);
        rows.chunk_by(move |row, _| {
            cut.is_some_and(|payload| row.ip_bytes == payload + IPV4_HEADER_BYTES)
                && row.flags & packet_flags::MORE_FRAGMENTS != 0
        })
    }

    /// Lets in the arrival with these `rows` at its first stage: one, or one for each fragment made there.
    fn enter(&mut self, rows: &[PacketRow], ports: Ports, fates: &mut Rows) {
        let (row, last) = (&rows[0], &rows[rows.len() - 1]);
        let header = row.wire_bytes - row.ip_bytes;
        // All but the last fragment carry the bytes between their offsets.
        let ip_bytes = u32::from(last.fragment_offset - row.fragment_offset) * 8 + last.ip_bytes;
        let whole = row.flags & packet_flags::DONT_FRAGMENT != 0;
        let fragment = if whole {
            Fragment::WHOLE_DF
        } else {
            Fragment::part(row.fragment_offset, last.flags & packet_flags::MORE_FRAGMENTS != 0)
        };
        let item = Item {
            hash: row.hash,
            ports,
            ecn: packet_flags::arrived(row.flags),
            protocol: protocol(row.protocol),
            fragment,
            bytes: ip_bytes + header,
            ..Item::new(PacketId(row.pkt), FlowId(row.flow), ip_bytes)
        };
        let at = Instant::from_nanos(row.t_in);
        while self.path.next_event().is_some_and(|next| next <= at) {
            while self.path.dequeue(at, fates).is_some() {}
        }
        if row.stage == self.bottleneck && row.stage != self.first {
            self.path.enqueue_at_bottleneck(at, item, fates);
        } else {
            self.path.enqueue(at, item, fates);
        }
    }
}

fn protocol(code: u8) -> Protocol {
    match code {
        0 => Protocol::Tcp,
        1 => Protocol::Udp,
        2 => Protocol::Icmp,
        _ => Protocol::Other,
    }
}

/// The rows of a replay.
struct Rows {
    rows: Vec<PacketRow>,
    /// Per packet the flags for its ECN bits on arrival, which the driver noted and not the path.
    arrived: Vec<u16>,
}

impl Rows {
    fn saw(&mut self, row: &PacketRow) {
        let index = row.pkt as usize;
        // Numbers count up from 0; one out of the way is a damaged row, which differs anyway.
        if index < self.arrived.len() + MOST_LOST {
            self.arrived.resize(self.arrived.len().max(index + 1), 0);
            self.arrived[index] = packet_flags::of_arrived(packet_flags::arrived(row.flags));
        }
    }
}

/// Numbers in a row that may be missing from a record without counting as damage.
const MOST_LOST: usize = 1 << 24;

impl FateSink for Rows {
    fn fate(&mut self, fate: &Fate) {
        let arrived = self.arrived.get(fate.item.id.0 as usize).copied().unwrap_or(0);
        self.rows.push(PacketRow::of(fate, arrived));
    }
    fn made(&mut self, _: StageId, _: &Item, _: &Item) {}
    fn changed(&mut self, _: StageId, _: Instant, _: &'static str, _: f64, _: &'static str) {}
}

/// Returns how many rows of two sorted lists have no equal in the other, a pair of the same name counting once, and the
/// first.
fn compare(
    recorded: &[PacketRow],
    replayed: &[PacketRow],
    name: impl Fn(&PacketRow) -> String,
) -> (u64, Option<String>) {
    let (mut left, mut right) = (recorded.iter().peekable(), replayed.iter().peekable());
    let (mut different, mut first) = (0, None);
    let mut differs = |what: &dyn Fn() -> String| {
        different += 1;
        first.get_or_insert_with(what);
    };
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(a), Some(b)) if a.key() == b.key() => {
                if a != b {
                    differs(&|| format!("{}: recorded {}, replayed {}", name(a), fate_of(a), fate_of(b)));
                }
                left.next();
                right.next();
            }
            (Some(a), b) if b.is_none_or(|b| a.key() < b.key()) => {
                differs(&|| format!("{}: recorded {}, not in the replay", name(a), fate_of(a)));
                left.next();
            }
            (_, Some(b)) => {
                differs(&|| format!("{}: replayed {}, not in the record", name(b), fate_of(b)));
                right.next();
            }
            (Some(_), None) => unreachable!("the arm above took it"),
        }
    }
    (different, first)
}

fn fate_of(row: &PacketRow) -> String {
    let queue = format!("{} packets, {} bytes before it", row.queue_packets, row.queue_bytes);
    let marked = if row.flags & packet_flags::CE_MARKED != 0 { ", marked" } else { "" };
    let PacketRow { t_in, cause, flags, .. } = row;
    match (row.t_out, row.t_drop) {
        (Some(at), _) => format!("in at {t_in} ns, out at {at} ns{marked} ({queue}, flags {flags})"),
        (_, Some(at)) => {
            format!("in at {t_in} ns, dropped at {at} ns for cause {cause} ({queue}, flags {flags})")
        }
        _ => format!("in at {t_in} ns, held ({queue}, flags {flags})"),
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::{BitRate, Duration};
    use streamgauge_path::spec::{
        BottleneckSpec, DelaySpec, DuplicateSpec, Layer, Limit, QueueSpec, RateSpec, ShaperSpec,
    };

    use super::*;

    /// A sender that is interrupted within a datagram: its second fragment arrives after another's packet, which has
    /// the higher number, or in the same nanosecond.
    #[test]
    fn fragments_with_others_between_them_replay() {
        for apart_ns in [1000, 0] {
            replay_with_others_between(apart_ns);
        }
    }

    fn replay_with_others_between(apart_ns: u64) {
        let twice = StageKind::Duplicate(DuplicateSpec { probability: 0.3, switches: Vec::new() });
        let late = StageKind::Delay(DelaySpec::constant(Duration::from_nanos(5_000_000)));
        let stage = |name: &str, kind| StageSpec { name: name.into(), kind, changes: vec![] };
        let slow = StageKind::Bottleneck(BottleneckSpec {
            rate: RateSpec::Constant(BitRate::from_bps(40_000_000)),
            shaper: ShaperSpec::Serial,
            queue: QueueSpec::Droptail(Limit::Packets(5)),
            layer: Layer::Ethernet,
        });
        let down = vec![stage("twice", twice), stage("slow", slow), stage("late", late.clone())];
        let plan = PathPlan { path: PathSpec { down, up: vec![stage("late", late)] }, seed: 1 };
        let mut path = Path::new(&plan.path.down, StageId(0), plan.seed, Direction::Down).unwrap();
        let mut fates = Rows { rows: Vec::new(), arrived: Vec::new() };
        let whole = |id, bytes| Item::new(PacketId(id), FlowId(0), bytes);
        for n in 0..200 {
            let part = |offset, more| Item { fragment: Fragment::part(offset, more), ..whole(2 * n, 1500) };
            for (at, item) in [part(0, true), whole(2 * n + 1, 84), part(185, false)].into_iter().enumerate()
            {
                path.enqueue(Instant::from_nanos(n * 1_000_000 + at as u64 * apart_ns), item, &mut fates);
            }
        }
        let end = Instant::from_nanos(u64::MAX / 2);
        while path.dequeue(end, &mut fates).is_some() {}
        let rows = fates.rows;
        assert!(rows.iter().filter(|row| row.copy == 1).count() > 100);
        let found = replay_rows(&plan, rows).unwrap();
        assert_eq!((found.packets, found.different, found.first), (600, 0, None));
    }
}
