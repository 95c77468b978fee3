//! A level's frames: their sizes and times, and their bytes where there are any.

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration};

use crate::media::{ClipSpec, Numbers, StoredFile, Track, UnitKind};

/// Ticks of a second in which usual intervals between pictures are whole: RTP's clock of video, and 24000/1001, 30000/1001
/// and 60000/1001 frames a second.
const OF_PICTURES: &[u64] = &[90_000, 24_000, 60_000, 30_000];

/// The same of sound: its rates.
const OF_SOUND: &[u64] = &[48_000, 44_100, 32_000, 24_000, 22_050, 16_000];

/// Bytes that are read from a file at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Frames in the order of decoding, which is that of their bytes.
pub enum Frames {
    /// For a clip with known sizes alone.
    Made(MadeFrames),
    /// For a file.
    Stored(StoredFrames),
}

/// The clip's frames, repeated from their start.
pub struct MadeFrames {
    sizes: Numbers,
    /// Which of them are key frames.
    keys: Vec<bool>,
    /// The place of each in the order in which they are shown; empty where that is this order.
    display_order: Numbers,
    /// Bytes before each, and of all.
    before: Vec<u64>,
    count: u64,
    /// Ticks between two of them; none where they are no whole number.
    step: Option<u64>,
    interval: Duration,
    timescale: u64,
}

/// Frames that lie in a file.
pub struct StoredFrames {
    frames: Vec<StoredFrame>,
    /// Bytes before each, and of all.
    before: Vec<u64>,
    end: u64,
    timescale: u64,
    file: Arc<dyn StoredFile>,
}

struct StoredFrame {
    offset: u64,
    at: u64,
    shown: u64,
    is_key: bool,
}

impl MadeFrames {
    /// The clip's, of pictures or of sound.
    pub fn of_clip(clip: &ClipSpec, is_video: bool) -> Self {
        let interval = clip.frame_interval;
        let pass = clip.frame_bytes.len();
        let mut keys = vec![false; pass];
        if clip.key_frames.is_empty() {
            keys.iter_mut().take(1).for_each(|first| *first = true);
        }
        for key in &clip.key_frames {
            if let Some(is_key) = keys.get_mut(*key as usize) {
                *is_key = true;
            }
        }
        let mut sum = 0;
        let before = std::iter::once(0).chain(clip.frame_bytes.iter().map(|bytes| {
            sum += u64::from(*bytes);
            sum
        }));
        let whole = |scale: &u64| {
            let ticks = u128::from(interval.as_nanos()) * u128::from(*scale);
            let step = (ticks + 500_000_000) / 1_000_000_000;
            // The interval itself is rounded to a nanosecond.
            let is_whole = step > 0 && ticks.abs_diff(step * 1_000_000_000) <= u128::from(*scale);
            is_whole.then_some((*scale, step as u64))
        };
        let timescales = if is_video { OF_PICTURES } else { OF_SOUND };
        let found = timescales.iter().find_map(whole);
        MadeFrames {
            sizes: clip.frame_bytes.clone(),
            keys,
            display_order: clip.display_order.clone(),
            before: before.collect(),
            count: clip.frames(),
            step: found.map(|(_, step)| step),
            interval,
            timescale: found.map_or(timescales[0], |(scale, _)| scale),
        }
    }

    fn at(&self, frame: u64) -> u64 {
        match self.step {
            Some(step) => frame * step,
            None => to_ticks(self.interval * frame, self.timescale),
        }
    }

    fn shown(&self, frame: u64) -> u64 {
        let round = self.display_order.len() as u64;
        match self.display_order.get(frame.checked_rem(round).unwrap_or(0) as usize) {
            Some(place) if frame < self.count => self.at(frame / round * round + u64::from(*place)),
            _ => self.at(frame),
        }
    }
}

/// To the nearest.
fn to_ticks(time: Duration, timescale: u64) -> u64 {
    ((u128::from(time.as_nanos()) * u128::from(timescale) + 500_000_000) / 1_000_000_000) as u64
}

impl StoredFrames {
    /// The frames of `track`, with their units' offsets in `file`. The first picture is shown at 0, so that pictures
    /// and sound of several files begin together.
    pub fn of_track(track: &Track, file: Arc<dyn StoredFile>) -> Self {
        let timescale = u64::from(track.clock_rate.max(1));
        let first = track.units.iter().map(|unit| unit.shown).min().unwrap_or_default();
        let begins = track.units.first().map(|unit| unit.at).unwrap_or_default();
        let frames: Vec<StoredFrame> = track
            .units
            .iter()
            .map(|unit| StoredFrame {
                offset: unit.offset,
                at: to_ticks(unit.at.saturating_sub(begins), timescale),
                shown: to_ticks(unit.shown.saturating_sub(first), timescale),
                is_key: unit.kind == UnitKind::Key,
            })
            .collect();
        let mut sum = 0;
        let before = std::iter::once(0).chain(track.units.iter().map(|unit| {
            sum += u64::from(unit.bytes);
            sum
        }));
        let end = to_ticks(track.end().unwrap_or_default().saturating_sub(first), timescale);
        StoredFrames { before: before.collect(), frames, end, timescale, file }
    }

    /// The bytes of frames from the level's byte `first` on: at least one and at most `most`.
    fn read(&self, first: u64, most: u64) -> Result<Vec<u8>, String> {
        let most = most.min(PIECE_BYTES);
        let mut frame = self.before.partition_point(|before| *before <= first).saturating_sub(1);
        let mut bytes: Vec<u8> = Vec::with_capacity(most as usize);
        let (mut at, until) = (first, first + most);
        while at < until && frame < self.frames.len() {
            let from = self.frames[frame].offset + (at - self.before[frame]);
            // Frames that lie next to each other are read at once.
            let mut end = self.before[frame + 1];
            frame += 1;
            while end < until && self.frames.get(frame).is_some_and(|next| next.offset == from + (end - at)) {
                frame += 1;
                end = self.before[frame];
            }
            let wanted = end.min(until) - at;
            let read = self.file.read(from, wanted)?;
            at += read.len() as u64;
            bytes.extend(&read);
            if (read.len() as u64) < wanted {
                break;
            }
        }
        if bytes.is_empty() { Err("the file is shorter than it was".into()) } else { Ok(bytes) }
    }
}

impl Frames {
    /// How many there are.
    pub fn count(&self) -> u64 {
        match self {
            Frames::Made(made) if made.sizes.is_empty() => 0,
            Frames::Made(made) => made.count,
            Frames::Stored(stored) => stored.frames.len() as u64,
        }
    }

    /// Ticks of a second.
    pub fn timescale(&self) -> u64 {
        match self {
            Frames::Made(made) => made.timescale,
            Frames::Stored(stored) => stored.timescale,
        }
    }

    /// Returns the time at which a frame is decoded, in ticks; after the last frame, the time of its end.
    pub fn at(&self, frame: u64) -> u64 {
        match self {
            Frames::Made(made) => made.at(frame),
            Frames::Stored(stored) => match stored.frames.get(frame as usize) {
                Some(frame) => frame.at,
                // The last lasts as long as the one before it.
                None => {
                    let [before, last] = [2, 1].map(|back| {
                        let frame = stored.frames.len().checked_sub(back);
                        frame.and_then(|frame| stored.frames.get(frame)).map_or(0, |frame| frame.at)
                    });
                    if stored.frames.len() < 2 { stored.end.max(1) } else { last + (last - before).max(1) }
                }
            },
        }
    }

    /// When it is shown.
    pub fn shown(&self, frame: u64) -> u64 {
        match self {
            Frames::Made(made) => made.shown(frame),
            Frames::Stored(stored) => {
                stored.frames.get(frame as usize).map_or(stored.end, |frame| frame.shown)
            }
        }
    }

    /// When the last of all has been shown.
    pub fn end(&self) -> u64 {
        match self {
            Frames::Made(made) => made.at(made.count),
            Frames::Stored(stored) => stored.end,
        }
    }

    /// True if it decodes by itself.
    pub fn is_key(&self, frame: u64) -> bool {
        match self {
            Frames::Made(made) => made.keys[(frame % made.keys.len() as u64) as usize],
            Frames::Stored(stored) => stored.frames.get(frame as usize).is_some_and(|frame| frame.is_key),
        }
    }

    /// Bytes of all frames before it.
    pub fn bytes_before(&self, frame: u64) -> u64 {
        match self {
            Frames::Made(made) => {
                let pass = made.sizes.len() as u64;
                let all = made.before.last().copied().unwrap_or(0);
                frame / pass * all + made.before[(frame % pass) as usize]
            }
            Frames::Stored(stored) => stored.before[(frame as usize).min(stored.frames.len())],
        }
    }

    /// Bytes of a frame.
    pub fn bytes(&self, frame: u64) -> u64 {
        self.bytes_before(frame + 1) - self.bytes_before(frame)
    }

    /// The bytes from `first` on, counted over all frames.
    pub fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        match self {
            Frames::Made(_) => Ok(Chunk::filler(most.min(1 << 30) as u32)),
            Frames::Stored(stored) => stored.read(first, most).map(Chunk::bytes),
        }
    }
}
