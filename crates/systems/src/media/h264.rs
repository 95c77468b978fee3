//! H.264 in RTP (RFC 6184): single NAL unit packets, STAP-A for small ones, FU-A for large ones.

use super::payload::Payload;

/// The header of a NAL unit that is a slice of a key frame (ITU-T H.264 section 7.3.1: nal_ref_idc 3, type 5).
pub const IDR_SLICE: u8 = 0x65;
/// Header of a slice that others refer to (nal_ref_idc 2, type 1).
pub const SLICE: u8 = 0x41;
/// Header of a slice that none refers to (nal_ref_idc 0, type 1).
pub const DISPOSABLE_SLICE: u8 = 0x01;

const TYPE: u8 = 0x1f;
const REF_IDC: u8 = 0x60;
const FORBIDDEN: u8 = 0x80;

/// RFC 6184 section 5.7.1.
const STAP_A: u8 = 24;
const STAP_SIZE_BYTES: usize = 2;
/// RFC 6184 section 5.8.
const FU_A: u8 = 28;
const FU_BYTES: usize = 2;
const FU_START: u8 = 0x80;
const FU_END: u8 = 0x40;

const NAL_HEADER_BYTES: usize = 1;
const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Returns true unless the packet continues a NAL unit that another began.
pub fn begins_nal_unit(payload: &[u8]) -> bool {
    match payload.first() {
        Some(header) if header & TYPE == FU_A => payload.get(1).is_some_and(|fu| fu & FU_START != 0),
        first => first.is_some(),
    }
}

/// Returns the two bytes that begin each fragment of a NAL unit with `header`.
fn fu(header: u8, first: bool, last: bool) -> [u8; FU_BYTES] {
    let bits = if first { FU_START } else { 0 } | if last { FU_END } else { 0 };
    [header & !TYPE | FU_A, bits | header & TYPE]
}

/// Returns how many of `bytes` (NAL header left out) each fragment carries.
fn pieces(bytes: usize, max: usize) -> impl Iterator<Item = usize> {
    let mut left = bytes;
    std::iter::from_fn(move || {
        let piece = left.min(max - FU_BYTES);
        left -= piece;
        (piece > 0).then_some(piece)
    })
}

/// Returns the payloads of one NAL unit of `bytes`, with only its `header` known: the real bytes at the start
/// of each, and the filler behind them.
pub fn filler(header: u8, bytes: u32, max_payload: u32) -> impl Iterator<Item = (Vec<u8>, u32)> {
    let whole = bytes <= max_payload;
    let mut left = if whole { 0 } else { bytes - NAL_HEADER_BYTES as u32 };
    let mut first = true;
    let alone = whole.then(|| {
        // The slice's first byte is real too, so that every head has two bytes where the packet has.
        let head = [header, 0][..2.min(bytes as usize)].to_vec();
        let rest = bytes - head.len() as u32;
        (head, rest)
    });
    alone.into_iter().filter(move |_| bytes > 0).chain(std::iter::from_fn(move || {
        let piece = left.min(max_payload - FU_BYTES as u32);
        left -= piece;
        let head = fu(header, std::mem::take(&mut first), left == 0);
        (piece > 0).then(|| (head.to_vec(), piece))
    }))
}

/// Returns the NAL units of `unit`, each preceded by its length in `length_bytes` bytes. Bytes behind a
/// length that leads out of the unit are ignored.
pub fn nal_units(mut unit: &[u8], length_bytes: u8) -> impl Iterator<Item = &[u8]> {
    let width = usize::from(length_bytes.clamp(1, 4));
    std::iter::from_fn(move || {
        loop {
            let length = unit.get(..width)?.iter().fold(0usize, |sum, &byte| sum << 8 | usize::from(byte));
            let nal = unit.get(width..width.checked_add(length)?)?;
            unit = &unit[width + length..];
            if !nal.is_empty() {
                return Some(nal);
            }
        }
    })
}

/// Returns the packets of an access unit.
pub fn packets(unit: &[u8], length_bytes: u8, max_payload: u32) -> Vec<Payload> {
    let max = max_payload as usize;
    let mut made = Vec::with_capacity(1 + unit.len() / max);
    let mut small: Vec<&[u8]> = Vec::new();
    let mut aggregate = NAL_HEADER_BYTES;
    for nal in nal_units(unit, length_bytes) {
        let entry = STAP_SIZE_BYTES + nal.len();
        if aggregate + entry > max {
            made.extend(together(&small));
            small.clear();
            aggregate = NAL_HEADER_BYTES;
        }
        if nal.len() > max {
            fragment(nal, max, &mut made);
        } else {
            small.push(nal);
            aggregate += entry;
        }
    }
    made.extend(together(&small));
    made
}

/// Returns one packet of NAL units that fit it.
fn together(nals: &[&[u8]]) -> Option<Payload> {
    match nals {
        [] => None,
        [alone] => Some(Payload::real(alone.to_vec())),
        several => {
            // Its header has the highest importance of any, and is forbidden if one is (section 5.7.1).
            let importance = several.iter().map(|nal| nal[0] & REF_IDC).max().unwrap_or(0);
            let forbidden = several.iter().fold(0, |bits, nal| bits | nal[0] & FORBIDDEN);
            let mut bytes = vec![forbidden | importance | STAP_A];
            for nal in several {
                bytes.extend((nal.len() as u16).to_be_bytes());
                bytes.extend_from_slice(nal);
            }
            Some(Payload::real(bytes))
        }
    }
}

fn fragment(nal: &[u8], max: usize, made: &mut Vec<Payload>) {
    let (header, mut rest) = (nal[0], &nal[NAL_HEADER_BYTES..]);
    for piece in pieces(rest.len(), max) {
        let (now, later) = rest.split_at(piece);
        let head = fu(header, rest.len() == nal.len() - NAL_HEADER_BYTES, later.is_empty());
        made.push(Payload::real([&head, now].concat()));
        rest = later;
    }
}

/// Returns the NAL units with start codes between them (ITU-T H.264 annex B).
pub fn annex_b<'a>(nals: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for nal in nals {
        bytes.extend(START_CODE);
        bytes.extend_from_slice(nal);
    }
    bytes
}

/// Returns the NAL units of `payloads` with start codes. Fragments without a start are left out.
pub fn assemble<'a>(payloads: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut within = false;
    for payload in payloads {
        let Some(&header) = payload.first() else { continue };
        match header & TYPE {
            STAP_A => bytes.extend(annex_b(nal_units(&payload[NAL_HEADER_BYTES..], STAP_SIZE_BYTES as u8))),
            FU_A => {
                let Some((&bits, piece)) = payload[NAL_HEADER_BYTES..].split_first() else { continue };
                if bits & FU_START != 0 {
                    bytes.extend(START_CODE);
                    bytes.push(header & !TYPE | bits & TYPE);
                    within = true;
                }
                if within {
                    bytes.extend_from_slice(piece);
                }
                within &= bits & FU_END == 0;
            }
            1..STAP_A => bytes.extend(annex_b([payload].into_iter())),
            _ => {}
        }
    }
    bytes
}
