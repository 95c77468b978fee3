//! The figures of one capture, flow by flow.

use std::path::Path;

use serde::Serialize;

use crate::capture::Capture;
use crate::course::Course;
use crate::datagrams::Datagrams;
use crate::error::CaptureError;
use crate::exchanges::Exchange;
use crate::flow::{Above, Flow, Flows};
use crate::reader::CaptureEnding;
use crate::rtp::RtpSource;
use crate::samples::Samples;
use crate::tcp::Connection;

/// An end at which a half of the round trip is below this part of the whole is the capture's own side.
const OWN_SIDE: f64 = 0.1;
/// Round trips below this show no side (ns).
const NO_PATH_NS: i64 = 200_000;
/// Length of the silences that make an ON-OFF pattern of a flow.
const ON_OFF_FROM: u64 = 3;

/// Where a capture was taken, seen from the end that sends most of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureSide {
    /// At the sender.
    Sender,
    /// At the receiver.
    Receiver,
    /// In between.
    Between,
}

/// A file as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct CaptureRow {
    /// Its name.
    pub file: String,
    /// Packets, copies left out.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Time of the first and the last frame, s since 1970 UTC.
    pub first_s: Option<f64>,
    /// See `first_s`.
    pub last_s: Option<f64>,
    /// Packets that passed and are not in the file, as far as TCP or the file itself shows them; `None` if neither can.
    pub gaps: Option<u64>,
    /// Frames in the file.
    pub frames: u64,
    /// Frames that are copies of others.
    pub copies: u64,
    /// Frames without IP.
    pub not_ip: u64,
    /// Frames of a link layer that is not read.
    pub unread: u64,
    /// Frames cut by the snapshot length.
    pub cut: u64,
    /// Frames more than 1 ms earlier than the one before.
    pub backwards: u64,
    /// Frames without a time.
    pub without_time: u64,
    /// Begin and end of silences of more than an hour, s since 1970 UTC.
    pub jumps: Vec<(f64, f64)>,
    /// Packets longer than any frame: taken before offload cut them, or after it joined them.
    pub joined: u64,
    /// The part of the file that was read, in words; `None` for all of it.
    pub damage: Option<String>,
    /// Names of its interfaces.
    pub interfaces: Vec<String>,
    /// Its side, where most flows agree.
    pub side: Option<CaptureSide>,
    /// Packets of flows beyond the bound on flows.
    pub beyond: u64,
}

/// Time by the limit of a TCP sender, s.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LimitRow {
    /// The application had nothing to send.
    pub application_s: f64,
    /// The receiver's window was full.
    pub receiver_s: f64,
    /// Losses were repaired.
    pub network_s: f64,
    /// The congestion window, or the sender's own bound.
    pub open_s: f64,
    /// The one that held longest: `application`, `receiver`, `network` or `sender`.
    pub main: &'static str,
}

/// A source of RTP.
#[derive(Clone, Debug, Serialize)]
pub struct RtpRow {
    /// The end that sends it.
    pub from: String,
    /// SSRC, in hexadecimal.
    pub ssrc: String,
    /// Payload type.
    pub payload_type: u8,
    /// Clock rate in Hz, if it is known.
    pub clock_hz: Option<u32>,
    /// Packets.
    pub packets: u64,
    /// Numbers that never arrived.
    pub lost: u64,
    /// Numbers that did not arrive as originals: `lost` and those that were repaired.
    pub missing: u64,
    /// Packets sent again (RIST).
    pub resent: u64,
    /// Copies.
    pub duplicated: u64,
    /// Packets behind a later one.
    pub reordered: u64,
    /// Runs of lost packets, and the longest.
    pub loss_runs: (u64, u64),
    /// Mean, largest and last interarrival jitter.
    pub jitter_mean_s: Option<f64>,
    /// See `jitter_mean_s`.
    pub jitter_max_s: Option<f64>,
    /// Losses that the receiver's reports count.
    pub reported_lost: Option<i32>,
    /// For a stream on two legs (SMPTE ST 2022-7): numbers that neither leg delivered, and the mean time by which this
    /// leg is later.
    pub merged: Option<(u64, f64)>,
}

/// A request of HTTP or RTSP.
#[derive(Clone, Debug, Serialize)]
pub struct RequestRow {
    /// s since the capture's first packet.
    pub at_s: f64,
    /// Method.
    pub method: String,
    /// Target.
    pub target: String,
    /// Code of the answer.
    pub status: Option<u16>,
    /// Until the answer began.
    pub answered_after_s: Option<f64>,
    /// Until the body was complete.
    pub done_after_s: Option<f64>,
    /// Length of the body.
    pub body_bytes: Option<u64>,
    /// Content type.
    pub content_type: String,
}

type ExchangeRow = (f64, u32, Option<f64>, Option<f64>, u64);

/// A flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowRow {
    /// Its name.
    pub flow: String,
    /// Its protocol.
    pub protocol: String,
    /// The end that sends most.
    pub from: String,
    /// The other end.
    pub to: String,
    /// Packets from `from`.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Packets the other way.
    pub back_packets: u64,
    /// Their IP bytes.
    pub back_bytes: u64,
    /// Its first packet, s since the capture's first.
    pub start_s: f64,
    /// Its length in s.
    pub duration_s: f64,
    /// Mean rate of `bytes`.
    pub rate_bps: Option<f64>,
    /// Highest rate within a second.
    pub peak_bps: Option<f64>,
    /// Packets lost on the path, as far as the capture shows them; `None` if it cannot.
    pub lost: Option<u64>,
    /// The part of these that was lost before the capture.
    pub lost_before_capture: Option<u64>,
    /// Packets sent again.
    pub retransmitted: Option<u64>,
    /// Retransmissions that the receiver reported as needless.
    pub spurious: Option<u64>,
    /// Copies that the network made.
    pub duplicated: Option<u64>,
    /// Packets behind a later one.
    pub reordered: Option<u64>,
    /// Packets that the capture missed.
    pub missed: Option<u64>,
    /// Packets that are missing at the end, lost or missed: acknowledgements would show which.
    pub missing: Option<u64>,
    /// Mean interarrival jitter (RFC 3550).
    pub jitter_s: Option<f64>,
    /// Median round trip: both halves together.
    pub rtt_p50_s: Option<f64>,
    /// Least round trip.
    pub rtt_min_s: Option<f64>,
    /// Median from the capture to the receiver and back.
    pub rtt_receiver_p50_s: Option<f64>,
    /// Median from the capture to the sender and back.
    pub rtt_sender_p50_s: Option<f64>,
    /// One-way delay: two captures alone show it.
    pub delay_p50_s: Option<f64>,
    /// See `delay_p50_s`.
    pub delay_p95_s: Option<f64>,
    /// The part of the packets that passed which the capture has; `None` if it cannot be known.
    pub coverage: Option<f64>,
    /// Where the capture was taken.
    pub side: Option<CaptureSide>,
    /// Packets with congestion experienced.
    pub marked: u64,
    /// Limits of TCP's rate.
    pub limits: Option<LimitRow>,
    /// Times that the receiver closed its window.
    pub zero_windows: Option<u64>,
    /// Packets in the longest burst, less than 1 ms apart.
    pub longest_burst: Option<u32>,
    /// Silences of more than 250 ms: how many, and together in s.
    pub silences: Option<(u64, f64)>,
    /// `on_off` or `steady`.
    pub pattern: Option<&'static str>,
    /// IP bytes over time: width of a bin in s, and the bins.
    pub course: Option<(f64, Vec<u32>)>,
    /// Begin and end of silences, s since the capture's first packet.
    pub silent_s: Vec<(f64, f64)>,
    /// Sources of RTP.
    pub sources: Vec<RtpRow>,
    /// Requests.
    pub requests: Vec<RequestRow>,
    /// Requests by their sizes: s since the capture's first packet, bytes asked, s until the answer began and until its
    /// last byte, bytes of the answer.
    pub exchanges: Vec<ExchangeRow>,
    /// Manifests of adaptive streams, as text.
    pub manifests: Vec<String>,
}

/// One capture, analysed.
#[derive(Debug)]
pub struct Analysis {
    /// The file.
    pub capture: CaptureRow,
    /// Its flows, that of most bytes first.
    pub flows: Vec<FlowRow>,
    /// As they were followed; `order` has the indices in the order of `flows`.
    pub followed: Flows,
    /// See `followed`.
    pub order: Vec<usize>,
}

/// Analyses one capture. `only`: that interface alone. `at`: where the capture was taken, if that is known.
///
/// # Errors
/// The file cannot be read, or is no capture.
pub fn analyse(path: &Path, only: Option<u32>, at: Option<CaptureSide>) -> Result<Analysis, CaptureError> {
    let mut capture = Capture::open(path, only)?;
    let mut flows = Flows::default();
    capture.read(&mut flows, |_, _| {});
    let name = path.display().to_string();
    if capture.totals.frames > 0 && capture.totals.unread == capture.totals.frames {
        let number = capture.totals.unread_interface.and_then(|at| capture.interfaces().get(at as usize));
        let number = number.map_or_else(|| "none".to_owned(), |interface| interface.link_type.to_string());
        let what = format!(
            "its link type is {number}. Expected Ethernet (1), raw IP (12, 101, 228, 229), PPP (9, 50), loopback (0, 108) \
             or Linux cooked (113, 276)."
        );
        return Err(CaptureError::NoCapture { file: name, what });
    }
    Ok(finish(&capture, flows, name, at))
}

pub fn finish(capture: &Capture, flows: Flows, file: String, at: Option<CaptureSide>) -> Analysis {
    let totals = &capture.totals;
    let zero_ns = totals.times.map_or(0, |(from, _)| from);
    let mut order: Vec<usize> = (0..flows.flows.len()).collect();
    let size = |index: usize| flows.flows[index].ways.iter().map(|way| way.bytes).sum::<u64>();
    order.sort_by_key(|&index| std::cmp::Reverse(size(index)));
    let mut rows: Vec<FlowRow> =
        order.iter().map(|&index| flow_row(&flows.flows[index], &flows, zero_ns, at)).collect();
    merge_legs(&mut rows, &order, &flows);
    let side = at.or_else(|| common_side(&rows));
    let missed: Option<u64> = rows.iter().filter_map(|row| row.missed).reduce(u64::saturating_add);
    let dropped =
        capture.interfaces().iter().filter_map(|interface| interface.dropped).reduce(u64::saturating_add);
    let sum = |of: fn(&crate::flow::Way) -> u64| {
        flows.flows.iter().flat_map(|flow| &flow.ways).map(of).sum::<u64>()
    };
    let seconds = |ns: i64| ns as f64 / 1e9;
    let row = CaptureRow {
        file,
        packets: sum(|way| way.packets) + flows.beyond.0 + flows.orphans,
        bytes: sum(|way| way.bytes) + flows.beyond.1,
        first_s: totals.times.map(|(from, _)| seconds(from)),
        last_s: totals.times.map(|(_, to)| seconds(to)),
        gaps: match (missed, dropped) {
            (None, None) => None,
            (missed, dropped) => Some(missed.unwrap_or(0).max(dropped.unwrap_or(0))),
        },
        frames: totals.frames,
        copies: totals.copies,
        not_ip: totals.not_ip,
        unread: totals.unread,
        cut: totals.cut,
        backwards: totals.backwards,
        without_time: totals.without_time,
        jumps: totals.jumps.iter().map(|&(from, to)| (seconds(from), seconds(to))).collect(),
        joined: sum(|way| way.joined),
        damage: match capture.ending() {
            Some(CaptureEnding::Damaged { at, what }) => {
                Some(format!("{what}, at byte {at}; the part before it was read"))
            }
            _ => None,
        },
        interfaces: capture.interfaces().iter().map(|interface| interface.name.clone()).collect(),
        side,
        beyond: flows.beyond.0,
    };
    Analysis { capture: row, flows: rows, followed: flows, order }
}

/// The side that most bytes of flows with a side agree on: nine of ten.
fn common_side(rows: &[FlowRow]) -> Option<CaptureSide> {
    let of = |side| rows.iter().filter(|row| row.side == Some(side)).map(|row| row.bytes).sum::<u64>();
    let sums =
        [CaptureSide::Sender, CaptureSide::Receiver, CaptureSide::Between].map(|side| (of(side), side));
    let all: u64 = sums.iter().map(|(bytes, _)| bytes).sum();
    let &(most, side) = sums.iter().max_by_key(|(bytes, _)| *bytes)?;
    (most > 0 && most * 10 >= all * 9).then_some(side)
}

fn seconds_of(samples: &Samples) -> (Option<f64>, Option<f64>) {
    (samples.least().map(|ns| ns as f64 / 1e9), samples.quantile_s(0.5))
}

pub fn flow_row(flow: &Flow, flows: &Flows, zero_ns: i64, at: Option<CaptureSide>) -> FlowRow {
    let main = flow.main();
    let (way, back) = (&flow.ways[main], &flow.ways[1 - main]);
    let duration_s = (flow.times.1 - flow.times.0) as f64 / 1e9;
    let course = way.course.as_deref();
    let mut row = FlowRow {
        flow: flow.name(),
        protocol: flow.protocol_name(),
        from: flow.ends[main].to_string(),
        to: flow.ends[1 - main].to_string(),
        packets: way.packets,
        bytes: way.bytes,
        back_packets: back.packets,
        back_bytes: back.bytes,
        start_s: (flow.times.0 - zero_ns) as f64 / 1e9,
        duration_s,
        rate_bps: (duration_s > 0.0).then(|| way.bytes as f64 * 8.0 / duration_s),
        peak_bps: course.map(Course::peak_bps),
        lost: None,
        lost_before_capture: None,
        retransmitted: None,
        spurious: None,
        duplicated: None,
        reordered: None,
        missed: None,
        missing: None,
        jitter_s: None,
        rtt_p50_s: None,
        rtt_min_s: None,
        rtt_receiver_p50_s: None,
        rtt_sender_p50_s: None,
        delay_p50_s: None,
        delay_p95_s: None,
        coverage: None,
        side: at,
        marked: way.ce,
        limits: None,
        zero_windows: None,
        longest_burst: course.map(|course| course.longest_burst),
        silences: course.map(|course| (course.silent.0, course.silent.1 as f64 / 1e9)),
        pattern: course.map(|course| if course.silent.0 >= ON_OFF_FROM { "on_off" } else { "steady" }),
        course: course.map(|course| (course.width_ns as f64 / 1e9, course.bins())),
        silent_s: course.map_or_else(Vec::new, |course| {
            let since = |ns: i64| (ns - zero_ns) as f64 / 1e9;
            course.silences.iter().map(|&(from, to)| (since(from), since(to))).collect()
        }),
        sources: Vec::new(),
        requests: Vec::new(),
        exchanges: flow.exchanges.asked_by[1 - main].iter().map(|one| exchange_row(one, zero_ns)).collect(),
        manifests: Vec::new(),
    };
    match &flow.above {
        Above::Tcp(tcp) => {
            of_tcp(&mut row, &tcp.0, flow, main);
            row.sources =
                tcp.1.rtp[main].iter().map(|stream| rtp_row(stream, &row.from, flows, None)).collect();
            if let Some(first) = row.sources.first() {
                row.jitter_s = first.jitter_mean_s;
            }
            row.manifests = tcp.1.manifests.all().collect();
            row.requests = tcp.1.requests.iter().map(|request| request_row(request, zero_ns)).collect();
        }
        Above::Udp(datagrams) => of_datagrams(&mut row, datagrams, flows, main),
        Above::Other => {}
    }
    row
}

fn exchange_row(exchange: &Exchange, zero_ns: i64) -> ExchangeRow {
    let after = |at_ns: Option<i64>| at_ns.map(|ns| (ns - exchange.at_ns) as f64 / 1e9);
    let (first_ns, last_ns) = exchange.answered_ns.unzip();
    let at_s = (exchange.at_ns - zero_ns) as f64 / 1e9;
    (at_s, exchange.asked_bytes, after(first_ns), after(last_ns), exchange.bytes)
}

fn request_row(request: &crate::streams::Request, zero_ns: i64) -> RequestRow {
    let after = |at_ns: Option<i64>| at_ns.map(|ns| (ns - request.at_ns) as f64 / 1e9);
    RequestRow {
        at_s: (request.at_ns - zero_ns) as f64 / 1e9,
        method: request.method.clone(),
        target: request.target.clone(),
        status: request.status,
        answered_after_s: after(request.answered_ns),
        done_after_s: after(request.done_ns),
        body_bytes: request.body_bytes,
        content_type: request.content_type.clone(),
    }
}

fn of_tcp(row: &mut FlowRow, connection: &Connection, flow: &Flow, main: usize) {
    let (sender, receiver) = (&connection.ends[main], &connection.ends[1 - main]);
    let has_both = flow.ways[1 - main].packets > 0;
    row.retransmitted = Some(sender.retransmitted);
    row.duplicated = Some(sender.duplicated);
    row.reordered = Some(sender.reordered);
    row.lost = Some(sender.lost());
    row.lost_before_capture = Some(sender.lost_before);
    row.zero_windows = Some(receiver.zero_windows);
    row.missing = Some(sender.missing_packets());
    // Duplicates and missed packets show in acknowledgements alone.
    if has_both {
        row.spurious = Some(sender.spurious);
        row.missed = Some(sender.missed_packets);
        let passed = sender.new_bytes + sender.missed_bytes;
        row.coverage = (passed > 0).then(|| sender.new_bytes as f64 / passed as f64);
    }
    let (least_to_receiver, to_receiver) = seconds_of(&sender.round);
    let (least_to_sender, to_sender) = seconds_of(&receiver.round);
    let handshake = |end: usize| connection.handshake[end].map(|ns| ns as f64 / 1e9);
    let least = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let to_receiver = to_receiver.or(handshake(1 - main));
    let to_sender = to_sender.or(handshake(main));
    let least_to_receiver = least(least_to_receiver, handshake(1 - main));
    let least_to_sender = least(least_to_sender, handshake(main));
    row.rtt_receiver_p50_s = to_receiver;
    row.rtt_sender_p50_s = to_sender;
    row.rtt_p50_s = to_receiver.zip(to_sender).map(|(a, b)| a + b);
    row.rtt_min_s = least_to_receiver.zip(least_to_sender).map(|(a, b)| a + b);
    row.side = row.side.or_else(|| side_of(least_to_sender, least_to_receiver));
    if row.side == Some(CaptureSide::Sender) {
        row.limits = limits(connection, main);
    }
}

fn side_of(to_sender_s: Option<f64>, to_receiver_s: Option<f64>) -> Option<CaptureSide> {
    let (to_sender, to_receiver) = (to_sender_s?, to_receiver_s?);
    let whole = to_sender + to_receiver;
    if whole < NO_PATH_NS as f64 / 1e9 {
        return None;
    }
    Some(if to_sender < whole * OWN_SIDE {
        CaptureSide::Sender
    } else if to_receiver < whole * OWN_SIDE {
        CaptureSide::Receiver
    } else {
        CaptureSide::Between
    })
}

fn limits(connection: &Connection, main: usize) -> Option<LimitRow> {
    let found = connection.limits[main];
    let seconds = |ns: i64| ns as f64 / 1e9;
    let sender = &connection.ends[main];
    // Without loss and without a queue that grows, it is not the network that holds the window.
    let grows = sender.round.quantile(0.9) > sender.round.least().map(|least| least.saturating_mul(3) / 2);
    let open = if sender.retransmitted > 0 || grows { "network" } else { "sender" };
    let shares = [
        (found.application, "application"),
        (found.receiver, "receiver"),
        (found.recovery, "network"),
        (found.open, open),
    ];
    let network = shares.iter().filter(|(_, name)| *name == "network");
    let network = network.fold(0i64, |sum, (ns, _)| sum.saturating_add(*ns));
    let joined =
        shares.iter().map(|&(ns, name)| if name == "network" { (network, name) } else { (ns, name) });
    let (most, main) = joined.max_by_key(|&(ns, _)| ns)?;
    (most > 0).then(|| LimitRow {
        application_s: seconds(found.application),
        receiver_s: seconds(found.receiver),
        network_s: seconds(found.recovery),
        open_s: seconds(found.open),
        main,
    })
}

fn of_datagrams(row: &mut FlowRow, datagrams: &Datagrams, flows: &Flows, main: usize) {
    if let Some(srt) = &datagrams.srt[main] {
        row.lost = Some(srt.sequence.lost());
        row.retransmitted = Some(srt.resent);
        row.reordered = Some(srt.sequence.late);
        row.duplicated = Some(srt.sequence.repeated);
        row.lost_before_capture = Some(srt.sequence.lost() + srt.repaired);
        return;
    }
    let reported = |ssrc| datagrams.reported.iter().find(|(one, _)| *one == ssrc).map(|(_, lost)| *lost);
    let ends = [row.from.clone(), row.to.clone()];
    for (end, name) in [main, 1 - main].into_iter().zip(&ends) {
        let streams = datagrams.rtp[end].iter();
        row.sources.extend(streams.map(|stream| rtp_row(stream, name, flows, reported(stream.ssrc))));
    }
    row.sources.sort_by_key(|stream| (stream.from != ends[0], std::cmp::Reverse(stream.packets)));
    let own: Vec<&RtpRow> = row.sources.iter().filter(|stream| stream.from == ends[0]).collect();
    if own.is_empty() {
        return;
    }
    let sum = |of: fn(&RtpRow) -> u64| Some(own.iter().map(|stream| of(stream)).sum());
    row.lost = sum(|stream| stream.lost);
    row.lost_before_capture = sum(|stream| stream.missing);
    row.retransmitted = datagrams.seen.rist.then(|| own.iter().map(|stream| stream.resent).sum());
    row.duplicated = sum(|stream| stream.duplicated);
    row.reordered = sum(|stream| stream.reordered);
    row.jitter_s = own.first().and_then(|stream| stream.jitter_mean_s);
}

fn rtp_row(stream: &RtpSource, from: &str, flows: &Flows, reported_lost: Option<i32>) -> RtpRow {
    let told = flows.told_rate(stream.payload_type);
    let jitter = stream.jitter_s(told);
    RtpRow {
        from: from.into(),
        ssrc: format!("{:08x}", stream.ssrc),
        payload_type: stream.payload_type,
        clock_hz: stream.clock_rate(told),
        packets: stream.packets,
        lost: stream.sequence.lost(),
        missing: stream.sequence.lost() + stream.repaired,
        resent: stream.resent,
        duplicated: stream.sequence.repeated,
        reordered: stream.sequence.late,
        loss_runs: stream.sequence.runs(),
        jitter_mean_s: jitter.map(|(mean, ..)| mean),
        jitter_max_s: jitter.map(|(_, most, _)| most),
        reported_lost,
        merged: None,
    }
}

/// Joins the legs of one stream (SMPTE ST 2022-7): the same SSRC and payload type in two flows at the same time.
fn merge_legs(rows: &mut [FlowRow], order: &[usize], flows: &Flows) {
    let streams = |index: usize| -> &[RtpSource] {
        let flow = &flows.flows[index];
        match &flow.above {
            Above::Udp(datagrams) => &datagrams.rtp[flow.main()],
            _ => &[],
        }
    };
    for (at, &index) in order.iter().enumerate().filter(|(_, index)| !streams(**index).is_empty()) {
        for stream in streams(index) {
            let others = order.iter().filter(|&&other| other != index).flat_map(|&other| streams(other));
            let twin = others.take(10_000).find(|other| {
                other.ssrc == stream.ssrc
                    && other.payload_type == stream.payload_type
                    && other.overlaps(stream)
            });
            let Some(twin) = twin else { continue };
            let lost = stream.lost_with(twin);
            let ssrc = format!("{:08x}", stream.ssrc);
            if let Some(row) = rows[at].sources.iter_mut().find(|row| row.ssrc == ssrc) {
                row.merged = Some((lost, stream.behind_s(twin)));
            }
        }
    }
}
