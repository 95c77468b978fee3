//! The origin: a ladder as one set of fragmented MP4 segments (CMAF, ISO/IEC 23000-19), and manifests of DASH and HLS
//! with the same segments.
//!
//! The boxes of a made ladder are real and its frames are filler; of files both are real. The origin keeps frames'
//! sizes and the manifests, nothing more: it makes the header of a segment at each read.
//!
//! | path | content |
//! |---|---|
//! | [`MPD`] | DASH by `$Number$` |
//! | [`TIMELINE_MPD`] | DASH by `$Time$` with a SegmentTimeline |
//! | [`RANGES_MPD`] | DASH by ranges of one file a level, with an index; not live |
//! | [`MASTER`], `/v0.m3u8` | HLS, a file a segment |
//! | [`RANGES_MASTER`], `/v0.ranges.m3u8` | HLS by ranges of one file a level; not live |
//! | `/v0/init.mp4`, `/v0/1.m4s`, `/v0/t0.m4s` | initialization and segments, by number and by time in ticks |
//! | `/v0.mp4` | the one file: initialization, index and segments |
//!
//! Levels are `v0` to `vN` from the lowest up, sound is `a0`.

mod boxes;
mod clock;
mod entry;
mod folder;
mod frames;
mod hls;
mod level;
mod mpd;
mod resource;
mod written;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use crate::media::{LadderSpec, LevelSpec};
use clock::Clock;
use entry::Entry;
pub use folder::DESCRIPTION;
use frames::{Frames, MadeFrames};
use level::{Level, Uncut};
use resource::{PLAYLIST, RANGES_PLAYLIST, Text};

/// The MPD by numbers.
pub const MPD: &str = "/manifest.mpd";
/// The MPD by times.
pub const TIMELINE_MPD: &str = "/timeline.mpd";
/// The MPD by ranges.
pub const RANGES_MPD: &str = "/ranges.mpd";
/// The multivariant playlist.
pub const MASTER: &str = "/master.m3u8";
/// The multivariant playlist by ranges.
pub const RANGES_MASTER: &str = "/ranges.m3u8";

/// The reading of a trial's clock at [`Instant::ZERO`], since the Unix epoch: the first second of 2026.
pub const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// More frames of a level than this are not cut.
const MOST_FRAMES: u64 = 1 << 22;

/// How a presentation is offered.
#[derive(Clone, PartialEq, Debug)]
pub struct OriginSettings {
    /// Segments are there once they have come to their end, not all from the start. The presentation ends with its content.
    pub live: bool,
    /// How long manifests list a segment (`timeShiftBufferDepth`).
    pub live_window: Duration,
    /// How far behind the edge players are asked to play (`suggestedPresentationDelay`, HOLD-BACK, which has three target
    /// durations at least).
    pub delay: Option<Duration>,
    /// How often a live MPD that changes is to be fetched again (`minimumUpdatePeriod`).
    pub update: Duration,
    /// A segment may be asked for so long before its end (`availabilityTimeOffset`); it is then there as a whole.
    pub early: Duration,
    /// The start of a live presentation, less its time on air by then.
    pub begins: Instant,
    /// How much of it has been on air when it begins.
    pub on_air: Duration,
    /// The reading of the server's clock at [`Instant::ZERO`], since the Unix epoch.
    pub epoch: Duration,
}

impl Default for OriginSettings {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        OriginSettings {
            live: false,
            live_window: second * 60,
            delay: None,
            update: second * 2,
            early: Duration::ZERO,
            begins: Instant::ZERO,
            on_air: Duration::ZERO,
            epoch: EPOCH,
        }
    }
}

/// A ladder that is offered.
pub struct Presentation {
    /// Pictures from the lowest rate up, then sound.
    levels: Vec<Arc<Level>>,
    settings: OriginSettings,
    /// How long segments are at least.
    segment: Duration,
    /// How long the pictures play.
    duration: Duration,
    /// The clock of a live one.
    clock: Option<Clock>,
    /// Manifests that never change, by their paths.
    texts: BTreeMap<String, Arc<Text>>,
}

impl Presentation {
    /// Makes the origin of a ladder from its sizes.
    ///
    /// # Errors
    ///
    /// A ladder that cannot be cut: key frames that do not align, or segments or times beyond the formats' limits.
    pub fn of_ladder(ladder: &LadderSpec, settings: &OriginSettings) -> Result<Presentation, String> {
        let made = |level: &LevelSpec, id: String, is_video: bool| {
            let frames = Frames::Made(MadeFrames::of_clip(&level.clip, is_video));
            let entry = match is_video {
                true => Entry::of_made_pictures(level.size),
                false => Entry::of_made_sound(frames.timescale() as u32),
            };
            let version = String::new();
            Uncut { id, is_video, rate_bps: level.bit_rate_bps, size: level.size, entry, frames, version }
        };
        let video = ladder.video.iter().enumerate().map(|(n, level)| made(level, format!("v{n}"), true));
        let sound = ladder.audio.iter().map(|level| made(level, "a0".into(), false));
        Presentation::of_levels(video.chain(sound).collect(), ladder.segment, settings)
    }

    /// Makes the origin of levels, the lowest of the pictures first.
    fn of_levels(
        levels: Vec<Uncut>,
        segment: Duration,
        settings: &OriginSettings,
    ) -> Result<Presentation, String> {
        if let Some(long) = levels.iter().find(|level| level.frames.count() > MOST_FRAMES) {
            return Err(format!(
                "{}: {} frames; at most {MOST_FRAMES} are cut",
                long.id,
                long.frames.count()
            ));
        }
        let first =
            levels.first().filter(|level| level.is_video).ok_or("no pictures; give a level of video")?;
        let boundaries = first.boundaries(segment);
        let cut = levels.into_iter().map(|level| Ok(Arc::new(level.at(&boundaries, !settings.live)?)));
        let levels: Vec<Arc<Level>> = cut.collect::<Result<_, String>>()?;
        let pictures = levels.iter().filter(|level| level.is_video);
        let duration = pictures.map(|level| level.end()).max().unwrap_or_default();
        let ends = (0..levels[0].segments()).map(|segment| levels[0].start(segment + 1)).collect();
        let clock = settings.live.then(|| Clock::new(settings, ends)).transpose()?;
        let settings = settings.clone();
        let mut presentation =
            Presentation { levels, settings, segment, duration, clock, texts: BTreeMap::new() };
        if !presentation.settings.live {
            let own = [MPD, TIMELINE_MPD, RANGES_MPD, MASTER, RANGES_MASTER].map(str::to_owned);
            let of_levels = presentation
                .levels()
                .flat_map(|level| [PLAYLIST, RANGES_PLAYLIST].map(|suffix| format!("/{}{suffix}", level.id)));
            let paths: Vec<String> = own.into_iter().chain(of_levels).collect();
            let texts = paths.into_iter().filter_map(|path| {
                let text = presentation.manifest(&path, Instant::ZERO)?;
                Some((path, Arc::new(text)))
            });
            presentation.texts = texts.collect();
        }
        Ok(presentation)
    }

    fn levels(&self) -> impl Iterator<Item = &Level> {
        self.levels.iter().map(Arc::as_ref)
    }

    fn level(&self, id: &str) -> Option<&Arc<Level>> {
        self.levels.iter().find(|level| level.id == id)
    }

    /// The segments in the manifests at `now`.
    fn window(&self, now: Instant) -> Range<usize> {
        self.clock.as_ref().map_or(0..usize::MAX, |clock| clock.window(now))
    }

    /// How long it plays.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Levels: those of the pictures from the lowest rate up, then the sound.
    pub fn level_count(&self) -> usize {
        self.levels.len()
    }

    /// Segments of a level; 0 if there is no such level.
    pub fn segment_count(&self, level: usize) -> u64 {
        self.levels.get(level).map_or(0, |level| level.segments() as u64)
    }

    /// Bytes of a level's segment, with its headers; numbers count from 1. 0 if there is none.
    pub fn segment_bytes(&self, level: usize, number: u64) -> u64 {
        let segment = number.checked_sub(1).and_then(|segment| usize::try_from(segment).ok());
        let level =
            self.levels.get(level).zip(segment).filter(|(level, segment)| *segment < level.segments());
        level.map_or(0, |(level, segment)| level.bytes(segment))
    }
}
