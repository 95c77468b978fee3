//! Program-specific information: which programs and streams there are (ISO/IEC 13818-1 section 2.4.4).

use std::collections::BTreeSet;

use super::super::TrackKind;

/// A section is no longer, its header included.
const MOST_SECTION: usize = 3 + 1_021;

/// Streams of a program.
const MOST_STREAMS: usize = 64;

/// A section in the payloads of its packets.
#[derive(Default)]
pub struct Section {
    bytes: Vec<u8>,
    is_open: bool,
}

impl Section {
    /// Adds a packet's payload, in which a section `begins` or continues; returns the first section that is
    /// whole and undamaged.
    pub fn take(&mut self, payload: &[u8], begins: bool) -> Option<Vec<u8>> {
        if begins {
            // The pointer leads over the end of the section before.
            let (&pointer, rest) = payload.split_first()?;
            self.bytes.clear();
            self.bytes.extend(rest.get(usize::from(pointer)..)?);
            self.is_open = true;
        } else if self.is_open {
            self.bytes.extend(payload);
        }
        let length = (usize::from(*self.bytes.get(1)? & 0x0f) << 8 | usize::from(*self.bytes.get(2)?)) + 3;
        if !self.is_open || self.bytes.len() < length.min(MOST_SECTION) {
            return None;
        }
        self.is_open = false;
        let section = self.bytes.get(..length)?.to_vec();
        (length <= MOST_SECTION && section.len() >= 12 && checksum(&section) == 0).then_some(section)
    }
}

/// Returns the CRC-32 of MPEG-2 (Annex A): 0 over an undamaged section with its own.
pub fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            if crc & 1 << 31 == 0 { crc << 1 } else { crc << 1 ^ 0x04c1_1db7 }
        })
    })
}

/// How access units of a codec are marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marked {
    /// By a NAL unit of H.264 that delimits them.
    H264,
    /// The same of H.265.
    H265,
    /// By a picture start code of MPEG-1 or MPEG-2.
    Mpeg2,
    /// By a start code of an object plane of MPEG-4 Visual.
    Mpeg4,
    /// By PES packets alone.
    Packets,
}

/// A stream as the Program Map Table describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamFacts {
    pub pid: u16,
    pub kind: TrackKind,
    pub name: &'static str,
    pub marked: Marked,
    /// It is encrypted sample by sample.
    pub is_encrypted: bool,
}

/// The tables that a stream has brought.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Where the first program's map is.
    pub pmt: Option<u16>,
    /// Its streams.
    pub streams: Vec<StreamFacts>,
    /// Programs beside the first.
    others: usize,
}

impl Tables {
    /// Returns the identifier of the first stream of pictures.
    pub fn pictures(&self) -> Option<u16> {
        self.streams.iter().find(|stream| stream.kind == TrackKind::Pictures).map(|stream| stream.pid)
    }

    /// Reads a Program Association Table; true if the program is another one now.
    pub fn programs(&mut self, section: &[u8]) -> bool {
        if section[0] != 0 || section[5] & 1 == 0 {
            return false;
        }
        let entries = section[8..section.len() - 4].chunks_exact(4);
        // Number 0 is the network's table.
        let mut maps = entries.filter(|entry| entry[..2] != [0, 0]);
        let Some(first) = maps.next() else { return false };
        self.others = maps.count();
        let pmt = Some(pid_of(first[2], first[3]));
        if self.pmt == pmt {
            return false;
        }
        (self.pmt, self.streams) = (pmt, Vec::new());
        true
    }

    /// Reads a Program Map Table; true if it could be read.
    pub fn program(&mut self, section: &[u8]) -> bool {
        if section[0] != 2 || section[5] & 1 == 0 || section.len() < 16 {
            return false;
        }
        let before = 12 + length_of(section[10], section[11]);
        let Some(mut rest) = section.get(before..section.len() - 4) else { return false };
        let mut streams = Vec::new();
        while let [kind, high, low, length_high, length_low, behind @ ..] = rest {
            let Some((descriptors, next)) = behind.split_at_checked(length_of(*length_high, *length_low))
            else {
                break;
            };
            streams.push(described(*kind, pid_of(*high, *low), descriptors));
            rest = next;
            if streams.len() == MOST_STREAMS {
                break;
            }
        }
        self.streams = streams;
        true
    }

    /// Programs and streams that are not counted, in words.
    pub fn left_out(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        if self.others > 0 {
            found.insert(format!("{} further programs of MPEG-TS", self.others));
        }
        let others = self.streams.iter().filter(|stream| stream.kind == TrackKind::Other);
        found.extend(others.map(|stream| format!("a stream of {}", stream.name)));
        found
    }
}

fn pid_of(high: u8, low: u8) -> u16 {
    u16::from(high & 0x1f) << 8 | u16::from(low)
}

fn length_of(high: u8, low: u8) -> usize {
    usize::from(high & 0x0f) << 8 | usize::from(low)
}

/// Returns a stream by its type (section 2.4.4.10, and additions of ATSC, DVB and Apple) and descriptors.
fn described(stream_type: u8, pid: u16, descriptors: &[u8]) -> StreamFacts {
    use Marked::{H264, H265, Mpeg2, Mpeg4, Packets};
    use TrackKind::{Other, Pictures, Sound};
    let (kind, name, marked) = match stream_type {
        0x01 | 0x02 => (Pictures, "MPEG-2 video", Mpeg2),
        0x10 => (Pictures, "MPEG-4 Visual", Mpeg4),
        0x1b | 0xdb => (Pictures, "H.264", H264),
        0x24 => (Pictures, "H.265", H265),
        0x33 => (Pictures, "H.266", Packets),
        0x42 => (Pictures, "AVS video", Packets),
        0xd1 => (Pictures, "Dirac", Packets),
        0xea => (Pictures, "VC-1", Packets),
        0x03 | 0x04 => (Sound, "MPEG audio", Packets),
        0x0f | 0x11 | 0x1c | 0xcf => (Sound, "AAC", Packets),
        0x80 | 0x83 => (Sound, "PCM", Packets),
        0x81 | 0xc1 => (Sound, "AC-3", Packets),
        0x82 | 0x85 | 0x8a => (Sound, "DTS", Packets),
        0x84 | 0x87 | 0xc2 => (Sound, "E-AC-3", Packets),
        0x06 => private(descriptors),
        0x15 => (Other, "timed metadata", Packets),
        0x86 => (Other, "splice information", Packets),
        _ => (Other, "an unknown type", Packets),
    };
    StreamFacts { pid, kind, name, marked, is_encrypted: matches!(stream_type, 0xdb | 0xcf | 0xc1 | 0xc2) }
}

/// Returns private data by its descriptors (section 2.6.8; ETSI EN 300 468 section 6.1).
fn private(mut descriptors: &[u8]) -> (TrackKind, &'static str, Marked) {
    use TrackKind::{Other, Pictures, Sound};
    while let [tag, length, behind @ ..] = descriptors {
        let Some((content, next)) = behind.split_at_checked(usize::from(*length)) else { break };
        let found = match (tag, content.get(..4)) {
            (0x05, Some(b"HEVC")) => Some((Pictures, "H.265", Marked::H265)),
            (0x05, Some(b"AV01")) => Some((Pictures, "AV1", Marked::Packets)),
            (0x05, Some(b"VC-1")) => Some((Pictures, "VC-1", Marked::Packets)),
            (0x05, Some(b"Opus")) => Some((Sound, "Opus", Marked::Packets)),
            (0x05, Some(b"AC-3")) | (0x6a, _) => Some((Sound, "AC-3", Marked::Packets)),
            (0x05, Some(b"EAC3")) | (0x7a, _) => Some((Sound, "E-AC-3", Marked::Packets)),
            (0x7b, _) => Some((Sound, "DTS", Marked::Packets)),
            (0x7c, _) => Some((Sound, "AAC", Marked::Packets)),
            (0x56, _) => Some((Other, "teletext", Marked::Packets)),
            (0x59, _) => Some((Other, "subtitles", Marked::Packets)),
            _ => None,
        };
        if let Some(found) = found {
            return found;
        }
        descriptors = next;
    }
    (Other, "private data", Marked::Packets)
}
