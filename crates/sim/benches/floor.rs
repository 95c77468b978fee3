//! How cheap a packet can be at all: the dumbbell of `--bench sim` by the barest program that has its events, in turn
//! with our simulator, record off.
//!
//! The floor has the same three links (bottleneck, delay, way back), each a FIFO with its head alone in one plain heap
//! of events, beside the timers: three events for a segment and its share of an acknowledgement. Its flows are the
//! barest NewReno (RFC 6582): no SACK, no handshake, no payload, no host jitter, no record; an acknowledgement for two
//! segments, or at once out of order; a timeout of 200 ms and the smoothed round trip, which falls back to the first
//! segment outstanding.
//!
//! Run it by `cargo bench -p streamgauge-sim --bench floor`. Options: `--json`; numbers of flows instead of 2, 20, 200
//! and 2,000; `--rounds=R`, 5 by default: each measures both in turn; medians are printed.

mod dumbbell;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::process::ExitCode;

use dumbbell::{MOST_FLOWS, ROUND_TRIP, bdp_bytes, cpu_us, duration, plan, rate_bps};
use streamgauge_plan::Keep;

const ROUNDS: usize = 5;
/// Ethernet bytes of a full segment, as our simulator counts them.
const SEGMENT_BYTES: u64 = 1514;
/// Segments that a receiver holds ahead of a gap, and the most that a sender has under way.
const WINDOW: u32 = 1024;
const INITIAL_WINDOW: u32 = 10;
const LEAST_TIMEOUT_NS: u64 = 200_000_000;
/// How long an acknowledgement waits for a second segment.
const DELAYED_ACK_NS: u64 = 40_000_000;
const NEVER: u64 = u64::MAX;

/// A segment or an acknowledgement, by when it arrives.
#[derive(Clone, Copy)]
struct Packet {
    at: u64,
    /// Time when the segment was sent, or that which is acknowledged.
    stamp: u64,
    flow: u32,
    /// Number of the segment, or of the next that is expected.
    seq: u32,
}

/// Both ends of a flow. Sequence numbers count segments.
struct Flow {
    una: u32,
    next: u32,
    window: u32,
    threshold: u32,
    /// Segments acknowledged since the window last grew in congestion avoidance.
    grown: u32,
    duplicates: u32,
    /// The end of the range that fast recovery, or a timeout, repairs.
    recover: u32,
    recovers: bool,
    backoff: u32,
    srtt: u64,
    resent: u64,
    /// The segment that the receiver expects.
    expected: u32,
    /// Segments that wait to be acknowledged.
    unacknowledged: u32,
    /// The clock to be echoed.
    echo: u64,
    /// Which of the segments from `expected` on have arrived, by number.
    ahead: [u64; (WINDOW / 64) as usize],
    held: u32,
}

/// The sender's timer of a flow, or the receiver's.
#[derive(Clone, Copy)]
struct Timer {
    wanted: u64,
    entry: u64,
}

/// The target of an entry of the heap: one of the links by its place, else a timer.
const BOTTLENECK: u32 = 0;
const DOWN: u32 = 1;
const UP: u32 = 2;
const TIMERS: u32 = 3;

struct Floor {
    flows: Vec<Flow>,
    /// The sender's and the receiver's of each flow.
    timers: Vec<[Timer; 2]>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    links: [VecDeque<Packet>; 3],
    /// Time when the bottleneck has sent all that it holds.
    link_free: u64,
    per_segment_ns: u64,
    limit: usize,
    one_way: u64,
    sent: u64,
}

impl Floor {
    fn new(flows: u64) -> Self {
        let never = Timer { wanted: NEVER, entry: NEVER };
        let flow = |_| Flow {
            una: 0,
            next: 0,
            window: INITIAL_WINDOW,
            threshold: u32::MAX,
            grown: 0,
            duplicates: 0,
            recover: 0,
            recovers: false,
            backoff: 0,
            srtt: 0,
            resent: 0,
            expected: 0,
            unacknowledged: 0,
            echo: 0,
            ahead: [0; (WINDOW / 64) as usize],
            held: 0,
        };
        let mut floor = Floor {
            flows: (0..flows).map(flow).collect(),
            timers: vec![[never; 2]; flows as usize],
            heap: BinaryHeap::new(),
            links: Default::default(),
            link_free: 0,
            per_segment_ns: SEGMENT_BYTES * 8_000_000_000 / rate_bps(flows),
            limit: (bdp_bytes(flows) / SEGMENT_BYTES) as usize,
            one_way: ROUND_TRIP.as_nanos() / 2,
            sent: 0,
        };
        // Nothing is outstanding: the first timeout starts the flow.
        for index in 0..flows {
            floor.set(index as u32, 0, index * 1_000_000_000 / flows);
        }
        floor
    }

    /// Runs until `end`; returns the data packets that the bottleneck has sent by then.
    fn run(&mut self, end: u64) -> u64 {
        while let Some(&Reverse((now, what))) = self.heap.peek()
            && now < end
        {
            self.heap.pop();
            if what >= TIMERS {
                self.timer(now, what - TIMERS);
                continue;
            }
            let link = &mut self.links[what as usize];
            let packet = link.pop_front().expect("it is in the heap");
            if let Some(next) = link.front() {
                self.heap.push(Reverse((next.at, what)));
            }
            match what {
                BOTTLENECK => {
                    self.sent += 1;
                    self.enter(DOWN, Packet { at: now + self.one_way, ..packet });
                }
                DOWN => self.data(packet),
                _ => self.acknowledged(packet),
            }
        }
        self.sent
    }

    fn enter(&mut self, link: u32, packet: Packet) {
        let fifo = &mut self.links[link as usize];
        if fifo.is_empty() {
            self.heap.push(Reverse((packet.at, link)));
        }
        fifo.push_back(packet);
    }

    fn send(&mut self, now: u64, flow: u32, seq: u32) {
        if self.links[BOTTLENECK as usize].len() < self.limit {
            self.link_free = self.link_free.max(now) + self.per_segment_ns;
            self.enter(BOTTLENECK, Packet { at: self.link_free, stamp: now, flow, seq });
        }
    }

    /// Handles a segment.
    fn data(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let at = packet.seq.wrapping_sub(flow.expected);
        if at == 0 {
            flow.expected += 1;
            flow.echo = if flow.unacknowledged == 0 { packet.stamp } else { flow.echo };
            flow.unacknowledged += 1;
            let filled = flow.held > 0;
            while flow.held > 0 {
                let (word, bit) = place(flow.expected);
                if flow.ahead[word] & bit == 0 {
                    break;
                }
                flow.ahead[word] &= !bit;
                flow.held -= 1;
                flow.expected += 1;
            }
            if flow.unacknowledged < 2 && !filled {
                return self.set(packet.flow, 1, packet.at + DELAYED_ACK_NS);
            }
        } else if at < WINDOW {
            let (word, bit) = place(packet.seq);
            flow.held += u32::from(flow.ahead[word] & bit == 0);
            flow.ahead[word] |= bit;
        }
        self.acknowledge(packet.at, packet.flow);
    }

    fn acknowledge(&mut self, now: u64, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.unacknowledged = 0;
        let packet = Packet { at: now + self.one_way, stamp: flow.echo, flow: index, seq: flow.expected };
        self.enter(UP, packet);
        self.set(index, 1, NEVER);
    }

    /// Handles an acknowledgement (RFC 5681, RFC 6582).
    fn acknowledged(&mut self, packet: Packet) {
        let now = packet.at;
        let flow = &mut self.flows[packet.flow as usize];
        let mut resend = None;
        if packet.seq > flow.una {
            let newly = packet.seq - flow.una;
            let rtt = now - packet.stamp;
            flow.srtt = if flow.srtt == 0 { rtt } else { flow.srtt - flow.srtt / 8 + rtt / 8 };
            flow.una = packet.seq;
            flow.next = flow.next.max(packet.seq);
            flow.backoff = 0;
            if !flow.recovers {
                flow.duplicates = 0;
                flow.grow(newly);
            } else if packet.seq >= flow.recover {
                (flow.recovers, flow.duplicates, flow.window) = (false, 0, flow.threshold);
            } else {
                // A partial acknowledgement: the next hole.
                resend = Some(flow.una);
                flow.window = flow.window.saturating_sub(newly).max(1) + 1;
            }
        } else if flow.next > flow.una {
            flow.duplicates += 1;
            if flow.recovers {
                flow.window += 1;
            } else if flow.duplicates == 3 && flow.una >= flow.recover {
                flow.threshold = ((flow.next - flow.una) / 2).max(2);
                flow.window = flow.threshold + 3;
                (flow.recovers, flow.recover) = (true, flow.next);
                resend = Some(flow.una);
            }
        }
        if let Some(seq) = resend {
            flow.resent += 1;
            self.send(now, packet.flow, seq);
        }
        self.fill(now, packet.flow);
    }

    /// Sends the segments that the window lets out, and sets the timer.
    fn fill(&mut self, now: u64, index: u32) {
        loop {
            let flow = &mut self.flows[index as usize];
            if flow.next - flow.una >= flow.window.min(WINDOW) {
                break;
            }
            let seq = flow.next;
            flow.next += 1;
            flow.resent += u64::from(seq < flow.recover && !flow.recovers);
            self.send(now, index, seq);
        }
        let flow = &self.flows[index as usize];
        self.set(index, 0, now + ((flow.srtt + LEAST_TIMEOUT_NS) << flow.backoff));
    }

    /// Handles the retransmission timer: returns to the first segment outstanding.
    fn time_out(&mut self, now: u64, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.next > flow.una {
            flow.threshold = ((flow.next - flow.una) / 2).max(2);
            flow.recover = flow.recover.max(flow.next);
            (flow.window, flow.next, flow.recovers, flow.duplicates) = (1, flow.una, false, 0);
            flow.backoff = (flow.backoff + 1).min(8);
        }
        self.fill(now, index);
    }

    /// Sets a timer as our simulator does: one that moves later leaves its entry where it is.
    fn set(&mut self, flow: u32, which: usize, at: u64) {
        let timer = &mut self.timers[flow as usize][which];
        timer.wanted = at;
        if at < timer.entry {
            timer.entry = at;
            self.heap.push(Reverse((at, TIMERS + 2 * flow + which as u32)));
        }
    }

    fn timer(&mut self, at: u64, index: u32) {
        let (flow, which) = (index / 2, (index % 2) as usize);
        let timer = &mut self.timers[flow as usize][which];
        if timer.entry != at {
            return;
        }
        timer.entry = NEVER;
        if timer.wanted > at {
            let wanted = timer.wanted;
            if wanted < NEVER {
                self.set(flow, which, wanted);
            }
            return;
        }
        timer.wanted = NEVER;
        if which == 0 { self.time_out(at, flow) } else { self.acknowledge(at, flow) }
    }
}

impl Flow {
    fn grow(&mut self, newly: u32) {
        if self.window < self.threshold {
            self.window = self.window.saturating_add(newly).min(self.threshold);
            return;
        }
        self.grown += newly;
        if self.grown >= self.window {
            self.grown -= self.window;
            self.window += 1;
        }
    }
}

/// Returns where a segment is in [`Flow::ahead`].
fn place(seq: u32) -> (usize, u64) {
    let at = seq % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

/// Nanoseconds a packet, the share of the bottleneck's capacity that arrived once, and the retransmissions, per data
/// packet that left the bottleneck.
#[derive(Clone, Copy)]
struct Cost {
    ns: f64,
    goodput: f64,
    again: f64,
}

fn floor(flows: u64) -> Cost {
    let before = cpu_us();
    let mut floor = Floor::new(flows);
    let end = duration(flows).as_nanos();
    let packets = floor.run(end) as f64;
    let ns = (cpu_us() - before) * 1e3 / packets;
    let arrived: u64 = floor.flows.iter().map(|flow| u64::from(flow.expected)).sum();
    let again: u64 = floor.flows.iter().map(|flow| flow.resent).sum();
    let full = end as f64 / floor.per_segment_ns as f64;
    Cost { ns, goodput: arrived as f64 / full, again: again as f64 / packets }
}

fn ours(flows: u64) -> Cost {
    let plan = plan(flows, Keep::Metrics);
    let before = cpu_us();
    let (summary, ()) = streamgauge_sim::run(&plan, ()).expect("the plan is sound");
    let packets = summary.bottleneck_packets as f64;
    let ns = (cpu_us() - before) * 1e3 / packets;
    let received: u64 = summary.flows.iter().map(|flow| flow.player_received_bytes).sum();
    let again: u64 =
        summary.flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.retransmits).sum();
    let full = rate_bps(flows) as f64 / 8.0 * plan.duration.as_secs_f64() * 1448.0 / SEGMENT_BYTES as f64;
    Cost { ns, goodput: received as f64 / full, again: again as f64 / packets }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> ExitCode {
    let (mut json, mut rounds, mut numbers) = (false, ROUNDS, Vec::new());
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            // An argument that cargo adds.
            "--bench" => {}
            "--json" => json = true,
            text => match (text.strip_prefix("--rounds=").map(str::parse), text.parse()) {
                (Some(Ok(number)), _) if number > 0 => rounds = number,
                (None, Ok(flows)) if (1..=MOST_FLOWS).contains(&flows) => numbers.push(flows),
                _ => {
                    eprintln!(
                        "floor bench: {text}: give --json, --rounds=R or numbers of flows, 1 to {MOST_FLOWS}"
                    );
                    return ExitCode::from(2);
                }
            },
        }
    }
    if numbers.is_empty() {
        numbers = vec![2, 20, 200, 2000];
    }
    let mut lines = Vec::new();
    for flows in numbers {
        let costs: Vec<[Cost; 2]> = (0..rounds).map(|_| [floor(flows), ours(flows)]).collect();
        let ns = |which: usize| median(costs.iter().map(|pair| pair[which].ns).collect());
        let ratio = median(costs.iter().map(|[floor, ours]| ours.ns / floor.ns).collect());
        let [floor, ours] = costs[0];
        if !json {
            println!(
                "N = {flows:4}: floor {:6.1} ns, ours {:6.1} ns a packet: {ratio:4.1} times (goodput {:.1} and \
                 {:.1} %, sent again {:.1} and {:.1} %)",
                ns(0),
                ns(1),
                100.0 * floor.goodput,
                100.0 * ours.goodput,
                100.0 * floor.again,
                100.0 * ours.again,
            );
        }
        lines.push(serde_json::json!({
            "flows": flows, "floor_ns": ns(0), "ours_ns": ns(1), "ratio": ratio, "rounds": rounds,
            "floor_goodput": floor.goodput, "floor_retransmitted": floor.again,
            "goodput": ours.goodput, "retransmitted": ours.again,
        }));
    }
    if json {
        println!("{}", serde_json::json!({"schema": "streamgauge.bench.floor/1", "per_packet": lines}));
    }
    ExitCode::SUCCESS
}
