//! The figures of two captures: of each flow, and of the path between them.

use serde::Serialize;

use crate::analysis::{Analysis, CaptureRow, CaptureSide, FlowRow, finish, flow_row};
use crate::bottleneck::BottleneckEstimate;
use crate::error::CaptureError;
use crate::first_look::{CaptureSource, KnownBeforehand};
use crate::matching::{MatchedFlow, MatchedPacket, Matching, PacketFate, matching};

/// Losses of a full queue are so many of all losses at least, where the queue's limit is given.
const FULL_SHARE: f64 = 0.5;

/// One direction of the path.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionRow {
    /// Rate of the bottleneck while it was busy, of Ethernet bytes.
    pub rate_bps: Option<f64>,
    /// The rate over time: s since the first capture's first packet, bit/s.
    pub rate_course: Vec<(f64, f64)>,
    /// The least one-way delay without queue and transmission over time: s since the first capture's first packet, s.
    /// Empty where the offset of the clocks is not known.
    pub delay_course: Vec<(f64, f64)>,
    /// The share of packets over time that were lost elsewhere than at a full queue.
    pub loss_course: Vec<(f64, f64)>,
    /// Limit of the queue in Ethernet bytes, the packet in transmission included; where losses were of a full queue.
    pub queue_bytes: Option<f64>,
    /// The most bytes that were held with an accepted packet, and the fewest with a lost one.
    pub queue_bounds_bytes: Option<(u64, Option<u64>)>,
    /// Longest wait in the queue.
    pub queue_s: Option<f64>,
    /// Least one-way delay, as the offset has it.
    pub base_delay_s: Option<f64>,
    /// Packets that passed.
    pub delivered: u64,
    /// Packets that the path dropped.
    pub lost: u64,
    /// The part of these that was lost at a full queue.
    pub lost_at_full_queue: u64,
    /// Packets that were lost or not captured.
    pub open: u64,
    /// Packets that were marked on the path.
    pub marked: u64,
    /// Copies that the path made.
    pub duplicated: u64,
    /// Packets behind a later one.
    pub reordered: u64,
}

/// The path between two captures.
#[derive(Clone, Debug, Serialize)]
pub struct PathRow {
    /// B's clock minus A's, at A's first packet.
    pub offset_s: Option<f64>,
    /// It may be wrong by so much: half of the least round trip, if least delays are not known to be equal.
    pub offset_error_s: Option<f64>,
    /// How much faster B's clock runs, in 10^-6.
    pub skew_ppm: Option<f64>,
    /// About its error.
    pub skew_error_ppm: Option<f64>,
    /// The bottleneck's rate in the direction of most payload.
    pub rate_bps: Option<f64>,
    /// The limit of its queue.
    pub queue_bytes: Option<f64>,
    /// Packets that the path dropped, both directions.
    pub lost: u64,
    /// Packets that passed and that one of the captures missed.
    pub lost_by_capture: u64,
    /// Packets without evidence whether they were lost or not captured.
    pub open: u64,
    /// Whether most payload is sent from A to B.
    pub is_a_to_b: bool,
    /// The direction of most payload.
    pub main: DirectionRow,
    /// The other one.
    pub back: DirectionRow,
}

/// Two captures, analysed.
#[derive(Debug)]
pub struct PairAnalysis {
    /// The files.
    pub captures: [CaptureRow; 2],
    /// Their flows, that of most bytes first.
    pub flows: Vec<FlowRow>,
    /// The path.
    pub path: PathRow,
    /// The flows as packets name them ([`MatchedPacket::flow`]).
    pub matched: Vec<MatchedFlow>,
    /// For each of `flows` its place in `matched`.
    pub order: Vec<usize>,
    /// A's first packet (ns since 1970).
    pub zero_ns: i64,
    /// To be added to times of B that packets were given with (ns).
    pub shift_ns: i64,
    /// For A and B: whether it counts its missed packets, and missed none.
    pub is_whole: [bool; 2],
}

/// Analyses two captures of one path; `each` is given every packet with its fate.
///
/// # Errors
/// A file cannot be read, or both have too few packets in common.
pub fn analyse_pair(
    a: &CaptureSource<'_>,
    b: &CaptureSource<'_>,
    known: &KnownBeforehand,
    each: impl FnMut(&MatchedPacket),
) -> Result<PairAnalysis, CaptureError> {
    let (found, captures) = matching(a, b, known, each)?;
    let Matching { flows: matched, clock, bottlenecks, alone, shift_ns } = found;
    let [one, other] = captures;
    let [flows_a, flows_b] = alone;
    let names = [a, b].map(|source| source.path.display().to_string());
    let [name_a, name_b] = names;
    let alone = [finish(&one, flows_a, name_a, None), finish(&other, flows_b, name_b, None)];
    // A capture that counts its own drops and had none leaves nothing open.
    let is_whole = [&one, &other].map(|capture| {
        let dropped = capture.interfaces().iter().map(|interface| interface.dropped);
        dropped.clone().any(|one| one.is_some()) && dropped.flatten().all(|number| number == 0)
    });
    let zero_ns = one.totals.times.map_or(0, |(from, _)| from);
    // Each capture has its own clock.
    let zeros_ns = [zero_ns, zero_ns + clock.offset_at(zero_ns)];
    let places = matched.iter().enumerate();
    let rows = places.filter_map(|(at, flow)| Some((at, row_of(flow, &alone, zeros_ns, is_whole)?)));
    let mut rows: Vec<(usize, FlowRow)> = rows.collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.bytes + row.back_bytes));
    let (order, mut rows): (Vec<usize>, Vec<FlowRow>) = rows.into_iter().unzip();
    if clock.error_ns.is_none() {
        // One direction alone: delays would count from an unknown zero.
        rows.iter_mut().for_each(|row| (row.delay_p50_s, row.delay_p95_s) = (None, None));
    }
    let payload = |forward: bool| -> u64 {
        let ways = matched
            .iter()
            .flat_map(|flow| flow.ways.iter().enumerate().map(move |(end, way)| (flow, end, way)));
        let own = ways.filter(|(_, _, way)| way.forward == forward);
        own.map(|(flow, end, _)| {
            let of = alone.iter().filter_map(|one| one.followed.find_flow(&flow.ends, flow.protocol));
            of.map(|flow| flow.ways[end].payload_bytes).max().unwrap_or(0)
        })
        .sum()
    };
    let is_a_to_b = payload(true) >= payload(false);
    let direction = |forward: bool| {
        let side = usize::from(!forward);
        let known = clock.error_ns.is_some().then(|| clock.least_ns[side]).flatten();
        let receiver = usize::from(forward);
        let transmission_ns = bottlenecks[side].least_transmission_ns();
        let shift_ns = if forward { shift_ns } else { -shift_ns } - transmission_ns;
        let mut row =
            direction_row(&matched, forward, &bottlenecks[side], known, zero_ns, is_whole[receiver]);
        if known.is_some() {
            row.delay_course = bottlenecks[side].path_course.delays(zero_ns, shift_ns);
        }
        row
    };
    let (main, back) = (direction(is_a_to_b), direction(!is_a_to_b));
    let missed = |flow: &MatchedFlow| -> u64 {
        let fates = flow.ways.iter().map(|way| way.fates);
        fates
            .map(|fates| {
                fates[PacketFate::NotCaptured as usize] + fates[PacketFate::NotCapturedBefore as usize]
            })
            .sum()
    };
    let path = PathRow {
        offset_s: clock.error_ns.map(|_| clock.offset_at(zero_ns) as f64 / 1e9),
        offset_error_s: clock.error_ns.map(|ns| ns as f64 / 1e9),
        skew_ppm: clock.skew_error.map(|_| clock.skew * 1e6),
        skew_error_ppm: clock.skew_error.map(|error| error * 1e6),
        rate_bps: main.rate_bps,
        queue_bytes: main.queue_bytes,
        lost: main.lost + back.lost,
        lost_by_capture: matched.iter().map(missed).sum(),
        open: main.open + back.open,
        is_a_to_b,
        main,
        back,
    };
    let [one, other] = alone;
    let captures = [one.capture, other.capture];
    Ok(PairAnalysis { captures, flows: rows, path, matched, order, zero_ns, shift_ns, is_whole })
}

/// Packets that were lost, and those without evidence.
fn losses(fates: &[u64; 6], is_whole: bool) -> (u64, u64) {
    let (lost, open) = (fates[PacketFate::Lost as usize], fates[PacketFate::Open as usize]);
    if is_whole { (lost + open, 0) } else { (lost, open) }
}

fn direction_row(
    flows: &[MatchedFlow],
    forward: bool,
    bottleneck: &BottleneckEstimate,
    least_ns: Option<i64>,
    zero_ns: i64,
    is_whole: bool,
) -> DirectionRow {
    let ways = || flows.iter().flat_map(|flow| &flow.ways).filter(|way| way.forward == forward);
    let count = |fate: PacketFate| ways().map(|way| way.fates[fate as usize]).sum::<u64>();
    let (lost, open) = ways().fold((0, 0), |sum, way| {
        let (lost, open) = losses(&way.fates, is_whole);
        (sum.0 + lost, sum.1 + open)
    });
    // Packets that a capture missed passed in the same time.
    let (delivered, missed) =
        (count(PacketFate::Delivered), count(PacketFate::NotCaptured) + count(PacketFate::NotCapturedBefore));
    let missed_share = missed as f64 / delivered.max(1) as f64;
    let rate_bps = bottleneck.rate_bps(missed_share);
    let (accepted, refused) = bottleneck.limit_bytes();
    let all = bottleneck.full_losses + bottleneck.other_losses;
    let is_full = all > 0 && bottleneck.full_losses as f64 >= FULL_SHARE * all as f64;
    DirectionRow {
        rate_bps,
        rate_course: bottleneck.course(zero_ns),
        delay_course: Vec::new(),
        loss_course: bottleneck.path_course.losses(zero_ns),
        queue_bytes: (is_full && rate_bps.is_some())
            .then(|| refused.map_or(accepted as f64, |refused| (accepted + refused) as f64 / 2.0)),
        queue_bounds_bytes: rate_bps.map(|_| (accepted, refused)),
        queue_s: rate_bps.map(|_| bottleneck.longest_ns as f64 / 1e9),
        base_delay_s: least_ns.map(|ns| ns as f64 / 1e9),
        delivered,
        lost,
        lost_at_full_queue: bottleneck.full_losses,
        open,
        marked: ways().map(|way| way.marked).sum(),
        duplicated: count(PacketFate::Duplicated),
        reordered: ways().map(|way| way.reordered).sum(),
    }
}

/// A flow's row: the sender's capture has its retransmissions and round trips, the match the rest.
fn row_of(
    matched: &MatchedFlow,
    alone: &[Analysis; 2],
    zeros_ns: [i64; 2],
    is_whole: [bool; 2],
) -> Option<FlowRow> {
    let sent = |end: usize| matched.ways[end].fates.iter().sum::<u64>();
    let of = |side: usize| alone[side].followed.find_flow(&matched.ends, matched.protocol);
    let any = of(0).or(of(1))?;
    let main = any.main();
    let way = &matched.ways[main];
    let sender = usize::from(!way.forward);
    let (flow, side) =
        of(sender).map(|flow| (flow, sender)).or_else(|| of(1 - sender).map(|flow| (flow, 1 - sender)))?;
    let at = if side == sender { CaptureSide::Sender } else { CaptureSide::Receiver };
    let mut row = flow_row(flow, &alone[side].followed, zeros_ns[side], Some(at));
    if sent(main) == 0 {
        return Some(row);
    }
    let fates = &way.fates;
    let count = |fate: PacketFate| fates[fate as usize];
    let (lost, open) = losses(fates, is_whole[1 - sender]);
    row.lost = if open > 0 && lost == 0 { None } else { Some(lost) };
    row.missing = Some(open);
    row.lost_before_capture = None;
    row.duplicated = Some(count(PacketFate::Duplicated));
    row.reordered = Some(way.reordered);
    let missed = count(PacketFate::NotCaptured) + count(PacketFate::NotCapturedBefore);
    row.missed = Some(missed);
    let arrived = count(PacketFate::Delivered) + missed;
    row.coverage = (arrived > 0).then(|| count(PacketFate::Delivered) as f64 / arrived as f64);
    row.marked = way.marked;
    row.delay_p50_s = way.delays.quantile_s(0.5);
    row.delay_p95_s = way.delays.quantile_s(0.95);
    if let Some(flow) = of(1 - sender) {
        let receiver = flow_row(flow, &alone[1 - sender].followed, zeros_ns[1 - sender], None);
        if matches!(flow.above, crate::flow::Above::Udp(_)) {
            // Jitter is the receiver's.
            (row.jitter_s, row.sources) = (receiver.jitter_s, receiver.sources);
        }
        // The time of a complete answer is determined likewise.
        (row.requests, row.exchanges) = (receiver.requests, receiver.exchanges);
        row.manifests = receiver.manifests;
    }
    Some(row)
}
