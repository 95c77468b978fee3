//! Data packets: the fields in front of the payloads, and each payload (section 5.2).

use super::fault::{Fault, Problem};

/// Bytes of the longest packet that is read: the limit of the 16 bits in which servers send its length.
pub const MOST_PACKET_BYTES: u32 = u16::MAX as u32;
/// Bytes of the longest media object.
pub const MOST_OBJECT_BYTES: u32 = 16 << 20;

/// Bit of a packet's first byte: error correction data are in front.
const CORRECTION_PRESENT: u8 = 0x80;
/// Bits of it that have to be 0: opaque data, and another form of length.
const CORRECTION_RESERVED: u8 = 0x70;

/// A data packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DataPacket<'a> {
    /// When it is sent, in ms.
    pub send_ms: u32,
    /// How long it plays, in ms.
    pub duration_ms: u16,
    /// Bytes behind its payloads that are none of it, up to the packet's end.
    pub padding_bytes: u32,
    /// Its payloads in their order. One that is compressed, of several media objects, is taken apart.
    pub payloads: Vec<DataPayload<'a>>,
}

/// A part of a media object, or all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataPayload<'a> {
    /// Its stream's number; 0 is no stream's.
    pub stream: u8,
    /// True if it is marked as part of a key frame.
    pub is_key: bool,
    /// The media object's number, which wraps.
    pub object: u32,
    /// Where it begins in the media object.
    pub offset: u32,
    /// Its fields about the media object; `None` where there are no replicated data.
    pub of: Option<ObjectFields>,
    /// Its bytes.
    pub data: &'a [u8],
}

/// The fields of a media object that each payload repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectFields {
    /// Bytes of the whole media object, at most [`MOST_OBJECT_BYTES`].
    pub bytes: u32,
    /// When it is presented, in ms, the preroll included.
    pub presentation_ms: u32,
}

impl<'a> DataPacket<'a> {
    /// Reads a packet. Bytes of `packet` behind its declared length are padding.
    ///
    /// # Errors
    ///
    /// If it is cut short or contradicts itself.
    pub fn read(packet: &'a [u8]) -> Result<Self, Problem> {
        let front = Front::read(packet)?;
        let mut bytes = Cursor { packet: &packet[..front.payloads_end], at: front.payloads_at };
        let mut payloads = Vec::new();
        if front.is_multiple {
            let flags = bytes.number("payload flags", 1)? as u8;
            let (count, length_type) = (flags & 0x3f, flags >> 6);
            if count == 0 || length_type == 0 {
                return Err(Fault::PayloadFlags(flags).at(bytes.at - 1));
            }
            for _ in 0..count {
                bytes.payload(front.property_flags, Some(length_type), &mut payloads)?;
            }
        } else {
            bytes.payload(front.property_flags, None, &mut payloads)?;
        }
        let padding_bytes = (packet.len() - bytes.at) as u32;
        Ok(DataPacket { send_ms: front.send_ms, duration_ms: front.duration_ms, padding_bytes, payloads })
    }

    /// Returns the stream that all of its payloads are of, if they are of one.
    pub fn stream(&self) -> Option<u8> {
        let first = self.payloads.first()?.stream;
        self.payloads.iter().all(|payload| payload.stream == first).then_some(first)
    }

    /// Returns true if all of its payloads are of key frames.
    pub fn is_key(&self) -> bool {
        self.payloads.iter().all(|payload| payload.is_key)
    }
}

/// Returns the same packet without its padding and with its length in 16 bits, as RTP carries it ([MS-RTSP]
/// section 2.2.1).
///
/// # Errors
///
/// If the part in front of the payloads is cut short or contradicts itself, or the packet is longer than
/// [`MOST_PACKET_BYTES`].
pub fn without_padding(packet: &[u8]) -> Result<Vec<u8>, Problem> {
    let front = Front::read(packet)?;
    let payloads = &packet[front.payloads_at..front.payloads_end];
    let sequence = &packet[front.sequence.0..front.sequence.1];
    // Two bytes of flags, the length, the send time and the duration.
    let length = front.flags_at + 2 + 2 + sequence.len() + 6 + payloads.len();
    let Ok(said) = u16::try_from(length) else {
        return Err(Fault::PacketLength { said: length as u32, found: MOST_PACKET_BYTES }.at(0));
    };
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(&packet[..front.flags_at]);
    bytes.push(packet[front.flags_at] & 0x87 | 0x40);
    bytes.push(front.property_flags);
    bytes.extend(said.to_le_bytes());
    bytes.extend(sequence);
    bytes.extend(front.send_ms.to_le_bytes());
    bytes.extend(front.duration_ms.to_le_bytes());
    bytes.extend(payloads);
    Ok(bytes)
}

/// The fields in front of a packet's payloads: error correction data and the types of the lengths that
/// follow.
struct Front {
    /// Where the flags begin, behind the error correction data.
    flags_at: usize,
    is_multiple: bool,
    property_flags: u8,
    /// Where its sequence number begins and ends.
    sequence: (usize, usize),
    send_ms: u32,
    duration_ms: u16,
    payloads_at: usize,
    /// Where the padding begins.
    payloads_end: usize,
}

impl Front {
    fn read(packet: &[u8]) -> Result<Self, Problem> {
        let mut bytes = Cursor { packet, at: 0 };
        let mut flags = bytes.number("packet", 1)? as u8;
        if flags & CORRECTION_PRESENT != 0 {
            if flags & CORRECTION_RESERVED != 0 {
                return Err(Fault::ErrorCorrection(flags).at(0));
            }
            bytes.take("error correction data", (flags & 0xf).into())?;
            flags = bytes.number("length type flags", 1)? as u8;
        }
        let flags_at = bytes.at - 1;
        let property_flags = bytes.number("property flags", 1)? as u8;
        let said_at = bytes.at;
        let said = bytes.sized("packet length", flags >> 5)?;
        let sequence_at = bytes.at;
        bytes.sized("sequence", flags >> 1)?;
        let sequence = (sequence_at, bytes.at);
        let padding = bytes.sized("padding length", flags >> 3)?.unwrap_or(0);
        let send_ms = bytes.number("send time", 4)?;
        let duration_ms = bytes.number("duration", 2)? as u16;
        let payloads_at = bytes.at;

        let found = packet.len() as u32;
        let end = match said {
            Some(said) if said > found || (said as usize) < payloads_at => {
                return Err(Fault::PacketLength { said, found }.at(said_at));
            }
            Some(said) => said as usize,
            None => packet.len(),
        };
        let found = (end - payloads_at) as u32;
        let Some(payloads_bytes) = found.checked_sub(padding) else {
            return Err(Fault::Padding { padding, found }.at(payloads_at));
        };
        Ok(Front {
            flags_at,
            is_multiple: flags & 1 != 0,
            property_flags,
            sequence,
            send_ms,
            duration_ms,
            payloads_at,
            payloads_end: payloads_at + payloads_bytes as usize,
        })
    }
}

/// A place in a packet.
struct Cursor<'a> {
    packet: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn left(&self) -> &'a [u8] {
        &self.packet[self.at..]
    }

    fn take(&mut self, what: &'static str, count: usize) -> Result<&'a [u8], Problem> {
        let Some(taken) = self.left().get(..count) else {
            let missing = (count - self.left().len()) as u64;
            return Err(Fault::Truncated { what, missing }.at(self.at));
        };
        self.at += count;
        Ok(taken)
    }

    /// Returns a number of up to 4 bytes.
    fn number(&mut self, what: &'static str, bytes: usize) -> Result<u32, Problem> {
        let taken = self.take(what, bytes)?;
        Ok(taken.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    /// Reads a number of the length in the lowest two bits of `length_type`: none, 1, 2 or 4 bytes.
    fn sized(&mut self, what: &'static str, length_type: u8) -> Result<Option<u32>, Problem> {
        match length_type & 3 {
            0 => Ok(None),
            3 => self.number(what, 4).map(Some),
            bytes => self.number(what, bytes.into()).map(Some),
        }
    }

    /// Reads one payload with the fields in front of it. Where there are several, each has its length in
    /// front.
    fn payload(
        &mut self,
        flags: u8,
        length_type: Option<u8>,
        payloads: &mut Vec<DataPayload<'a>>,
    ) -> Result<(), Problem> {
        let stream = self.number("stream number", 1)? as u8;
        let (stream, is_key) = (stream & 0x7f, stream & 0x80 != 0);
        let object = self.sized("media object number", flags >> 4)?.unwrap_or(0);
        let offset_at = self.at;
        let offset = self.sized("offset into media object", flags >> 2)?.unwrap_or(0);
        let replicated_at = self.at;
        let replicated = self.sized("replicated data length", flags)?.unwrap_or(0);
        let of = match replicated {
            1 => {
                let delta_ms = self.number("presentation time delta", 1)?;
                let mut rest = Cursor { packet: self.packet, at: self.at };
                let length = rest.data_bytes(length_type)?;
                self.at = rest.at + length;
                rest.packet = &self.packet[..self.at];
                let mut next = DataPayload { stream, is_key, object, offset: 0, of: None, data: &[] };
                // The field of the offset holds the first one's presentation time here.
                let mut presentation_ms = offset;
                while !rest.left().is_empty() {
                    let bytes = rest.number("sub-payload length", 1)?;
                    next.data = rest.take("sub-payload", bytes as usize)?;
                    next.of = Some(ObjectFields { bytes, presentation_ms });
                    payloads.push(next);
                    next.object = next.object.wrapping_add(1);
                    presentation_ms = presentation_ms.wrapping_add(delta_ms);
                }
                return Ok(());
            }
            0 => None,
            2..8 => return Err(Fault::ReplicatedData(replicated).at(replicated_at)),
            _ => {
                let (bytes, presentation_ms) =
                    (self.number("media object size", 4)?, self.number("presentation time", 4)?);
                if bytes > MOST_OBJECT_BYTES {
                    return Err(Fault::ObjectTooLong { bytes, limit: MOST_OBJECT_BYTES }.at(self.at - 8));
                }
                self.take("replicated data", replicated as usize - 8)?;
                Some(ObjectFields { bytes, presentation_ms })
            }
        };
        let length = self.data_bytes(length_type)?;
        let data = self.take("payload", length)?;
        let end = u64::from(offset) + data.len() as u64;
        if let Some(ObjectFields { bytes: object_bytes, .. }) = of
            && end > object_bytes.into()
        {
            return Err(Fault::OutsideObject { offset, end, object_bytes }.at(offset_at));
        }
        payloads.push(DataPayload { stream, is_key, object, offset, of, data });
        Ok(())
    }

    /// Returns the length of the next payload: the declared one, or up to the padding.
    fn data_bytes(&mut self, length_type: Option<u8>) -> Result<usize, Problem> {
        let Some(length_type) = length_type else { return Ok(self.left().len()) };
        let length = self.sized("payload length", length_type)?.unwrap_or(0) as usize;
        match length.checked_sub(self.left().len()) {
            None | Some(0) => Ok(length),
            Some(missing) => Err(Fault::Truncated { what: "payload", missing: missing as u64 }.at(self.at)),
        }
    }
}
