//! AAC in RTP, mode AAC-hbr (RFC 3640 section 3.3.6): an AU header of 16 bits for each access unit, 13 for its size
//! and 3 for its index, which without interleaving is 0.

use super::asset::Track;
use super::payload::Payload;

/// The limit of 13 bits of size; no valid unit of up to 8 channels is near it (ISO/IEC 14496-3 section
/// 4.5.3).
pub const LARGEST_UNIT: u32 = (1 << 13) - 1;

const INDEX_BITS: u32 = 3;
const LENGTH_BYTES: usize = 2;
const HEADER_BYTES: usize = 2;

/// Most units that share a packet; groups begin at multiples of it: at 44.1 kHz 93 ms of sound.
const GROUP: usize = 4;

/// Returns the packets that go out with `unit`: one that begins with it, or its fragments, or none if another
/// holds it.
pub fn packets(track: &Track, unit: usize, max_payload: u32) -> Vec<Payload> {
    let max = max_payload as usize;
    let first = unit / GROUP * GROUP;
    let end = track.units.len().min(first + GROUP);
    let mut from = first;
    while from < end {
        let mut to = from;
        let mut bytes = LENGTH_BYTES;
        while to < end && bytes + HEADER_BYTES + track.unit_bytes(to).len() <= max {
            bytes += HEADER_BYTES + track.unit_bytes(to).len();
            to += 1;
        }
        if from == unit {
            return if to > from {
                vec![together(track, from..to)]
            } else {
                fragments(track.unit_bytes(unit), max)
            };
        }
        if from > unit {
            break;
        }
        from = to.max(from + 1);
    }
    Vec::new()
}

fn headed(sizes: &[usize]) -> Vec<u8> {
    let mut bytes = ((sizes.len() * HEADER_BYTES * 8) as u16).to_be_bytes().to_vec();
    for size in sizes {
        bytes.extend(((size << INDEX_BITS) as u16).to_be_bytes());
    }
    bytes
}

fn together(track: &Track, units: std::ops::Range<usize>) -> Payload {
    let units: Vec<&[u8]> = units.map(|unit| track.unit_bytes(unit)).collect();
    let mut bytes = headed(&units.iter().map(|unit| unit.len()).collect::<Vec<_>>());
    units.iter().for_each(|unit| bytes.extend_from_slice(unit));
    Payload::real(bytes)
}

/// Returns the fragments; each one's header has the size of the whole unit (RFC 3640 section 3.2.3.1).
fn fragments(unit: &[u8], max: usize) -> Vec<Payload> {
    let head = headed(&[unit.len()]);
    unit.chunks(max - head.len()).map(|piece| Payload::real([&head, piece].concat())).collect()
}

/// Returns the access units of `payloads`, each with an ADTS header (ISO/IEC 14496-3 section 1.A.2).
pub fn assemble<'a>(payloads: impl Iterator<Item = &'a [u8]>, config: &[u8], channels: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut whole: Vec<u8> = Vec::new();
    for payload in payloads {
        let Some((header_bits, rest)) = payload.split_first_chunk::<LENGTH_BYTES>() else { continue };
        let headers_bytes = usize::from(u16::from_be_bytes(*header_bits)).div_ceil(8);
        let Some((headers, mut data)) = rest.split_at_checked(headers_bytes) else { continue };
        for header in headers.chunks_exact(HEADER_BYTES) {
            let size = usize::from(u16::from_be_bytes([header[0], header[1]]) >> INDEX_BITS);
            let piece;
            (piece, data) = data.split_at(data.len().min(size.saturating_sub(whole.len())));
            whole.extend_from_slice(piece);
            if whole.len() == size {
                bytes.extend(adts_header(size, config, channels));
                bytes.append(&mut whole);
            }
        }
    }
    bytes
}

const ADTS_BYTES: usize = 7;

fn adts_header(size: usize, config: &[u8], channels: u8) -> [u8; ADTS_BYTES] {
    let [first, second] = [0, 1].map(|at| config.get(at).copied().unwrap_or(0));
    // AudioSpecificConfig: 5 bits of object type, 4 of sampling frequency index, 4 of channels. ADTS has the object
    // type less one in 2 bits.
    let profile = (first >> 3).saturating_sub(1).min(3);
    let frequency = (first & 7) << 1 | second >> 7;
    let length = size + ADTS_BYTES;
    [
        0xff,
        0xf1,
        profile << 6 | frequency << 2 | channels >> 2 & 1,
        (channels & 3) << 6 | (length >> 11) as u8 & 3,
        (length >> 3) as u8,
        (length << 5) as u8 | 0x1f,
        0xfc,
    ]
}
