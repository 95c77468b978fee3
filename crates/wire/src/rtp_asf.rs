//! Payloads of RTP with ASF data packets, `x-asf-pf/1000`, and with a packet pair's random bytes,
//! `x-wms-rtx/1000` ([MS-RTSP] sections 2.2.1 and 2.2.3). RTP's own header is not here: its timestamp is the
//! first packet's Send Time in ms, its marker means that a packet ends here, and a packet pair has the
//! timestamp 0.
//!
//! The specification has the length of a whole ASF packet count the packet alone. FFmpeg (`rtpdec_asf.c`),
//! which was written against Windows Media Services, includes the header before it in the count; GStreamer
//! (`rtpasfdepay`) ends a packet at the payload's end where a length exceeds it, and therefore plays either.
//! It is written as [`LengthOf`] requires, and read as the packet that ends where the payload does.

mod pair;

use streamgauge_base::Chunk;

use crate::body::{Body, Written};

pub use pair::{
    LEAST_RANDOM_BYTES, RtpPacketPair, THREE_RANDOM_BYTES, TWO_RANDOM_BYTES, place_of_three, place_of_two,
};

/// Bytes of a header without its optional fields.
const LEAST_HEADER_BYTES: usize = 4;

const KEY: u8 = 0x80;
const LENGTH: u8 = 0x40;
const RELATIVE_TIMESTAMP: u8 = 0x20;
const DURATION: u8 = 0x10;
const LOCATION: u8 = 0x08;

/// Most bytes of an ASF packet, which 24 bits hold.
pub const MOST_PACKET_BYTES: usize = 0xff_ffff;

/// The bytes that the length of a whole packet counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LengthOf {
    /// The ASF packet, as [MS-RTSP] section 2.2.1.3 has it.
    Packet,
    /// The packet and the header before it, as FFmpeg reads it.
    HeaderAndPacket,
}

/// The content of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitContent<'a> {
    /// A whole ASF data packet.
    Packet(Body<'a>),
    /// Some of one, up to the payload's end.
    Fragment {
        /// Bytes of the packet before it.
        offset: u32,
        /// Its bytes.
        bytes: Body<'a>,
    },
}

/// An ASF data packet, or some of one, with the header before it ([MS-RTSP] section 2.2.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsfUnit<'a> {
    /// The packet has a key frame.
    pub is_key: bool,
    /// Its Send Time less the RTP timestamp, in ms; absent if that is 0.
    pub relative_ms: Option<i32>,
    /// Its duration in ms.
    pub duration_ms: Option<u32>,
    /// Its number in the file, for those that asked for it (`com.microsoft.wm.locid`).
    pub location: Option<u32>,
    /// Its content.
    pub content: UnitContent<'a>,
}

/// Faults of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It ends within a header.
    #[error("cut short within a header")]
    Truncated,
    /// A packet is longer than the rest, or shorter than the header that its length counts.
    #[error("a packet of {length} B where {left} B are left")]
    Length {
        /// The length in its header.
        length: u32,
        /// The rest of the payload, from the header on.
        left: u32,
    },
    /// A header that is counted only.
    #[error("filler where a header is needed")]
    Filler,
}

impl<'a> AsfUnit<'a> {
    /// Returns a whole packet.
    pub fn packet(is_key: bool, packet: Body<'a>) -> Self {
        let content = UnitContent::Packet(packet);
        AsfUnit { is_key, relative_ms: None, duration_ms: None, location: None, content }
    }

    /// Returns `packet` in as few fragments as payloads of at most `most_bytes` hold, one each; whole if it
    /// fits. Panics below 17 B, which the longest header leaves nothing of.
    pub fn split(&self, packet: Body<'a>, most_bytes: usize) -> impl Iterator<Item = Self> + use<'a> {
        let header_bytes = self.header_bytes();
        let room = most_bytes.checked_sub(header_bytes).filter(|room| *room > 0).expect("room for media");
        let (mut offset, mut rest, unit) = (0, Some(packet), *self);
        std::iter::from_fn(move || {
            let bytes = rest.take()?;
            if offset == 0 && bytes.len() <= room {
                return Some(AsfUnit { content: UnitContent::Packet(bytes), ..unit });
            }
            let (bytes, after) = bytes.split_at(room.min(bytes.len()));
            let content = UnitContent::Fragment { offset, bytes };
            offset += bytes.len() as u32;
            rest = (!after.is_empty()).then_some(after);
            Some(AsfUnit { content, ..unit })
        })
    }

    /// Returns the bytes before its content: 4 to 16.
    pub fn header_bytes(&self) -> usize {
        let optional = [self.relative_ms.is_some(), self.duration_ms.is_some(), self.location.is_some()];
        LEAST_HEADER_BYTES + 4 * optional.into_iter().filter(|is_there| *is_there).count()
    }

    fn write_to(&self, length_of: LengthOf, out: &mut Written) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let (is_packet, number, bytes) = match self.content {
            UnitContent::Packet(packet) => {
                let counted = if length_of == LengthOf::Packet { 0 } else { self.header_bytes() };
                (true, packet.len() + counted, packet)
            }
            UnitContent::Fragment { offset, bytes } => (false, offset as usize, bytes),
        };
        assert!(number <= MOST_PACKET_BYTES, "ASF packets are below 16 MB");
        let [_, high, middle, low] = (number as u32).to_be_bytes();
        let flags = flag(self.is_key, KEY)
            | flag(is_packet, LENGTH)
            | flag(self.relative_ms.is_some(), RELATIVE_TIMESTAMP)
            | flag(self.duration_ms.is_some(), DURATION)
            | flag(self.location.is_some(), LOCATION);
        out.put(&[flags, high, middle, low]);
        let optional = [self.relative_ms.map(i32::cast_unsigned), self.duration_ms, self.location];
        optional.into_iter().flatten().for_each(|number| out.put(&number.to_be_bytes()));
        out.put_body(bytes);
    }

    /// Reads the first unit, and returns the rest behind it.
    fn read(payload: Body<'a>, length_of: LengthOf) -> Result<(Self, Body<'a>), Fault> {
        let word = |at: usize| {
            let bytes = payload.head().get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
            let missing = if payload.len() < at + 4 { Fault::Truncated } else { Fault::Filler };
            bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or(missing)
        };
        let first = word(0)?;
        let (flags, number) = ((first >> 24) as u8, first & 0xff_ffff);
        let mut at = LEAST_HEADER_BYTES;
        let mut optional = |flag: u8| match flags & flag {
            0 => Ok(None),
            _ => {
                at += 4;
                word(at - 4).map(Some)
            }
        };
        let relative_ms = optional(RELATIVE_TIMESTAMP)?.map(u32::cast_signed);
        let (duration_ms, location) = (optional(DURATION)?, optional(LOCATION)?);
        let (_, body) = payload.split_at(at);
        let (content, rest) = match flags & LENGTH {
            0 => (UnitContent::Fragment { offset: number, bytes: body }, Body::default()),
            _ => {
                let counted = if length_of == LengthOf::Packet { 0 } else { at };
                let bytes = (number as usize).checked_sub(counted).filter(|bytes| *bytes <= body.len());
                let wrong = Fault::Length { length: number, left: payload.len() as u32 };
                let (packet, rest) = body.split_at(bytes.ok_or(wrong)?);
                (UnitContent::Packet(packet), rest)
            }
        };
        Ok((AsfUnit { is_key: flags & KEY != 0, relative_ms, duration_ms, location, content }, rest))
    }
}

/// Returns the units of a payload, in their order. The first fault is the last item.
pub fn parse<'a>(payload: impl Into<Body<'a>>) -> Units<'a> {
    let rest = payload.into();
    let ends = |length_of| Units { rest, length_of }.all(|unit| unit.is_ok());
    let by_letter = ends(LengthOf::Packet) || !ends(LengthOf::HeaderAndPacket);
    let length_of = if by_letter { LengthOf::Packet } else { LengthOf::HeaderAndPacket };
    Units { rest, length_of }
}

/// See [`parse`].
#[derive(Clone, Debug)]
pub struct Units<'a> {
    rest: Body<'a>,
    length_of: LengthOf,
}

impl Units<'_> {
    /// Returns the bytes that lengths count in this payload.
    pub fn length_of(&self) -> LengthOf {
        self.length_of
    }
}

impl<'a> Iterator for Units<'a> {
    type Item = Result<AsfUnit<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        Some(AsfUnit::read(rest, self.length_of).map(|(unit, rest)| {
            self.rest = rest;
            unit
        }))
    }
}

/// Writes the payload of `units`, with a fragment as the last. Filler before another becomes zeros. Panics if
/// a packet is above [`MOST_PACKET_BYTES`].
pub fn write(units: &[AsfUnit<'_>], length_of: LengthOf) -> Chunk {
    let mut out = Written::default();
    units.iter().for_each(|unit| unit.write_to(length_of, &mut out));
    out.into_chunk()
}

#[cfg(test)]
mod tests;
