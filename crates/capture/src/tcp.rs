//! One TCP connection as one capture shows it: loss and retransmissions on either side of the capture, bytes that the
//! capture missed, both halves of the round trip, and the limit of the rate.
//!
//! A segment passes the place of the capture before its acknowledgement returns. Bytes that are acknowledged and never
//! seen were therefore missed by the capture. Bytes that are missing and then seen behind later ones were lost before
//! the capture, if the segment is a retransmission. Bytes that are seen twice were lost behind it, unless the receiver
//! reports the second copy as a duplicate (RFC 2883).

use crate::packet::{Packet, Tcp, flag};
use crate::samples::Samples;

/// Holes that are followed at once in one direction.
const MOST_HOLES: usize = 256;
/// Segments that are remembered to find copies by their IP identification.
const REMEMBERED: usize = 32;
/// A segment that fills a hole within this time is reordered, where identifications show nothing (ns).
const REORDERED_NS: i64 = 3_000_000;

/// An acknowledgement is stamped at most so long before its segment (ns).
const SWAPPED_NS: i64 = 1_000_000;

/// Segments that were answered with resets, from which on these show gaps of the capture.
const FEWEST_REFUSALS: u64 = 3;

/// A missing range of bytes.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: u32,
    to: u32,
    /// When a later segment showed it.
    at_ns: i64,
    /// That segment's IP identification; 0 without one.
    identification: u32,
}

/// The packets that one end sends.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    started: bool,
    /// Sequence number behind the highest byte seen.
    next: u32,
    /// The highest acknowledgement for these bytes.
    acked: Option<u32>,
    /// When the other end acknowledged last, also without anything new (ns).
    pub heard_ns: Option<i64>,
    holes: Vec<Hole>,
    recent: Vec<(u32, u32)>,
    recent_at: usize,
    /// The longest segment's payload.
    pub segment_bytes: u32,
    /// Payload bytes, each once.
    pub new_bytes: u64,
    /// Segments with bytes that were sent before, by all signs.
    pub retransmitted: u64,
    /// The part of these that fills a hole, so that the first copy was lost before the capture.
    pub lost_before: u64,
    /// The part of these with a first copy that passed the capture.
    pub lost_behind: u64,
    /// Retransmissions that the receiver reported as duplicates.
    pub spurious: u64,
    /// Segments that passed behind later ones, and are no retransmissions.
    pub reordered: u64,
    /// Copies that the network made.
    pub duplicated: u64,
    /// Acknowledged bytes that the capture missed.
    pub missed_bytes: u64,
    /// The same in segments of the longest size.
    pub missed_packets: u64,
    /// The last ranges that were missed.
    missed: std::collections::VecDeque<(u32, u32, i64)>,
    /// Acknowledgements without new data or a change of the window.
    pub duplicate_acks: u64,
    /// Window that this end advertises, in bytes.
    pub window: u64,
    last_window: u16,
    scale: Option<u8>,
    /// Times that it closed the window.
    pub zero_windows: u64,
    timed: Option<(u32, i64)>,
    stamped: Option<(u32, i64)>,
    /// From the capture to the other end and back, by acknowledgements or echoed time stamps (ns).
    pub round: Samples,
    last_ack: Option<u32>,
    /// Most bytes in flight.
    pub flight: u32,
    /// Resets of the other end, which has closed.
    pub refusals: Refusals,
}

/// Resets of an end that has closed: it answers each further segment with one (RFC 9293 section 3.10.7.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals {
    /// The last reset (ns).
    pub last_ns: Option<i64>,
    /// Segments that had no reset so far.
    waiting: u64,
    answered: u64,
    /// Resets that no segment in the capture asked for.
    unasked: u64,
}

impl Refusals {
    fn segment(&mut self) {
        self.waiting += u64::from(self.last_ns.is_some());
    }

    fn reset(&mut self, at_ns: i64) {
        if self.last_ns.replace(at_ns).is_none() {
            return; // the one that closes answers nothing
        }
        if self.waiting > 0 {
            self.waiting -= 1;
            self.answered += 1;
        } else {
            self.unasked += 1;
        }
    }

    /// Each segment has its reset and each reset its segment, but for a few resets that the capture missed.
    pub fn are_whole(&self) -> bool {
        self.unasked == 0 && self.answered >= FEWEST_REFUSALS && self.waiting * 20 <= self.answered
    }
}

/// Time by the limit of the rate, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Nothing in flight: the application has nothing to send.
    pub application: i64,
    /// The receiver's window is full.
    pub receiver: i64,
    /// Losses are being repaired.
    pub recovery: i64,
    /// Data in flight, the window not full: congestion window, or the sender's own bound.
    pub open: i64,
}

/// A connection. Index 0 is the first end in order of addresses, as in its flow.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// The two ends as senders.
    pub ends: [Sender; 2],
    /// By end: time by limit.
    pub limits: [Limits; 2],
    recover: [Option<u32>; 2],
    last_ns: Option<i64>,
    syn: Option<(usize, i64)>,
    syn_ack: Option<i64>,
    /// From the capture to each end and back, in the handshake (ns).
    pub handshake: [Option<i64>; 2],
    /// By end: whether a SYN was seen from it.
    pub opened_by: Option<usize>,
}

/// The findings about one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// No payload.
    Empty,
    /// Bytes that were not seen before.
    New,
    /// Bytes with a first copy in the capture.
    Again,
    /// A retransmission of bytes that were not seen.
    Repair,
    /// Late by the network's order.
    Late,
    /// A copy by the network.
    Copy,
}

/// Returns whether `a` is before `b` in sequence space (RFC 9293 section 3.4).
pub fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// TCP's options that the analysis reads.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// Window scale (RFC 7323 section 2).
    pub scale: Option<u8>,
    /// TSval and TSecr (RFC 7323 section 3).
    pub stamps: Option<(u32, u32)>,
    /// SACK blocks (RFC 2018).
    pub sack: [Option<(u32, u32)>; 4],
}

impl Options {
    /// Reads them as far as they are whole.
    #[inline]
    pub fn read(bytes: &[u8]) -> Options {
        // Two fillers and time stamps, as nearly all segments have them (RFC 7323 appendix A).
        if let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = *bytes {
            let stamps = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            return Options { stamps: Some(stamps), ..Options::default() };
        }
        Options::read_any(bytes)
    }

    fn read_any(mut bytes: &[u8]) -> Options {
        let mut found = Options::default();
        while let [kind, rest @ ..] = bytes {
            match kind {
                0 => break,
                1 => {
                    bytes = rest;
                    continue;
                }
                _ => {}
            }
            let Some(&length) = rest.first() else { break };
            let Some(value) = bytes.get(2..usize::from(length)) else { break };
            let at =
                |at: usize| value.get(at..).and_then(|v| v.first_chunk()).map(|v| u32::from_be_bytes(*v));
            match kind {
                3 => found.scale = value.first().map(|&scale| scale.min(14)),
                8 => found.stamps = at(0).zip(at(4)),
                5 => {
                    for (index, block) in found.sack.iter_mut().enumerate() {
                        *block = at(index * 8).zip(at(index * 8 + 4));
                    }
                }
                _ => {}
            }
            bytes = &bytes[usize::from(length)..];
        }
        found
    }
}

impl Sender {
    /// Takes a segment of `length` sequence numbers.
    fn send(
        &mut self,
        seq: u32,
        length: u32,
        payload: u32,
        packet: &Packet<'_>,
        half_ns: Option<i64>,
    ) -> Segment {
        let end = seq.wrapping_add(length);
        let identification = packet.identification.unwrap_or(0);
        self.segment_bytes = self.segment_bytes.max(payload);
        if !self.started {
            (self.started, self.next) = (true, end);
            self.new_bytes += u64::from(payload);
            self.remember(seq, identification);
            self.timed = Some((end, packet.at_ns));
            return Segment::New;
        }
        if !before(seq, self.next) {
            if seq != self.next {
                if self.holes.len() == MOST_HOLES {
                    self.holes.remove(0);
                }
                self.holes.push(Hole { from: self.next, to: seq, at_ns: packet.at_ns, identification });
            } else if self.timed.is_none() {
                self.timed = Some((end, packet.at_ns));
            }
            self.next = end;
            self.new_bytes += u64::from(payload);
            self.remember(seq, identification);
            return Segment::New;
        }
        // A keep-alive repeats one byte behind the last (RFC 9293 section 3.8.4).
        if payload <= 1 && seq.wrapping_add(1) == self.next && self.holes.is_empty() {
            return Segment::Empty;
        }
        if identification != 0 && self.recent.contains(&(seq, identification)) {
            self.duplicated += 1;
            return Segment::Copy;
        }
        if self.is_swapped(seq, end, packet.at_ns) {
            self.new_bytes += u64::from(payload);
            return Segment::Late;
        }
        self.remember(seq, identification);
        if let Some(hole) = self.fill(seq, end) {
            self.new_bytes += u64::from(payload);
            let apart = packet.at_ns - hole.at_ns;
            let is_late = if identification != 0 && hole.identification != 0 {
                // Numbered by the sender in order: an earlier number was sent earlier (16 bits in IPv4).
                (hole.identification as u16).wrapping_sub(identification as u16).cast_signed() > 0
            } else {
                apart < half_ns.map_or(REORDERED_NS, |half| (half / 2).max(100_000))
            };
            if is_late {
                self.reordered += 1;
                return Segment::Late;
            }
            self.timed = None;
            self.retransmitted += 1;
            self.lost_before += 1;
            return Segment::Repair;
        }
        self.timed = None;
        self.retransmitted += 1;
        self.lost_behind += 1;
        Segment::Again
    }

    /// Returns whether these bytes were counted as missed a moment ago: a capture may stamp an acknowledgement before its
    /// segment. Then they are no longer missed.
    fn is_swapped(&mut self, seq: u32, end: u32, at_ns: i64) -> bool {
        let holds = |&(low, high, missed_ns): &(u32, u32, i64)| {
            !before(seq, low) && !before(high, end) && at_ns - missed_ns <= SWAPPED_NS
        };
        let Some((low, high, missed_ns)) =
            self.missed.iter().rposition(holds).and_then(|at| self.missed.remove(at))
        else {
            return false;
        };
        let parts = [(low, seq), (end, high)].into_iter().filter(|&(from, to)| before(from, to));
        self.missed.extend(parts.map(|(from, to)| (from, to, missed_ns)));
        self.missed_bytes = self.missed_bytes.saturating_sub(u64::from(end.wrapping_sub(seq)));
        self.missed_packets = self.missed_packets.saturating_sub(1);
        true
    }

    fn remember(&mut self, seq: u32, identification: u32) {
        if self.recent.len() < REMEMBERED {
            self.recent.push((seq, identification));
        } else {
            self.recent[self.recent_at] = (seq, identification);
            self.recent_at = (self.recent_at + 1) % REMEMBERED;
        }
    }

    /// Takes `from..to` out of the holes; returns the first hole that it touches.
    fn fill(&mut self, from: u32, to: u32) -> Option<Hole> {
        let touched = self.holes.iter().position(|hole| before(from, hole.to) && before(hole.from, to))?;
        let found = self.holes[touched];
        let mut left = Vec::new();
        self.holes.retain(|hole| {
            if !(before(from, hole.to) && before(hole.from, to)) {
                return true;
            }
            if before(hole.from, from) {
                left.push(Hole { to: from, ..*hole });
            }
            if before(to, hole.to) {
                left.push(Hole { from: to, ..*hole });
            }
            false
        });
        self.holes.extend(left);
        Some(found)
    }

    /// The other end acknowledges everything before `ack`.
    fn acknowledged(&mut self, ack: u32, at_ns: i64) {
        if !self.started {
            return;
        }
        if self.acked.is_some_and(|acked| !before(acked, ack)) {
            return;
        }
        // Half of the sequence space ahead is damage, or another connection.
        if before(self.next, ack) {
            let bytes = ack.wrapping_sub(self.next);
            if bytes > 1 << 28 {
                return;
            }
            self.miss(self.next, ack, at_ns);
            self.next = ack;
            self.timed = None;
        }
        while let Some(at) = self.holes.iter().position(|hole| !before(ack, hole.to)) {
            let hole = self.holes.remove(at);
            self.miss(hole.from, hole.to, at_ns);
        }
        self.acked = Some(ack);
        if let Some((end, sent_ns)) = self.timed
            && !before(ack, end)
        {
            self.round.push(at_ns - sent_ns);
            self.timed = None;
        }
    }

    /// The other end has received `low..high` (RFC 2018): holes within it were missed by the capture.
    fn received(&mut self, low: u32, high: u32, at_ns: i64) {
        if !self.started || before(self.next, high) || !before(low, high) {
            return;
        }
        while let Some(at) =
            self.holes.iter().position(|hole| before(low, hole.to) && before(hole.from, high))
        {
            let hole = self.holes[at];
            let from = if before(hole.from, low) { low } else { hole.from };
            let to = if before(high, hole.to) { high } else { hole.to };
            self.fill(from, to);
            self.miss(from, to, at_ns);
        }
    }

    /// The capture missed these bytes. A single one is a SYN's or FIN's number.
    fn miss(&mut self, from: u32, to: u32, at_ns: i64) {
        let bytes = to.wrapping_sub(from);
        if self.missed.len() == MOST_HOLES {
            self.missed.pop_front();
        }
        self.missed.push_back((from, to, at_ns));
        if bytes <= 1 {
            return;
        }
        self.missed_bytes += u64::from(bytes);
        self.missed_packets += u64::from(bytes.div_ceil(self.segment_bytes.max(1)).max(1));
    }

    /// When it showed that the capture missed bytes of `from..to` and the other end received them (ns).
    pub fn missed_ns(&self, from: u32, to: u32) -> Option<i64> {
        let of_these = |&&(low, high, _): &&(u32, u32, i64)| before(from, high) && before(low, to);
        self.missed.iter().find(of_these).map(|&(_, _, at_ns)| at_ns)
    }

    /// Whether the other end has acknowledged everything before `to`.
    pub fn is_acknowledged(&self, to: u32) -> bool {
        self.acked.is_some_and(|acked| !before(acked, to))
    }

    /// Bytes sent and not acknowledged, as seen at the capture.
    pub fn in_flight(&self) -> u32 {
        match self.acked {
            Some(acked) if self.started && !before(self.next, acked) => self.next.wrapping_sub(acked),
            _ => 0,
        }
    }

    /// Missing packets by later ones, without further evidence.
    pub fn missing_packets(&self) -> u64 {
        let size = self.segment_bytes.max(1);
        self.holes.iter().map(|hole| u64::from(hole.to.wrapping_sub(hole.from).div_ceil(size))).sum()
    }

    /// Losses on the path, as far as this capture shows them.
    pub fn lost(&self) -> u64 {
        self.lost_before + self.lost_behind.saturating_sub(self.spurious)
    }
}

impl Connection {
    /// Takes a segment from end `from` (0 or 1).
    pub fn take(&mut self, from: usize, tcp: &Tcp<'_>, packet: &Packet<'_>) -> Segment {
        let at_ns = packet.at_ns;
        self.account(at_ns);
        let is_syn = tcp.flags & flag::SYN != 0;
        let options = Options::read(tcp.options);
        if is_syn {
            self.open(from, tcp, &options, at_ns);
        } else if let Some(answered_ns) = self.syn_ack
            && tcp.flags & flag::ACK != 0
            && self.syn.is_some_and(|(end, _)| end == from)
        {
            self.handshake[from] = Some(at_ns - answered_ns);
            self.syn_ack = None;
        }
        let half_ns = self.ends[from].round.least();
        let controls = u32::from(is_syn) + u32::from(tcp.flags & flag::FIN != 0);
        let length = packet.payload_bytes.wrapping_add(controls);
        if tcp.flags & flag::RST != 0 {
            self.ends[1 - from].refusals.reset(at_ns);
        } else if length > 0 {
            self.ends[from].refusals.segment();
        }
        let segment = if length > 0 && tcp.flags & flag::RST == 0 {
            self.ends[from].send(tcp.seq, length, packet.payload_bytes, packet, half_ns)
        } else {
            Segment::Empty
        };
        if matches!(segment, Segment::Again | Segment::Repair) {
            self.recover[from] = Some(self.ends[from].next);
        }
        self.window(from, tcp, is_syn);
        if tcp.flags & flag::ACK != 0 && tcp.flags & flag::RST == 0 {
            self.ends[1 - from].heard_ns = Some(at_ns);
            self.acknowledge(from, tcp, &options, packet);
        }
        self.stamps(from, &options, at_ns);
        for sender in &mut self.ends {
            sender.flight = sender.flight.max(sender.in_flight());
        }
        segment
    }

    fn open(&mut self, from: usize, tcp: &Tcp<'_>, options: &Options, at_ns: i64) {
        self.ends[from].scale = options.scale;
        if tcp.flags & flag::ACK == 0 {
            let is_new = self.ends[from].started && self.ends[from].next != tcp.seq.wrapping_add(1);
            if is_new {
                // The ports are used again: counts stay, numbers start anew.
                for end in &mut self.ends {
                    (end.started, end.acked, end.timed, end.stamped) = (false, None, None, None);
                    end.refusals = Refusals::default();
                    end.holes.clear();
                    end.recent.clear();
                    end.recent_at = 0;
                }
            }
            self.opened_by = Some(from);
            self.syn = Some((from, at_ns));
        } else if let Some((end, sent_ns)) = self.syn
            && end != from
            && self.syn_ack.is_none()
            && self.handshake[from].is_none()
        {
            self.handshake[from] = Some(at_ns - sent_ns);
            self.syn_ack = Some(at_ns);
        }
    }

    fn window(&mut self, from: usize, tcp: &Tcp<'_>, is_syn: bool) {
        // Without both SYNs the scale is not known (RFC 7323 section 2.2).
        let scale = match (self.ends[0].scale, self.ends[1].scale) {
            (Some(_), Some(_)) if !is_syn => self.ends[from].scale.unwrap_or(0),
            _ => 0,
        };
        let end = &mut self.ends[from];
        if tcp.flags & flag::RST == 0 {
            end.zero_windows += u64::from(tcp.window == 0 && end.last_window != 0);
            end.last_window = tcp.window;
            end.window = u64::from(tcp.window) << scale;
        }
    }

    fn acknowledge(&mut self, from: usize, tcp: &Tcp<'_>, options: &Options, packet: &Packet<'_>) {
        let is_again = self.ends[from].last_ack == Some(tcp.ack) && packet.payload_bytes == 0;
        let other = &mut self.ends[1 - from];
        if is_again && other.in_flight() > 0 && tcp.flags & (flag::SYN | flag::FIN) == 0 {
            self.ends[from].duplicate_acks += 1;
        }
        self.ends[from].last_ack = Some(tcp.ack);
        let other = &mut self.ends[1 - from];
        if let Some((low, high)) = options.sack[0] {
            // RFC 2883 section 4: the first block reports a duplicate below the acknowledgement, or within the second.
            let is_below = before(low, tcp.ack) && !before(tcp.ack, high);
            let is_within = options.sack[1].is_some_and(|(a, b)| !before(low, a) && !before(b, high));
            other.spurious += u64::from(is_below || is_within);
            for (low, high) in options.sack.into_iter().flatten().skip(usize::from(is_below)) {
                other.received(low, high, packet.at_ns);
            }
        }
        other.acknowledged(tcp.ack, packet.at_ns);
        if let (Some(recover), Some(acked)) = (self.recover[1 - from], other.acked)
            && !before(acked, recover)
        {
            self.recover[1 - from] = None;
        }
    }

    /// Echoed time stamps give the half behind the capture for both ends, also where only one sends data.
    fn stamps(&mut self, from: usize, options: &Options, at_ns: i64) {
        let Some((value, echo)) = options.stamps else { return };
        let other = &mut self.ends[1 - from];
        if let Some((sent, sent_ns)) = other.stamped
            && echo != 0
            && !before(echo, sent)
        {
            // Data are timed by acknowledgements, which are finer.
            if other.new_bytes <= 1 {
                other.round.push(at_ns - sent_ns);
            }
            other.stamped = None;
        }
        let own = &mut self.ends[from];
        if own.stamped.is_none() {
            own.stamped = Some((value, at_ns));
        }
    }

    /// Adds the time since the last segment to the limits that held in it.
    fn account(&mut self, at_ns: i64) {
        let Some(last_ns) = self.last_ns.replace(at_ns) else { return };
        let passed = (at_ns - last_ns).max(0);
        for from in 0..2 {
            let (sender, limits) = (&self.ends[from], &mut self.limits[from]);
            if !sender.started || sender.acked.is_none() {
                continue;
            }
            let flight = sender.in_flight();
            let window = self.ends[1 - from].window;
            let place = if flight == 0 {
                &mut limits.application
            } else if self.recover[from].is_some() {
                &mut limits.recovery
            } else if u64::from(flight) + u64::from(sender.segment_bytes) > window {
                &mut limits.receiver
            } else {
                &mut limits.open
            };
            *place = place.saturating_add(passed);
        }
    }
}
