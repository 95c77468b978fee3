//! One elementary stream: its PES packets (ISO/IEC 13818-1 section 2.4.3.6) and the access units in them.

use super::super::TrackKind;
use super::psi::{Marked, StreamFacts};

/// A PES packet's header is no longer: nine bytes and the length in the last of them.
const MOST_HEADER: usize = 9 + 255;

/// Time stamps of one segment that are kept; a segment with more pictures has them evenly.
const MOST_STAMPS: usize = 1 << 16;

/// Where in its PES packets a stream is.
enum Place {
    /// Nothing has begun, or a packet is missing.
    Nowhere,
    /// In a header; these bytes of it are here.
    Header(Vec<u8>),
    Payload,
}

/// A stream, while its packets arrive.
pub struct Stream {
    pub pid: u16,
    pub kind: TrackKind,
    pub name: &'static str,
    /// Its payload is scrambled or encrypted.
    pub is_scrambled: bool,
    /// A later table does not name it.
    pub is_gone: bool,
    marked: Marked,
    counter: Option<u8>,
    place: Place,
    /// The last four bytes of its payload.
    window: u32,
    /// PES packets with a time stamp, and these.
    packets: u32,
    packet_stamps: Vec<u64>,
    /// Access units that the codec itself marks, and the time stamps of those that begin a packet.
    units: u32,
    unit_stamps: Vec<u64>,
    /// The time stamp of the packet in which no unit has begun yet.
    stamp: Option<u64>,
    /// One field of a picture of MPEG-2 has come.
    is_half: bool,
    /// Bytes of the picture coding extension that are still to come.
    extension: Option<u8>,
}

impl Stream {
    /// Returns one that a table describes.
    pub fn new(facts: &StreamFacts) -> Self {
        Stream {
            pid: facts.pid,
            kind: facts.kind,
            name: facts.name,
            is_scrambled: facts.is_encrypted,
            is_gone: false,
            marked: facts.marked,
            counter: None,
            place: Place::Nowhere,
            window: u32::MAX,
            packets: 0,
            packet_stamps: Vec::new(),
            units: 0,
            unit_stamps: Vec::new(),
            stamp: None,
            is_half: false,
            extension: None,
        }
    }

    /// Returns whether these facts are of it.
    pub fn is(&self, facts: &StreamFacts) -> bool {
        self.pid == facts.pid && self.marked == facts.marked && self.kind == facts.kind
    }

    /// Takes the payload of a packet with this continuity counter; `breaks`: the counter may jump here.
    pub fn packet(
        &mut self,
        counter: u8,
        breaks: bool,
        begins: bool,
        is_scrambled: bool,
        mut payload: &[u8],
    ) {
        match self.counter.replace(counter) {
            // The same packet may be sent twice (section 2.4.3.3).
            Some(before) if before == counter && !breaks => return,
            Some(before) if (before + 1) & 0x0f != counter && !breaks => {
                (self.place, self.window) = (Place::Nowhere, u32::MAX);
            }
            _ => {}
        }
        if self.kind != TrackKind::Pictures {
            return;
        }
        self.is_scrambled |= is_scrambled;
        if begins {
            (self.place, self.window) = (Place::Header(Vec::new()), u32::MAX);
        }
        if let Place::Header(header) = &mut self.place {
            while header.len() < header_bytes(header) && !payload.is_empty() {
                let (now, rest) = payload.split_at((header_bytes(header) - header.len()).min(payload.len()));
                header.extend(now);
                payload = rest;
            }
            if header.len() < header_bytes(header) {
                return;
            }
            let header = std::mem::take(header);
            self.place = if header.starts_with(&[0, 0, 1]) { Place::Payload } else { Place::Nowhere };
            self.stamp = stamp_of(&header);
            if let Some(stamp) = self.stamp {
                self.packets = self.packets.saturating_add(1);
                keep(&mut self.packet_stamps, stamp);
            }
        }
        if matches!(self.place, Place::Payload) && self.marked != Marked::Packets {
            payload.iter().for_each(|byte| self.byte(*byte));
        }
    }

    /// Looks for a start code that ends with this byte.
    fn byte(&mut self, byte: u8) {
        self.window = self.window << 8 | u32::from(byte);
        if let Some(left) = self.extension {
            self.extension = left.checked_sub(1);
            // The last byte of three has picture_structure in its last two bits: 3 is a whole frame (ISO/IEC 13818-2
            // section 6.2.3.1).
            if left == 1 {
                self.extension = None;
                self.structure(byte & 3);
            } else if left == 3 && byte >> 4 != 8 {
                self.extension = None;
            }
            return;
        }
        if self.window >> 8 != 1 {
            return;
        }
        let is_unit = match self.marked {
            Marked::H264 => byte & 0x1f == 9,
            Marked::H265 => byte >> 1 & 0x3f == 35,
            Marked::Mpeg4 => byte == 0xb6,
            Marked::Mpeg2 if byte == 0xb5 => {
                self.extension = Some(3);
                false
            }
            Marked::Mpeg2 => byte == 0,
            Marked::Packets => false,
        };
        if is_unit {
            self.units = self.units.saturating_add(1);
            if let Some(stamp) = self.stamp.take() {
                keep(&mut self.unit_stamps, stamp);
            }
        }
    }

    /// Notes whether the picture that began last is a frame or a field; two fields are one picture.
    fn structure(&mut self, structure: u8) {
        if structure == 3 {
            self.is_half = false;
        } else {
            self.units -= u32::from(self.is_half);
            self.is_half = !self.is_half;
        }
    }

    /// Returns the number of received access units, and their known time stamps.
    pub fn units(&self) -> (u32, &[u64]) {
        // A stream may do without delimiters outside the letter of the standard.
        match self.units {
            0 => (self.packets, &self.packet_stamps),
            units => (units, &self.unit_stamps),
        }
    }
}

fn keep(stamps: &mut Vec<u64>, stamp: u64) {
    if stamps.len() < MOST_STAMPS {
        stamps.push(stamp);
    }
}

/// Returns the bytes of a PES packet's header, as far as its beginning states them.
fn header_bytes(header: &[u8]) -> usize {
    match header.get(3) {
        // Streams without a header of their own (section 2.4.3.7, stream_id).
        Some(0xbc | 0xbe | 0xbf | 0xf0..=0xf2 | 0xf8 | 0xff) => 6,
        _ => header.get(8).map_or(9, |more| 9 + usize::from(*more)).min(MOST_HEADER),
    }
}

/// Returns the presentation time stamp, in 33 bits.
pub fn stamp_of(header: &[u8]) -> Option<u64> {
    if header.len() < 14 || header[7] & 0x80 == 0 {
        return None;
    }
    let [first, second, third, fourth, fifth] = header[9..14] else { return None };
    let bits = |byte: u8| u64::from(byte);
    Some(
        bits(first >> 1 & 7) << 30
            | bits(second) << 22
            | bits(third >> 1) << 15
            | bits(fourth) << 7
            | bits(fifth >> 1),
    )
}
