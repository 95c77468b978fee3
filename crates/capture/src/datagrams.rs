//! The protocol of a UDP flow: from signalling, or recognised by its bytes.

use streamgauge_wire::rist;

use crate::packet::Packet;
use crate::rtcp::rtcp_parts;
use crate::rtp::{RtpHeader, RtpSource, is_rtcp};
use crate::srt::{self, SrtStream};

/// Sources of RTP that are followed in one flow.
const MOST_STREAMS: usize = 32;
/// Sources that have shown a packet and are not yet believed.
const MOST_CANDIDATES: usize = 8;
const STUN_COOKIE: u32 = 0x2112_a442;

/// The protocols that the bytes of a flow show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// STUN or TURN (RFC 8489, RFC 8656).
    pub stun: bool,
    /// DTLS (RFC 9147).
    pub dtls: bool,
    /// QUIC's long header (RFC 9000 section 17.2), of a version in use.
    pub quic: bool,
    /// RTCP.
    pub rtcp: bool,
    /// SRT's control packets.
    pub srt: u8,
    /// Datagrams that are whole packets of Named Data Networking.
    pub ndn: u8,
    /// RIST: a source for retransmissions.
    pub rist: bool,
}

/// A UDP flow.
#[derive(Clone, Debug, Default)]
pub struct Datagrams {
    /// Sources of RTP, by direction (0: from the flow's first end).
    pub rtp: [Vec<RtpSource>; 2],
    candidates: [Vec<(RtpHeader, i64, u32)>; 2],
    /// SRT's data, by direction.
    pub srt: [Option<Box<SrtStream>>; 2],
    srt_candidates: [srt::Candidate; 2],
    /// The recognised protocol.
    pub seen: Seen,
    /// Signalling named this flow as RTP, with the clock rate if that was in it.
    pub told: Option<Option<u32>>,
    /// Cumulative losses in the last receiver report about each source (RFC 3550 section 6.4.1).
    pub reported: Vec<(u32, i32)>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The data of a TURN channel (RFC 8656 section 12.4).
fn channel_data(bytes: &[u8]) -> Option<&[u8]> {
    let &[high, _, a, b] = bytes.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([a, b]));
    let rest = &bytes[4..];
    // Over UDP the padding may be left out.
    let is_channel =
        (0x40..0x50).contains(&high) && length > 0 && length <= rest.len() && rest.len() - length < 4;
    is_channel.then(|| &rest[..length])
}

fn is_quic(bytes: &[u8]) -> bool {
    let (Some(&first), Some(version)) = (bytes.first(), word(bytes, 1)) else { return false };
    // Version negotiation, version 1 and 2, drafts, Facebook's, reserved ones (RFC 9000 section 15) and Google's.
    let is_known = matches!(version, 0 | 1 | 0x6b33_43cf | 0xff00_0000..=0xff00_0022 | 0xface_b000..=0xface_b00f)
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
        || version >> 24 == u32::from(b'Q') && (0x30..=0x39).contains(&(version >> 16 & 0xff));
    let Some(&length) = bytes.get(5).filter(|&&length| first & 0x80 != 0 && is_known && length <= 20) else {
        return false;
    };
    // A list of versions has whole words behind both connection ids (section 17.2.1). SRT's handshake has not.
    let ids = || Some(7 + usize::from(length) + usize::from(*bytes.get(6 + usize::from(length))?));
    version != 0 || ids().is_some_and(|ids| bytes.len() > ids && (bytes.len() - ids).is_multiple_of(4))
}

/// An Interest, a Data packet or NDNLPv2's frame with the datagram's length (NDN packet format, section 1.2).
fn is_ndn(bytes: &[u8], whole: u32) -> bool {
    let length = match bytes {
        [0x05 | 0x06 | 0x64, 0xfd, a, b, ..] => u32::from(u16::from_be_bytes([*a, *b])) + 4,
        [0x05 | 0x06 | 0x64, short @ 0..=0xfc, ..] => u32::from(*short) + 2,
        _ => return false,
    };
    length == whole && bytes.get(2..).is_some_and(|rest| rest.len() >= 2)
}

impl Datagrams {
    /// Takes a datagram from end `from`.
    pub fn take(&mut self, from: usize, packet: &Packet<'_>) {
        let bytes = packet.payload;
        if let Some(inner) = channel_data(bytes).filter(|_| self.seen.stun || self.rtp[from].is_empty()) {
            // RTP in channel data is believed like any other, from its second packet on.
            self.rtp_or_rtcp(from, inner, packet, packet.payload_bytes.saturating_sub(4));
            return;
        }
        if word(bytes, 4) == Some(STUN_COOKIE) && bytes[0] < 4 {
            self.seen.stun = true;
            return;
        }
        if let Some(stream) = &mut self.srt[from] {
            stream.take(bytes);
            return;
        }
        if self.rtp_or_rtcp(from, bytes, packet, packet.payload_bytes) {
            return;
        }
        if is_quic(bytes) {
            self.seen.quic = true;
        } else if matches!(bytes, [20..=63, 0xfe, 0xfd | 0xff, ..]) {
            self.seen.dtls = true;
        } else if is_ndn(bytes, packet.payload_bytes) {
            self.seen.ndn = self.seen.ndn.saturating_add(1);
        } else if srt::is_control(bytes) {
            self.seen.srt = self.seen.srt.saturating_add(1);
        } else if !self.seen.quic {
            self.srt[from] = self.srt_candidates[from].take(bytes).map(Box::new);
        }
    }

    /// Whether the datagram is RTP's or RTCP's, or may be.
    fn rtp_or_rtcp(&mut self, from: usize, bytes: &[u8], packet: &Packet<'_>, length: u32) -> bool {
        if is_rtcp(bytes) && compound_is_whole(bytes, length) {
            self.seen.rtcp = true;
            self.report(bytes);
            return true;
        }
        let Some(header) = RtpHeader::read(bytes) else { return false };
        let at_ns = packet.at_ns;
        let streams = &mut self.rtp[from];
        if let Some(at) = streams.iter().position(|stream| stream.ssrc == header.ssrc) {
            streams[..=at].rotate_right(1);
            streams[0].take(&header, at_ns, length);
            return true;
        }
        // RIST sends again with the last bit of the SSRC set, and the original's number (TR-06-1 section 5.3).
        let is_known = |stream: &&mut RtpSource| {
            stream.ssrc == rist::source_of(header.ssrc) && rist::is_repeated(header.ssrc)
        };
        if let Some(original) = streams.iter_mut().find(is_known)
            && original.payload_type == header.payload_type
            && original.sequence.highest().abs_diff(original.sequence.extended(u64::from(header.seq)))
                < 1 << 14
        {
            self.seen.rist = true;
            original.repair(header.seq);
            return true;
        }
        if self.told.is_some() && streams.len() < MOST_STREAMS {
            streams.insert(0, RtpSource::new(&header, at_ns, length, self.told.flatten()));
            return true;
        }
        self.guess(from, header, at_ns, length)
    }

    /// Two numbers in a row of one source show RTP (RFC 3550 appendix A.1), with one payload type and time stamps that
    /// are no noise.
    fn guess(&mut self, from: usize, header: RtpHeader, at_ns: i64, length: u32) -> bool {
        let candidates = &mut self.candidates[from];
        let same = candidates.iter().position(|(one, ..)| one.ssrc == header.ssrc);
        if let Some(at) = same {
            let (first, first_ns, first_length) = candidates[at];
            let step = header.timestamp.wrapping_sub(first.timestamp).cast_signed();
            let is_next = header.seq == first.seq.wrapping_add(1)
                && header.payload_type == first.payload_type
                && step.unsigned_abs() < 1 << 24;
            if is_next && self.rtp[from].len() < MOST_STREAMS {
                candidates.remove(at);
                let mut stream = RtpSource::new(&first, first_ns, first_length, None);
                stream.take(&header, at_ns, length);
                self.rtp[from].insert(0, stream);
                return true;
            }
            candidates[at] = (header, at_ns, length);
        } else {
            candidates.truncate(MOST_CANDIDATES - 1);
            candidates.insert(0, (header, at_ns, length));
        }
        false
    }

    /// Keeps the cumulative losses of sender and receiver reports.
    fn report(&mut self, bytes: &[u8]) {
        for part in rtcp_parts(bytes) {
            for block in part.blocks() {
                let (Some(ssrc), Some(lost)) = (word(block, 0), word(block, 4)) else { break };
                let lost = (lost << 8).cast_signed() >> 8;
                match self.reported.iter().position(|(one, _)| *one == ssrc) {
                    Some(at) => self.reported[at].1 = lost,
                    None if self.reported.len() < MOST_STREAMS => self.reported.push((ssrc, lost)),
                    None => {}
                }
            }
        }
    }

    /// The protocol by name, if one was recognised.
    pub fn protocol(&self) -> Option<&'static str> {
        let has_rtp = self.rtp.iter().any(|streams| !streams.is_empty());
        let has_srt = self.srt.iter().any(Option::is_some);
        Some(match self.seen {
            _ if has_srt => "srt",
            Seen { quic: true, .. } => "quic",
            Seen { rist: true, .. } => "rist",
            Seen { dtls: true, .. } if has_rtp => "webrtc",
            Seen { stun: true, .. } if has_rtp => "webrtc",
            _ if has_rtp => "rtp",
            Seen { srt: 2.., .. } => "srt",
            Seen { rtcp: true, .. } => "rtcp",
            Seen { dtls: true, .. } => "dtls",
            Seen { stun: true, .. } => "stun",
            Seen { ndn: 3.., .. } => "ndn",
            _ => return None,
        })
    }
}

/// The lengths of a compound's packets add up to the datagram's, or it begins with a report (RFC 3550 appendix A.2).
fn compound_is_whole(bytes: &[u8], length: u32) -> bool {
    if matches!(bytes[1], 200 | 201) {
        return true;
    }
    let (mut at, mut rest) = (0, bytes);
    while rest.len() >= 4 && rest[0] >> 6 == 2 {
        let one = (usize::from(u16::from_be_bytes([rest[2], rest[3]])) + 1) * 4;
        at += one;
        rest = rest.get(one..).unwrap_or_default();
    }
    at as u64 == u64::from(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_versions_is_quic_and_a_handshake_of_srt_is_not() {
        let versions =
            [&[0x80, 0, 0, 0, 0, 2, 1, 2, 1, 3][..], &[0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf]].concat();
        assert!(is_quic(&versions));
        // Control, handshake: type, subtype, type's own word, time, socket, and 48 bytes (SRT section 3.2.1).
        let mut handshake = [&[0x80, 0, 0, 0][..], &[0; 8], &[0, 0, 0, 9]].concat();
        handshake.extend([0; 48]);
        assert!(!is_quic(&handshake) && srt::is_control(&handshake));
    }
}
