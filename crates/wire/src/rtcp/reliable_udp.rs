//! RTCP packets of Apple's Reliable UDP: acknowledgements, client reports, the server's hints.
//!
//! All are APP packets (RFC 3550 section 6.7). Their form is that of Darwin Streaming Server 6.0.3 on the wire; no
//! document of Apple's gives it whole.

use super::{APP, Fault, Problem};

/// The name of an acknowledgement.
pub const ACK: [u8; 4] = *b"qtak";
/// Its older name, which servers take as well.
pub const OLD_ACK: [u8; 4] = *b"ack ";
/// The name of a client report.
pub const CLIENT_REPORT: [u8; 4] = *b"QTSS";
/// The name of a server's hint.
pub const HINT: [u8; 4] = *b"qtsi";
/// The subtype of a server's hint; the others have 0.
pub const HINT_SUBTYPE: u8 = 1;

/// Words in the mask of an acknowledgement that we make: 1024 packets, in 148 B.
const MOST_MASK_WORDS: usize = 32;

/// Packets that arrived. An absent number has no meaning: an acknowledgement is no list of losses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AckPacket {
    /// The receiver that acknowledges.
    pub receiver_ssrc: u32,
    /// The packets' source; Darwin Streaming Server uses address and port instead.
    pub stream_ssrc: u32,
    /// The first RTP sequence number.
    pub base: u16,
    /// Bit k, from the most significant of the first word, is number base + 1 + k.
    pub mask: Vec<u32>,
}

impl AckPacket {
    /// Acknowledges `sequences`, in any order, within 32768 of the first: as few acknowledgements as hold them.
    pub fn of(receiver_ssrc: u32, stream_ssrc: u32, sequences: &[u16]) -> Vec<AckPacket> {
        let Some(&first) = sequences.first() else { return Vec::new() };
        let mut offsets: Vec<i16> = sequences.iter().map(|s| s.wrapping_sub(first).cast_signed()).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let mut acks: Vec<AckPacket> = Vec::new();
        for offset in offsets {
            let sequence = first.wrapping_add(offset.cast_unsigned());
            let bit = acks.last().map(|ack| usize::from(sequence.wrapping_sub(ack.base)) - 1);
            match (acks.last_mut(), bit) {
                (Some(ack), Some(bit)) if bit < 32 * MOST_MASK_WORDS => {
                    ack.mask.resize(ack.mask.len().max(bit / 32 + 1), 0);
                    ack.mask[bit / 32] |= 1 << (31 - bit % 32);
                }
                _ => acks.push(AckPacket { receiver_ssrc, stream_ssrc, base: sequence, mask: Vec::new() }),
            }
        }
        acks
    }

    /// Returns the acknowledged numbers, from the base on.
    pub fn sequences(&self) -> impl Iterator<Item = u16> + '_ {
        let set = |word: u32| (0..32).filter(move |bit| word & (1 << (31 - bit)) != 0);
        // More than 65536 bits would come round.
        let words = (0..2048u16).zip(&self.mask);
        let masked = words.flat_map(move |(index, &word)| {
            set(word).map(move |bit| self.base.wrapping_add(1).wrapping_add(32 * index + bit))
        });
        std::iter::once(self.base).chain(masked)
    }

    pub(crate) fn read(receiver_ssrc: u32, data: &[u8]) -> Result<Self, Problem> {
        let (Some(stream_ssrc), Some(word)) = (word(data, 0), word(data, 4)) else {
            return Err(Problem { fault: Fault::Truncated, packet_type: APP });
        };
        let mask = data[8..].chunks_exact(4).filter_map(|bytes| self::word(bytes, 0)).collect();
        Ok(AckPacket { receiver_ssrc, stream_ssrc, base: word as u16, mask })
    }

    /// Returns the APP packet's data.
    pub(crate) fn data(&self) -> Vec<u8> {
        let words = [self.stream_ssrc, u32::from(self.base)];
        words.iter().chain(&self.mask).flat_map(|word| word.to_be_bytes()).collect()
    }
}

/// How the client finds the picture; Darwin Streaming Server takes `Same` for `Worse`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quality {
    /// `:)`
    Better,
    /// `:|`
    Same,
    /// `:(`
    Worse,
}

/// A client's state of reception; absent items are `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientReport {
    /// The reporter.
    pub client_ssrc: u32,
    /// The source of the packets.
    pub server_ssrc: u32,
    /// `rr`: bits per second that it receives.
    pub receive_bps: Option<u32>,
    /// `lt`: how late packets are on average, in ms.
    pub late_ms: Option<u16>,
    /// `ls`: packets lost, in 1/256 of a percent.
    pub loss_percent_256: Option<u16>,
    /// `dl`: how long data waits in its buffer on average, in ms.
    pub buffer_delay_ms: Option<u16>,
    /// `:)`, `:|` or `:(`.
    pub quality: Option<Quality>,
    /// `pr`: packets received.
    pub packets_received: Option<u32>,
    /// `pd`: packets dropped.
    pub packets_dropped: Option<u16>,
    /// `pl`: packets lost.
    pub packets_lost: Option<u16>,
    /// `bl`: how full its buffer is, in percent.
    pub buffer_fill: Option<u16>,
    /// `fr`: frames per second shown.
    pub frame_rate: Option<u16>,
    /// `xr`: frames per second expected.
    pub expected_frame_rate: Option<u16>,
    /// `d#`: how often sound ran dry.
    pub audio_dry: Option<u16>,
    /// `ob`: bytes that it can take ahead of time. Darwin Streaming Server takes none for no limit.
    pub overbuffer_window: Option<u32>,
}

impl ClientReport {
    /// Reads the items of Darwin Streaming Server, in its way: an unknown item is passed over without its
    /// data, which is then read as items.
    pub(crate) fn read(client_ssrc: u32, subtype: u8, data: &[u8]) -> Result<Self, Problem> {
        let problem = |fault| Problem { fault, packet_type: APP };
        if subtype != 0 {
            return Err(problem(Fault::Subtype));
        }
        let (server_ssrc, items) = items(data)?;
        let mut report = ClientReport { client_ssrc, server_ssrc, ..ClientReport::default() };
        let mut rest = items;
        while let Some((name, length, after)) = item(rest) {
            rest = after;
            let expected = match &name {
                b"rr" | b"pr" | b"ob" => 4..=4,
                b"lt" | b"ls" | b"dl" | b"pd" | b"pl" | b"bl" | b"fr" | b"xr" | b"d#" => 2..=2,
                b":)" | b":(" | b":|" => 0..=0,
                b"ey" => 4..=12,
                _ => continue,
            };
            if !expected.contains(&length) || rest.len() < length {
                return Err(problem(Fault::Item));
            }
            let (value, after) = rest.split_at(length);
            rest = after;
            let number = value.iter().take(4).fold(0, |n: u32, &byte| n << 8 | u32::from(byte));
            match &name {
                b"rr" => report.receive_bps = Some(number),
                b"lt" => report.late_ms = Some(number as u16),
                b"ls" => report.loss_percent_256 = Some(number as u16),
                b"dl" => report.buffer_delay_ms = Some(number as u16),
                b":)" => report.quality = Some(Quality::Better),
                b":|" => report.quality = Some(Quality::Same),
                b":(" => report.quality = Some(Quality::Worse),
                b"pr" => report.packets_received = Some(number),
                b"pd" => report.packets_dropped = Some(number as u16),
                b"pl" => report.packets_lost = Some(number as u16),
                b"bl" => report.buffer_fill = Some(number as u16),
                b"fr" => report.frame_rate = Some(number as u16),
                b"xr" => report.expected_frame_rate = Some(number as u16),
                b"d#" => report.audio_dry = Some(number as u16),
                b"ob" => report.overbuffer_window = Some(number),
                // Eyes on the picture: how many windows show it.
                _ => {}
            }
        }
        Ok(report)
    }

    /// Returns the APP packet's data.
    pub(crate) fn data(&self) -> Vec<u8> {
        let mut items = Vec::new();
        let mut put = |name: &[u8; 2], bytes: u8, value: Option<u32>| {
            if let Some(value) = value {
                items.extend([name[0], name[1], 0, bytes]);
                items.extend(&value.to_be_bytes()[4 - usize::from(bytes)..]);
            }
        };
        let short = |value: Option<u16>| value.map(u32::from);
        put(b"rr", 4, self.receive_bps);
        put(b"lt", 2, short(self.late_ms));
        put(b"ls", 2, short(self.loss_percent_256));
        put(b"dl", 2, short(self.buffer_delay_ms));
        match self.quality {
            Some(Quality::Better) => put(b":)", 0, Some(0)),
            Some(Quality::Same) => put(b":|", 0, Some(0)),
            Some(Quality::Worse) => put(b":(", 0, Some(0)),
            None => {}
        }
        put(b"pr", 4, self.packets_received);
        put(b"pd", 2, short(self.packets_dropped));
        put(b"pl", 2, short(self.packets_lost));
        put(b"bl", 2, short(self.buffer_fill));
        put(b"fr", 2, short(self.frame_rate));
        put(b"xr", 2, short(self.expected_frame_rate));
        put(b"d#", 2, short(self.audio_dry));
        put(b"ob", 4, self.overbuffer_window);
        with_items(self.server_ssrc, items)
    }
}

/// The server's recommendation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The server.
    pub server_ssrc: u32,
    /// The client.
    pub client_ssrc: u32,
    /// `at`: how long an acknowledgement may wait for more, in ms.
    pub ack_timeout_ms: u32,
}

impl Hint {
    pub(crate) fn read(server_ssrc: u32, data: &[u8]) -> Result<Self, Problem> {
        let (client_ssrc, mut rest) = items(data)?;
        while let Some((name, length, after)) = item(rest) {
            if &name == b"at"
                && length == 4
                && let Some(ack_timeout_ms) = word(after, 0)
            {
                return Ok(Hint { server_ssrc, client_ssrc, ack_timeout_ms });
            }
            rest = after.get(length..).unwrap_or_default();
        }
        Err(Problem { fault: Fault::Item, packet_type: APP })
    }

    /// Returns the APP packet's data.
    pub(crate) fn data(&self) -> Vec<u8> {
        let ack_timeout = self.ack_timeout_ms.to_be_bytes();
        with_items(self.client_ssrc, [&[b'a', b't', 0, 4], &ack_timeout[..]].concat())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the other's SSRC, version 0 and the items' length in words, and then the items, padded together.
fn with_items(ssrc: u32, mut items: Vec<u8>) -> Vec<u8> {
    items.resize(items.len().next_multiple_of(4), 0);
    let words = (items.len() / 4) as u32;
    [&ssrc.to_be_bytes()[..], &words.to_be_bytes(), &items].concat()
}

/// Returns the other's SSRC, and as many bytes of items as declared there.
fn items(data: &[u8]) -> Result<(u32, &[u8]), Problem> {
    let items = word(data, 0).zip(word(data, 4)).and_then(|(ssrc, length)| {
        let length = 4 * usize::from(length as u16);
        Some((ssrc, data.get(8..8 + length)?))
    });
    items.ok_or(Problem { fault: Fault::Truncated, packet_type: APP })
}

/// Returns the first item: its name, its declared bytes of data, and the bytes behind its header.
fn item(items: &[u8]) -> Option<([u8; 2], usize, &[u8])> {
    let ([first, second, _version, length], rest) = items.split_first_chunk()?;
    Some(([*first, *second], usize::from(*length), rest))
}

#[cfg(test)]
mod tests;
