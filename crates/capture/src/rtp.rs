//! RTP streams: loss, order, jitter (RFC 3550 sections 5.1, 6.4.1, appendix A), retransmissions of RIST (VSF TR-06-1).

use crate::sequence::{Arrival, Sequence};

/// Clock rates of dynamic payload types: audio's and video's in use (RFC 3551 section 4.5, RFC 7587).
const RATES: [u32; 9] = [8_000, 12_000, 16_000, 24_000, 32_000, 44_100, 48_000, 90_000, 96_000];
/// Their units in s.
const UNITS_S: [f64; RATES.len()] = {
    let mut units = [0.0; RATES.len()];
    let mut at = 0;
    while at < RATES.len() {
        units[at] = 1.0 / RATES[at] as f64;
        at += 1;
    }
    units
};
/// A clock is recognised within this part of its rate.
const CLOCK_TOLERANCE: f64 = 0.03;
/// A clock is inferred over this time at least (ns).
const CLOCK_NS: i64 = 200_000_000;
/// A longer silence starts a new measurement of the clock (ns).
const SILENCE_NS: i64 = 5_000_000_000;
/// Arrival times that are kept, to compare with a second leg.
const RECENT: usize = 256;

/// The header (RFC 3550 section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpHeader {
    /// Payload type.
    pub payload_type: u8,
    /// Marker.
    pub marker: bool,
    /// Sequence number.
    pub seq: u16,
    /// Time stamp, in units of the clock.
    pub timestamp: u32,
    /// Source.
    pub ssrc: u32,
}

impl RtpHeader {
    /// Reads it; `None` if these bytes cannot be RTP's.
    pub fn read(bytes: &[u8]) -> Option<RtpHeader> {
        let head: &[u8; 12] = bytes.first_chunk()?;
        if head[0] >> 6 != 2 || is_rtcp(bytes) {
            return None;
        }
        Some(RtpHeader {
            payload_type: head[1] & 0x7f,
            marker: head[1] & 0x80 != 0,
            seq: u16::from_be_bytes([head[2], head[3]]),
            timestamp: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            ssrc: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
        })
    }
}

/// RTCP by its packet type (RFC 5761 section 4).
pub fn is_rtcp(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && bytes[0] >> 6 == 2 && (192..=223).contains(&bytes[1])
}

/// Elements of two bytes in RTP's header extension, with their identifiers (RFC 8285 sections 4.2, 4.3).
pub fn two_byte_elements(bytes: &[u8]) -> impl Iterator<Item = (u8, u16)> + '_ {
    let is_extended = bytes.first().is_some_and(|first| first & 0x10 != 0);
    let head = 12 + 4 * usize::from(bytes.first().map_or(0, |first| first & 15));
    let extension = bytes.get(head..).filter(|_| is_extended).unwrap_or_default();
    let (is_short, mut rest) = match extension {
        [0xbe, 0xde, high, low, rest @ ..] => (true, words_of(rest, *high, *low)),
        [0x10, 0..=15, high, low, rest @ ..] => (false, words_of(rest, *high, *low)),
        _ => (true, &[][..]),
    };
    std::iter::from_fn(move || {
        loop {
            let (id, length, behind) = match rest {
                [0, behind @ ..] => {
                    rest = behind;
                    continue;
                }
                [head, behind @ ..] if is_short && head >> 4 < 15 => {
                    (head >> 4, usize::from(head & 15) + 1, behind)
                }
                [id, length, behind @ ..] if !is_short => (*id, usize::from(*length), behind),
                _ => return None,
            };
            let (value, behind) = behind.split_at_checked(length)?;
            rest = behind;
            if let [high, low] = value {
                return Some((id, u16::from_be_bytes([*high, *low])));
            }
        }
    })
}

/// The captured part of so many words.
fn words_of(rest: &[u8], high: u8, low: u8) -> &[u8] {
    &rest[..rest.len().min(4 * usize::from(u16::from_be_bytes([high, low])))]
}

/// The clock rate of a static payload type (RFC 3551 section 6).
fn static_rate(payload_type: u8) -> Option<u32> {
    Some(match payload_type {
        0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18 => 8_000,
        6 | 16 => {
            if payload_type == 6 {
                16_000
            } else {
                11_025
            }
        }
        10 | 11 => 44_100,
        14 | 25 | 26 | 28 | 31..=34 => 90_000,
        17 => 22_050,
        _ => return None,
    })
}

/// Interarrival jitter at N clock rates (RFC 3550 section 6.4.1), in s. Arrays by kind, so that rates are computed together.
#[derive(Clone, Debug)]
struct Jitter<const N: usize> {
    now: [f64; N],
    sum: [f64; N],
    most: [f64; N],
}

impl<const N: usize> Jitter<N> {
    const NONE: Self = Jitter { now: [0.0; N], sum: [0.0; N], most: [0.0; N] };

    /// Takes the time between two arrivals and between their stamps; `units_s` has the length of a unit at each rate.
    #[inline]
    fn take(&mut self, apart_s: f64, units: f64, units_s: &[f64; N]) {
        for (at, unit_s) in units_s.iter().enumerate() {
            let difference = (apart_s - units * unit_s).abs();
            let now = self.now[at] + (difference - self.now[at]) / 16.0;
            self.now[at] = now;
            self.sum[at] += now;
            self.most[at] = if now > self.most[at] { now } else { self.most[at] };
        }
    }

    fn at(&self, at: usize) -> (f64, f64, f64) {
        (self.sum[at], self.most[at], self.now[at])
    }
}

/// Jitter at the rate that is known, or at all that are in use.
#[derive(Clone, Debug)]
enum Jitters {
    Told(Jitter<1>),
    Any(Box<Jitter<{ RATES.len() }>>),
}

/// One source of RTP in one direction of a flow.
#[derive(Clone, Debug)]
pub struct RtpSource {
    /// Its SSRC.
    pub ssrc: u32,
    /// The last payload type.
    pub payload_type: u8,
    /// Its numbers.
    pub sequence: Sequence,
    /// Packets, all.
    pub packets: u64,
    /// Payload bytes, with the RTP header.
    pub bytes: u64,
    /// RIST: packets sent again.
    pub resent: u64,
    /// RIST: missing packets that arrived later.
    pub repaired: u64,
    /// Packets with the marker.
    pub marked: u64,
    /// Time of the first and the last packet (ns).
    pub times: (i64, i64),
    last: Option<(i64, u32)>,
    told_rate: Option<u32>,
    jitters: Jitters,
    jittered: u64,
    /// Clock: time and stamps since the last silence, and their sums of earlier spans.
    span: (i64, u32),
    spans: (f64, f64),
    recent: Vec<(u16, i64)>,
}

impl RtpSource {
    /// Starts with its first packet. `told_rate` is the clock rate from signalling.
    pub fn new(header: &RtpHeader, at_ns: i64, bytes: u32, told_rate: Option<u32>) -> Self {
        let told_rate = told_rate.or_else(|| static_rate(header.payload_type));
        let jitters = match told_rate {
            Some(_) => Jitters::Told(Jitter::NONE),
            None => Jitters::Any(Box::new(Jitter::NONE)),
        };
        RtpSource {
            ssrc: header.ssrc,
            payload_type: header.payload_type,
            sequence: Sequence::new(16, u64::from(header.seq)),
            packets: 1,
            bytes: u64::from(bytes),
            resent: 0,
            repaired: 0,
            marked: u64::from(header.marker),
            times: (at_ns, at_ns),
            last: Some((at_ns, header.timestamp)),
            told_rate,
            jitters,
            jittered: 0,
            span: (at_ns, header.timestamp),
            spans: (0.0, 0.0),
            recent: vec![(header.seq, at_ns)],
        }
    }

    /// Takes a further packet.
    pub fn take(&mut self, header: &RtpHeader, at_ns: i64, bytes: u32) -> Arrival {
        let arrival = self.sequence.arrive(u64::from(header.seq));
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.marked += u64::from(header.marker);
        self.payload_type = header.payload_type;
        self.times.1 = self.times.1.max(at_ns);
        self.times.0 = self.times.0.min(at_ns);
        if arrival != Arrival::Repeated {
            let slot = usize::from(header.seq) % RECENT;
            if slot >= self.recent.len() {
                self.recent.resize(slot + 1, (header.seq.wrapping_add(1), at_ns));
            }
            self.recent[slot] = (header.seq, at_ns);
            self.follow_clock(header, at_ns, arrival);
        }
        arrival
    }

    /// When the packet of this number arrived, if that was lately (ns).
    pub fn arrived_ns(&self, seq: u16) -> Option<i64> {
        let &(found, at_ns) = self.recent.get(usize::from(seq) % RECENT)?;
        (found == seq).then_some(at_ns)
    }

    /// RIST: a packet of this number was sent again.
    pub fn repair(&mut self, seq: u16) {
        self.resent += 1;
        self.repaired += u64::from(self.sequence.repair(u64::from(seq)));
    }

    fn follow_clock(&mut self, header: &RtpHeader, at_ns: i64, arrival: Arrival) {
        let Some((last_ns, last_stamp)) = self.last.replace((at_ns, header.timestamp)) else { return };
        let (apart_ns, units) = (at_ns - last_ns, header.timestamp.wrapping_sub(last_stamp).cast_signed());
        let is_new =
            arrival == Arrival::Restart || !(0..SILENCE_NS).contains(&apart_ns) || units < -(1 << 24);
        if is_new {
            self.close_span(last_ns, last_stamp);
            self.span = (at_ns, header.timestamp);
            return;
        }
        self.jittered += 1;
        let (apart_s, units) = (apart_ns as f64 / 1e9, f64::from(units));
        match (&mut self.jitters, self.told_rate) {
            (Jitters::Told(jitter), Some(rate)) => jitter.take(apart_s, units, &[1.0 / f64::from(rate)]),
            (Jitters::Any(jitter), _) => jitter.take(apart_s, units, &UNITS_S),
            (Jitters::Told(_), None) => {}
        }
    }

    fn close_span(&mut self, last_ns: i64, last_stamp: u32) {
        let (from_ns, from_stamp) = self.span;
        self.spans.0 += (last_ns - from_ns) as f64;
        self.spans.1 += f64::from(last_stamp.wrapping_sub(from_stamp).cast_signed());
    }

    /// The clock rate in Hz: from signalling or the payload type, else inferred from time stamps and arrivals, else
    /// `None`. `told` is the rate from a session description.
    pub fn clock_rate(&self, told: Option<u32>) -> Option<u32> {
        if let Some(rate) = self.told_rate.or(told) {
            return Some(rate);
        }
        let mut closed = self.spans;
        if let Some((at_ns, stamp)) = self.last {
            closed.0 += (at_ns - self.span.0) as f64;
            closed.1 += f64::from(stamp.wrapping_sub(self.span.1).cast_signed());
        }
        if closed.0 < CLOCK_NS as f64 || closed.1 <= 0.0 {
            return None;
        }
        let found = closed.1 / (closed.0 / 1e9);
        let near = |&&rate: &&u32| (found / f64::from(rate) - 1.0).abs() < CLOCK_TOLERANCE;
        RATES.iter().find(near).copied()
    }

    /// Mean, largest and last interarrival jitter in s; `None` without a clock rate or a second packet.
    pub fn jitter_s(&self, told: Option<u32>) -> Option<(f64, f64, f64)> {
        let rate = self.clock_rate(told)?;
        let (sum, most, now) = match &self.jitters {
            Jitters::Told(jitter) => jitter.at(0),
            Jitters::Any(jitter) => jitter.at(RATES.iter().position(|&one| one == rate)?),
        };
        (self.jittered > 0).then(|| (sum / self.jittered as f64, most, now))
    }

    /// Whether `other` has packets within this stream's time.
    pub fn overlaps(&self, other: &RtpSource) -> bool {
        self.times.0 <= other.times.1 && other.times.0 <= self.times.1
    }

    /// Numbers, within the part that both have, that neither has received.
    pub fn lost_with(&self, other: &RtpSource) -> u64 {
        let missing = |stream: &RtpSource| -> std::collections::BTreeSet<u16> {
            stream.sequence.missing().iter().map(|&number| number as u16).collect()
        };
        let (own, others) = (missing(self), missing(other));
        own.intersection(&others).count() as u64
    }

    /// By how much this stream's packets are later than the same ones of `other`, in s: the mean over the last packets.
    pub fn behind_s(&self, other: &RtpSource) -> f64 {
        let both = self.recent.iter().filter_map(|&(seq, at_ns)| Some(at_ns - other.arrived_ns(seq)?));
        let (sum, count) = both.fold((0.0, 0.0), |(sum, count), ns| (sum + ns as f64 / 1e9, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }
}
