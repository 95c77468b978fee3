//! The presentation as resources of an HTTP server.

use std::sync::Arc;

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::http::EntityTag;

use super::level::Level;
use super::mpd::Form;
use super::{MASTER, MPD, Presentation, RANGES_MASTER, RANGES_MPD, TIMELINE_MPD, hls, mpd};
use crate::http::{Busy, Library, Resource};

/// The media type of MPDs (ISO/IEC 23009-1 annex C).
pub const DASH: &str = "application/dash+xml";
/// That of playlists (RFC 8216 section 10).
pub const HLS: &str = "application/vnd.apple.mpegurl";

/// The ending of the names of a level's playlists.
pub const PLAYLIST: &str = ".m3u8";
/// The same of those of ranges.
pub const RANGES_PLAYLIST: &str = ".ranges.m3u8";

/// A manifest.
pub struct Text {
    text: String,
    content_type: &'static str,
    tag: String,
    /// It is another one soon.
    moves: bool,
}

impl Text {
    /// Its media type. A resource that `moves` is not to be cached.
    pub fn new(text: String, content_type: &'static str, moves: bool) -> Self {
        let tag = blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
        Text { text, content_type, tag, moves }
    }
}

impl Resource for Text {
    fn length(&self) -> u64 {
        self.text.len() as u64
    }

    fn tag(&self) -> EntityTag {
        EntityTag { weak: false, tag: self.tag.clone() }
    }

    fn content_type(&self) -> &str {
        self.content_type
    }

    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        let bytes = self.text.as_bytes().get(first as usize..).unwrap_or_default();
        Ok(Chunk::bytes(&bytes[..bytes.len().min(most as usize)]))
    }

    fn max_age_s(&self, usual: u64) -> u64 {
        if self.moves { 0 } else { usual }
    }
}

/// The parts of a level.
#[derive(Clone, Copy)]
enum Part {
    Init,
    Segment(usize),
    File,
}

struct OfLevel(Arc<Level>, Part);

impl Resource for OfLevel {
    fn length(&self) -> u64 {
        let OfLevel(level, part) = self;
        match part {
            Part::Init => level.init.len() as u64,
            Part::Segment(segment) => level.bytes(*segment),
            Part::File => level.file_bytes(),
        }
    }

    fn tag(&self) -> EntityTag {
        let OfLevel(level, part) = self;
        let tag = match part {
            Part::Init => format!("{}-i", level.tag),
            Part::Segment(segment) => format!("{}-{}", level.tag, segment + 1),
            Part::File => format!("{}-f", level.tag),
        };
        EntityTag { weak: false, tag }
    }

    fn content_type(&self) -> &str {
        if self.0.is_video { "video/mp4" } else { "audio/mp4" }
    }

    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        let OfLevel(level, part) = self;
        match part {
            Part::Init => {
                let bytes = level.init.get(first as usize..).unwrap_or_default();
                Ok(Chunk::bytes(&bytes[..bytes.len().min(most as usize)]))
            }
            Part::Segment(segment) => level.read_segment(*segment, first, most),
            Part::File => level.read_file(first, most),
        }
    }
}

/// A number as it is written, without anything before it.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

impl Presentation {
    /// The manifest at `path` as it is at `now`.
    pub(super) fn manifest(&self, path: &str, now: Instant) -> Option<Text> {
        let is_live = self.clock.is_some();
        let mpd = |form| Some(Text::new(mpd::write(self, form, now), DASH, self.moves(form)));
        match path {
            MPD => return mpd(Form::Number),
            TIMELINE_MPD => return mpd(Form::Timeline),
            MASTER => return Some(Text::new(hls::master(self, PLAYLIST), HLS, false)),
            // One file is there as a whole or not at all.
            RANGES_MPD if !is_live => return mpd(Form::Ranges),
            RANGES_MASTER if !is_live => {
                return Some(Text::new(hls::master(self, RANGES_PLAYLIST), HLS, false));
            }
            _ => {}
        }
        let name = path.strip_prefix('/')?;
        let (id, by_ranges) = match name.strip_suffix(RANGES_PLAYLIST) {
            Some(id) if !is_live => (id, true),
            _ => (name.strip_suffix(PLAYLIST)?, false),
        };
        let level = self.level(id)?;
        Some(Text::new(hls::media(self, level, by_ranges, now), HLS, is_live))
    }

    /// The media at `path`, if it is there at `now`.
    fn media(&self, path: &str, now: Instant) -> Option<OfLevel> {
        let name = path.strip_prefix('/')?;
        if let Some(id) = name.strip_suffix(".mp4").filter(|id| !id.contains('/')) {
            return Some(OfLevel(self.level(id)?.clone(), Part::File)).filter(|_| self.clock.is_none());
        }
        let (id, name) = name.split_once('/')?;
        let level = self.level(id)?;
        if name == "init.mp4" {
            return Some(OfLevel(level.clone(), Part::Init));
        }
        let name = name.strip_suffix(".m4s")?;
        let segment = match name.strip_prefix('t') {
            Some(ticks) => level.at_ticks(number(ticks)?)?,
            None => usize::try_from(number(name)?.checked_sub(1)?).ok()?,
        };
        let is_there = self.clock.as_ref().is_none_or(|clock| clock.has(segment, now));
        (segment < level.segments() && is_there).then(|| OfLevel(level.clone(), Part::Segment(segment)))
    }
}

impl Library for Presentation {
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        if let Some(text) = self.texts.get(path) {
            return Ok(Some(text.clone()));
        }
        if let Some(media) = self.media(path, now) {
            return Ok(Some(Arc::new(media)));
        }
        let text = self.manifest(path, now).filter(|_| self.clock.is_some());
        Ok(text.map(|text| Arc::new(text) as Arc<dyn Resource>))
    }

    fn is_for_pages(&self) -> bool {
        true
    }
}
