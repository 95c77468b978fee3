//! HLS (RFC 8216): multivariant and media playlists.
//!
//! Lines are taken apart here, and not by `m3u8-rs`: it holds durations as 32-bit floating-point numbers, so that times
//! drift from those of the same segments' MPD, and its errors name no line.

use streamgauge_base::{BitRate, Duration};

use super::attributes;
use super::fault::{ManifestError, Room, broken, check_length, unsupported};
use super::mpd::is_sound;
use super::place::Place;
use super::time::of_decimal;
use super::{
    AdaptationSet, Address, Live, Manifest, MediaKind, MediaSegment, Playlist, Representation, Segments,
};

/// What a playlist begins with (section 4.3.1.1).
pub const MAGIC: &str = "#EXTM3U";

/// Variants and renditions of one manifest.
const MOST_VARIANTS: usize = 1_000;

/// A line: its number, its tag without `#EXT` or the URI, and what is behind the tag's colon.
struct Line<'a> {
    number: u32,
    tag: &'a str,
    value: &'a str,
    uri: Option<&'a str>,
}

/// The lines that mean something.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let numbered = (1u32..).zip(text.lines().map(str::trim_end));
    numbered.filter(|(_, line)| !line.is_empty()).filter_map(|(number, line)| {
        let Some(comment) = line.strip_prefix('#') else {
            return Some(Line { number, tag: "", value: "", uri: Some(line.trim()) });
        };
        let tag = comment.strip_prefix("EXT")?;
        let (tag, value) = tag.split_once(':').unwrap_or((tag, ""));
        Some(Line { number, tag, value, uri: None })
    })
}

impl<'a> Line<'a> {
    fn wrong(&self, what: &str) -> ManifestError {
        let value: String = self.value.chars().take(60).collect();
        broken(self.number, format!("#EXT{} has {value:?}; {what}", self.tag))
    }

    fn attributes(&self) -> Result<Vec<(&'a str, &'a str)>, ManifestError> {
        attributes::read(self.value).ok_or_else(|| self.wrong("NAME=VALUE,... is wanted"))
    }

    fn count(&self) -> Result<u64, ManifestError> {
        self.value.trim().parse().map_err(|_| self.wrong("a number from 0 to 2^64 is wanted"))
    }
}

/// Reads a playlist of either kind as a manifest.
pub fn read(text: &str, url: &str) -> Result<Manifest, ManifestError> {
    let is_media = lines(text).any(|line| matches!(line.tag, "INF" | "-X-TARGETDURATION"));
    if is_media { alone(text, url) } else { multivariant(text, url) }
}

/// A media playlist that nobody points at: one representation of unknown rate.
fn alone(text: &str, url: &str) -> Result<Manifest, ManifestError> {
    let playlist = read_text(text, url)?;
    let (duration, init, live) = (playlist.duration(), playlist.init.clone(), playlist.live());
    let address = Address { url: Place::of(url)?.url().to_owned(), range: None };
    let segments =
        if playlist.is_ended { Segments::Listed(playlist.segments) } else { Segments::Playlist(address) };
    let id = "media".into();
    let representation =
        Representation { id, rate: BitRate::from_bps(0), size: None, codecs: None, init, segments };
    let set = AdaptationSet { kind: MediaKind::Video, representations: vec![representation] };
    Ok(Manifest { duration: playlist.is_ended.then_some(duration), live, sets: vec![set] })
}

/// Variants are representations of the pictures, renditions of sound those of sound, whose rate nobody tells.
fn multivariant(text: &str, url: &str) -> Result<Manifest, ManifestError> {
    let place = Place::of(url)?;
    let mut pictures: Vec<Representation> = Vec::new();
    let mut fallback: Vec<Representation> = Vec::new();
    let mut sound: Vec<Representation> = Vec::new();
    let mut next = None;
    let address = |uri: &str, line: u32| -> Result<Segments, ManifestError> {
        Ok(Segments::Playlist(Address { url: place.resolve(uri, line)?.url().to_owned(), range: None }))
    };
    for line in lines(text) {
        if pictures.len() + fallback.len() + sound.len() > MOST_VARIANTS {
            return Err(unsupported(line.number, "more than 1000 variants and renditions"));
        }
        match (line.tag, line.uri) {
            ("-X-STREAM-INF", _) => next = Some((line.attributes()?, line.number)),
            ("", Some(uri)) => {
                let (list, number) = next
                    .take()
                    .ok_or_else(|| broken(line.number, "a URI without #EXT-X-STREAM-INF before it"))?;
                let variant = variant(&list, number, address(uri, line.number)?)?;
                let all = match variant.codecs.as_deref() {
                    Some(codecs) if variant.size.is_none() && is_sound(codecs) => &mut fallback,
                    _ => &mut pictures,
                };
                // The same pictures with other sound beside them.
                match all.iter_mut().find(|known| known.segments == variant.segments) {
                    Some(known) => known.rate = known.rate.min(variant.rate),
                    None => all.push(variant),
                }
            }
            ("-X-MEDIA", _) => {
                let list = line.attributes()?;
                let get = |name| attributes::get(&list, name);
                // Without a URI the sound is in the variants themselves.
                let Some(uri) = get("URI").filter(|_| get("TYPE") == Some("AUDIO")) else { continue };
                let segments = address(uri, line.number)?;
                if sound.iter().any(|known| known.segments == segments) {
                    continue;
                }
                sound.push(Representation {
                    id: get("NAME").unwrap_or("audio").to_owned(),
                    rate: BitRate::from_bps(0),
                    size: None,
                    codecs: None,
                    init: None,
                    segments,
                });
            }
            ("-X-DEFINE", _) => return Err(unsupported(line.number, "variables (#EXT-X-DEFINE)")),
            _ => {}
        }
    }
    if let Some((_, number)) = next {
        return Err(broken(number, "#EXT-X-STREAM-INF without a URI behind it"));
    }
    if pictures.is_empty() && fallback.is_empty() {
        return Err(broken(1, "a playlist with neither #EXT-X-STREAM-INF nor #EXTINF"));
    }
    let (kind, mut main) = match pictures.is_empty() {
        true => (MediaKind::Audio, fallback),
        false => (MediaKind::Video, pictures),
    };
    main.sort_by_key(|one| one.rate);
    let mut sets = vec![AdaptationSet { kind, representations: main }];
    if !sound.is_empty() && kind == MediaKind::Video {
        sets.push(AdaptationSet { kind: MediaKind::Audio, representations: sound });
    }
    Ok(Manifest { duration: None, live: None, sets })
}

fn variant(list: &[(&str, &str)], line: u32, segments: Segments) -> Result<Representation, ManifestError> {
    let get = |name| attributes::get(list, name);
    let wrong = || broken(line, "#EXT-X-STREAM-INF without BANDWIDTH in bit/s");
    let rate: u64 = get("BANDWIDTH").and_then(|rate| rate.parse().ok()).ok_or_else(wrong)?;
    let size = get("RESOLUTION").map(|size| {
        let (width, height) = size.split_once('x')?;
        Some((width.parse().ok()?, height.parse().ok()?))
    });
    let wrong = || broken(line, "RESOLUTION is not of the form 640x360");
    Ok(Representation {
        id: get("NAME").map_or_else(|| rate.to_string(), str::to_owned),
        rate: BitRate::from_bps(rate),
        size: size.map(|size| size.ok_or_else(wrong)).transpose()?,
        codecs: get("CODECS").map(str::to_owned),
        init: None,
        segments,
    })
}

/// Reads a media playlist, which stands at `url`.
///
/// # Errors
///
/// What is wrong with it, and in which line.
pub fn read_playlist(bytes: &[u8], url: &str) -> Result<Playlist, ManifestError> {
    check_length(bytes.len() as u64)?;
    let text = super::text(bytes)?;
    if !text.starts_with(MAGIC) {
        return Err(ManifestError::Unknown { begins: super::begins(bytes) });
    }
    read_text(text, url)
}

/// `n` or `n@o` (section 4.3.2.2).
fn range(text: &str) -> Option<(u64, Option<u64>)> {
    let (length, from) = text.trim().split_once('@').map_or((text.trim(), None), |(n, o)| (n, Some(o)));
    let from = from.map(|from| from.parse().ok()).map_or(Some(None), |from| from.map(Some))?;
    Some((length.parse().ok().filter(|length| *length > 0)?, from))
}

fn bytes_of(first: u64, length: u64) -> Option<(u64, u64)> {
    Some((first, first.checked_add(length)?.checked_sub(1)?)).filter(|(_, last)| *last < u64::MAX)
}

/// A media playlist as it is read.
struct Reading {
    place: Place,
    room: Room,
    playlist: Playlist,
    target: Option<Duration>,
    /// Of the segment whose URI is to come.
    duration: Option<Duration>,
    range: Option<(u64, Option<u64>)>,
    is_gap: bool,
    /// Where the last range ended, and of what.
    ended: Option<(String, u64)>,
    at: Duration,
    number: u64,
}

fn read_text(text: &str, url: &str) -> Result<Playlist, ManifestError> {
    let playlist = Playlist {
        target: Duration::ZERO,
        sequence: 0,
        init: None,
        segments: Vec::new(),
        is_ended: false,
        hold_back: None,
    };
    let mut reading = Reading {
        place: Place::of(url)?,
        room: Room::new(),
        playlist,
        target: None,
        duration: None,
        range: None,
        is_gap: false,
        ended: None,
        at: Duration::ZERO,
        number: 0,
    };
    for line in lines(text) {
        reading.take(&line)?;
        if reading.playlist.is_ended {
            break;
        }
    }
    let missing = || broken(1, "a media playlist without #EXT-X-TARGETDURATION");
    reading.playlist.target = reading.target.ok_or_else(missing)?;
    Ok(reading.playlist)
}

impl Reading {
    fn take(&mut self, line: &Line<'_>) -> Result<(), ManifestError> {
        match line.tag {
            "INF" => {
                let seconds = line.value.split(',').next().unwrap_or_default().trim();
                let wrong = || line.wrong("seconds as 4.004 are wanted");
                self.duration = Some(of_decimal(seconds).ok_or_else(wrong)?);
            }
            "-X-TARGETDURATION" => {
                let wrong = || line.wrong("seconds are wanted");
                self.target = Some(of_decimal(line.value.trim()).ok_or_else(wrong)?);
            }
            "-X-MEDIA-SEQUENCE"
                if self.number == self.playlist.sequence && self.playlist.segments.is_empty() =>
            {
                self.playlist.sequence = line.count()?;
                self.number = self.playlist.sequence;
            }
            "-X-MEDIA-SEQUENCE" => return Err(line.wrong("it stands behind segments")),
            "-X-BYTERANGE" => {
                self.range =
                    Some(range(line.value).ok_or_else(|| line.wrong("LENGTH or LENGTH@FIRST is wanted"))?);
            }
            "-X-MAP" => self.map(line)?,
            "-X-GAP" => self.is_gap = true,
            "-X-ENDLIST" => self.playlist.is_ended = true,
            "-X-SERVER-CONTROL" => {
                let list = line.attributes()?;
                self.playlist.hold_back = attributes::get(&list, "HOLD-BACK").and_then(of_decimal);
            }
            "-X-SKIP" => {
                return Err(unsupported(line.number, "a playlist that leaves segments out (#EXT-X-SKIP)"));
            }
            "-X-DEFINE" => return Err(unsupported(line.number, "variables (#EXT-X-DEFINE)")),
            "-X-STREAM-INF" => return Err(broken(line.number, "a variant in a media playlist")),
            _ => {}
        }
        match line.uri {
            Some(uri) => self.segment(uri, line.number),
            None => Ok(()),
        }
    }

    fn map(&mut self, line: &Line<'_>) -> Result<(), ManifestError> {
        let list = line.attributes()?;
        let uri = attributes::get(&list, "URI").ok_or_else(|| line.wrong("URI is wanted"))?;
        let told = match attributes::get(&list, "BYTERANGE") {
            None => None,
            Some(text) => {
                let wrong = || line.wrong("BYTERANGE is LENGTH or LENGTH@FIRST");
                let (length, first) = range(text).ok_or_else(wrong)?;
                Some(bytes_of(first.unwrap_or(0), length).ok_or_else(wrong)?)
            }
        };
        let init = Address { url: self.place.resolve(uri, line.number)?.url().to_owned(), range: told };
        match &self.playlist.init {
            Some(known) if *known != init => {
                Err(unsupported(line.number, "a second initialization (#EXT-X-MAP), other than the first"))
            }
            _ => {
                self.playlist.init = Some(init);
                Ok(())
            }
        }
    }

    fn segment(&mut self, uri: &str, line: u32) -> Result<(), ManifestError> {
        let missing = || broken(line, "a segment without #EXTINF before it");
        let duration = self.duration.take().ok_or_else(missing)?;
        let url = self.place.resolve(uri, line)?.url().to_owned();
        let told = match self.range.take() {
            None => None,
            Some((length, first)) => {
                let continued = self.ended.as_ref().filter(|(of, _)| *of == url).map(|(_, end)| *end);
                let missing = || {
                    broken(line, "#EXT-X-BYTERANGE without a first byte, and no range of the same before it")
                };
                let first = first.or(continued).ok_or_else(missing)?;
                let range = bytes_of(first, length);
                Some(range.ok_or_else(|| broken(line, "#EXT-X-BYTERANGE leads beyond all bytes"))?)
            }
        };
        self.ended = told.map(|(_, last)| (url.clone(), last + 1));
        let (start, number) = (self.at, self.number);
        self.at += duration;
        self.number = number.checked_add(1).ok_or_else(|| broken(line, "numbers beyond all bounds"))?;
        if !std::mem::take(&mut self.is_gap) {
            self.room.take(1, url.len(), line, "this segment")?;
            let address = Address { url, range: told };
            self.playlist.segments.push(MediaSegment { number, address, start, duration });
        }
        Ok(())
    }
}

impl Playlist {
    /// From the first segment's start to the end of the last.
    pub fn duration(&self) -> Duration {
        self.segments.last().map_or(Duration::ZERO, |last| last.start + last.duration)
    }

    /// When what of it is there, if it goes on; RFC 8216 section 6.3.4 says when it is fetched again.
    pub fn live(&self) -> Option<Live> {
        let live = Live { update: Some(self.target), delay: self.hold_back, ..Live::default() };
        (!self.is_ended).then_some(live)
    }
}
