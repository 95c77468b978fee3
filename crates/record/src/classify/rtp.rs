//! RTP and RTCP in UDP: RFC 3550 section 5.1, RFC 5761 section 4.

/// What is read of an RTP header.
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

/// RTP, if `head` can be its header.
pub fn parse(head: &[u8]) -> Option<RtpHeader> {
    if !is_version_2(head) {
        return None;
    }
    Some(RtpHeader { seq: u16_at(head, 2)?, ssrc: u32::from_be_bytes(*head.get(8..)?.first_chunk()?) })
}

/// RTCP, whose first packet must fit into the datagram.
pub fn is_rtcp(head: &[u8], payload_bytes: u32) -> bool {
    let known_type = head.get(1).is_some_and(|t| (192..=223).contains(t));
    let fits = |words: u16| (u32::from(words) + 1) * 4 <= payload_bytes;
    is_version_2(head) && known_type && u16_at(head, 2).is_some_and(fits)
}

/// An APP packet (RFC 3550 section 6.7).
const APP: u8 = 204;
/// The names of Reliable UDP's acknowledgements, the newer first.
const ACKS: [&[u8]; 2] = [b"qtak", b"ack "];

/// Of RTCP: among the packets of the compound, as far as it is known, is an acknowledgement of Apple's Reliable UDP.
pub fn acknowledges(head: &[u8]) -> bool {
    let mut rest = head;
    while is_version_2(rest) {
        if rest[1..].first() == Some(&APP) && rest.get(8..12).is_some_and(|name| ACKS.contains(&name)) {
            return true;
        }
        let Some(words) = u16_at(rest, 2) else { return false };
        rest = rest.get((usize::from(words) + 1) * 4..).unwrap_or_default();
    }
    false
}

/// Sources remembered per flow and direction: audio, video and their retransmission streams, some times over.
const REMEMBERED: usize = 16;
/// Sequence numbers remembered behind the highest.
const WINDOW: u16 = 1024;
const WORDS: usize = WINDOW as usize / 64;

/// The RTP sources of one flow in one direction, the last used first.
#[derive(Default)]
pub struct Sources(Vec<Source>);

struct Source {
    ssrc: u32,
    highest: u16,
    /// Bit `seq % WINDOW` for the `WINDOW` numbers up to `highest`: it was sent.
    sent: [u64; WORDS],
}

impl Sources {
    /// A packet is sent; true if its number was sent before by this source, within the last 1024.
    pub fn sent(&mut self, ssrc: u32, seq: u16) -> bool {
        let Some(at) = self.0.iter().position(|s| s.ssrc == ssrc) else {
            self.0.truncate(REMEMBERED - 1);
            let mut source = Source { ssrc, highest: seq, sent: [0; WORDS] };
            source.set(seq);
            self.0.insert(0, source);
            return false;
        };
        if at > 0 {
            self.0[..=at].rotate_right(1);
        }
        self.0[0].take(seq)
    }
}

impl Source {
    fn word(seq: u16) -> (usize, u64) {
        (usize::from(seq % WINDOW) / 64, 1 << (seq % 64))
    }

    fn set(&mut self, seq: u16) {
        let (word, bit) = Self::word(seq);
        self.sent[word] |= bit;
    }

    fn take(&mut self, seq: u16) -> bool {
        let ahead = seq.wrapping_sub(self.highest);
        if ahead == 0 {
            return true;
        }
        if ahead.cast_signed() > 0 {
            if ahead >= WINDOW {
                self.sent = [0; WORDS];
            } else {
                for skipped in 1..ahead {
                    let (word, bit) = Self::word(self.highest.wrapping_add(skipped));
                    self.sent[word] &= !bit;
                }
            }
            self.highest = seq;
            self.set(seq);
            return false;
        }
        if self.highest.wrapping_sub(seq) >= WINDOW {
            // Too old to know, or the source began anew: far more likely than a repeat after 1024 packets.
            *self = Source { ssrc: self.ssrc, highest: seq, sent: [0; WORDS] };
            self.set(seq);
            return false;
        }
        let (word, bit) = Self::word(seq);
        let again = self.sent[word] & bit != 0;
        self.sent[word] |= bit;
        again
    }
}
