//! Fates of datagrams by the feedback of their receivers: a path that loses packets both ways, a sender that repairs, and
//! captures that drop frames. Each packet's fate is known.

mod bytes;

use std::collections::{BTreeMap, BTreeSet};

use bytes::{file, ipv4, pcap};
use streamgauge_capture::{CaptureSource, KnownBeforehand, Mechanism, PacketFate, analyse_pair};
use streamgauge_wire::rtcp::congestion::{CongestionFeedback, PacketReport, StreamReport, TransportWide};
use streamgauge_wire::rtcp::nack::{NackEntry, NackPacket};
use streamgauge_wire::rtcp::{Packet, write};

const MS: i64 = 1_000_000;
const START: i64 = 1_700_000_000_000 * MS;
const DELAY_MS: usize = 20;
const TICKS: usize = 8_000;
const LOSS: f64 = 0.05;
const GAPS: f64 = 0.01;
const SSRC: u32 = 0x1234_5678;
/// Fates of the end are not compared: feedback is missing.
const EDGE_MS: usize = 2000;
const CUT: usize = 82;

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A kind of stream: the packet of a number, and the feedback of each millisecond.
trait Protocol {
    fn data(&mut self, number: u16, is_again: bool) -> Vec<u8>;
    fn arrive(&mut self, at_ms: usize, number: u16, is_again: bool);
    fn feedback(&mut self, at_ms: usize) -> Option<Vec<u8>>;
    /// Numbers that this feedback asks for.
    fn asked(&self, feedback: &[u8]) -> Vec<u16>;
}

fn rtp(ssrc: u32, number: u16, transport: Option<u16>) -> Vec<u8> {
    let mut head = vec![0x80 | u8::from(transport.is_some()) << 4, 96];
    head.extend(number.to_be_bytes());
    head.extend((u32::from(number) * 450).to_be_bytes());
    head.extend(ssrc.to_be_bytes());
    if let Some(transport) = transport {
        // A first element of one byte, then the transport-wide number.
        head.extend([0xbe, 0xde, 0, 2, 0x20, 7, 0x51]);
        head.extend(transport.to_be_bytes());
        head.extend([0, 0, 0]);
    }
    head.resize(300, number as u8);
    head
}

/// Numbers that arrived, in order, from the first on that was not reported.
#[derive(Default)]
struct Arrived {
    numbers: BTreeSet<u16>,
    next: u16,
}

impl Arrived {
    fn report<T>(&mut self, of: impl Fn(bool) -> T) -> Option<(u16, Vec<T>)> {
        let last = *self.numbers.iter().next_back()?;
        let first = std::mem::replace(&mut self.next, last + 1);
        let found = (first..=last).map(|number| of(self.numbers.contains(&number))).collect();
        self.numbers.clear();
        Some((first, found))
    }
}

#[derive(Default)]
struct Wide(Arrived);

impl Protocol for Wide {
    fn data(&mut self, number: u16, _: bool) -> Vec<u8> {
        rtp(SSRC, number, Some(number))
    }
    fn arrive(&mut self, _: usize, number: u16, _: bool) {
        self.0.numbers.insert(number);
    }
    fn feedback(&mut self, at_ms: usize) -> Option<Vec<u8>> {
        if !at_ms.is_multiple_of(100) {
            return None;
        }
        let (base, arrivals) = self.0.report(|has| has.then_some(4 * at_ms as u32))?;
        let wide = TransportWide { sender_ssrc: 1, media_ssrc: SSRC, count: 0, base, arrivals };
        Some(write(&[Packet::TransportWide(wide)]))
    }
    fn asked(&self, _: &[u8]) -> Vec<u16> {
        Vec::new()
    }
}

#[derive(Default)]
struct Congestion(Arrived);

impl Protocol for Congestion {
    fn data(&mut self, number: u16, _: bool) -> Vec<u8> {
        rtp(SSRC, number, None)
    }
    fn arrive(&mut self, _: usize, number: u16, _: bool) {
        self.0.numbers.insert(number);
    }
    fn feedback(&mut self, at_ms: usize) -> Option<Vec<u8>> {
        if !at_ms.is_multiple_of(50) {
            return None;
        }
        let (begin, packets) = self.0.report(|has| has.then_some(PacketReport { ecn: 0, before: 1 }))?;
        let streams = vec![StreamReport { ssrc: SSRC, begin, packets }];
        Some(write(&[Packet::CongestionFeedback(CongestionFeedback { sender_ssrc: 1, at: 0, streams })]))
    }
    fn asked(&self, _: &[u8]) -> Vec<u16> {
        Vec::new()
    }
}

/// A receiver that asks again and again.
#[derive(Default)]
struct Asking {
    highest: Option<u16>,
    /// When each was asked for last.
    missing: BTreeMap<u16, Option<usize>>,
}

impl Asking {
    fn arrive(&mut self, number: u16, is_again: bool) {
        self.missing.remove(&number);
        if !is_again {
            let next = self.highest.map_or(0, |highest| highest + 1);
            self.missing.extend((next..number).map(|number| (number, None)));
            self.highest = Some(number.max(next.saturating_sub(1)));
        }
    }

    fn due(&mut self, at_ms: usize) -> Vec<u16> {
        let is_due = |asked: &Option<usize>| asked.is_none_or(|before| at_ms >= before + 60);
        let due = self.missing.iter_mut().filter(|(_, asked)| is_due(asked));
        due.map(|(&number, asked)| {
            *asked = Some(at_ms);
            number
        })
        .collect()
    }
}

#[derive(Default)]
struct Rist {
    asking: Asking,
    is_range: bool,
}

impl Protocol for Rist {
    fn data(&mut self, number: u16, is_again: bool) -> Vec<u8> {
        rtp((SSRC & !1) | u32::from(is_again), number, None)
    }
    fn arrive(&mut self, _: usize, number: u16, is_again: bool) {
        self.asking.arrive(number, is_again);
    }
    fn feedback(&mut self, at_ms: usize) -> Option<Vec<u8>> {
        let numbers = self.asking.due(at_ms);
        if numbers.is_empty() {
            return None;
        }
        if self.is_range {
            let mut app = vec![0x80, 204, 0, 2 + numbers.len() as u8];
            app.extend((SSRC & !1).to_be_bytes());
            app.extend(b"RIST");
            for number in numbers {
                app.extend(number.to_be_bytes());
                app.extend([0, 0]);
            }
            return Some(app);
        }
        let entries = NackEntry::of(&numbers);
        let nack = NackPacket { receiver_ssrc: 1, media_ssrc: SSRC & !1, e_bit: false, entries };
        Some(write(&[Packet::Nack(nack)]))
    }
    fn asked(&self, feedback: &[u8]) -> Vec<u16> {
        let entries = feedback[12..].as_chunks::<4>().0.iter();
        let one = |[a, b, c, d]: &[u8; 4]| {
            let (first, more) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
            if self.is_range {
                vec![first]
            } else {
                NackEntry { first, mask: more }.sequences().collect::<Vec<_>>()
            }
        };
        entries.flat_map(one).collect()
    }
}

#[derive(Default)]
struct Srt(Asking);

/// The first number: the low bits wrap during the test.
const FIRST: u32 = 0x7fff_fff0;

fn number_of(number: u16) -> u32 {
    (FIRST + u32::from(number)) & 0x7fff_ffff
}

fn control(kind: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0x80, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes
}

impl Protocol for Srt {
    fn data(&mut self, number: u16, is_again: bool) -> Vec<u8> {
        let mut bytes = number_of(number).to_be_bytes().to_vec();
        bytes.extend((0xc000_0000 | u32::from(is_again) << 26 | u32::from(number)).to_be_bytes());
        bytes.extend((u32::from(number) * 5000).to_be_bytes());
        bytes.extend(9_u32.to_be_bytes());
        bytes.resize(1332, number as u8);
        bytes
    }
    fn arrive(&mut self, _: usize, number: u16, is_again: bool) {
        self.0.arrive(number, is_again);
    }
    fn feedback(&mut self, at_ms: usize) -> Option<Vec<u8>> {
        let due = self.0.due(at_ms);
        if !due.is_empty() {
            let mut words = Vec::new();
            for run in due.chunk_by(|one, next| one + 1 == *next) {
                if let [first, .., last] = run {
                    words.extend([1 << 31 | number_of(*first), number_of(*last)]);
                } else {
                    words.push(number_of(run[0]));
                }
            }
            return Some(control(3, &words));
        }
        let highest = self.0.highest.filter(|_| at_ms.is_multiple_of(10))?;
        let until = self.0.missing.keys().next().copied().unwrap_or(highest + 1);
        Some(control(2, &[number_of(until)]))
    }
    fn asked(&self, feedback: &[u8]) -> Vec<u16> {
        if feedback[1] != 3 {
            return Vec::new();
        }
        let words: Vec<u32> =
            feedback[16..].as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        let low = |word: u32| (word.wrapping_sub(FIRST) & 0x7fff_ffff) as u16;
        let mut found = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let is_range = words[at] >> 31 == 1;
            let last = words[at + usize::from(is_range)];
            found.extend(low(words[at])..=low(last));
            at += 1 + usize::from(is_range);
        }
        found
    }
}

/// A frame of a capture: its time, bytes, and of the sender's data whether it was lost, or missed by the other capture.
struct Frame {
    at_ns: i64,
    ip: Vec<u8>,
    truth: Option<PacketFate>,
}

#[derive(Default)]
struct Judged {
    right: usize,
    open: usize,
    wrong: Vec<(usize, PacketFate, PacketFate)>,
    losses: usize,
    gaps: usize,
}

fn datagram(is_down: bool, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut udp = [5000_u16.to_be_bytes(), 5000_u16.to_be_bytes()].concat();
    udp.extend(((8 + payload.len()) as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    let (from, to) = if is_down { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
    ipv4(17, from, to, id, &udp)
}

/// A packet on the way: its number, whether it is sent again, its bytes, and whether the other capture misses it.
type OnTheWay = (u16, bool, Vec<u8>, bool);

/// Runs the protocol, analyses both captures with a mechanism left out, and compares.
fn judged(name: &str, mut protocol: impl Protocol, without: Option<Mechanism>) -> Judged {
    let mut noise = Noise(11);
    let mut captures: [Vec<Frame>; 2] = Default::default();
    // Packets on the way, by the time of their arrival.
    let mut down: Vec<Vec<OnTheWay>> = (0..TICKS + 100).map(|_| Vec::new()).collect();
    let mut up: Vec<Option<Vec<u8>>> = vec![None; TICKS + 100];
    let mut again: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
    let (mut next, mut id) = (0, 0);
    for at in 0..TICKS {
        let at_ns = START + at as i64 * MS;
        let mut sent: Vec<(u16, bool)> =
            again.remove(&at).unwrap_or_default().into_iter().map(|one| (one, true)).collect();
        if at.is_multiple_of(5) {
            sent.push((next, false));
            next += 1;
        }
        for (place, (number, is_again)) in sent.into_iter().enumerate() {
            id = u16::wrapping_add(id, 1).max(1);
            let ip = datagram(true, id, &protocol.data(number, is_again));
            let (is_lost, is_missed) = (noise.next() < LOSS, noise.next() < GAPS);
            let truth = match (is_lost, is_missed) {
                (true, _) => PacketFate::Lost,
                (false, true) => PacketFate::NotCaptured,
                (false, false) => PacketFate::Delivered,
            };
            let at_ns = at_ns + place as i64 * 1000;
            captures[0].push(Frame { at_ns, ip: ip.clone(), truth: Some(truth) });
            if !is_lost {
                down[at + DELAY_MS].push((number, is_again, ip, is_missed));
            }
        }
        for (place, (number, is_again, ip, is_missed)) in
            std::mem::take(&mut down[at]).into_iter().enumerate()
        {
            protocol.arrive(at, number, is_again);
            if !is_missed {
                captures[1].push(Frame { at_ns: at_ns + place as i64 * 1000, ip, truth: None });
            }
        }
        if let Some(payload) = protocol.feedback(at) {
            id = u16::wrapping_add(id, 1).max(1);
            let ip = datagram(false, id, &payload);
            if noise.next() >= GAPS {
                captures[1].push(Frame { at_ns: at_ns + 10_000, ip: ip.clone(), truth: None });
            }
            if noise.next() >= LOSS {
                up[at + DELAY_MS] = Some(ip);
            }
        }
        if let Some(ip) = up[at].take() {
            let asked = protocol.asked(&ip[28..]);
            again.entry(at + 2).or_default().extend(asked);
            if noise.next() >= GAPS {
                captures[0].push(Frame { at_ns: at_ns + 10_000, ip, truth: None });
            }
        }
    }
    // Packets that the sender's capture missed.
    captures[0].retain(|_| noise.next() >= GAPS);
    for capture in &mut captures {
        capture.sort_by_key(|frame| frame.at_ns);
    }
    let files = [0, 1].map(|side| {
        let mut bytes = pcap(101, false, true, &[]);
        for Frame { at_ns, ip, .. } in &captures[side] {
            let mut record =
                pcap(101, false, true, &[(*at_ns, ip[..ip.len().min(CUT)].to_vec())])[24..].to_vec();
            record[12..16].copy_from_slice(&(ip.len() as u32).to_le_bytes());
            bytes.extend(record);
        }
        file(&format!("feedback-{name}-{side}.pcap"), &bytes)
    });
    let sources = [0, 1].map(|side| CaptureSource { path: &files[side], only: None });
    let known = KnownBeforehand { without, ..KnownBeforehand::default() };
    let mut found = Judged::default();
    let last_ns = START + (TICKS - EDGE_MS) as i64 * MS;
    analyse_pair(&sources[0], &sources[1], &known, |packet| {
        if !packet.forward || packet.fate == PacketFate::NotCapturedBefore || packet.in_ns > last_ns {
            return;
        }
        let Some(truth) = captures[0][packet.number as usize].truth else { return };
        found.losses += usize::from(truth == PacketFate::Lost);
        found.gaps += usize::from(truth == PacketFate::NotCaptured);
        if packet.fate == truth {
            found.right += 1;
        } else if packet.fate == PacketFate::Open {
            found.open += 1;
        } else {
            found.wrong.push((packet.number as usize, truth, packet.fate));
        }
    })
    .unwrap();
    found
}

/// No fate is wrong, and hardly any stays open; without feedback all losses and gaps do.
fn settles(name: &str, protocol: impl Protocol, again: impl Protocol, most_open: usize) {
    let with = judged(name, protocol, None);
    assert!(with.losses > 30 && with.gaps > 4, "{} {}", with.losses, with.gaps);
    assert_eq!(with.wrong, [], "{name}");
    assert!(with.open <= most_open, "{name}: {} open of {}", with.open, with.losses + with.gaps);
    let without = judged(&format!("{name}-without"), again, Some(Mechanism::Feedback));
    assert_eq!((without.open, without.wrong.len()), (without.losses + without.gaps, 0), "{name}");
}

#[test]
fn transport_wide_feedback() {
    settles("wide", Wide::default(), Wide::default(), 3);
}

#[test]
fn congestion_control_feedback() {
    settles("congestion", Congestion::default(), Congestion::default(), 3);
}

#[test]
fn negative_acknowledgements_of_rist() {
    settles("rist", Rist::default(), Rist::default(), 3);
    let range = || Rist { is_range: true, ..Rist::default() };
    settles("rist-range", range(), range(), 3);
}

#[test]
fn acknowledgements_of_srt() {
    // A packet that is sent again and that the capture misses stays open: its receiver may have skipped it.
    settles("srt", Srt::default(), Srt::default(), 6);
}
