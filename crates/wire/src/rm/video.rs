//! RealVideo's frames in the payloads of packets: whole, several in one, or one in several.
//!
//! No document of RealNetworks' gives the form. It is that which ffmpeg 5.1 and MPlayer 1.5 read alike: every kind of
//! piece and number was written by us and decoded by both to the pictures of the file that it was made of.
//!
//! Before each piece of a frame is a header:
//!
//! | bits | content | form |
//! |---|---|---|
//! | 2 | 0: a part, not the last; 1: the whole frame, alone in its packet; 2: the last part; 3: a whole frame, others may follow | all |
//! | 6 | number of the frame's parts, its upper 6 of 7 bits | all |
//! | 1 | its lowest bit, as we take it; ffmpeg writes whether it is a key frame, and reads the upper 6 alone | not 3 |
//! | 7 | which part it is, counted from 1 | not 3 |
//! | 16 or 32 | bytes of the frame: 01 and 14 bits, or 00 and 30 bits | not 1 |
//! | 16 or 32 | of 0: where the part begins in the frame; of 2: how many bytes it has; of 3: when it is played, in ms | not 1 |
//! | 8 | number of the picture, which comes round | not 1 |
//!
//! A part ends with its packet, and so does the frame of 1; behind those of 2 and 3 may be more.
//!
//! libavcodec, which both have, takes each part for a slice of the picture, and of a slice it reads the
//! content of one part more. Frames of ffmpeg's encoder, one slice each, are therefore reassembled from any
//! number of parts, and shown from two.

use streamgauge_base::Chunk;

use super::fault::{Fault, Problem};

/// Parts that a frame can have, in 7 bits.
pub const MOST_PARTS: usize = 127;
/// Bytes of the longest frame that is put together again: more than [`MOST_PARTS`] of the longest packets have.
pub const MOST_FRAME_BYTES: u32 = 8 << 20;
/// Numbers below this are in 16 bits.
const LONG: u32 = 0x4000;
/// The greatest number in 30 bits.
const MOST_LONG: u32 = 0x3fff_ffff;

/// A coded frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VideoFrame {
    /// Its number, which wraps after 255; 0 where the packet has none.
    pub picture: u8,
    /// Presentation time, in ms, if it differs from its packet's.
    pub timestamp_ms: Option<u32>,
    /// The bytes for the decoder.
    pub media: Chunk,
}

/// A packet's piece of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieceKind {
    /// A part that is not the last.
    Part,
    /// All of it, alone in the packet.
    Whole,
    /// The last part, or the only one.
    LastPart,
    /// All of it, one of several in the packet.
    OneOfSeveral,
}

/// A frame in a packet, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VideoPiece {
    /// Its kind.
    pub kind: PieceKind,
    /// Number of the part, counted from 1; 0 where the packet has none.
    pub part: u8,
    /// The frame's number; 0 where the packet has none.
    pub picture: u8,
    /// Presentation time of the frame, in ms, if it differs from the packet's.
    pub timestamp_ms: Option<u32>,
    /// Bytes of the whole frame.
    pub frame_bytes: u32,
    /// Where the piece begins in it.
    pub offset: u32,
    /// Its bytes.
    pub media: Chunk,
}

/// A frame does not fit packets of some size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a frame of {frame_bytes} B does not fit {MOST_PARTS} packets of {most_bytes} B")]
pub struct NoFit {
    /// Bytes of the frame.
    pub frame_bytes: usize,
    /// Bytes that a packet may have.
    pub most_bytes: usize,
}

/// Returns the payloads of packets that carry `frame`, each of `most_bytes` at most, headers included. All
/// but the last are as long as they can be. The packets have the presentation time, and `timestamp_ms` is
/// left out.
///
/// # Errors
///
/// If it takes more than [`MOST_PARTS`], or is longer than [`MOST_FRAME_BYTES`].
pub fn fragment(frame: &VideoFrame, most_bytes: usize) -> Result<Vec<Chunk>, NoFit> {
    let no_fit = NoFit { frame_bytes: frame.media.len(), most_bytes };
    let frame_bytes = u32::try_from(frame.media.len()).map_err(|_| no_fit)?;
    let lengths = lengths(frame_bytes, most_bytes).ok_or(no_fit)?;
    let count = lengths.len() as u8;
    let (mut rest, mut offset) = (frame.media.clone(), 0);
    let made = (1..=count).zip(lengths).map(|(part, bytes)| {
        let (kind, position) = if part == count { (2, bytes) } else { (0, offset) };
        let mut payload = vec![kind << 6 | count >> 1, (count & 1) << 7 | part];
        put(&mut payload, frame_bytes);
        put(&mut payload, position);
        payload.push(frame.picture);
        let after = rest.split_off(bytes as usize);
        let media = std::mem::replace(&mut rest, after);
        payload.extend(media.head());
        offset += bytes;
        Chunk::with_filler(payload, (media.len() - media.head().len()) as u32)
    });
    Ok(made.collect())
}

/// Returns the payload of a packet that carries all of a frame and nothing else; it has neither length nor
/// number.
pub fn whole(frame: &VideoFrame) -> Chunk {
    let payload = [&[1 << 6, 1 << 7 | 1], frame.media.head()].concat();
    Chunk::with_filler(payload, (frame.media.len() - frame.media.head().len()) as u32)
}

/// Returns the payload of a packet that carries whole frames, each with its time, or 0 without one. Filler
/// that is not the last frame's is written as zeros.
pub fn several(frames: &[VideoFrame]) -> Chunk {
    let (mut payload, mut filler) = (Vec::new(), 0);
    for frame in frames {
        payload.resize(payload.len() + filler, 0);
        payload.push(3 << 6);
        put(&mut payload, frame.media.len() as u32);
        put(&mut payload, frame.timestamp_ms.unwrap_or(0));
        payload.push(frame.picture);
        payload.extend(frame.media.head());
        filler = frame.media.len() - frame.media.head().len();
    }
    Chunk::with_filler(payload, filler as u32)
}

/// Returns the bytes that a frame takes among [`several`].
pub fn among_several(frame: &VideoFrame) -> usize {
    let bytes = frame.media.len();
    2 + width(bytes as u32) + width(frame.timestamp_ms.unwrap_or(0)) + bytes
}

/// Returns how many bytes each part of a frame has; `None` if they are too many.
fn lengths(frame_bytes: u32, most_bytes: usize) -> Option<Vec<u32>> {
    if frame_bytes > MOST_FRAME_BYTES {
        return None;
    }
    let fixed = 3 + width(frame_bytes);
    let mut lengths = Vec::new();
    let mut offset = 0;
    loop {
        let left = frame_bytes - offset;
        // The last has its length, the others their offsets.
        if fixed + width(left) + left as usize <= most_bytes {
            lengths.push(left);
            return (lengths.len() <= MOST_PARTS).then_some(lengths);
        }
        let room = most_bytes.checked_sub(fixed + width(offset)).filter(|&room| room > 0)? as u32;
        // Where all that is left fits a part but not the last part, something is left for that.
        let taken = room.min(left - 1).max(1);
        if taken == left || lengths.len() == MOST_PARTS {
            return None;
        }
        lengths.push(taken);
        offset += taken;
    }
}

/// Returns the bytes of a number.
fn width(number: u32) -> usize {
    if number < LONG { 2 } else { 4 }
}

fn put(bytes: &mut Vec<u8>, number: u32) {
    match u16::try_from(number) {
        Ok(short) if number < LONG => bytes.extend((short | LONG as u16).to_be_bytes()),
        _ => bytes.extend((number & MOST_LONG).to_be_bytes()),
    }
}

/// The pieces in the payload of one packet, in order. A problem is the last.
#[derive(Clone, Debug)]
pub struct Pieces {
    payload: Chunk,
    at: usize,
}

impl Pieces {
    /// Returns the pieces in `payload`. Only their media may be filler.
    pub fn of(payload: Chunk) -> Self {
        Pieces { payload, at: 0 }
    }

    fn read(&mut self) -> Result<VideoPiece, Problem> {
        let begins = self.at;
        let first = self.number("a header", 1)?;
        let kind = match first >> 6 {
            0 => PieceKind::Part,
            1 => PieceKind::Whole,
            2 => PieceKind::LastPart,
            _ => PieceKind::OneOfSeveral,
        };
        let part = match kind {
            PieceKind::OneOfSeveral => 0,
            _ => self.number("a header", 1)? as u8 & 0x7f,
        };
        if kind == PieceKind::Whole {
            let media = self.media(self.left());
            let frame_bytes = media.len() as u32;
            return Ok(VideoPiece {
                kind,
                part,
                picture: 0,
                timestamp_ms: None,
                frame_bytes,
                offset: 0,
                media,
            });
        }
        let frame_bytes = self.variable()?;
        let position = self.variable()?;
        let picture = self.number("a header", 1)? as u8;
        if frame_bytes > MOST_FRAME_BYTES {
            return Err(Fault::FrameTooLong { bytes: frame_bytes, limit: MOST_FRAME_BYTES }.at(begins));
        }
        let bytes = match kind {
            PieceKind::LastPart => position as usize,
            PieceKind::OneOfSeveral => frame_bytes as usize,
            _ => self.left(),
        };
        if bytes > self.left() {
            let missing = (bytes - self.left()) as u64;
            return Err(Fault::Truncated { what: "a frame", missing }.at(self.at));
        }
        let offset = match kind {
            PieceKind::Part => position,
            // A piece longer than its frame is reported below.
            _ => frame_bytes.saturating_sub(bytes as u32),
        };
        let end = u64::from(offset) + bytes as u64;
        if end > frame_bytes.into() {
            return Err(Fault::OutsideFrame { offset, end, frame_bytes }.at(begins));
        }
        let media = self.media(bytes);
        let timestamp_ms = (kind == PieceKind::OneOfSeveral).then_some(position);
        Ok(VideoPiece { kind, part, picture, timestamp_ms, frame_bytes, offset, media })
    }

    /// Returns the bytes that have not been read.
    fn left(&self) -> usize {
        self.payload.len() - self.at
    }

    /// Returns the next bytes.
    fn media(&mut self, bytes: usize) -> Chunk {
        let from = self.at;
        self.at += bytes;
        self.payload.part(from, self.at)
    }

    /// Returns a number in the shorter form or the longer.
    fn variable(&mut self) -> Result<u32, Problem> {
        let upper = self.number("a header", 2)?;
        if upper & LONG != 0 {
            return Ok(upper & (LONG - 1));
        }
        Ok((upper << 16 | self.number("a header", 2)?) & MOST_LONG)
    }

    fn number(&mut self, what: &'static str, bytes: usize) -> Result<u32, Problem> {
        let real = self.payload.head().get(self.at..).unwrap_or_default();
        let Some(taken) = real.get(..bytes) else {
            let missing = (bytes - real.len()) as u64;
            return Err(Fault::Truncated { what, missing }.at(self.at));
        };
        let number = taken.iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
        self.at += bytes;
        Ok(number)
    }
}

impl Iterator for Pieces {
    type Item = Result<VideoPiece, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left() == 0 {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.at = self.payload.len();
        }
        Some(read)
    }
}

/// Reassembles frames from parts in order; a frame with a missing part is given up. It keeps at most one
/// frame, of [`MOST_FRAME_BYTES`] at most.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    begun: Option<Begun>,
    given_up: u64,
}

/// A frame received in part.
#[derive(Clone, Debug, Default)]
struct Begun {
    picture: u8,
    frame_bytes: u32,
    head: Vec<u8>,
    filler: u32,
    /// A part is missing.
    is_broken: bool,
}

impl Begun {
    fn bytes(&self) -> usize {
        self.head.len() + self.filler as usize
    }
}

impl Assembler {
    /// Returns the number of frames received in part only.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Returns the bytes that it keeps of a frame that is not complete, filler included.
    pub fn bytes(&self) -> usize {
        self.begun.as_ref().map_or(0, Begun::bytes)
    }

    /// Takes the payload of the next packet: the frames that are complete with it.
    ///
    /// # Errors
    ///
    /// If the packet is broken; frames before that in it are lost with it, and so is one that was begun.
    pub fn push(&mut self, payload: Chunk) -> Result<Vec<VideoFrame>, Problem> {
        let pieces: Result<Vec<VideoPiece>, Problem> = Pieces::of(payload).collect();
        let pieces = pieces.inspect_err(|_| self.give_up())?;
        let mut frames = Vec::new();
        for piece in pieces {
            match piece.kind {
                PieceKind::Whole | PieceKind::OneOfSeveral => {
                    self.give_up();
                    let VideoPiece { picture, timestamp_ms, media, .. } = piece;
                    frames.push(VideoFrame { picture, timestamp_ms, media });
                }
                PieceKind::Part | PieceKind::LastPart => frames.extend(self.add(piece)?),
            }
        }
        Ok(frames)
    }

    fn give_up(&mut self) {
        self.given_up += u64::from(self.begun.take().is_some());
    }

    fn add(&mut self, piece: VideoPiece) -> Result<Option<VideoFrame>, Problem> {
        let VideoPiece { picture, frame_bytes, offset, media, .. } = piece;
        let is_same = |begun: &Begun| (begun.picture, begun.frame_bytes) == (picture, frame_bytes);
        if offset == 0 || !self.begun.as_ref().is_some_and(is_same) {
            self.give_up();
        }
        let begun = self.begun.get_or_insert_with(|| Begun { picture, frame_bytes, ..Begun::default() });
        if begun.is_broken || begun.bytes() != offset as usize {
            *begun = Begun { picture, frame_bytes, is_broken: true, ..Begun::default() };
            if piece.kind == PieceKind::LastPart {
                self.give_up();
            }
            return Ok(None);
        }
        if begun.filler > 0 && !media.head().is_empty() {
            self.give_up();
            return Err(Fault::RealAfterFiller.at(0));
        }
        begun.head.extend(media.head());
        begun.filler += (media.len() - media.head().len()) as u32;
        // ffmpeg also takes a frame as complete with the last of its bytes, for any kind of part.
        if begun.bytes() < frame_bytes as usize {
            return Ok(None);
        }
        let whole = self.begun.take().unwrap_or_default();
        let media = Chunk::with_filler(whole.head, whole.filler);
        Ok(Some(VideoFrame { picture, timestamp_ms: None, media }))
    }
}
