//! A file that is written as its packets arrive: the part before them, and each of them.

use super::fault::{ChunkName, Fault, Problem};
use super::file::FLAG_KEY;
use super::headers::StreamProperties;

/// Bytes of a media packet's header.
const PACKET_HEADER_BYTES: usize = 12;

/// Bytes of payload that a packet can have.
pub const MOST_PAYLOAD_BYTES: usize = u16::MAX as usize - PACKET_HEADER_BYTES;

/// Returns the part of a text that fits its field, a byte a character (ISO 8859-1); other characters become
/// question marks.
fn text(of: &str, most: usize) -> Vec<u8> {
    of.chars().take(most).map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect()
}

fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    // No chunk that is written here approaches the 4 GB limit of its length.
    [&name[..], &(content.len() as u32 + 10).to_be_bytes(), &[0, 0], content].concat()
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// Returns the beginning of a file of `streams` that plays for `duration_ms`. Packets follow, and nothing
/// need follow them: neither their number nor their bytes are declared, as in an unfinished recording.
pub fn write_head(title: &str, duration_ms: u32, streams: &[StreamProperties]) -> Vec<u8> {
    let (mut max, mut avg) = (0u32, 0u32);
    for stream in streams {
        max = max.saturating_add(stream.max_bit_rate_bps);
        avg = avg.saturating_add(stream.avg_bit_rate_bps);
    }
    let title = text(title, u16::MAX.into());
    let title = [&(title.len() as u16).to_be_bytes()[..], &title, &[0; 6]].concat();
    let media =
        [streams.iter().map(properties).collect::<Vec<_>>().concat(), chunk(b"CONT", &title)].concat();
    let chunks = 3 + streams.len() as u32;
    let beginning = chunk(b".RMF", &words(&[0, chunks]));
    // PROP has nine numbers of 32 bits and two of 16.
    let data_at = beginning.len() + 10 + 40 + media.len();
    let counts = words(&[max, avg, 0, 0, 0, duration_ms, 0, 0, data_at as u32]);
    let last = words(&[(streams.len() as u32) << 16]);
    [beginning, chunk(b"PROP", &[counts, last].concat()), media, chunk(b"DATA", &words(&[0, 0]))].concat()
}

fn properties(of: &StreamProperties) -> Vec<u8> {
    let numbers = [
        of.max_bit_rate_bps,
        of.avg_bit_rate_bps,
        of.max_packet_bytes,
        of.avg_packet_bytes,
        of.start_time_ms,
        of.preroll_ms,
        of.duration_ms,
    ];
    let short = |of: &str| {
        let letters = text(of, u8::MAX.into());
        [&[letters.len() as u8][..], &letters].concat()
    };
    let data = [&words(&[of.type_specific.len() as u32])[..], &of.type_specific].concat();
    let parts =
        [of.number.to_be_bytes().to_vec(), words(&numbers), short(&of.name), short(&of.mime_type), data];
    chunk(b"MDPR", &parts.concat())
}

/// Returns a media packet.
///
/// # Errors
///
/// If `payload` is longer than [`MOST_PAYLOAD_BYTES`].
pub fn write_packet(
    stream: u16,
    timestamp_ms: u32,
    is_key: bool,
    payload: &[u8],
) -> Result<Vec<u8>, Problem> {
    let Ok(length) = u16::try_from(PACKET_HEADER_BYTES + payload.len()) else {
        let missing = (payload.len() - MOST_PAYLOAD_BYTES) as u64;
        return Err(Fault::Field { chunk: ChunkName(*b"DATA"), field: "packet", missing }.at(0));
    };
    let mut bytes = Vec::with_capacity(length.into());
    bytes.extend(0u16.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(stream.to_be_bytes());
    bytes.extend(timestamp_ms.to_be_bytes());
    bytes.extend([0, if is_key { FLAG_KEY } else { 0 }]);
    bytes.extend(payload);
    Ok(bytes)
}
