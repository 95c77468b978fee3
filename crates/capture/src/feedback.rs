//! Feedback of receivers on single packets: congestion control feedback (RFC 8888), transport-wide feedback
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01), negative acknowledgements of RTP (RFC 4585 section 6.2.1) and
//! of RIST (VSF TR-06-1 section 5.3), and SRT's ACK and NAK (draft-sharabayko-srt-01 section 3.2).
//!
//! A number that the receiver lacks was lost, if the packet could have arrived by then. On a path that keeps the order
//! that is so for each packet sent before one that had arrived. A number that the receiver has, and that was sent once,
//! arrived: the capture missed it. Packets without feedback stay open.

use std::collections::HashMap;

use streamgauge_wire::rist;

use crate::datagrams::Datagrams;
use crate::hash::Mixed;
use crate::numbers::{Missing, Stated, Stream, UNKNOWN};
use crate::packet::{Packet, PacketTransport};
use crate::rtcp::{APPLICATION, RtcpPart, TRANSPORT_FEEDBACK, rtcp_parts};
use crate::rtp::{RtpHeader, two_byte_elements};
use crate::sequence::nearest;
use crate::srt;

/// Numbered streams that are followed.
const MOST_STREAMS: usize = 1024;
/// Steps by one from which on an element of RTP's header extension is a transport-wide number, if at most one step of
/// so many is another.
const FEWEST_STEPS: u32 = 8;
const MOST_BREAKS: u32 = 8;
/// Numbers that are taken from one packet.
const MOST_STATED: usize = 1 << 16;

const TRANSPORT_WIDE: u8 = 15;
const CONGESTION: u8 = 11;
const NACK: u8 = 1;
/// [MS-RTSP] section 2.2.4: Windows Media's players set a further bit of the format.
const NACK_WITH_E: u8 = 17;

/// A stream of packets that are numbered together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Numbering {
    /// RTP's sequence numbers of an SSRC.
    Source(u32),
    /// Transport-wide numbers in the header extension with this identifier.
    Transport(u8),
    /// SRT's.
    Srt,
}

/// A packet's number in one stream.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    stream: u32,
    number: u64,
}

/// Where a packet passes.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// Its flow.
    pub flow: u32,
    /// The end that sends it.
    pub from: u8,
    /// It passes from A to B.
    pub forward: bool,
    /// This is the capture of its sender.
    pub is_sender: bool,
    /// When it passes, on A's clock (ns).
    pub at_ns: i64,
}

/// An element of RTP's header extension that may be a transport-wide number.
#[derive(Clone, Copy, Debug)]
struct Extension {
    id: u8,
    last: u16,
    steps: u32,
    breaks: u32,
}

/// The numbers that were sent, and the feedback on them.
#[derive(Debug, Default)]
pub struct Feedback {
    streams: Vec<Stream>,
    index: HashMap<(u32, u8, Numbering), u32, Mixed>,
    /// By direction and SSRC.
    by_source: HashMap<(bool, u32), u32, Mixed>,
    extensions: HashMap<(u32, u8), Vec<Extension>, Mixed>,
}

impl Feedback {
    fn stream(&mut self, passage: Passage, numbering: Numbering, low: u64) -> Option<u32> {
        let key = (passage.flow, passage.from, numbering);
        if let Some(&stream) = self.index.get(&key) {
            return Some(stream);
        }
        if self.streams.len() >= MOST_STREAMS {
            return None;
        }
        let bits = if numbering == Numbering::Srt { 31 } else { 16 };
        let stream = self.streams.len() as u32;
        let mut made = Stream::new(passage.flow, passage.from, bits, low);
        if let Numbering::Source(ssrc) = numbering {
            match self.by_source.get(&(passage.forward, ssrc)) {
                // Feedback names the SSRC alone.
                Some(&other) => {
                    made.is_mixed = true;
                    self.streams[other as usize].is_mixed = true;
                }
                None => {
                    self.by_source.insert((passage.forward, ssrc), stream);
                }
            }
        }
        self.streams.push(made);
        self.index.insert(key, stream);
        Some(stream)
    }

    /// The numbers of a packet, in the capture of its sender.
    pub fn send(
        &mut self,
        packet: &Packet<'_>,
        datagrams: &Datagrams,
        passage: Passage,
    ) -> [Option<Numbered>; 2] {
        if packet.transport != PacketTransport::Udp || packet.is_later_fragment() {
            return [None; 2];
        }
        let from = usize::from(passage.from);
        if datagrams.srt[from].is_some() {
            return [self.send_srt(packet.payload, passage), None];
        }
        let Some(header) = RtpHeader::read(packet.payload) else { return [None; 2] };
        let first = datagrams.rtp[from].first();
        if first.is_some_and(|source| source.ssrc == header.ssrc) {
            let transport = self.send_wide(packet.payload, passage);
            return [self.send_source(&header, passage), transport];
        }
        let is_again = datagrams.seen.rist && rist::is_repeated(header.ssrc);
        let original =
            is_again.then(|| self.by_source.get(&(passage.forward, rist::source_of(header.ssrc)))).flatten();
        let again = original.map(|&stream| {
            let own = &mut self.streams[stream as usize];
            let number = nearest(own.bits, own.latest, u64::from(header.seq));
            own.sent_again(number);
            own.is_rist = true;
            Numbered { stream, number }
        });
        [again, None]
    }

    fn send_source(&mut self, header: &RtpHeader, passage: Passage) -> Option<Numbered> {
        let low = u64::from(header.seq);
        let stream = self.stream(passage, Numbering::Source(header.ssrc), low)?;
        Some(Numbered { stream, number: self.streams[stream as usize].sent(low) })
    }

    fn send_srt(&mut self, bytes: &[u8], passage: Passage) -> Option<Numbered> {
        let data = srt::data(bytes)?;
        let low = u64::from(data.seq);
        let stream = self.stream(passage, Numbering::Srt, low)?;
        let own = &mut self.streams[stream as usize];
        own.is_mixed |= own.socket.replace(data.socket).is_some_and(|socket| socket != data.socket);
        let number = own.sent(low);
        if data.resent {
            own.sent_again(number);
        }
        Some(Numbered { stream, number })
    }

    /// The transport-wide number, once one of the extension's elements shows to be that.
    fn send_wide(&mut self, bytes: &[u8], passage: Passage) -> Option<Numbered> {
        let extensions = self.extensions.entry((passage.flow, passage.from)).or_default();
        let mut values = [None; 2];
        for (id, value) in two_byte_elements(bytes) {
            let is_wide = match extensions.iter_mut().find(|one| one.id == id) {
                Some(one) => {
                    let is_step = value.wrapping_sub(one.last) == 1;
                    (one.last, one.steps) = (value, one.steps.saturating_add(u32::from(is_step)));
                    one.breaks = one.breaks.saturating_add(u32::from(!is_step));
                    one.steps >= FEWEST_STEPS && one.breaks.saturating_mul(MOST_BREAKS) <= one.steps
                }
                None => {
                    extensions.push(Extension { id, last: value, steps: 0, breaks: 0 });
                    false
                }
            };
            if is_wide {
                values = [values[1], Some((id, value))];
            }
        }
        // Two elements that count alike are ambiguous.
        let [None, Some((id, value))] = values else { return None };
        let stream = self.stream(passage, Numbering::Transport(id), u64::from(value))?;
        Some(Numbered { stream, number: self.streams[stream as usize].sent(u64::from(value)) })
    }

    /// Takes the feedback in a packet. `arrived_ns` is the latest time at which a packet of a flow's end was sent that
    /// has arrived.
    pub fn take(
        &mut self,
        packet: &Packet<'_>,
        datagrams: &Datagrams,
        passage: Passage,
        arrived_ns: impl Fn(u32, u8) -> i64,
    ) {
        if packet.transport != PacketTransport::Udp || packet.is_later_fragment() {
            return;
        }
        let by = |stream: &Stream, left: usize| {
            let known = || Missing { at_ns: passage.at_ns, until_ns: arrived_ns(stream.flow, stream.from) };
            Stated { missing: if passage.is_sender { known() } else { UNKNOWN }, left }
        };
        if datagrams.srt.iter().any(Option::is_some) {
            let is_control = srt::is_control(packet.payload);
            for from in [passage.from, 1 - passage.from].into_iter().filter(|_| is_control) {
                let Some(&stream) = self.index.get(&(passage.flow, from, Numbering::Srt)) else { continue };
                let own = &mut self.streams[stream as usize];
                let mut by = by(own, MOST_STATED);
                if from == passage.from { drop_request(own, packet) } else { take_srt(own, packet, &mut by) }
            }
            return;
        }
        let mut left = MOST_STATED;
        for part in rtcp_parts(packet.payload) {
            match (part.kind, part.count) {
                (TRANSPORT_FEEDBACK, TRANSPORT_WIDE) => {
                    let Some(stream) = self.wide_of(&part, passage) else { continue };
                    let own = &mut self.streams[stream];
                    let mut by = by(own, left);
                    take_wide(own, &part, &mut by);
                    left = by.left;
                }
                (TRANSPORT_FEEDBACK, CONGESTION) => self.take_congestion(&part, passage, &by, &mut left),
                (TRANSPORT_FEEDBACK, NACK | NACK_WITH_E) => {
                    let Some(own) = part.word(8).and_then(|ssrc| self.source(ssrc, passage)) else {
                        continue;
                    };
                    let mut by = by(own, left);
                    for [a, b, c, d] in part.bytes.get(12..).unwrap_or_default().as_chunks().0 {
                        let (first, mask) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
                        own.lacks(first.into(), &mut by);
                        let others = (0..16).filter(|bit| mask >> bit & 1 == 1);
                        others.for_each(|bit| own.lacks(first.wrapping_add(1 + bit).into(), &mut by));
                    }
                    left = by.left;
                }
                (APPLICATION, 0) if part.bytes.get(8..12) == Some(&rist::NAME) => {
                    let Some(own) = part.word(4).and_then(|ssrc| self.source(ssrc, passage)) else {
                        continue;
                    };
                    own.is_rist = true;
                    let mut by = by(own, left);
                    let ranges = rist::NackRange::read(part.bytes.get(12..).unwrap_or_default());
                    for number in ranges.flat_map(rist::NackRange::sequences) {
                        own.lacks(number.into(), &mut by);
                    }
                    left = by.left;
                }
                _ => {}
            }
        }
    }

    /// The stream of a source that the other end sends.
    fn source(&mut self, ssrc: u32, passage: Passage) -> Option<&mut Stream> {
        let &stream = self.by_source.get(&(!passage.forward, ssrc))?;
        self.streams.get_mut(stream as usize)
    }

    /// The stream that transport-wide feedback is about: of the flow that has the named source. Encrypted feedback names
    /// none that is known.
    fn wide_of(&self, part: &RtcpPart<'_>, passage: Passage) -> Option<usize> {
        let &named = self.by_source.get(&(!passage.forward, part.word(8)?))?;
        let Stream { flow, from, is_mixed, .. } = self.streams[named as usize];
        let elements = self.extensions.get(&(flow, from)).filter(|_| !is_mixed)?;
        let mut found =
            elements.iter().filter_map(|one| self.index.get(&(flow, from, Numbering::Transport(one.id))));
        let stream = *found.next()? as usize;
        found.next().is_none().then_some(stream)
    }

    fn take_congestion(
        &mut self,
        part: &RtcpPart<'_>,
        passage: Passage,
        by: &impl Fn(&Stream, usize) -> Stated,
        left: &mut usize,
    ) {
        // The last word is the time of the report.
        let (mut at, end) = (8, part.length.saturating_sub(4).min(part.bytes.len()));
        while at + 8 <= end {
            let (Some(ssrc), Some(first), Some(count)) =
                (part.word(at), part.half(at + 4), part.half(at + 6))
            else {
                return;
            };
            let reports = part.bytes.get(at + 8..end).unwrap_or_default().as_chunks().0;
            if let Some(own) = self.source(ssrc, passage) {
                let mut by = by(own, *left);
                for (place, report) in (0..count).zip(reports) {
                    let number = u64::from(first.wrapping_add(place));
                    let has = u16::from_be_bytes(*report) >> 15 == 1;
                    if has { own.has(number, &mut by) } else { own.lacks(number, &mut by) }
                }
                *left = by.left;
            }
            at += 8 + (2 * usize::from(count)).next_multiple_of(4);
        }
    }

    /// Whether a packet that was sent at this time (ns) and is not in the receiver's capture was lost; `Some(false)` if it
    /// arrived. `longest_ns` is the longest delay, of a path that does not keep the order. `None` if no feedback shows it.
    pub fn is_lost(
        &self,
        numbered: &[Option<Numbered>; 2],
        at_ns: i64,
        longest_ns: Option<i64>,
    ) -> Option<bool> {
        let streams = numbered.iter().flatten().map(|one| (&self.streams[one.stream as usize], one.number));
        let plain = streams.filter(|(stream, _)| !stream.is_mixed);
        plain.map(|(stream, number)| stream.is_lost(number, at_ns, longest_ns)).find_map(|found| found)
    }

    /// Whether losses are repaired under another source, so that a receiver's own counts leave them out.
    pub fn is_repaired(&self, numbered: &[Option<Numbered>; 2]) -> bool {
        numbered.iter().flatten().any(|one| self.streams[one.stream as usize].is_rist)
    }
}

/// Transport-wide feedback: as many statuses as are captured (section 3.1 of the draft).
fn take_wide(own: &mut Stream, part: &RtcpPart<'_>, by: &mut Stated) {
    let (Some(base), Some(count)) = (part.half(12), part.half(14)) else { return };
    let (mut number, mut left, mut at) = (base, usize::from(count), 20);
    while left > 0
        && let Some(chunk) = part.half(at)
    {
        at += 2;
        let is_run = chunk >> 15 == 0;
        let (bits, symbols) = match chunk >> 14 {
            2 => (1, 14),
            3 => (2, 7),
            _ => (2, usize::from(chunk & 0x1fff)),
        };
        if symbols == 0 {
            return;
        }
        for place in 0..symbols.min(left) {
            let symbol =
                if is_run { chunk >> 13 } else { chunk >> (14 - bits * (place + 1)) & ((1 << bits) - 1) };
            if symbol == 0 {
                own.lacks(number.into(), by)
            } else {
                own.has(number.into(), by)
            }
            number = number.wrapping_add(1);
        }
        left -= symbols.min(left);
    }
}

/// SRT's drop request (draft-sharabayko-srt-01 section 3.2.9): its receiver skips these numbers.
fn drop_request(own: &mut Stream, packet: &Packet<'_>) {
    const DROP_REQUEST: u8 = 7;
    let bytes = packet.payload;
    if bytes[1] == DROP_REQUEST {
        let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let (first, last) = (number(16), number(20));
        let ends = [first, last].map(|low| nearest(own.bits, own.latest, low.unwrap_or(0).into()));
        match (first, last) {
            (Some(_), Some(_)) if ends[0] <= ends[1] => own.doubtful.add(ends[0], ends[1]),
            _ => own.is_mixed = true,
        }
    }
}

/// SRT's ACK and NAK (draft-sharabayko-srt-01 sections 3.2.4, 3.2.5).
fn take_srt(own: &mut Stream, packet: &Packet<'_>, by: &mut Stated) {
    const ACK: u8 = 2;
    const NAK: u8 = 3;
    const RANGE: u32 = 1 << 31;
    let bytes = packet.payload;
    let words: Vec<u32> = bytes[16..].as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
    match bytes[1] {
        ACK => {
            let Some(&until) = words.first().filter(|&&word| word & RANGE == 0) else { return };
            let until = nearest(own.bits, own.latest, until.into());
            own.acknowledged = own.acknowledged.max(Some(until));
        }
        NAK => {
            let mut words = words.into_iter();
            let mut last = own.latest;
            while let Some(word) = words.next() {
                let first = nearest(own.bits, own.latest, u64::from(word & !RANGE));
                last = if word & RANGE == 0 {
                    first
                } else {
                    let Some(end) = words.next() else { break };
                    nearest(own.bits, own.latest, u64::from(end & !RANGE))
                };
                let most = first.saturating_add(by.left as u64);
                (first..=last.min(most)).for_each(|number| own.lacks(number, by));
            }
            if (bytes.len() as u32) < packet.payload_bytes && last < own.latest {
                own.doubtful.add(last, own.latest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::link::LinkType;
    use crate::packet::parse;

    fn datagram(payload: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x45, 0];
        ip.extend(((28 + payload.len()) as u16).to_be_bytes());
        ip.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9]);
        ip.extend(((8 + payload.len()) as u16).to_be_bytes());
        ip.extend([0, 0]);
        ip.extend(payload);
        ip
    }

    /// Data and feedback that begin as they should.
    fn payload() -> impl Strategy<Value = Vec<u8>> {
        let heads = prop::sample::select(vec![
            vec![0x90, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 8, 0xbe, 0xde, 0, 1],
            vec![0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9],
            vec![0x8f, 205, 0, 9, 0, 0, 0, 1, 0, 0, 0, 8],
            vec![0x8b, 205, 0, 9, 0, 0, 0, 1, 0, 0, 0, 8],
            vec![0x81, 205, 0, 9, 0, 0, 0, 1, 0, 0, 0, 8],
            vec![0x80, 204, 0, 9, 0, 0, 0, 8, b'R', b'I', b'S', b'T'],
            vec![0, 0, 0, 1, 0xc0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7],
            vec![0, 0, 0, 2, 0xc0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 7],
            vec![0x80, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7],
            vec![0x80, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7],
            vec![0x80, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7],
        ]);
        (heads, prop::collection::vec(any::<u8>(), 0..40), prop::option::of((0..12usize, any::<u8>())))
            .prop_map(|(mut head, rest, change)| {
                if let Some((at, byte)) = change {
                    head[at] = byte;
                }
                [head, rest].concat()
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any bytes are taken, and each number has one fate at most.
        #[test]
        fn any_bytes_are_feedback(packets in prop::collection::vec((0..2u8, any::<bool>(), payload()), 0..60)) {
            let (mut feedback, mut datagrams) = (Feedback::default(), Datagrams::default());
            let mut sent = Vec::new();
            for (at_ns, (from, is_sender, payload)) in (0..).zip(packets) {
                let ip = datagram(&payload);
                let packet = parse(LinkType::Raw, &ip, ip.len() as u32, 0, at_ns).unwrap();
                datagrams.take(usize::from(from), &packet);
                let passage = Passage { flow: 0, from, forward: from == 0, is_sender, at_ns };
                if is_sender {
                    sent.push((feedback.send(&packet, &datagrams, passage), at_ns));
                }
                feedback.take(&packet, &datagrams, passage, |_, _| at_ns);
            }
            for (numbered, at_ns) in sent {
                let longest = feedback.is_lost(&numbered, at_ns, Some(i64::MAX));
                prop_assert_ne!(longest, Some(true));
                feedback.is_lost(&numbered, at_ns, None);
            }
        }
    }
}
