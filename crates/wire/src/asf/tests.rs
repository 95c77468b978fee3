//! A writer of packets in every form, and helpers that the parts of the test share.

mod broken;
mod files;
mod headers;
mod multiplexed;
mod objects;
mod pacing;
mod packets;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// A number in none, 1, 2 or 4 bytes.
fn sized(length_type: u8, number: u32) -> Vec<u8> {
    number.to_le_bytes()[..[0, 1, 2, 4][usize::from(length_type)]].to_vec()
}

/// Returns the bits of a number that a field of this length holds.
fn kept(length_type: u8, number: u32) -> u32 {
    [0, 0xff, 0xffff, u32::MAX][usize::from(length_type)] & number
}

/// How a packet is written: the types of length of its fields, and the values of fields unrelated to its
/// payloads.
#[derive(Clone, Copy, Debug)]
struct Form {
    correction_bytes: Option<u8>,
    packet_length: u8,
    sequence: u8,
    padding: u8,
    object: u8,
    offset: u8,
    replicated: u8,
    /// `None`: a single payload, which extends to the end.
    payload_length: Option<u8>,
    /// Bytes of padding within the packet's length, as far as its length's type allows.
    padding_bytes: u32,
}

impl Form {
    /// The one that our own packets have.
    const OWN: Form = Form {
        correction_bytes: Some(2),
        packet_length: 2,
        sequence: 0,
        padding: 0,
        object: 1,
        offset: 3,
        replicated: 1,
        payload_length: Some(2),
        padding_bytes: 0,
    };

    fn front(&self, payload: &DataPayload<'_>) -> Vec<u8> {
        let stream = payload.stream | u8::from(payload.is_key) << 7;
        [vec![stream], sized(self.object, payload.object), sized(self.offset, payload.offset)].concat()
    }

    fn payload(&self, payload: &DataPayload<'_>) -> Vec<u8> {
        let replicated = match payload.of {
            Some(of) => {
                [sized(self.replicated, 8), sized(3, of.bytes), sized(3, of.presentation_ms)].concat()
            }
            None => sized(self.replicated, 0),
        };
        [self.front(payload), replicated, self.data(payload.data)].concat()
    }

    fn data(&self, data: &[u8]) -> Vec<u8> {
        let length = self.payload_length.map(|length_type| sized(length_type, data.len() as u32));
        [length.unwrap_or_default(), data.to_vec()].concat()
    }

    fn padded(&self) -> u32 {
        kept(self.padding, self.padding_bytes)
    }

    /// Returns a packet with the number of payloads in front of them.
    fn packet(&self, send_ms: u32, duration_ms: u16, payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut front = Vec::new();
        if let Some(bytes) = self.correction_bytes {
            front.push(0x80 | bytes);
            front.extend(vec![0xee; bytes.into()]);
        }
        let is_multiple = u8::from(self.payload_length.is_some());
        front.push(is_multiple | self.sequence << 1 | self.padding << 3 | self.packet_length << 5);
        front.push(self.replicated | self.offset << 2 | self.object << 4 | 0x40);
        let mut rest = [sized(self.sequence, 0x0103_0507), sized(self.padding, self.padded())].concat();
        rest.extend(send_ms.to_le_bytes());
        rest.extend(duration_ms.to_le_bytes());
        if let Some(length_type) = self.payload_length {
            rest.push(length_type << 6 | payloads.len() as u8);
        }
        rest.extend(payloads.concat());
        rest.extend(vec![0; self.padded() as usize]);
        let length = front.len() + sized(self.packet_length, 0).len() + rest.len();
        [front, sized(self.packet_length, length as u32), rest].concat()
    }
}

fn video(number: u8) -> StreamProperties {
    let format =
        VideoFormat { width: 176, height: 144, pixel_bits: 24, codec: *b"WMV2", codec_data: vec![1; 4] };
    StreamProperties {
        number,
        kind: Guid::VIDEO,
        error_correction: Guid::NO_CORRECTION,
        type_specific: format.write(),
        ..StreamProperties::default()
    }
}

fn audio(number: u8) -> StreamProperties {
    let format = AudioFormat {
        codec: 0x161,
        channels: 1,
        sample_rate_hz: 22_050,
        byte_rate: 4000,
        block_bytes: 186,
        sample_bits: 16,
        codec_data: vec![0; 10],
    };
    StreamProperties {
        number,
        kind: Guid::AUDIO,
        error_correction: Guid::AUDIO_SPREAD,
        type_specific: format.write(),
        correction_data: vec![1, 186, 0, 186, 0, 1, 0, 0],
        ..StreamProperties::default()
    }
}

/// A file of these streams and packets, each of `packet_bytes`.
fn file(
    streams: &[StreamProperties],
    preroll_ms: u64,
    packet_bytes: u32,
    packets: &[DataPacket<'_>],
) -> Vec<u8> {
    let properties = FileProperties {
        packets: packets.len() as u64,
        preroll_ms,
        min_packet_bytes: packet_bytes,
        max_packet_bytes: packet_bytes,
        ..FileProperties::default()
    };
    let header = Header { file: properties, streams: streams.to_vec(), ..Header::default() };
    let packets = packets.iter().map(|packet| write_packet(packet, PacketSize::Fixed(packet_bytes)).unwrap());
    [write_head(&header).unwrap(), packets.collect::<Vec<_>>().concat()].concat()
}

/// A media object that is to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Written {
    stream: u8,
    presentation_ms: u32,
    is_key: bool,
    data: Vec<u8>,
}

/// Packets of several streams together, as ffmpeg's are, with pieces of at most `most_bytes`.
fn packets_of(objects: &[Written], most_bytes: usize) -> Vec<DataPacket<'_>> {
    let mut payloads = Vec::new();
    for (number, object) in (0..).zip(objects) {
        let of = ObjectFields { bytes: object.data.len() as u32, presentation_ms: object.presentation_ms };
        for (place, data) in object.data.chunks(most_bytes).enumerate() {
            let (stream, is_key, offset) = (object.stream, object.is_key, (place * most_bytes) as u32);
            payloads.push(DataPayload { stream, is_key, object: number & 0xff, offset, of: Some(of), data });
        }
    }
    let mut packets = Vec::new();
    for some in payloads.chunks(3) {
        let send_ms = some[0].of.unwrap().presentation_ms;
        packets.push(DataPacket { send_ms, payloads: some.to_vec(), ..DataPacket::default() });
    }
    packets
}

fn written(read: &MediaObjects<'_>) -> Vec<Written> {
    let object = |object: &MediaObject<'_>| Written {
        stream: object.stream,
        presentation_ms: object.presentation_ms,
        is_key: object.is_key,
        data: object.data.to_vec(),
    };
    read.objects.iter().map(object).collect()
}

prop_compose! {
    fn any_form()(
        correction_bytes in prop::option::of(0..16u8),
        [packet_length, sequence, padding, object, offset, replicated] in [0..4u8, 0..4, 0..4, 0..4, 0..4, 1..4],
        payload_length in prop::option::of(1..4u8),
        padding_bytes in 0..300u32,
    ) -> Form {
        Form { correction_bytes, packet_length, sequence, padding, object, offset, replicated, payload_length, padding_bytes }
    }
}

/// Media objects of streams 1 and 2, in order, 40 ms and more apart.
fn any_objects(most: usize, most_bytes: usize) -> impl Strategy<Value = Vec<Written>> {
    let object = (1..3u8, 0..200u32, any::<bool>(), prop::collection::vec(any::<u8>(), 1..most_bytes));
    prop::collection::vec(object, 1..most).prop_map(|objects| {
        let mut now_ms = 0;
        let written = |(stream, passed_ms, is_key, data)| {
            now_ms += passed_ms;
            Written { stream, presentation_ms: 3000 + now_ms, is_key, data }
        };
        objects.into_iter().map(written).collect()
    })
}
