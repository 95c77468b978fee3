//! What RDT packets carry of pictures: RealVideo's own head before each piece of a frame, as FFmpeg's RealMedia reader takes
//! it. Several whole frames may share a packet; a frame that is larger than a packet goes in parts.
//!
//! A head begins with two bits of its kind and six that say in how many parts the frame is at most. Of a whole frame
//! alone in its packet a sequence byte follows; of a part that, the frame's size, where the part begins (of the last part:
//! how large it is), and the picture's number; of one whole frame of several its size, its time and its number, with no
//! sequence byte. Sizes and places are of 14 bits with bit 14 of the word set, or of 30.

use streamgauge_base::Chunk;

/// Parts of a frame that its head can count.
const MOST_PARTS: u32 = 127;

/// The largest head.
pub const HEAD_BYTES: u32 = 11;

/// Of a whole frame alone in its packet.
pub const WHOLE_HEAD_BYTES: u32 = 2;

const KIND_PART: u8 = 0;
const KIND_WHOLE: u8 = 1;
const KIND_LAST: u8 = 2;
const KIND_SEVERAL: u8 = 3;

/// What a packet has of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The first of the frame.
    pub first: bool,
    /// The last of the frame.
    pub last: bool,
    /// When the frame is shown, in ms, where it is not the packet's time.
    pub at_ms: Option<u32>,
}

/// A whole frame by itself; `number` counts packets, `picture` frames.
pub fn whole(number: u8, bytes: u32) -> Chunk {
    Chunk::with_filler([KIND_WHOLE << 6, number & 0x7f], bytes)
}

/// A part of a frame of `frame` bytes: `bytes` from `offset` on.
pub fn part(number: u8, picture: u8, frame: u32, offset: u32, bytes: u32, parts: u32) -> Chunk {
    let is_last = offset + bytes >= frame;
    let kind = if is_last { KIND_LAST } else { KIND_PART };
    let mut head = vec![kind << 6 | (parts.min(MOST_PARTS) / 2) as u8, number & 0x7f];
    push_number(&mut head, frame);
    push_number(&mut head, if is_last { bytes } else { offset });
    head.push(picture);
    Chunk::with_filler(head, bytes)
}

/// Whole frames that share a packet: of each its number, its time in ms and its size.
pub fn several(frames: &[(u8, u32, u32)]) -> Chunk {
    let mut head = Vec::new();
    let mut filler = 0;
    for (picture, at_ms, bytes) in frames {
        head.resize(head.len() + filler as usize, 0);
        head.push(KIND_SEVERAL << 6);
        push_number(&mut head, *bytes);
        push_number(&mut head, *at_ms);
        head.push(*picture);
        filler = *bytes;
    }
    Chunk::with_filler(head, filler)
}

/// Bytes that a frame takes among several.
pub fn among_several(at_ms: u32, bytes: u32) -> u32 {
    2 + number_bytes(bytes) + number_bytes(at_ms) + bytes
}

/// What of frames is in a payload. Ends with what cannot be read, and after 1,024 frames.
pub fn pieces(payload: &Chunk) -> impl Iterator<Item = Piece> + '_ {
    let mut at = 0usize;
    let one = move || {
        let head = payload.head();
        let kind = head.get(at)? >> 6;
        match kind {
            KIND_WHOLE => {
                at = payload.len();
                Some(Piece { first: true, last: true, at_ms: None })
            }
            KIND_SEVERAL => {
                let (bytes, next) = read_number(head, at + 1)?;
                let (at_ms, next) = read_number(head, next)?;
                at = (next + 1).checked_add(bytes as usize)?;
                (at <= payload.len()).then_some(Piece { first: true, last: true, at_ms: Some(at_ms) })
            }
            kind => {
                let (frame, next) = read_number(head, at + 2)?;
                let (place, next) = read_number(head, next)?;
                let _picture = head.get(next)?;
                at = payload.len();
                let is_last = kind == KIND_LAST;
                Some(Piece {
                    first: if is_last { place >= frame } else { place == 0 },
                    last: is_last,
                    at_ms: None,
                })
            }
        }
    };
    std::iter::from_fn(one).take(1_024)
}

fn number_bytes(number: u32) -> u32 {
    if number < 1 << 14 { 2 } else { 4 }
}

fn push_number(head: &mut Vec<u8>, number: u32) {
    if number < 1 << 14 {
        head.extend((number as u16 | 0x4000).to_be_bytes());
    } else {
        head.extend((number & 0x3fff_ffff).to_be_bytes());
    }
}

fn read_number(head: &[u8], at: usize) -> Option<(u32, usize)> {
    let word = |at: usize| Some(u16::from_be_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let first = word(at)? & 0x7fff;
    if first >= 0x4000 {
        return Some((u32::from(first - 0x4000), at + 2));
    }
    Some((u32::from(first) << 16 | u32::from(word(at + 2)?), at + 4))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_in_parts_has_a_first_and_a_last() {
        let read = |chunk: Chunk| pieces(&chunk).collect::<Vec<_>>();
        let piece = |first, last| vec![Piece { first, last, at_ms: None }];
        assert_eq!(read(part(0, 7, 1500, 0, 600, 3)), piece(true, false));
        assert_eq!(read(part(1, 7, 1500, 600, 600, 3)), piece(false, false));
        assert_eq!(read(part(2, 7, 1500, 1200, 300, 3)), piece(false, true));
        assert_eq!(read(whole(3, 400)), piece(true, true));
        assert_eq!(part(0, 7, 40_000, 0, 600, 70).len(), HEAD_BYTES as usize - 2 + 600);
        assert_eq!(part(0, 7, 40_000, 20_000, 600, 70).len(), HEAD_BYTES as usize + 600);
    }

    proptest! {
        #[test]
        fn frames_that_share_a_packet_are_all_found(
            frames in prop::collection::vec((any::<u8>(), 0u32..1 << 30, 1u32..20_000), 1..20),
        ) {
            let chunk = several(&frames);
            let bytes: u32 = frames.iter().map(|(_, at_ms, bytes)| among_several(*at_ms, *bytes)).sum();
            prop_assert_eq!(chunk.len(), bytes as usize);
            let times: Vec<_> = pieces(&chunk).map(|piece| piece.at_ms.unwrap()).collect();
            prop_assert_eq!(times, frames.iter().map(|(_, at_ms, _)| *at_ms).collect::<Vec<_>>());
        }

        #[test]
        fn nothing_that_comes_is_too_strange(head in prop::collection::vec(any::<u8>(), 0..60), filler in 0u32..100) {
            prop_assert!(pieces(&Chunk::with_filler(head, filler)).count() <= 1_024);
        }
    }
}
