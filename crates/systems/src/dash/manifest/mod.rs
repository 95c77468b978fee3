//! The content of a manifest for a player, in either format: an MPD (ISO/IEC 23009-1) or a playlist of HLS (RFC 8216).
//!
//! Any input gives a manifest or an error with the fault and its line. Nothing panics, and no input takes memory out of
//! proportion ([`MOST_BYTES`], [`MOST_SEGMENTS`]).

mod attributes;
mod bases;
mod defines;
mod fault;
mod flaws;
mod hls;
mod index;
mod left_out;
mod lines;
mod mpd;
mod multivariant;
mod periods;
mod place;
mod protection;
mod renditions;
mod segments;
mod sets;
mod template;
pub(crate) mod time;
mod xml;

#[cfg(test)]
mod tests;

pub use fault::{MOST_BYTES, MOST_SEGMENTS, ManifestError, check_length};
pub use flaws::{Flaw, Oddity};
pub use hls::read_playlist;
pub use index::read_index;
pub use protection::encryption_of_init;

use std::collections::BTreeSet;
use std::sync::Arc;

use streamgauge_base::{BitRate, Duration};

/// A presentation as its manifest describes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    /// Its length; `None` of a presentation without a known end.
    pub duration: Option<Duration>,
    /// The data of a live presentation.
    pub live: Option<Live>,
    /// Its parts, one behind the other; HLS has one.
    pub periods: Vec<Period>,
    /// Sets, renditions, representations and periods that are not played, each with its line and the reason.
    pub left_out: Vec<String>,
    /// Variables that media playlists may import (`EXT-X-DEFINE`).
    pub variables: Vec<(String, String)>,
}

/// A part of a presentation, with media of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Period {
    /// Its name in the manifest; may be empty.
    pub id: String,
    /// When it begins, in the presentation.
    pub start: Duration,
    /// When it ends, if that is known.
    pub end: Option<Duration>,
    /// The sets that are played: pictures, sound, or one set of each.
    pub sets: Vec<AdaptationSet>,
}

/// The times at which parts of a live presentation become available.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Live {
    /// The presentation's beginning on the server's clock, since the Unix epoch (`availabilityStartTime`); `None` of HLS.
    pub starts: Option<Duration>,
    /// How often the manifest is to be fetched again; `None`: never, since its templates go on.
    pub update: Option<Duration>,
    /// How far behind the edge to play (`suggestedPresentationDelay`, HOLD-BACK); `None` if the player is to know.
    pub delay: Option<Duration>,
    /// How long a segment stays (`timeShiftBufferDepth`); `None` for ever.
    pub depth: Option<Duration>,
    /// Segments may be asked for so long before they are complete (`availabilityTimeOffset`).
    pub early: Duration,
}

/// The common data of a set's representations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MediaKind {
    /// Pictures, with sound among them or without.
    Video,
    /// Sound alone.
    Audio,
}

/// One thing to be shown or heard, at several rates.
#[derive(Clone, PartialEq, Debug)]
pub struct AdaptationSet {
    /// Its type.
    pub kind: MediaKind,
    /// From the lowest rate up.
    pub representations: Vec<Representation>,
}

/// A set's content at one rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Representation {
    /// Its name in the manifest.
    pub id: String,
    /// Its declared rate (`@bandwidth`, BANDWIDTH).
    pub rate: BitRate,
    /// Width and height, if known.
    pub size: Option<(u32, u32)>,
    /// Codecs of RFC 6381, if known.
    pub codecs: Option<String>,
    /// The initialization that a decoder needs before the first segment, if it is apart.
    pub init: Option<Address>,
    /// Its segments, or the place of their list.
    pub segments: Segments,
    /// The copy that is named here (a BaseURL, or a playlist among equals), where there is another one to try.
    pub copy: Option<String>,
}

/// The place of a list of segments.
#[derive(Clone, PartialEq, Debug)]
pub enum Segments {
    /// Each by itself, in order of time.
    Listed(Vec<MediaSegment>),
    /// A pattern without an end, with equal segments.
    Numbered(Template),
    /// By an index of the file (`sidx`, ISO/IEC 14496-12 section 8.16.3), which is to be fetched.
    Indexed {
        /// Where the index is.
        address: Address,
        /// Where its segments lie.
        window: Window,
    },
    /// By a media playlist, which is to be fetched.
    Playlist(Address),
}

/// Segments of equal length by their numbers (`SegmentTemplate@duration`).
#[derive(Clone, PartialEq, Debug)]
pub struct Template {
    /// The address with `$Number$` or `$Time$` still in it; the rest is filled in.
    pub pattern: String,
    /// The number of the first.
    pub first: u64,
    /// Length of each in units of the timescale.
    pub length: u64,
    /// Units of a second.
    pub timescale: u64,
    /// How many there are; `None` while they go on.
    pub count: Option<u64>,
    /// When the first begins, in the presentation.
    pub start: Duration,
    /// When their period ends: the last is shown up to there.
    pub end: Option<Duration>,
}

/// A period, as the media of a representation see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// When it begins, in the presentation.
    pub start: Duration,
    /// When it ends, if that is known.
    pub end: Option<Duration>,
    /// The time of the media with which it begins (`presentationTimeOffset`).
    pub offset: Duration,
}

/// One segment.
#[derive(Clone, PartialEq, Debug)]
pub struct MediaSegment {
    /// Its number, of a live presentation the same at each fetch.
    pub number: u64,
    /// Where it is.
    pub address: Address,
    /// When it begins to be shown, in the presentation.
    pub start: Duration,
    /// How long it is shown.
    pub duration: Duration,
    /// Media at its beginning that lies before its period, and at its end behind it: both are not shown.
    pub outside: Outside,
    /// The initialization that a decoder needs before it, where it is not its representation's.
    pub init: Option<Arc<Address>>,
}

/// Media of a segment that lies outside its period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outside {
    /// At the beginning.
    pub before: Duration,
    /// At the end.
    pub after: Duration,
    /// The length that `after` is made of is a nominal one: the segment itself may be shorter.
    pub nominal: bool,
}

/// Where bytes are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address {
    /// An absolute URL.
    pub url: String,
    /// First and last byte; `None` for the whole.
    pub range: Option<(u64, u64)>,
}

/// A media playlist of HLS: the segments of one representation.
#[derive(Clone, PartialEq, Debug)]
pub struct Playlist {
    /// No segment is longer, to the second (`EXT-X-TARGETDURATION`).
    pub target: Duration,
    /// The number of the first segment (`EXT-X-MEDIA-SEQUENCE`).
    pub sequence: u64,
    /// The initialization that a decoder needs before the first segment (`EXT-X-MAP`).
    pub init: Option<Arc<Address>>,
    /// The segments. Their times count from the first: of a live playlist only their numbers stay the same.
    pub segments: Vec<MediaSegment>,
    /// No more will come (`EXT-X-ENDLIST`).
    pub is_ended: bool,
    /// How far behind the end to play (`HOLD-BACK`).
    pub hold_back: Option<Duration>,
    /// The parts that are not played, each with its line.
    pub left_out: Vec<String>,
}

impl Manifest {
    /// Reads the manifest at `url`: an MPD or a playlist, by its first bytes.
    ///
    /// # Errors
    ///
    /// The fault and its place.
    pub fn read(bytes: &[u8], url: &str) -> Result<Manifest, ManifestError> {
        Self::read_without(bytes, url, &BTreeSet::new())
    }

    /// The same, where these copies ([`Representation::copy`]) have failed and others are to be named.
    ///
    /// # Errors
    ///
    /// As of [`Manifest::read`].
    pub fn read_without(
        bytes: &[u8],
        url: &str,
        failed: &BTreeSet<String>,
    ) -> Result<Manifest, ManifestError> {
        check_length(bytes.len() as u64)?;
        let text = text(bytes)?;
        if text.trim_start().starts_with(hls::MAGIC) {
            hls::read(text, url, failed)
        } else if is_page(text) {
            Err(ManifestError::Page)
        } else if text.trim_start().starts_with('<') {
            mpd::read(text, url, failed)
        } else {
            Err(ManifestError::Unknown { begins: begins(bytes) })
        }
    }

    /// It is to be fetched again: more may be listed then.
    pub fn goes_on(&self) -> bool {
        self.live.is_some_and(|live| live.update.is_some())
    }

    /// How long a segment plays of its last period; zero if that is not known.
    pub fn segment_length(&self) -> Duration {
        let Some(first) = self.periods.last().and_then(|period| period.sets.first()) else {
            return Duration::ZERO;
        };
        match first.representations.first().map(|one| &one.segments) {
            Some(Segments::Numbered(template)) => time::of_ticks(template.length, template.timescale),
            Some(Segments::Listed(segments)) => {
                segments.get(segments.len() / 2).map_or(Duration::ZERO, |middle| middle.duration)
            }
            _ => Duration::ZERO,
        }
    }

    /// The played parts of all its periods.
    pub fn sets(&self) -> impl Iterator<Item = &AdaptationSet> {
        self.periods.iter().flat_map(|period| &period.sets)
    }
}

impl Period {
    /// Its set of that kind.
    pub fn set(&self, kind: MediaKind) -> Option<&AdaptationSet> {
        self.sets.iter().find(|set| set.kind == kind)
    }
}

impl MediaSegment {
    /// A segment that is shown whole.
    pub fn whole(number: u64, address: Address, start: Duration, duration: Duration) -> Self {
        MediaSegment { number, address, start, duration, outside: Outside::default(), init: None }
    }
}

impl Representation {
    /// The end of its last segment, if known.
    pub fn end(&self) -> Option<Duration> {
        match &self.segments {
            Segments::Listed(segments) => segments.last().map(|last| last.start + last.duration),
            Segments::Numbered(template) => {
                let last = template.first.checked_add(template.count?.checked_sub(1)?)?;
                template.segment(last).map(|last| last.start + last.duration)
            }
            Segments::Indexed { .. } | Segments::Playlist(_) => None,
        }
    }
}

/// A manifest's letters: UTF-8, with a byte order mark or without.
fn text(bytes: &[u8]) -> Result<&str, ManifestError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() as u32;
        match line {
            1 if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) => {
                fault::broken(1, "UTF-16 is not read; write it in UTF-8")
            }
            1 => ManifestError::Unknown { begins: begins(bytes) },
            line => fault::broken(line, "bytes that are no UTF-8"),
        }
    })
}

/// Servers answer with such a page and status 200 in place of a resource: a login, or an error.
fn is_page(text: &str) -> bool {
    let begins =
        |tag: &str| text.trim_start().get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag));
    begins("<!doctype html") || begins("<html")
}

/// The part of another resource that an error shows.
fn begins(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(24)]).into_owned()
}
