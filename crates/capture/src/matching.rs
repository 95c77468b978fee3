//! Two captures of one path, matched packet by packet.
//!
//! First the files are sampled for packets that both have: this gives the side of each address, and both clocks
//! ([`Clock`]). Then both are read again in order of one clock, the sender's packet before the receiver's. A packet of
//! the sender waits for its match for [`WINDOW_NS`]. Memory is bounded by the packets of that time.
//!
//! A packet without a match was lost, or not captured. The acknowledgements in the receiver's capture show which. If
//! bytes are acknowledged and were never seen there, that capture missed them. If bytes were sent again, they were
//! lost. For datagrams, feedback on single packets and counts of losses show the same. Without any of these it stays
//! open.

use std::collections::HashMap;

use crate::bottleneck::{BottleneckEstimate, Passed};
use crate::capture::Capture;
use crate::clock::Clock;
use crate::error::CaptureError;
use crate::feedback::{Feedback, Passage};
use crate::first_look::{CaptureSource, FirstLook, KnownBeforehand, Mechanism, first_look};
use crate::flow::{Above, Flows};
use crate::hash::Mixed;
use crate::packet::{End, PacketTransport};
use crate::reports::{Range, Reports, RtpNumber};
use crate::samples::Samples;
use crate::tcp::{Segment, Sender};
use crate::waiting::{Waiting, WaitingLine, waiting};

/// A packet waits so long for its match (ns).
pub const WINDOW_NS: i64 = 10_000_000_000;
/// Packets that wait at once in one capture.
const MOST_WAITING: usize = 1 << 21;
/// Packets that wait for an acknowledgement after their time for a match.
const MOST_UNDECIDED: usize = 1 << 16;
/// Segments sent again that are kept.
const MOST_AGAIN: usize = 1 << 18;
const CE: u8 = 3;

/// The fate of a packet between both captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketFate {
    /// Both captures have it.
    Delivered,
    /// The path dropped it.
    Lost,
    /// It arrived, and the receiver's capture missed it.
    NotCaptured,
    /// Lost or not captured: no acknowledgement shows which.
    Open,
    /// It arrived, and the sender's capture missed it.
    NotCapturedBefore,
    /// A further copy that the path made.
    Duplicated,
}

/// A packet with its fate, times on A's clock.
#[derive(Clone, Copy, Debug)]
pub struct MatchedPacket {
    /// Index in [`Matching::flows`].
    pub flow: u32,
    /// The end that sent it, 0 or 1.
    pub from: usize,
    /// Its direction is from A to B.
    pub forward: bool,
    /// When it passed the sender's capture (ns; of one that this missed, the receiver's).
    pub in_ns: i64,
    /// When it passed the receiver's.
    pub out_ns: Option<i64>,
    /// IP bytes.
    pub ip_bytes: u32,
    /// Bytes above the transport header.
    pub payload_bytes: u32,
    /// TCP sequence number.
    pub seq: Option<u32>,
    /// Its fate.
    pub fate: PacketFate,
    /// Its place among the IP packets of the sender's capture, from 0; of one that this missed, of the receiver's.
    pub number: u64,
}

/// One direction of a flow, matched.
#[derive(Clone, Debug, Default)]
pub struct MatchedWay {
    /// Its direction is from A to B.
    pub forward: bool,
    /// Counts by fate, in the order of [`PacketFate`].
    pub fates: [u64; 6],
    /// One-way delays (ns).
    pub delays: Samples,
    /// Packets that were marked on the path.
    pub marked: u64,
    /// Delivered packets behind a later one of their direction.
    pub reordered: u64,
    last_in_ns: i64,
}

/// A flow that both captures have.
#[derive(Clone, Debug)]
pub struct MatchedFlow {
    /// Its ends in order.
    pub ends: [End; 2],
    /// IP's protocol.
    pub protocol: u8,
    /// Both directions, by the end that sends.
    pub ways: [MatchedWay; 2],
}

/// Two captures, matched.
pub struct Matching {
    /// Flows in order of their first packet.
    pub flows: Vec<MatchedFlow>,
    /// B's clock.
    pub clock: Clock,
    /// The bottleneck of each direction: from A to B, and back.
    pub bottlenecks: [BottleneckEstimate; 2],
    /// The flows of each capture alone.
    pub alone: [Flows; 2],
    /// To be added to B's times that packets were given with (ns): the balance of both ways is found last.
    pub shift_ns: i64,
}

impl Matching {
    /// Takes the transmission at the bottleneck out of the least delays: a way with a slow link and one without are then
    /// equal, if their propagation is. No transmission is longer than the least round trip: a shaper that lets a burst
    /// pass had not delayed the packet with the least delay.
    fn balance(&mut self) {
        let round_ns = self.clock.least_ns.iter().flatten().sum::<i64>().max(0);
        let [forward, back] =
            self.bottlenecks.each_ref().map(|one| one.least_transmission_ns().min(round_ns));
        let shift = (forward - back) / 2;
        self.clock.offset_ns -= shift;
        self.shift_ns = shift;
        for (least, by) in self.clock.least_ns.iter_mut().zip([shift, -shift]) {
            *least = least.map(|ns| ns + by);
        }
        for way in self.flows.iter_mut().flat_map(|flow| &mut flow.ways) {
            way.delays.shift(if way.forward { shift } else { -shift });
        }
    }
}

/// Matches `b` with `a`. `each` is given every packet with its fate.
///
/// # Errors
/// A file cannot be read, or both have too few packets in common.
pub fn matching(
    a: &CaptureSource<'_>,
    b: &CaptureSource<'_>,
    known: &KnownBeforehand,
    mut each: impl FnMut(&MatchedPacket),
) -> Result<(Matching, [Capture; 2]), CaptureError> {
    let first = first_look(a, b, known)?;
    let mut captures = [Capture::open(a.path, a.only)?, Capture::open(b.path, b.only)?];
    captures[1].renamed.clone_from(&known.renamed);
    let mut state = State {
        found: Matching {
            flows: Vec::new(),
            clock: first.clock,
            bottlenecks: Default::default(),
            alone: Default::default(),
            shift_ns: 0,
        },
        numbers: HashMap::default(),
        of_capture: Default::default(),
        lines: Default::default(),
        again: HashMap::default(),
        undecided: Vec::new(),
        reports: Default::default(),
        feedback: Feedback::default(),
        ended: [None, None],
        began: [None, None],
        last_ns: [i64::MIN; 2],
        longest_ns: 0,
        read: [0; 2],
        without: known.without,
        first,
    };
    let mut heads: [Option<Taken>; 2] = [None, None];
    let mut is_open = [true, true];
    loop {
        for side in 0..2 {
            if heads[side].is_none() && is_open[side] {
                heads[side] = state.read(side, &mut captures[side]);
                is_open[side] = heads[side].is_some();
                if !is_open[side] {
                    state.ended[side] = Some(state.last_ns[side]);
                }
            }
        }
        let side = match (&heads[0], &heads[1]) {
            (Some(one), Some(other)) => usize::from(other.at_ns < one.at_ns),
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (None, None) => break,
        };
        let Some(taken) = heads[side].take() else { break };
        state.place(side, taken, &mut each);
    }
    state.ended = state.ended.map(|end| end.or(Some(i64::MAX)));
    state.expire(i64::MAX, &mut each);
    state.decide(&mut each);
    state.found.bottlenecks.iter_mut().for_each(|one| one.settle(known.without));
    if known.base_ns.is_none() && known.without != Some(Mechanism::Balance) {
        state.found.balance();
    }
    Ok((state.found, captures))
}

/// A packet as far as matching needs it, its time on A's clock.
struct Taken {
    at_ns: i64,
    packet: Waiting,
}

struct State {
    found: Matching,
    numbers: HashMap<(End, End, u8), u32, Mixed>,
    /// By capture: the number of each of its flows.
    of_capture: [Vec<Option<u32>>; 2],
    lines: [WaitingLine; 2],
    /// Times of segments that were sent again, by flow, end and sequence number.
    again: HashMap<(u32, u8, u32), Vec<i64>, Mixed>,
    /// Without a match, and so far without an acknowledgement or a report.
    undecided: Vec<Waiting>,
    /// By capture: the receiver reports in it.
    reports: [Reports; 2],
    feedback: Feedback,
    began: [Option<i64>; 2],
    ended: [Option<i64>; 2],
    last_ns: [i64; 2],
    longest_ns: i64,
    /// IP packets so far, by capture.
    read: [u64; 2],
    without: Option<Mechanism>,
    first: FirstLook,
}

impl State {
    /// The next packet of a capture that belongs to a flow.
    fn read(&mut self, side: usize, capture: &mut Capture) -> Option<Taken> {
        let mut found = None;
        while found.is_none() {
            let State {
                found: Matching { alone, flows, clock, .. },
                numbers,
                of_capture,
                first,
                again,
                read,
                reports,
                feedback,
                ..
            } = self;
            let is_more = capture.next_packet(|packet| {
                read[side] += 1;
                let Some(placed) = alone[side].take(packet) else { return };
                let index = placed.flow as usize;
                let known = &mut of_capture[side];
                if index >= known.len() {
                    known.resize(index + 1, None);
                }
                let number = *known[index].get_or_insert_with(|| {
                    let flow = &alone[side].flows[index];
                    *numbers.entry((flow.ends[0], flow.ends[1], flow.protocol)).or_insert_with(|| {
                        let forward = |end: usize| first.is_a.get(&flow.ends[end].address).copied();
                        let from_a = [
                            forward(0).or(forward(1).map(|is| !is)).unwrap_or(true),
                            forward(1).or(forward(0).map(|is| !is)).unwrap_or(false),
                        ];
                        flows.push(MatchedFlow {
                            ends: flow.ends,
                            protocol: flow.protocol,
                            ways: from_a.map(|forward| MatchedWay { forward, ..MatchedWay::default() }),
                        });
                        flows.len() as u32 - 1
                    })
                });
                let at_ns = if side == 0 { packet.at_ns } else { clock.to_a(packet.at_ns) };
                let from = placed.from as u8;
                let forward = flows[number as usize].ways[placed.from].forward;
                let is_sender = forward == (side == 0);
                let mut packet_of = waiting(packet, first.payload);
                if let Above::Udp(datagrams) = &alone[side].flows[index].above {
                    let passage = Passage { flow: number, from, forward, is_sender, at_ns };
                    if is_sender {
                        packet_of.numbered = feedback.send(packet, datagrams, passage);
                    }
                    let arrived_ns =
                        |flow: u32, from: u8| flows[flow as usize].ways[usize::from(from)].last_in_ns;
                    feedback.take(packet, datagrams, passage, arrived_ns);
                }
                if is_sender {
                    reports[side].take(packet, at_ns);
                    packet_of.rtp.into_iter().for_each(|rtp| reports[side].send(rtp));
                }
                if is_sender
                    && matches!(placed.segment, Segment::Again | Segment::Repair)
                    && let PacketTransport::Tcp(tcp) = packet.transport
                {
                    if again.len() > MOST_AGAIN {
                        again.clear();
                    }
                    again.entry((number, from, tcp.seq)).or_default().push(at_ns);
                }
                let packet_of =
                    Waiting { at_ns, flow: number, from, is_sender, number: read[side] - 1, ..packet_of };
                found = Some(Taken { at_ns, packet: packet_of });
            });
            if !is_more {
                return None;
            }
        }
        if let Some(taken) = &found {
            self.began[side].get_or_insert(taken.at_ns);
            self.last_ns[side] = self.last_ns[side].max(taken.at_ns);
        }
        found
    }

    fn place(&mut self, side: usize, taken: Taken, each: &mut impl FnMut(&MatchedPacket)) {
        let packet = taken.packet;
        match self.lines[1 - side].take(packet.print) {
            Ok(other) => {
                let (sent, got) = if packet.is_sender { (packet, other) } else { (other, packet) };
                self.deliver(&sent, &got, each);
                if packet.is_sender {
                    self.lines[side].push(Waiting { is_matched: true, ..packet });
                }
            }
            Err(had) if had && !packet.is_sender => {
                self.note(&packet, PacketFate::Duplicated, Some(packet.at_ns), each)
            }
            Err(_) => self.lines[side].push(packet),
        }
        self.expire(taken.at_ns - WINDOW_NS, each);
    }

    fn deliver(&mut self, sent: &Waiting, got: &Waiting, each: &mut impl FnMut(&MatchedPacket)) {
        let way = &mut self.found.flows[sent.flow as usize].ways[usize::from(sent.from)];
        let delay = got.at_ns - sent.at_ns;
        way.delays.push(delay);
        way.marked += u64::from(got.ecn == CE && sent.ecn != CE);
        way.reordered += u64::from(sent.at_ns < way.last_in_ns);
        way.last_in_ns = way.last_in_ns.max(sent.at_ns);
        self.longest_ns = self.longest_ns.max(delay);
        let passed = Passed { in_ns: sent.at_ns, out_ns: got.at_ns, ip_bytes: sent.ip_bytes };
        self.found.bottlenecks[usize::from(!way.forward)].pass(passed);
        self.note(sent, PacketFate::Delivered, Some(got.at_ns), each);
    }

    fn note(
        &mut self,
        packet: &Waiting,
        fate: PacketFate,
        out_ns: Option<i64>,
        each: &mut impl FnMut(&MatchedPacket),
    ) {
        let way = &mut self.found.flows[packet.flow as usize].ways[usize::from(packet.from)];
        way.fates[fate as usize] += 1;
        if matches!(fate, PacketFate::NotCaptured | PacketFate::NotCapturedBefore) {
            let bottleneck = &mut self.found.bottlenecks[usize::from(!way.forward)];
            bottleneck.miss(packet.at_ns, fate == PacketFate::NotCapturedBefore, packet.ip_bytes);
        }
        each(&MatchedPacket {
            flow: packet.flow,
            from: usize::from(packet.from),
            forward: way.forward,
            in_ns: packet.at_ns,
            out_ns,
            ip_bytes: packet.ip_bytes,
            payload_bytes: packet.payload_bytes,
            seq: packet.seq,
            fate,
            number: packet.number,
        });
    }

    /// Decides on packets from before `until_ns` that have no match.
    fn expire(&mut self, until_ns: i64, each: &mut impl FnMut(&MatchedPacket)) {
        for side in 0..2 {
            while let Some(packet) = self.lines[side].packets.front()
                && (packet.at_ns < until_ns || self.lines[side].packets.len() > MOST_WAITING)
            {
                let Some(packet) = self.lines[side].pop() else { break };
                if packet.is_matched || !self.both_ran(1 - side, packet.at_ns) {
                    continue;
                }
                if !packet.is_sender {
                    self.note(&packet, PacketFate::NotCapturedBefore, Some(packet.at_ns), each);
                    continue;
                }
                let fate = self.fate(&packet, 1 - side);
                if fate == PacketFate::Lost || fate == PacketFate::Open && packet.seq.is_none() {
                    self.found.bottlenecks[side].lose(packet.at_ns, packet.ip_bytes);
                }
                let is_numbered = packet.rtp.is_some() || packet.numbered[0].is_some();
                if fate == PacketFate::Open && (packet.length > 0 || is_numbered) {
                    // The repair of a repair that was lost may take minutes, and so may reports.
                    self.undecided.push(packet);
                    if self.undecided.len() == MOST_UNDECIDED {
                        self.decide(each);
                    }
                    continue;
                }
                self.note(&packet, fate, None, each);
            }
        }
    }

    /// Decides on packets that waited for an acknowledgement, feedback or a report.
    fn decide(&mut self, each: &mut impl FnMut(&MatchedPacket)) {
        let undecided: Vec<(Waiting, Option<bool>)> =
            std::mem::take(&mut self.undecided).into_iter().map(|one| (one, self.is_lost(&one))).collect();
        // By range: packets without feedback, and those that were lost by it.
        let mut ranges: HashMap<(usize, Range), [u32; 2], Mixed> = HashMap::default();
        for (packet, is_lost) in &undecided {
            let Some(range) = self.range(packet) else { continue };
            let [without, lost] = ranges.entry(range).or_default();
            *without += u32::from(is_lost.is_none());
            *lost += u32::from(*is_lost == Some(true));
        }
        for (packet, mut is_lost) in undecided {
            if let Some((receiver, range)) = self.range(&packet).filter(|_| is_lost.is_none()) {
                let [without, lost] = ranges.get(&(receiver, range)).copied().unwrap_or_default();
                is_lost = self.reports[receiver].are_lost(range, without, lost);
            }
            let way = &self.found.flows[packet.flow as usize].ways[usize::from(packet.from)];
            let fate = match is_lost {
                Some(true) => PacketFate::Lost,
                Some(false) => PacketFate::NotCaptured,
                None => self.fate(&packet, usize::from(way.forward)),
            };
            self.note(&packet, fate, None, each);
        }
    }

    /// Whether feedback shows that a packet was lost, or that it arrived.
    fn is_lost(&self, packet: &Waiting) -> Option<bool> {
        if self.without == Some(Mechanism::Feedback) {
            return None;
        }
        let way = &self.found.flows[packet.flow as usize].ways[usize::from(packet.from)];
        let longest_ns = (way.reordered > 0).then_some(self.longest_ns);
        self.feedback.is_lost(&packet.numbered, packet.at_ns, longest_ns)
    }

    /// The receiver of a packet of RTP, and the two reports that it is between. The receiver's capture has all of them.
    fn range(&self, packet: &Waiting) -> Option<(usize, Range)> {
        let way = &self.found.flows[packet.flow as usize].ways[usize::from(packet.from)];
        let receiver = usize::from(way.forward);
        let is_plain = |rtp: &RtpNumber| {
            self.reports[1 - receiver].sends_once(rtp.source) && !self.feedback.is_repaired(&packet.numbered)
        };
        let known = packet.rtp.filter(is_plain).filter(|_| self.without != Some(Mechanism::Reports))?;
        Some((receiver, self.reports[receiver].range(known, packet.at_ns)?))
    }

    /// Whether the other capture ran when a packet of this time could pass it.
    fn both_ran(&self, other: usize, at_ns: i64) -> bool {
        let slack = self.longest_ns.max(0);
        let began = self.began[other].is_some_and(|began| at_ns >= began.saturating_sub(slack));
        began && self.ended[other].is_none_or(|ended| at_ns <= ended.saturating_sub(slack))
    }

    /// Whether the receiver acknowledged anything after this packet could arrive.
    fn went_on(&self, sender: &Sender, packet: &Waiting, receiver: usize) -> bool {
        let heard_ns = sender.heard_ns.map(|ns| if receiver == 1 { self.found.clock.to_a(ns) } else { ns });
        heard_ns.is_some_and(|ns| ns > packet.at_ns.saturating_add(self.longest_ns))
    }

    /// Whether the receiver had closed, answered each segment that its capture has with a reset, and sent no reset to
    /// any other: then no segment arrived that this capture missed.
    fn is_refused_without_gap(&self, sender: &Sender, packet: &Waiting, receiver: usize) -> bool {
        let Some(last_ns) = sender.refusals.last_ns.filter(|_| sender.refusals.are_whole()) else {
            return false;
        };
        if self.without == Some(Mechanism::Refusals) {
            return false;
        }
        let last_ns = if receiver == 1 { self.found.clock.to_a(last_ns) } else { last_ns };
        last_ns > packet.at_ns.saturating_add(self.found.clock.least_ns[1 - receiver].unwrap_or(0))
    }

    fn fate(&self, packet: &Waiting, receiver: usize) -> PacketFate {
        let (Some(seq), true) = (packet.seq, packet.length > 0) else { return PacketFate::Open };
        if self.without == Some(Mechanism::Acknowledgements) {
            return PacketFate::Open;
        }
        let flow = &self.found.flows[packet.flow as usize];
        let of_receiver = self.found.alone[receiver].find_flow(&flow.ends, flow.protocol);
        let Some(Above::Tcp(tcp)) = of_receiver.map(|flow| &flow.above) else { return PacketFate::Open };
        let sender = &tcp.0.ends[usize::from(packet.from)];
        let end = seq.wrapping_add(packet.length);
        let missed_ns = sender.missed_ns(seq, end).filter(|_| self.without != Some(Mechanism::GapTest));
        if let Some(missed_ns) = missed_ns {
            // One copy arrived: the last one that was sent in time. Those before it were lost.
            let missed_ns = if receiver == 1 { self.found.clock.to_a(missed_ns) } else { missed_ns };
            let latest_ns = missed_ns - self.found.clock.least_ns[1 - receiver].unwrap_or(0);
            let copies = self.again.get(&(packet.flow, packet.from, seq));
            let has_later =
                copies.is_some_and(|times| times.iter().any(|&at| at > packet.at_ns && at <= latest_ns));
            if has_later { PacketFate::Lost } else { PacketFate::NotCaptured }
        } else if sender.is_acknowledged(end)
            || self.went_on(sender, packet, receiver)
            || self.is_refused_without_gap(sender, packet, receiver)
        {
            // Another copy arrived, or its receiver moved ahead and never acknowledged these bytes.
            PacketFate::Lost
        } else {
            PacketFate::Open
        }
    }
}
