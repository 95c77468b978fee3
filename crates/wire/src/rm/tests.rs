//! A writer of files, and helpers that the parts of the test share.

mod broken;
mod files;
mod opaque;
mod vectors;
mod video;
mod written;

use proptest::prelude::*;

use super::*;

/// A media packet with its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Sent {
    stream: u16,
    timestamp_ms: u32,
    rule: Option<u16>,
    group: u8,
    flags: u8,
    payload: Vec<u8>,
}

fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&name[..], &(content.len() as u32 + 10).to_be_bytes(), &[0, 0], content].concat()
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// Text as files have it: a byte for each character.
fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
}

/// Returns the part in front of `chunks` other chunks. We do not go by their number, and MPlayer does.
fn beginning(chunks: u32) -> Vec<u8> {
    chunk(b".RMF", &words(&[0, chunks]))
}

fn properties(of: &FileProperties) -> Vec<u8> {
    let numbers = [
        of.max_bit_rate_bps,
        of.avg_bit_rate_bps,
        of.max_packet_bytes,
        of.avg_packet_bytes,
        of.packets,
        of.duration_ms,
        of.preroll_ms,
        of.index_offset,
        of.data_offset,
    ];
    chunk(b"PROP", &[words(&numbers), words(&[u32::from(of.streams) << 16 | u32::from(of.flags)])].concat())
}

fn stream(of: &StreamProperties) -> Vec<u8> {
    let numbers = [
        of.max_bit_rate_bps,
        of.avg_bit_rate_bps,
        of.max_packet_bytes,
        of.avg_packet_bytes,
        of.start_time_ms,
        of.preroll_ms,
        of.duration_ms,
    ];
    let text = |text: &str| [vec![text.chars().count() as u8], latin(text)].concat();
    let data = [words(&[of.type_specific.len() as u32]), of.type_specific.clone()].concat();
    let parts =
        [of.number.to_be_bytes().to_vec(), words(&numbers), text(&of.name), text(&of.mime_type), data];
    chunk(b"MDPR", &parts.concat())
}

fn description(of: &ContentDescription) -> Vec<u8> {
    let text = |text: &String| [(text.chars().count() as u16).to_be_bytes().to_vec(), latin(text)].concat();
    chunk(b"CONT", &[&of.title, &of.author, &of.copyright, &of.comment].map(text).concat())
}

fn packet(of: &Sent) -> Vec<u8> {
    let (version, header) = if of.rule.is_some() { (1u16, 13) } else { (0, 12) };
    let length = (header + of.payload.len()) as u16;
    let mut bytes = [version.to_be_bytes(), length.to_be_bytes(), of.stream.to_be_bytes()].concat();
    bytes.extend(of.timestamp_ms.to_be_bytes());
    match of.rule {
        Some(rule) => bytes.extend(rule.to_be_bytes()),
        None => bytes.push(of.group),
    }
    bytes.push(of.flags);
    [bytes, of.payload.clone()].concat()
}

fn data(packets: &[Sent]) -> Vec<u8> {
    let media: Vec<u8> = packets.iter().flat_map(packet).collect();
    chunk(b"DATA", &[words(&[packets.len() as u32, 0]), media].concat())
}

fn video(number: u16) -> StreamProperties {
    StreamProperties {
        number,
        max_bit_rate_bps: 200_000,
        duration_ms: 2000,
        name: "a picture".into(),
        mime_type: "video/x-pn-realvideo".into(),
        type_specific: [&words(&[34])[..], b"VIDORV20\0\xb0\0\x90\0\x19\0\0\0\0\0\x19\0\0", &[0; 8]].concat(),
        ..StreamProperties::default()
    }
}

fn sent(stream: u16, timestamp_ms: u32, payload: &[u8]) -> Sent {
    Sent { stream, timestamp_ms, rule: None, group: 0, flags: FLAG_KEY, payload: payload.to_vec() }
}

/// A file of one stream with these packets.
fn small(packets: &[Sent]) -> Vec<u8> {
    let head = [beginning(3), properties(&FileProperties::default()), stream(&video(0))];
    [head.concat(), data(packets)].concat()
}

prop_compose! {
    fn any_text(most: usize)(letters in proptest::collection::vec(any::<u8>(), 0..=most)) -> String {
        letters.into_iter().map(char::from).collect()
    }
}

prop_compose! {
    fn any_properties()(numbers in any::<[u32; 9]>(), streams in any::<u16>(), flags in any::<u16>())
        -> FileProperties {
        let [max_bit_rate_bps, avg_bit_rate_bps, max_packet_bytes, avg_packet_bytes, packets, duration_ms,
            preroll_ms, index_offset, data_offset] = numbers;
        FileProperties {
            max_bit_rate_bps, avg_bit_rate_bps, max_packet_bytes, avg_packet_bytes, packets, duration_ms,
            preroll_ms, index_offset, data_offset, streams, flags,
        }
    }
}

prop_compose! {
    fn any_stream()(
        number in any::<u16>(),
        numbers in any::<[u32; 7]>(),
        name in any_text(255),
        mime_type in any_text(255),
        type_specific in proptest::collection::vec(any::<u8>(), 0..60),
    ) -> StreamProperties {
        let [max_bit_rate_bps, avg_bit_rate_bps, max_packet_bytes, avg_packet_bytes, start_time_ms, preroll_ms,
            duration_ms] = numbers;
        StreamProperties {
            number, max_bit_rate_bps, avg_bit_rate_bps, max_packet_bytes, avg_packet_bytes, start_time_ms,
            preroll_ms, duration_ms, name, mime_type, type_specific,
        }
    }
}

prop_compose! {
    fn any_sent()(
        stream in any::<u16>(),
        timestamp_ms in any::<u32>(),
        rule in any::<Option<u16>>(),
        group in any::<u8>(),
        flags in any::<u8>(),
        payload in proptest::collection::vec(any::<u8>(), 0..80),
    ) -> Sent {
        Sent { stream, timestamp_ms, rule, group: if rule.is_some() { 0 } else { group }, flags, payload }
    }
}
