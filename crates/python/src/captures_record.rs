//! Two captures become the packets of a record: both observations of each packet, and no plan.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use streamgauge_base::{
    Cause, Direction, Fate, FlowId, Instant, Item, Outcome, PacketId, PacketInfo, PacketKind, Protocol,
    QueueDepth, StageId, packet_flags,
};
use streamgauge_capture::{MatchedPacket, PacketFate, PairAnalysis};
use streamgauge_plan::{FlowEntry, Legend, StageEntry};
use streamgauge_record::{PACKETS_FILE, PacketWriter, RecordError};

use super::captures::{Place, capture_error, known, names, pair};
use super::{record_error, to_json};

/// Flows with a name of their own; packets of the others belong to "other".
const MOST_FLOWS: usize = 50;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A flow of the record.
#[derive(serde::Serialize)]
struct FlowOfRecord {
    name: String,
    /// Its place among the rows of the analysis.
    row: usize,
    /// Its media flows against the direction of most payload.
    is_up: bool,
    /// Packets that arrived and that one of the captures missed: they have no row.
    missed: u64,
    /// Packets that were lost or not captured, and are in the record as dropped.
    open: u64,
}

/// One direction of the path, as measured.
#[derive(Clone, Copy, Default)]
struct Way {
    /// Least one-way delay without the packet's own transmission (ns).
    propagation_ns: i64,
    /// Taken off each delay, where the clocks' offset is not known.
    unknown_ns: i64,
    /// The stage of its queue; the one after it is the rest of the delay.
    stage: u8,
}

/// Makes the record of two captures: writes `packets.parquet` and returns the analysis with the sources of
/// the rest of the record, as JSON. `into`: its folder, and a text that the flows have in their names which
/// get one in the record.
#[pyfunction]
#[pyo3(signature = (a, b, into, at=None, base_delay_s=None, renamed=Vec::new()))]
pub fn record_captures(
    py: Python<'_>,
    a: Place,
    b: Place,
    into: (PathBuf, Option<String>),
    at: Option<&str>,
    base_delay_s: Option<f64>,
    renamed: Vec<(String, String)>,
) -> PyResult<String> {
    let known = known(py, at, base_delay_s, &renamed)?;
    let mut packets = Vec::new();
    let read = || pair(&a, &b, known, &mut |packet| packets.push(*packet));
    let (found, renamed) = py.detach(read).map_err(|error| capture_error(py, &error))?;
    let written = py.detach(|| write(&found, packets, into.1.as_deref(), &into.0));
    let record = written.map_err(|error| record_error(py, error))?;
    to_json(&serde_json::json!({
        "captures": found.captures, "flows": found.flows, "path": found.path, "translated": names(&renamed),
        "record": record,
    }))
}

fn write(
    found: &PairAnalysis,
    mut packets: Vec<MatchedPacket>,
    only: Option<&str>,
    directory: &Path,
) -> Result<serde_json::Value, RecordError> {
    let is_down = |forward: bool| forward == found.path.is_a_to_b;
    for packet in &mut packets {
        // Times of B were given before the last correction of its clock.
        let shifted = if packet.forward { packet.out_ns.as_mut() } else { Some(&mut packet.in_ns) };
        *shifted.unwrap_or(&mut 0) += found.shift_ns;
    }
    packets.sort_by_key(|packet| packet.in_ns);
    let ways = [true, false].map(|down| way_of(found, &packets, down));
    let zero_ns = packets.first().map_or(found.zero_ns, |packet| packet.in_ns);
    let mut flows = flows_of(found, only);
    let legend = legend_of(&flows);
    let mut codes = vec![FlowId::OTHER; found.matched.len()];
    for (code, flow) in (0u16..).zip(&flows) {
        codes[found.order[flow.row]] = FlowId(code);
    }
    let mut writer = PacketWriter::create(&directory.join(PACKETS_FILE), &legend)?;
    let mut queues: [Queue; 2] = Default::default();
    let mut sent: HashMap<(u32, usize), u32> = HashMap::new();
    let mut last_ns = zero_ns;
    for (number, packet) in packets.iter().enumerate() {
        let flow = codes[packet.flow as usize];
        let of_flow = flows.get_mut(usize::from(flow.0));
        match packet.fate {
            PacketFate::NotCaptured | PacketFate::NotCapturedBefore => {
                of_flow.into_iter().for_each(|flow| flow.missed += 1);
                continue;
            }
            PacketFate::Open if !found.is_whole[usize::from(packet.forward)] => {
                of_flow.into_iter().for_each(|flow| flow.open += 1)
            }
            _ => {}
        }
        let down = is_down(packet.forward);
        let (way, queue) = (&ways[usize::from(!down)], &mut queues[usize::from(!down)]);
        let protocol = found.matched[packet.flow as usize].protocol;
        let info = info_of(packet, protocol, &mut sent);
        let direction = if down { Direction::Down } else { Direction::Up };
        for fate in fates(packet, flow, protocol, number, zero_ns, way, queue) {
            last_ns = last_ns.max(zero_ns + fate.at.as_nanos() as i64);
            writer.row(&fate, &info, direction)?;
        }
    }
    let summary = writer.finish()?;
    Ok(serde_json::json!({
        "legend": legend.to_json(),
        "rows": summary.rows,
        "zero_ns": zero_ns,
        "duration_ns": last_ns - zero_ns,
        "flows": flows,
        "others": found.order.len() - flows.len(),
        "delay_is_known": found.path.offset_s.is_some(),
    }))
}

/// Returns the flows that are named, the largest first.
fn flows_of(found: &PairAnalysis, only: Option<&str>) -> Vec<FlowOfRecord> {
    let rows = found.flows.iter().enumerate();
    let chosen = rows.filter(|(_, row)| only.is_none_or(|text| row.flow.contains(text)));
    let named = chosen.take(MOST_FLOWS).enumerate().map(|(number, (row, of))| {
        let matched = &found.matched[found.order[row]];
        let main =
            usize::from(matched.ends[1].to_string() == of.from && matched.ends[0].to_string() != of.from);
        let protocol: String = of.protocol.chars().filter(char::is_ascii_alphanumeric).collect();
        FlowOfRecord {
            // As checks name flows.
            name: format!("{protocol}_{}", number + 1),
            row,
            is_up: matched.ways[main].forward != found.path.is_a_to_b,
            missed: 0,
            open: 0,
        }
    });
    named.collect()
}

fn legend_of(flows: &[FlowOfRecord]) -> Legend {
    let stage = |name: &str, direction| StageEntry { name: name.into(), direction };
    Legend {
        flows: flows.iter().map(|flow| FlowEntry { name: flow.name.clone(), subject: true }).collect(),
        stages: [Direction::Down, Direction::Up]
            .into_iter()
            .flat_map(|direction| [stage("bottleneck", direction), stage("delay", direction)])
            .collect(),
    }
}

/// Returns the least delay of one direction, and the part of it that is not a transmission.
fn way_of(found: &PairAnalysis, packets: &[MatchedPacket], down: bool) -> Way {
    let own = packets.iter().filter(|packet| (packet.forward == found.path.is_a_to_b) == down);
    let delays = own.filter_map(|packet| Some((packet.out_ns? - packet.in_ns, packet.ip_bytes)));
    let least = delays.min();
    let row = if down { &found.path.main } else { &found.path.back };
    let (least_ns, bytes) = least.unwrap_or_default();
    let transmission_ns = row.rate_bps.map_or(0.0, |rate| f64::from(bytes + 14) * 8e9 / rate).round() as i64;
    let unknown_ns = if found.path.offset_s.is_some() { 0 } else { least_ns - transmission_ns };
    let propagation_ns = (least_ns - unknown_ns - transmission_ns).max(0);
    Way { propagation_ns, unknown_ns, stage: if down { 0 } else { 2 } }
}

/// The content of one direction's queue.
#[derive(Default)]
struct Queue {
    leaving: BinaryHeap<Reverse<(i64, u32)>>,
    bytes: u32,
}

impl Queue {
    fn at(&mut self, now_ns: i64) -> QueueDepth {
        while let Some(&Reverse((left_ns, bytes))) = self.leaving.peek()
            && left_ns <= now_ns
        {
            self.leaving.pop();
            self.bytes -= bytes;
        }
        QueueDepth { bytes: self.bytes, packets: self.leaving.len() as u32 }
    }

    fn enter(&mut self, leaves_ns: i64, bytes: u32) {
        self.leaving.push(Reverse((leaves_ns, bytes)));
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Returns a packet's rows: one where the path dropped it, else one for the queue and one for the rest of the
/// way.
fn fates(
    packet: &MatchedPacket,
    flow: FlowId,
    protocol: u8,
    number: usize,
    zero_ns: i64,
    way: &Way,
    queue: &mut Queue,
) -> impl Iterator<Item = Fate> {
    let at = |ns: i64| Instant::from_nanos((ns - zero_ns).max(0).cast_unsigned());
    let mut item = Item::new(PacketId(number as u64), flow, packet.ip_bytes);
    item.protocol = match protocol {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        1 | 58 => Protocol::Icmp,
        _ => Protocol::Other,
    };
    item.copy = u8::from(packet.fate == PacketFate::Duplicated);
    let depth = queue.at(packet.in_ns);
    let first = Fate {
        item,
        stage: StageId(way.stage),
        t_in: at(packet.in_ns),
        at: at(packet.in_ns),
        outcome: Outcome::Dropped,
        // The cause is not known: the queue was not observed.
        cause: Cause::None,
        queue: depth,
        marked: false,
    };
    let Some(out_ns) = packet.out_ns else { return [Some(first), None].into_iter().flatten() };
    let out_ns = (out_ns - way.unknown_ns).max(packet.in_ns);
    let left_ns = (out_ns - way.propagation_ns).max(packet.in_ns);
    queue.enter(left_ns, item.bytes);
    let passed = Fate { at: at(left_ns), outcome: Outcome::Delivered, ..first };
    let rest = Fate {
        stage: StageId(way.stage + 1),
        t_in: at(left_ns),
        at: at(out_ns),
        queue: QueueDepth::default(),
        ..passed
    };
    [Some(passed), Some(rest)].into_iter().flatten()
}

/// Returns the facts in its header. `sent`: by flow and end, the end of the sent sequence.
fn info_of(packet: &MatchedPacket, protocol: u8, sent: &mut HashMap<(u32, usize), u32>) -> PacketInfo {
    let mut flags = 0;
    if let (Some(seq), true) = (packet.seq, packet.payload_bytes > 0) {
        let end = seq.wrapping_add(packet.payload_bytes);
        let known = sent.entry((packet.flow, packet.from)).or_insert(seq);
        if end.wrapping_sub(*known) as i32 > 0 {
            *known = end;
        } else {
            flags = packet_flags::RETRANSMIT;
        }
    }
    PacketInfo {
        kind: match packet.payload_bytes {
            0 if protocol == TCP => PacketKind::Ack,
            0 => PacketKind::Other,
            _ => PacketKind::Media,
        },
        flags,
        header_bytes: 0,
        payload_bytes: packet.payload_bytes,
        seq: packet.seq,
        connection: (protocol == TCP).then_some(0),
    }
}
