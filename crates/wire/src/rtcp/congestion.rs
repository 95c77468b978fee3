//! Feedback on each packet, by which senders control their rate: transport-wide feedback
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01) and congestion control feedback (RFC 8888); and the picture loss
//! indication (RFC 4585 section 6.3.1).

use super::{Fault, PADDED, Problem};

/// The packet types of feedback about transport and about payload.
pub const TRANSPORT_FEEDBACK: u8 = 205;
/// See [`TRANSPORT_FEEDBACK`].
pub const PAYLOAD_FEEDBACK: u8 = 206;
const TRANSPORT_WIDE: u8 = 15;
const CONGESTION: u8 = 11;
const PICTURE_LOSS: u8 = 1;

/// Packets that one report has room for (RFC 8888 section 3.1).
pub const MOST_REPORTS: usize = 16_384;
/// Packets that a transport-wide report counts at most.
pub const MOST_STATUSES: usize = u16::MAX as usize;
/// An arrival further back than the field's range.
pub const OVER_RANGE: u16 = 0x1ffe;
/// An arrival at an unknown time.
pub const NO_TIME: u16 = 0x1fff;

/// Transport-wide feedback. Times are in 250 us, modulo 2^32.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TransportWide {
    /// The reporter.
    pub sender_ssrc: u32,
    /// A source of the packets.
    pub media_ssrc: u32,
    /// The number of this report.
    pub count: u8,
    /// The first packet's number.
    pub base: u16,
    /// When each packet from the first on arrived; `None` of one that did not. Consecutive ones are at most
    /// 8.19 s apart; a longer gap is written as that.
    pub arrivals: Vec<Option<u32>>,
}

/// Congestion control feedback.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CongestionFeedback {
    /// The reporter.
    pub sender_ssrc: u32,
    /// When, in 1/65536 s: the middle of an NTP timestamp.
    pub at: u32,
    /// A report for each source.
    pub streams: Vec<StreamReport>,
}

/// On one source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamReport {
    /// The source.
    pub ssrc: u32,
    /// The first sequence number.
    pub begin: u16,
    /// Each packet from there on; `None` of one that did not arrive. At most [`MOST_REPORTS`] are written.
    pub packets: Vec<Option<PacketReport>>,
}

/// A packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketReport {
    /// The two ECN bits of its arrival.
    pub ecn: u8,
    /// Time from its arrival to the report, in 1/1024 s; [`OVER_RANGE`], [`NO_TIME`].
    pub before: u16,
}

/// A picture was lost that later ones need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PictureLoss {
    /// The receiver that lacks the packet.
    pub sender_ssrc: u32,
    /// The packet's source.
    pub media_ssrc: u32,
}

/// A report of either type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Feedback {
    Wide(TransportWide),
    Congestion(CongestionFeedback),
    Picture(PictureLoss),
}

/// Reads `packet`, which is a whole one; `None` if it is of another kind.
pub(super) fn read(packet: &[u8]) -> Option<Result<Feedback, Problem>> {
    let &[first, packet_type, ..] = packet else { return None };
    let format = first & 0x1f;
    let problem = Problem { fault: Fault::Contents, packet_type };
    let padding = packet.last().filter(|_| first & PADDED != 0).map_or(0, |bytes| usize::from(*bytes));
    let body = packet.len().checked_sub(padding).and_then(|end| packet.get(4..end));
    let body = body.ok_or(problem);
    let read = |of: fn(&[u8]) -> Option<Feedback>| Some(body.and_then(|body| of(body).ok_or(problem)));
    match (packet_type, format) {
        (TRANSPORT_FEEDBACK, TRANSPORT_WIDE) => read(|body| TransportWide::read(body).map(Feedback::Wide)),
        (TRANSPORT_FEEDBACK, CONGESTION) => {
            read(|body| CongestionFeedback::read(body).map(Feedback::Congestion))
        }
        (PAYLOAD_FEEDBACK, PICTURE_LOSS) => read(|body| PictureLoss::read(body).map(Feedback::Picture)),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Appends header and body, which is filled with zeros to whole words.
fn append(datagram: &mut Vec<u8>, (format, packet_type): (u8, u8), mut body: Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
    datagram.extend([2 << 6 | format, packet_type]);
    datagram.extend(((body.len() / 4) as u16).to_be_bytes());
    datagram.extend(body);
}

impl PictureLoss {
    fn read(body: &[u8]) -> Option<Self> {
        let read = PictureLoss { sender_ssrc: word(body, 0)?, media_ssrc: word(body, 4)? };
        (body.len() == 8).then_some(read)
    }

    pub(super) fn append_to(self, datagram: &mut Vec<u8>) {
        let body = [self.sender_ssrc.to_be_bytes(), self.media_ssrc.to_be_bytes()].concat();
        append(datagram, (PICTURE_LOSS, PAYLOAD_FEEDBACK), body);
    }
}

impl CongestionFeedback {
    fn read(body: &[u8]) -> Option<Self> {
        let sender_ssrc = word(body, 0)?;
        let end = body.len().checked_sub(4).filter(|end| *end >= 4)?;
        let (at, mut rest) = (word(body, end)?, &body[4..end]);
        let mut streams = Vec::new();
        while !rest.is_empty() {
            let (ssrc, begin, count) = (word(rest, 0)?, half(rest, 4)?, usize::from(half(rest, 6)?));
            if count > MOST_REPORTS {
                return None;
            }
            let reports = rest.get(8..8 + 2 * count)?;
            let packets = reports.as_chunks::<2>().0.iter().map(|report| {
                let report = u16::from_be_bytes(*report);
                (report >> 15 == 1)
                    .then_some(PacketReport { ecn: (report >> 13 & 3) as u8, before: report & 0x1fff })
            });
            streams.push(StreamReport { ssrc, begin, packets: packets.collect() });
            rest = rest.get(8 + (2 * count).next_multiple_of(4)..)?;
        }
        Some(CongestionFeedback { sender_ssrc, at, streams })
    }

    pub(super) fn append_to(&self, datagram: &mut Vec<u8>) {
        let mut body = self.sender_ssrc.to_be_bytes().to_vec();
        for stream in &self.streams {
            let packets = &stream.packets[..stream.packets.len().min(MOST_REPORTS)];
            body.extend(stream.ssrc.to_be_bytes());
            body.extend(stream.begin.to_be_bytes());
            body.extend((packets.len() as u16).to_be_bytes());
            for packet in packets {
                let report = packet.map_or(0, |PacketReport { ecn, before }| {
                    1 << 15 | u16::from(ecn & 3) << 13 | before & 0x1fff
                });
                body.extend(report.to_be_bytes());
            }
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body.extend(self.at.to_be_bytes());
        append(datagram, (CONGESTION, TRANSPORT_FEEDBACK), body);
    }
}

/// How a packet of a transport-wide report is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Missing,
    Small,
    Large,
}

impl Status {
    fn of(symbol: u16) -> Option<Self> {
        [Status::Missing, Status::Small, Status::Large].get(usize::from(symbol)).copied()
    }
}

impl TransportWide {
    fn read(body: &[u8]) -> Option<Self> {
        let (base, count) = (half(body, 8)?, usize::from(half(body, 10)?));
        let time = word(body, 12)?;
        let mut read = TransportWide {
            sender_ssrc: word(body, 0)?,
            media_ssrc: word(body, 4)?,
            count: time as u8,
            base,
            arrivals: Vec::new(),
        };
        let (statuses, mut at) = statuses(body, count)?;
        let mut ticks = time & 0xffff_ff00;
        for status in statuses {
            let delta = match status {
                Status::Missing => None,
                Status::Small => Some(i32::from(*body.get(at)?)),
                Status::Large => Some(i32::from(half(body, at)?.cast_signed())),
            };
            at += status as usize;
            read.arrivals.push(delta.map(|delta| {
                ticks = ticks.wrapping_add_signed(delta);
                ticks
            }));
        }
        Some(read)
    }

    pub(super) fn append_to(&self, datagram: &mut Vec<u8>) {
        let arrivals = &self.arrivals[..self.arrivals.len().min(MOST_STATUSES)];
        let first = arrivals.iter().flatten().next().copied().unwrap_or(0);
        let mut ticks = first & 0xffff_ff00;
        let mut body = [self.sender_ssrc.to_be_bytes(), self.media_ssrc.to_be_bytes()].concat();
        body.extend(self.base.to_be_bytes());
        body.extend((arrivals.len() as u16).to_be_bytes());
        body.extend((ticks | u32::from(self.count)).to_be_bytes());
        let mut statuses = Vec::with_capacity(arrivals.len());
        let mut deltas = Vec::new();
        for arrival in arrivals {
            let Some(at) = *arrival else {
                statuses.push(Status::Missing);
                continue;
            };
            let apart = at.wrapping_sub(ticks).cast_signed();
            let delta = apart.clamp(i16::MIN.into(), i16::MAX.into());
            ticks = ticks.wrapping_add_signed(delta);
            if let Ok(small) = u8::try_from(delta) {
                statuses.push(Status::Small);
                deltas.push(small);
            } else {
                statuses.push(Status::Large);
                deltas.extend((delta as i16).to_be_bytes());
            }
        }
        for chunk in chunks(&statuses) {
            body.extend(chunk.to_be_bytes());
        }
        body.extend(deltas);
        append(datagram, (TRANSPORT_WIDE, TRANSPORT_FEEDBACK), body);
    }
}

/// Returns the first `count` statuses of the chunks in `body`, and where these end.
fn statuses(body: &[u8], count: usize) -> Option<(Vec<Status>, usize)> {
    let (mut found, mut at) = (Vec::new(), 16);
    while found.len() < count {
        let chunk = half(body, at)?;
        at += 2;
        let left = count - found.len();
        if chunk >> 15 == 0 {
            let run = usize::from(chunk & 0x1fff);
            if run == 0 {
                return None;
            }
            found.extend(std::iter::repeat_n(Status::of(chunk >> 13 & 3)?, run.min(left)));
        } else {
            let (bits, symbols) = if chunk >> 14 & 1 == 0 { (1, 14) } else { (2, 7) };
            for place in 0..left.min(symbols) {
                let symbol = chunk >> (14 - bits * (place + 1)) & ((1 << bits) - 1);
                found.push(Status::of(symbol)?);
            }
        }
    }
    Some((found, at))
}

/// Returns the chunks of `statuses`: runs where these are longer than a vector, else vectors of one bit, or
/// of two where an arrival is far from the one before.
fn chunks(statuses: &[Status]) -> Vec<u16> {
    let (mut found, mut rest) = (Vec::new(), statuses);
    while let Some(&first) = rest.first() {
        let run = rest.iter().take(0x1fff).take_while(|status| **status == first).count();
        let is_plain = rest.iter().take(14).all(|status| *status != Status::Large);
        let taken = if run >= 14 || (run >= 7 && !is_plain) || run == rest.len() {
            found.push((first as u16) << 13 | run as u16);
            run
        } else {
            let (bits, symbols) = if is_plain { (1, 14) } else { (2, 7) };
            let head = (2 | u16::from(!is_plain)) << 14;
            let vector = rest.iter().take(symbols).enumerate();
            let vector = vector
                .fold(head, |vector, (place, status)| vector | (*status as u16) << (14 - bits * (place + 1)));
            found.push(vector);
            rest.len().min(symbols)
        };
        rest = &rest[taken..];
    }
    found
}

#[cfg(test)]
mod tests;
