//! Writes the part in front of a file's packets, and a packet.

use super::fault::{Fault, Problem};
use super::guid::Guid;
use super::header::Header;
use super::headers::{ExtendedStreamProperties, FileProperties, LeakyBucket, StreamProperties};
use super::packet::{DataPacket, DataPayload, MOST_PACKET_BYTES};

/// Bytes of an object's fields, as they are written.
struct Content {
    object: Guid,
    bytes: Vec<u8>,
}

impl Content {
    fn of(object: Guid) -> Self {
        Content { object, bytes: Vec::new() }
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    fn u16(self, number: u16) -> Self {
        self.put(&number.to_le_bytes())
    }

    fn u32(self, number: u32) -> Self {
        self.put(&number.to_le_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.put(&number.to_le_bytes())
    }

    /// Returns how many of `field` follow.
    fn count(self, field: &'static str, length: usize) -> Result<Self, Problem> {
        match u16::try_from(length) {
            Ok(count) => Ok(self.u16(count)),
            Err(_) => Err(self.too_long(field, length, u16::MAX.into())),
        }
    }

    /// Returns the same in 32 bits.
    fn long_count(self, field: &'static str, length: usize) -> Result<Self, Problem> {
        match u32::try_from(length) {
            Ok(count) => Ok(self.u32(count)),
            Err(_) => Err(self.too_long(field, length, u32::MAX as usize)),
        }
    }

    fn too_long(&self, field: &'static str, length: usize, limit: usize) -> Problem {
        Fault::TooLong { object: self.object, field, length, limit }.at(0)
    }

    /// Returns the object, with its header.
    fn object(self) -> Vec<u8> {
        let length = self.bytes.len() as u64 + 24;
        [&self.object.0[..], &length.to_le_bytes(), &self.bytes].concat()
    }
}

/// Returns the beginning of a file with this header: the Header Object and the beginning of the Data Object.
/// Behind it are as many packets as the file's properties declare, or any number in a broadcast of no
/// declared number ([`super::FLAG_BROADCAST`]).
///
/// # Errors
///
/// If there is more of something than the number in front of it counts, or a stream's number is not 1 to 127.
pub fn write_head(header: &Header) -> Result<Vec<u8>, Problem> {
    let (mut objects, mut extension) = (vec![file_properties(&header.file)], Vec::new());
    for stream in &header.streams {
        objects.push(stream_properties(stream)?);
    }
    for extended in &header.extended {
        extension.push(extended_properties(extended)?);
    }
    for exclusion in &header.exclusions {
        let id = if exclusion.is_advanced { Guid::ADVANCED_EXCLUSION } else { Guid::BIT_RATE_EXCLUSION };
        let mut content =
            Content::of(id).put(&exclusion.kind.0).count("list of streams", exclusion.streams.len())?;
        for &stream in &exclusion.streams {
            content = content.u16(number(stream)?);
        }
        if exclusion.is_advanced { &mut extension } else { &mut objects }.push(content.object());
    }
    for other in &header.others {
        let object = Content::of(other.id).put(&other.content).object();
        if other.is_extension { &mut extension } else { &mut objects }.push(object);
    }
    let extension = extension.concat();
    let content = Content::of(Guid::HEADER_EXTENSION).put(&Guid::RESERVED_1.0).u16(6);
    objects.push(content.long_count("extension", extension.len())?.put(&extension).object());
    if !header.bit_rates.is_empty() {
        let content = Content::of(Guid::STREAM_BIT_RATES);
        let mut content = content.count("list of bit rates", header.bit_rates.len())?;
        for rate in &header.bit_rates {
            content = content.u16(number(rate.stream)?).u32(rate.average_bps);
        }
        objects.push(content.object());
    }
    let content = Content::of(Guid::HEADER).long_count("list of objects", objects.len())?;
    let head = content.put(&[1, 2]).put(&objects.concat()).object();

    let FileProperties { id, packets, max_packet_bytes, .. } = header.file;
    let media_bytes = packets.saturating_mul(max_packet_bytes.into());
    let content = Content::of(Guid::DATA).put(&id.0).u64(packets).put(&[1, 1]);
    let length = media_bytes.saturating_add(content.bytes.len() as u64 + 24);
    let mut data = content.object();
    data[16..24].copy_from_slice(&length.to_le_bytes());
    Ok([head, data].concat())
}

fn number(stream: u8) -> Result<u16, Problem> {
    match stream {
        1..=127 => Ok(stream.into()),
        _ => Err(Fault::StreamNumber(stream).at(0)),
    }
}

fn file_properties(of: &FileProperties) -> Vec<u8> {
    let long = [of.file_bytes, of.created_100ns, of.packets, of.play_100ns, of.send_100ns, of.preroll_ms];
    let short = [of.flags, of.min_packet_bytes, of.max_packet_bytes, of.max_bit_rate_bps];
    let content = Content::of(Guid::FILE_PROPERTIES).put(&of.id.0);
    let content = long.into_iter().fold(content, Content::u64);
    short.into_iter().fold(content, Content::u32).object()
}

fn stream_properties(of: &StreamProperties) -> Result<Vec<u8>, Problem> {
    let content = Content::of(Guid::STREAM_PROPERTIES).put(&of.kind.0).put(&of.error_correction.0);
    let content = content
        .u64(of.time_offset_100ns)
        .long_count("type-specific data", of.type_specific.len())?
        .long_count("error correction data", of.correction_data.len())?
        .u16(number(of.number)? | if of.is_encrypted { 0x8000 } else { 0 })
        .u32(0);
    Ok(content.put(&of.type_specific).put(&of.correction_data).object())
}

fn extended_properties(of: &ExtendedStreamProperties) -> Result<Vec<u8>, Problem> {
    let mut content = Content::of(Guid::EXTENDED_STREAM).u64(of.start_ms).u64(of.end_ms);
    for LeakyBucket { rate_bps, buffer_ms, initial_ms } in [of.average, of.peak] {
        content = content.u32(rate_bps).u32(buffer_ms).u32(initial_ms);
    }
    content = content.u32(of.max_object_bytes).u32(of.flags).u16(number(of.number)?);
    content = content.u16(of.language).u64(of.frame_100ns);
    content = content.count("list of names", of.names.len())?;
    content = content.count("list of payload extensions", of.extensions.len())?;
    for name in &of.names {
        let letters: Vec<u8> = name.name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        content = content.u16(name.language).count("stream name", letters.len())?.put(&letters);
    }
    for extension in &of.extensions {
        content = content.put(&extension.system.0).u16(extension.bytes);
        let description = &extension.description;
        content = content.long_count("payload extension's description", description.len())?.put(description);
    }
    if let Some(properties) = &of.properties {
        content = content.put(&stream_properties(properties)?);
    }
    Ok(content.object())
}

/// How long a packet is that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketSize {
    /// This many bytes, with padding, as in a file.
    Fixed(u32),
    /// The bytes that its payloads need, with its length in 16 bits, as RTP carries it ([MS-RTSP] section
    /// 2.2.1).
    Stripped,
}

/// Error correction data without any (3 B), flags (2 B), packet or padding length (2 B), send time and duration (6 B).
const FRONT_BYTES: usize = 13;
/// Stream, media object number, offset, length of replicated data, 8 B of these.
const PAYLOAD_FRONT_BYTES: usize = 15;
/// Payloads that a packet can have.
const MOST_PAYLOADS: usize = 63;

/// Returns the bytes of data that one more payload can have in a packet of at most `most_bytes`; `None` if it
/// has no place at all.
pub(super) fn room(payloads: &[DataPayload<'_>], most_bytes: usize) -> Option<usize> {
    let front = match payloads.len() {
        0 => FRONT_BYTES + PAYLOAD_FRONT_BYTES,
        MOST_PAYLOADS.. => return None,
        1 => packet_bytes(payloads) + 1 + 2 + 2 + PAYLOAD_FRONT_BYTES,
        _ => packet_bytes(payloads) + 2 + PAYLOAD_FRONT_BYTES,
    };
    most_bytes.checked_sub(front)
}

/// Returns the bytes of a packet with these payloads, without padding.
pub(super) fn packet_bytes(payloads: &[DataPayload<'_>]) -> usize {
    let data: usize = payloads.iter().map(|payload| PAYLOAD_FRONT_BYTES + payload.data.len()).sum();
    match payloads {
        [_] => FRONT_BYTES + data,
        // How many there are, and how long each is.
        _ => FRONT_BYTES + 1 + 2 * payloads.len() + data,
    }
}

/// Writes a packet with the payloads of `packet`; its `padding_bytes` do not count. A media object's number
/// is written in its lowest 8 bits.
///
/// # Errors
///
/// If there is no payload, or more than 63, one without its fields about the media object, one of no stream,
/// or they do not fit into `size`, or into [`MOST_PACKET_BYTES`].
pub fn write_packet(packet: &DataPacket<'_>, size: PacketSize) -> Result<Vec<u8>, Problem> {
    let payloads = &packet.payloads;
    let needed = packet_bytes(payloads);
    let limit = match size {
        PacketSize::Fixed(bytes) => bytes,
        PacketSize::Stripped => MOST_PACKET_BYTES,
    };
    if payloads.is_empty() {
        return Err(Fault::PayloadFlags(0).at(0));
    }
    if payloads.len() > MOST_PAYLOADS {
        let (field, length, limit) = ("list of payloads", payloads.len(), MOST_PAYLOADS);
        return Err(Fault::TooLong { object: Guid::DATA, field, length, limit }.at(0));
    }
    if let PacketSize::Fixed(said) = size
        && said > MOST_PACKET_BYTES
    {
        return Err(Fault::PacketLength { said, found: MOST_PACKET_BYTES }.at(0));
    }
    if needed > limit as usize {
        return Err(Fault::PacketLength { said: needed as u32, found: limit }.at(0));
    }
    let is_multiple = payloads.len() > 1;
    let mut bytes = Vec::with_capacity(needed);
    // Error correction data of 2 B that correct nothing, which all encoders write.
    bytes.extend([0x82, 0, 0]);
    let (flag, length) = match size {
        PacketSize::Fixed(bytes) => (0x10, bytes as usize - needed),
        PacketSize::Stripped => (0x40, needed),
    };
    // Numbers of streams and media objects have 8 bits, offsets 32, lengths of replicated data 8.
    bytes.extend([flag | u8::from(is_multiple), 0x5d]);
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(packet.send_ms.to_le_bytes());
    bytes.extend(packet.duration_ms.to_le_bytes());
    if is_multiple {
        // Lengths of payloads have 16 bits.
        bytes.push(0x80 | payloads.len() as u8);
    }
    for payload in payloads {
        let Some(of) = payload.of else { return Err(Fault::ReplicatedData(0).at(bytes.len())) };
        let stream = number(payload.stream)? as u8;
        bytes.extend([stream | if payload.is_key { 0x80 } else { 0 }, payload.object as u8]);
        bytes.extend(payload.offset.to_le_bytes());
        bytes.push(8);
        bytes.extend(of.bytes.to_le_bytes());
        bytes.extend(of.presentation_ms.to_le_bytes());
        if is_multiple {
            bytes.extend((payload.data.len() as u16).to_le_bytes());
        }
        bytes.extend(payload.data);
    }
    if let PacketSize::Fixed(fixed) = size {
        bytes.resize(fixed as usize, 0);
    }
    Ok(bytes)
}
