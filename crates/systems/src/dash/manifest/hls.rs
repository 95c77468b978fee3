//! HLS (RFC 8216): media playlists, and which kind a playlist is.
//!
//! Lines are taken apart here, and not by `m3u8-rs`: it holds durations as 32-bit floating-point numbers, so that times
//! drift from those of the same segments' MPD, and its errors name no line.

use std::collections::BTreeSet;
use std::sync::Arc;

use streamgauge_base::{BitRate, Duration};

use super::attributes;
use super::defines::filled;
use super::fault::{ManifestError, Room, broken, check_length, encrypted, unsupported};
use super::left_out::{LeftOut, shown};
use super::lines::{Line, lines};
use super::multivariant::multivariant;
use super::place::Place;
use super::time::of_decimal;
use super::{
    AdaptationSet, Address, Live, Manifest, MediaKind, MediaSegment, Period, Playlist, Representation,
    Segments,
};

/// The first line of a playlist (section 4.3.1.1).
pub const MAGIC: &str = "#EXTM3U";

/// Reads a playlist of either kind as a manifest, where the copies `failed` are passed over.
pub fn read(text: &str, url: &str, failed: &BTreeSet<String>) -> Result<Manifest, ManifestError> {
    let (text, variables) = filled(text, url, &[])?;
    let is_media = lines(&text).any(|line| matches!(line.tag, "INF" | "-X-TARGETDURATION"));
    let manifest = if is_media { alone(&text, url) } else { multivariant(&text, url, failed) };
    Ok(Manifest { variables, ..manifest? })
}

/// A media playlist on its own: one representation of unknown rate.
fn alone(text: &str, url: &str) -> Result<Manifest, ManifestError> {
    let playlist = read_text(text, url)?;
    let (duration, live, left_out) = (playlist.duration(), playlist.live(), playlist.left_out);
    let init = playlist.init.as_deref().cloned();
    let address = Address { url: Place::of(url)?.url().to_owned(), range: None };
    let segments =
        if playlist.is_ended { Segments::Listed(playlist.segments) } else { Segments::Playlist(address) };
    let (id, rate) = ("media".into(), BitRate::from_bps(0));
    let representation = Representation { id, rate, size: None, codecs: None, init, segments, copy: None };
    let set = AdaptationSet { kind: MediaKind::Video, representations: vec![representation] };
    let period = Period { id: String::new(), start: Duration::ZERO, end: None, sets: vec![set] };
    let duration = playlist.is_ended.then_some(duration);
    Ok(Manifest { duration, live, periods: vec![period], left_out, variables: Vec::new() })
}

/// Reads the media playlist at `url`, which may import `variables`.
///
/// # Errors
///
/// The fault and its line.
pub fn read_playlist(
    bytes: &[u8],
    url: &str,
    variables: &[(String, String)],
) -> Result<Playlist, ManifestError> {
    check_length(bytes.len() as u64)?;
    let text = super::text(bytes)?;
    if !text.trim_start().starts_with(MAGIC) {
        return Err(ManifestError::Unknown { begins: super::begins(bytes) });
    }
    let (text, _) = filled(text, url, variables)?;
    read_text(&text, url)
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

/// The encryption of the following segments.
#[derive(Clone)]
struct Key {
    line: u32,
    method: String,
}

/// A media playlist as it is read.
struct Reading {
    place: Place,
    room: Room,
    playlist: Playlist,
    left: LeftOut,
    /// The length of the segment that the next URI names, and its line.
    duration: Option<(Duration, u32)>,
    range: Option<(u64, Option<u64>)>,
    is_gap: bool,
    key: Option<Key>,
    /// The initialization that a decoder needs before the next URI's segment, and its key where it is encrypted itself.
    init: Option<Arc<Address>>,
    init_key: Option<Key>,
    /// The reason for which a live playlist cannot be followed. An ended one can still be played.
    unfollowable: Option<ManifestError>,
    /// The end of the last range, and its resource.
    ended: Option<(String, u64)>,
    at: Duration,
    longest: Duration,
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
        left_out: Vec::new(),
    };
    let mut reading = Reading {
        place: Place::of(url)?,
        room: Room::new(),
        playlist,
        left: LeftOut::default(),
        duration: None,
        range: None,
        is_gap: false,
        key: None,
        init: None,
        init_key: None,
        unfollowable: None,
        ended: None,
        at: Duration::ZERO,
        longest: Duration::ZERO,
        number: 0,
    };
    let mut is_ended = false;
    for line in lines(text) {
        reading.take(&line)?;
        if line.tag == "-X-ENDLIST" {
            is_ended = true;
            break;
        }
    }
    reading.end(is_ended)
}

impl Reading {
    fn take(&mut self, line: &Line<'_>) -> Result<(), ManifestError> {
        match line.tag {
            "INF" => {
                let seconds = line.value.split(',').next().unwrap_or_default().trim();
                let wrong = || line.wrong("seconds as 4.004 are wanted");
                self.duration = Some((of_decimal(seconds).ok_or_else(wrong)?, line.number));
            }
            // In another form, the longest segment gives it.
            "-X-TARGETDURATION" => {
                self.playlist.target = of_decimal(line.value.trim()).unwrap_or(Duration::ZERO);
            }
            "-X-MEDIA-SEQUENCE" if self.at > Duration::ZERO || !self.playlist.segments.is_empty() => {
                self.unfollowable = Some(line.wrong("it stands behind segments"));
            }
            "-X-MEDIA-SEQUENCE" => match line.count() {
                Ok(sequence) => (self.playlist.sequence, self.number) = (sequence, sequence),
                Err(error) => self.unfollowable = Some(error),
            },
            "-X-BYTERANGE" => {
                self.range =
                    Some(range(line.value).ok_or_else(|| line.wrong("LENGTH or LENGTH@FIRST is wanted"))?);
            }
            "-X-MAP" => self.map(line)?,
            "-X-KEY" => self.key(line)?,
            "-X-GAP" => self.is_gap = true,
            // Such a playlist never changes: it is complete with or without an end tag (section 4.3.3.5).
            "-X-PLAYLIST-TYPE" if line.value.trim() == "VOD" => self.playlist.is_ended = true,
            "-X-SERVER-CONTROL" => {
                let list = attributes::read(line.value).unwrap_or_default();
                self.playlist.hold_back = attributes::get(&list, "HOLD-BACK").and_then(of_decimal);
            }
            "-X-START" => self.left.add(
                format!("#EXT-X-START of line {} ({})", line.number, shown(line.value)),
                "play begins at the first segment, or live behind the edge",
            ),
            "-X-DATERANGE" if line.value.contains("com.apple.hls.interstitial") => {
                self.left
                    .add(format!("interstitial of line {}", line.number), "#EXT-X-DATERANGE is not read");
            }
            "-X-SKIP" => {
                return Err(unsupported(line.number, "a playlist that leaves segments out (#EXT-X-SKIP)"));
            }
            "-X-I-FRAMES-ONLY" => {
                return Err(unsupported(
                    line.number,
                    "a playlist of key frames alone (#EXT-X-I-FRAMES-ONLY)",
                ));
            }
            "-X-STREAM-INF" => return Err(broken(line.number, "a variant in a media playlist")),
            _ => {}
        }
        match line.uri {
            Some(uri) => self.segment(uri, line.number),
            None => Ok(()),
        }
    }

    fn key(&mut self, line: &Line<'_>) -> Result<(), ManifestError> {
        let list = line.attributes()?;
        let method = attributes::get(&list, "METHOD").unwrap_or("without METHOD");
        let key = Key { line: line.number, method: shown(method) };
        self.key = (!method.eq_ignore_ascii_case("NONE")).then_some(key);
        Ok(())
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
        // This is the only method that encrypts whole files.
        self.init_key = self.key.clone().filter(|key| key.method == "AES-128");
        if self.init.as_deref() != Some(&init) {
            self.room.take(1, init.url.len(), line.number, "this #EXT-X-MAP")?;
            self.init = Some(Arc::new(init));
        }
        if self.playlist.init.is_none() {
            self.playlist.init.clone_from(&self.init);
        }
        Ok(())
    }

    fn segment(&mut self, uri: &str, line: u32) -> Result<(), ManifestError> {
        let missing = || broken(line, "a segment without #EXTINF before it");
        let (duration, from) = self.duration.take().ok_or_else(missing)?;
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
        self.longest = self.longest.max(duration);
        self.number = number.checked_add(1).ok_or_else(|| broken(line, "numbers beyond all bounds"))?;
        if std::mem::take(&mut self.is_gap) {
            return Ok(());
        }
        if let Some(Key { line, method }) = self.key.as_ref().or(self.init_key.as_ref()) {
            let what = format!("segments from line {from} on are encrypted with {method} (#EXT-X-KEY)");
            return Err(encrypted(*line, what));
        }
        self.room.take(1, url.len(), line, "this segment")?;
        let whole = MediaSegment::whole(number, Address { url, range: told }, start, duration);
        self.playlist.segments.push(MediaSegment { init: self.init.clone(), ..whole });
        Ok(())
    }

    fn end(mut self, is_ended: bool) -> Result<Playlist, ManifestError> {
        self.playlist.is_ended |= is_ended;
        match self.unfollowable {
            Some(error) if !self.playlist.is_ended => return Err(error),
            _ => {}
        }
        if self.playlist.target == Duration::ZERO {
            // Rounded up to a second, as it is written.
            self.playlist.target = Duration::from_secs(self.longest.as_nanos().div_ceil(1_000_000_000));
        }
        if self.playlist.is_ended && self.playlist.segments.is_empty() {
            return Err(broken(1, "a playlist without a segment to play, and no more will come"));
        }
        self.playlist.left_out = self.left.into_list();
        Ok(self.playlist)
    }
}

impl Playlist {
    /// From the first segment's start to the end of the last.
    pub fn duration(&self) -> Duration {
        self.segments.last().map_or(Duration::ZERO, |last| last.start + last.duration)
    }

    /// The times at which its segments become available, if it is live. RFC 8216 section 6.3.4 defines when it is
    /// fetched again.
    pub fn live(&self) -> Option<Live> {
        let live = Live { update: Some(self.target), delay: self.hold_back, ..Live::default() };
        (!self.is_ended).then_some(live)
    }
}
