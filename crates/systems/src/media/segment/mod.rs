//! The content of a media segment, in any container: pictures, sound, and other data.
//!
//! Fragmented MP4 is counted by its samples, track by track as the movie's handlers name them (ISO/IEC 14496-12 section
//! 8.4.3); an MPEG-2 transport stream by its access units, by stream type (ISO/IEC 13818-1 section 2.4.4); packed audio is
//! sound (RFC 8216 section 3.4). Sound never counts as pictures.

mod fragments;
#[cfg(test)]
mod tests;
mod transport;

use std::collections::BTreeSet;

use streamgauge_base::{Chunk, Duration};

use fragments::Fragments;
pub use transport::TransportStream;
pub(crate) use transport::{Section, Tables, checksum, stamp_of};

/// The kind of a track.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TrackKind {
    /// Pictures.
    Pictures,
    /// Sound.
    Sound,
    /// Text, metadata and the like.
    Other,
}

/// Pictures of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pictures {
    /// Number of pictures; none where the segment has sound alone.
    Counted {
        /// How many.
        count: u32,
        /// When each is shown, in order, counted from the first; empty where the container does not state it.
        times: Vec<Duration>,
    },
    /// They cannot be counted, for this reason.
    Unknown(String),
}

/// The content of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted {
    /// Its pictures.
    pub pictures: Pictures,
    /// Pictures or sound of it were recognised; false of text, and of a container that nothing here reads.
    pub is_media: bool,
    /// Tracks that are not counted, in words.
    pub left_out: BTreeSet<String>,
    /// The bytes end within a box or a packet.
    pub is_cut: bool,
}

/// State of a stream before a segment of it: from an initialisation segment, or from segments before.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Tracks of a movie, by their numbers.
    movie: Vec<MovieTrack>,
    /// Programs and streams of a transport stream.
    tables: transport::Tables,
}

/// A track of a movie.
#[derive(Clone, PartialEq, Eq, Debug)]
struct MovieTrack {
    id: u32,
    kind: TrackKind,
    /// Its samples' format, four letters.
    format: String,
}

/// Bytes by which a container is recognised.
const RECOGNISED_BY: usize = 16;

/// Boxes that a segment of fragmented MP4 begins with, or an initialisation segment.
const BOXES: [&[u8; 4]; 15] = [
    b"styp", b"ftyp", b"moof", b"moov", b"sidx", b"ssix", b"emsg", b"prft", b"free", b"skip", b"mdat",
    b"uuid", b"wide", b"mfra", b"pdin",
];

enum Container {
    /// Too little has come.
    Open(Vec<u8>),
    Fragments(Fragments),
    Transport(Box<TransportStream>),
    /// Packed audio.
    Sound,
    /// Text.
    Text,
    /// Another one; its name or its first bytes.
    Other(String),
}

/// Returns whether it is an ID3 tag, or the first bytes of a frame of AAC, MP3 or AC-3 (RFC 8216 section
/// 3.4).
fn is_packed_audio(first: &[u8]) -> bool {
    let is_frame = matches!(first, [0xff, second, ..] if second & 0xe0 == 0xe0);
    first.starts_with(b"ID3") || is_frame || first.starts_with(&[0x0b, 0x77])
}

/// Counts a segment while it is received. Memory is bounded, however long the segment is.
pub struct Counter {
    known: Known,
    container: Container,
}

impl Counter {
    /// Returns the counter of a segment of a stream with the state `known`.
    pub fn new(known: Known) -> Self {
        Counter { known, container: Container::Open(Vec::new()) }
    }

    /// Takes the segment's next bytes. Filler is no picture: it is passed over.
    pub fn push(&mut self, chunk: &Chunk) {
        self.bytes(chunk.head());
        let filler = chunk.len() - chunk.head().len();
        match &mut self.container {
            Container::Fragments(fragments) => fragments.skip(filler as u64),
            Container::Open(_) if filler > 0 => self.recognise(),
            _ => {}
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match &mut self.container {
            Container::Open(first) => {
                first.extend(bytes);
                if first.len() >= RECOGNISED_BY {
                    self.recognise();
                }
            }
            Container::Fragments(fragments) => fragments.push(bytes),
            Container::Transport(stream) => stream.push(bytes),
            Container::Sound | Container::Text | Container::Other(_) => {}
        }
    }

    fn recognise(&mut self) {
        let Container::Open(first) = std::mem::replace(&mut self.container, Container::Sound) else { return };
        let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first);
        self.container = if first.get(4..8).is_some_and(|kind| BOXES.iter().any(|known| *known == kind)) {
            Container::Fragments(Fragments::new(std::mem::take(&mut self.known.movie)))
        } else if is_packed_audio(&first) {
            Container::Sound
        } else if text.starts_with(b"WEBVTT") {
            Container::Text
        } else if first.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]) {
            Container::Other("Matroska or WebM".into())
        } else if first.first() == Some(&transport::SYNC) || first.get(4) == Some(&transport::SYNC) {
            Container::Transport(Box::new(TransportStream::new(std::mem::take(&mut self.known.tables))))
        } else if first.is_empty() {
            Container::Other("an empty segment".into())
        } else {
            let begins =
                String::from_utf8_lossy(&first[..first.len().min(RECOGNISED_BY)]).escape_debug().to_string();
            Container::Other(format!("neither MP4 nor MPEG-TS, it begins with \"{begins}\""))
        };
        self.bytes(&first);
    }

    /// Returns the content of the segment, which must be whole, and the state for the next one.
    pub fn finish(mut self) -> (Counted, Known) {
        if matches!(self.container, Container::Open(_)) {
            self.recognise();
        }
        let mut known = self.known;
        let none = || Pictures::Counted { count: 0, times: Vec::new() };
        let plain =
            |pictures, is_media| Counted { pictures, is_media, left_out: BTreeSet::new(), is_cut: false };
        let counted = match self.container {
            Container::Fragments(fragments) => {
                let (counted, movie) = fragments.finish();
                known.movie = movie;
                counted
            }
            Container::Transport(stream) => {
                let (counted, tables) = stream.finish();
                known.tables = tables;
                counted
            }
            Container::Sound => plain(none(), true),
            Container::Open(_) | Container::Text => plain(none(), false),
            Container::Other(what) => plain(Pictures::Unknown(what), false),
        };
        (counted, known)
    }
}
