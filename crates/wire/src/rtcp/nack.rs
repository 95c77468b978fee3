//! Generic NACKs (RFC 4585 section 6.2.1), and the compounds that Windows Media's players ask for packets again with
//! ([MS-RTSP] section 2.2.4).

use super::{Fault, PADDED, Packet, Problem};

/// The packet type of feedback about transport.
pub const TRANSPORT_FEEDBACK: u8 = 205;

/// FMT of a generic NACK; [MS-RTSP] has four bits of it.
const GENERIC: u8 = 1;
/// The fifth bit, which Windows Media's players set.
const E: u8 = 0x10;

/// Bytes before the entries: header, sender and source.
const HEADER_BYTES: usize = 12;

/// Entries that one packet has room for.
const MOST_ENTRIES: usize = u16::MAX as usize - 2;

/// Most requests in one compound of a Windows Media player ([MS-RTSP] section 3.1.4.6).
pub const MOST_WINDOWS_MEDIA_NACKS: usize = 32;

/// The text behind the SSRC in the CNAME that such a compound requires.
const WINDOWS_MEDIA: &str = "@WMS:7ff42e07-3c7c-4eb5-9c17-6bdd11ad90de";

/// RTP packets that did not come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NackPacket {
    /// The receiver that lacks them.
    pub receiver_ssrc: u32,
    /// Their source.
    pub media_ssrc: u32,
    /// The E bit of [MS-RTSP] section 2.2.4, which its clients set and its servers do not read. RFC 4585 has none.
    pub e_bit: bool,
    /// Which; at most 65533 are written.
    pub entries: Vec<NackEntry>,
}

/// A sequence number, and which of the 16 behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NackEntry {
    /// PID: the first.
    pub first: u16,
    /// BLP: bit k, from the least significant, is number first + 1 + k.
    pub mask: u16,
}

impl NackEntry {
    /// Returns the entries of `sequences`, which come in their order: as few as hold them.
    pub fn of(sequences: &[u16]) -> Vec<NackEntry> {
        let mut entries: Vec<NackEntry> = Vec::new();
        for sequence in sequences {
            match entries.last_mut().map(|entry| (sequence.wrapping_sub(entry.first), entry)) {
                Some((0, _)) => {}
                Some((ahead @ 1..=16, entry)) => entry.mask |= 1 << (ahead - 1),
                _ => entries.push(NackEntry { first: *sequence, mask: 0 }),
            }
        }
        entries
    }

    /// Returns the numbers that it names.
    pub fn sequences(self) -> impl Iterator<Item = u16> {
        let masked = (0..16).filter(move |bit| self.mask >> bit & 1 == 1);
        std::iter::once(self.first).chain(masked.map(move |bit| self.first.wrapping_add(1 + bit)))
    }
}

impl NackPacket {
    /// Returns all that it names.
    pub fn sequences(&self) -> impl Iterator<Item = u16> + '_ {
        self.entries.iter().flat_map(|entry| entry.sequences())
    }

    /// Reads `packet`, which is a whole one of type 205; `None` if it is other feedback.
    pub(super) fn read(packet: &[u8]) -> Option<Result<Self, Problem>> {
        let first = packet[0];
        if first & 0x0f != GENERIC {
            return None;
        }
        let wrong = Problem { fault: Fault::Contents, packet_type: TRANSPORT_FEEDBACK };
        let padding = packet.last().filter(|_| first & PADDED != 0).map_or(0, |bytes| usize::from(*bytes));
        let body = packet.len().checked_sub(padding).and_then(|end| packet.get(4..end));
        let (words, rest) = body.unwrap_or_default().as_chunks::<4>();
        let [receiver, media, entries @ ..] = words else { return Some(Err(wrong)) };
        if !rest.is_empty() {
            return Some(Err(wrong));
        }
        let entry = |word: &[u8; 4]| {
            let [first, mask] = [[word[0], word[1]], [word[2], word[3]]].map(u16::from_be_bytes);
            NackEntry { first, mask }
        };
        Some(Ok(NackPacket {
            receiver_ssrc: u32::from_be_bytes(*receiver),
            media_ssrc: u32::from_be_bytes(*media),
            e_bit: first & E != 0,
            entries: entries.iter().map(entry).collect(),
        }))
    }

    pub(super) fn append_to(&self, datagram: &mut Vec<u8>) {
        let entries = &self.entries[..self.entries.len().min(MOST_ENTRIES)];
        let words = (HEADER_BYTES / 4 + entries.len() - 1) as u16;
        datagram.extend([2 << 6 | GENERIC | if self.e_bit { E } else { 0 }, TRANSPORT_FEEDBACK]);
        datagram.extend(words.to_be_bytes());
        datagram.extend(self.receiver_ssrc.to_be_bytes());
        datagram.extend(self.media_ssrc.to_be_bytes());
        for NackEntry { first, mask } in entries {
            datagram.extend([first.to_be_bytes(), mask.to_be_bytes()].concat());
        }
    }
}

/// Returns the CNAME by which a Windows Media server identifies the source of the lost packets in a compound:
/// `ssrc` is the retransmissions' stream's, from the server's SETUP response ([MS-RTSP] section 2.2.4).
pub fn windows_media_cname(rtx_ssrc: u32) -> String {
    format!("{rtx_ssrc}{WINDOWS_MEDIA}")
}

/// Returns the retransmissions' stream that a CNAME names, if it is a Windows Media player's.
pub fn rtx_ssrc_of(cname: &str) -> Option<u32> {
    cname.strip_suffix(WINDOWS_MEDIA)?.parse().ok()
}

/// Returns the compounds by which a Windows Media player asks for `sequences` again, which come in their
/// order: in each a report without blocks, the CNAME and at most [`MOST_WINDOWS_MEDIA_NACKS`] entries. They
/// go to the second server port of the retransmissions' stream. The report has no blocks as in rtspdump;
/// [MS-RTSP] does not specify it.
pub fn windows_media_nacks(
    receiver_ssrc: u32,
    rtx_ssrc: u32,
    media_ssrc: u32,
    sequences: &[u16],
) -> Vec<Vec<Packet>> {
    let entries = NackEntry::of(sequences);
    let compound = |entries: &[NackEntry]| {
        let nack = NackPacket { receiver_ssrc, media_ssrc, e_bit: true, entries: entries.into() };
        vec![
            Packet::ReceiverReport { ssrc: receiver_ssrc, blocks: Vec::new() },
            Packet::Cname { ssrc: receiver_ssrc, cname: windows_media_cname(rtx_ssrc) },
            Packet::Nack(nack),
        ]
    };
    entries.chunks(MOST_WINDOWS_MEDIA_NACKS).map(compound).collect()
}

#[cfg(test)]
mod tests;
