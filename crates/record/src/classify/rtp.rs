//! RTP and RTCP in UDP: RFC 3550 section 5.1, RFC 5761 section 4.

use streamgauge_base::PacketKind;

use super::reader::{Datagram, DatagramReader, Shown};
use super::sources::{REMEMBERED, Sources};

/// They are 16 bits (RFC 3550 section 5.1).
const SEQUENCE_NUMBERS: u32 = 1 << 16;

/// The RTP of one flow.
///
/// Where a flow is declared as RTP, every datagram of version 2 is RTP or RTCP. Where that is guessed, much else has
/// these two bits: a source is believed from its second number in sequence on (RFC 3550 section A.1), and a compound of
/// RTCP if it begins with a report or if the lengths of its packets are the datagram's (section A.2).
pub struct Rtp {
    sources: [Sources<SEQUENCE_NUMBERS>; 2],
    /// `None` where it is declared.
    candidates: Option<[Candidates; 2]>,
}

impl Rtp {
    /// Makes the reader of a flow that is declared as RTP.
    pub fn told() -> Self {
        Rtp { sources: Default::default(), candidates: None }
    }

    /// Makes the reader of a flow that may or may not be RTP.
    pub fn guessed() -> Self {
        Rtp { candidates: Some(Default::default()), ..Rtp::told() }
    }
}

impl DatagramReader for Rtp {
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown> {
        let Datagram { direction, bytes, head } = *datagram;
        let way = direction as usize;
        if is_rtcp(head, bytes) && (self.candidates.is_none() || is_certain(head, bytes)) {
            return Some(Shown::kind(PacketKind::Rtcp));
        }
        let packet = parse(head)?;
        if let Some(candidates) = &mut self.candidates
            && !self.sources[way].knows(packet.ssrc)
        {
            let before = candidates[way].confirmed(&packet)?;
            self.sources[way].sent(packet.ssrc, before);
        }
        let again = self.sources[way].sent(packet.ssrc, packet.seq);
        Some(Shown { kind: None, seq: Some(u32::from(packet.seq)), again })
    }
}

/// The fields read from an RTP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpHeader {
    pub seq: u16,
    pub ssrc: u32,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn is_version_2(head: &[u8]) -> bool {
    head.first().is_some_and(|&b| b >> 6 == 2)
}

/// Reads the header, if `head` can be one of RTP.
pub fn parse(head: &[u8]) -> Option<RtpHeader> {
    if !is_version_2(head) {
        return None;
    }
    Some(RtpHeader { seq: u16_at(head, 2)?, ssrc: u32::from_be_bytes(*head.get(8..)?.first_chunk()?) })
}

/// Returns whether it is RTCP; its first packet must fit into the datagram.
pub fn is_rtcp(head: &[u8], payload_bytes: u32) -> bool {
    let known_type = head.get(1).is_some_and(|t| (192..=223).contains(t));
    is_version_2(head)
        && known_type
        && length(head).is_some_and(|length| length as u64 <= u64::from(payload_bytes))
}

/// Returns the length of the RTCP packet at the start of `bytes`.
fn length(bytes: &[u8]) -> Option<usize> {
    u16_at(bytes, 2).map(|words| (usize::from(words) + 1) * 4)
}

/// Returns the packets of a compound of RTCP, each with all that is known after it.
pub fn compound(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(head), |packet: &&[u8]| {
        let packet: &[u8] = packet;
        packet.get(length(packet)?..)
    })
    .take_while(|packet| is_version_2(packet))
}

/// Returns whether possible RTCP is certain: nothing else is likely to look like this. Reports are first, also where
/// the rest is encrypted (RFC 3711 section 3.4).
fn is_certain(head: &[u8], bytes: u32) -> bool {
    const REPORTS: [u8; 2] = [200, 201];
    let is_all = || {
        let lengths = compound(head).map(|packet| length(packet).unwrap_or(0) as u64);
        lengths.sum::<u64>() == u64::from(bytes)
    };
    head.get(1).is_some_and(|kind| REPORTS.contains(kind)) || is_all()
}

/// Sources that have shown one number, the last first.
#[derive(Default)]
struct Candidates(Vec<RtpHeader>);

impl Candidates {
    /// Handles a packet of a source that is not believed; if its number is the one after the last, returns that one.
    fn confirmed(&mut self, packet: &RtpHeader) -> Option<u16> {
        let Some(at) = self.0.iter().position(|candidate| candidate.ssrc == packet.ssrc) else {
            self.0.truncate(REMEMBERED - 1);
            self.0.insert(0, *packet);
            return None;
        };
        let before = self.0[at].seq;
        if packet.seq != before.wrapping_add(1) {
            self.0[at].seq = packet.seq;
            return None;
        }
        self.0.remove(at);
        Some(before)
    }
}
