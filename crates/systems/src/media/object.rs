//! An object of several encodings, as servers that change between them while they send have it: streams of pictures and
//! sound, the pictures at several rates. Pictures are stream 0.

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration};

use super::{ClipSpec, LadderSpec, Numbers, OpenError};

/// The stream of pictures.
pub const VIDEO: usize = 0;

/// The stream of sound.
pub const AUDIO: usize = 1;

/// A server's media, by path.
pub trait Shelf<P>: Send + Sync {
    /// Returns the object at `path`: that of the URL, percent-decoded, with its leading `/`.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn open(&self, path: &str) -> Result<Arc<Object<P>>, OpenError>;
}

/// One object, which is at every path: a trial's.
pub struct OneObject<P>(pub Arc<Object<P>>);

impl<P: Send + Sync> Shelf<P> for OneObject<P> {
    fn open(&self, _: &str) -> Result<Arc<Object<P>>, OpenError> {
        Ok(self.0.clone())
    }
}

/// Media to stream; `P` is the files' description of their encodings.
#[derive(Clone, Debug)]
pub struct Object<P> {
    /// Its name for people.
    pub name: String,
    /// How long it plays.
    pub duration: Duration,
    /// Pictures, and sound if there is any.
    pub streams: Vec<Stream<P>>,
}

/// Pictures or sound.
#[derive(Clone, Debug)]
pub struct Stream<P> {
    /// The lowest rate first.
    pub encodings: Vec<Encoding<P>>,
}

/// A stream at one rate.
#[derive(Clone, Debug)]
pub struct Encoding<P> {
    /// In bit/s.
    pub bit_rate_bps: u64,
    /// The rate of its key frames alone.
    pub key_rate_bps: u64,
    /// Its file's properties.
    pub properties: Option<Arc<P>>,
    frames: Frames,
}

/// Where frames are from.
#[derive(Clone, Debug)]
enum Frames {
    /// Frames of a fixed interval, of known sizes without content, repeated until they end.
    Sizes {
        interval: Duration,
        count: u64,
        sizes: Numbers,
        /// Key frames of one round, from 0, ascending.
        keys: Arc<[u32]>,
    },
    /// Those of a file.
    Coded(Arc<CodedFrames>),
}

/// Coded frames in the order in which they are sent.
#[derive(Debug, Default)]
pub struct CodedFrames {
    /// Each with the place of its first byte in `media`.
    pub frames: Vec<(CodedFrame, usize)>,
    /// The bytes of all.
    pub media: Vec<u8>,
}

impl CodedFrames {
    /// Adds a frame behind the others.
    pub fn push(&mut self, at: Duration, is_key: bool, media: &[u8]) {
        self.frames.push((CodedFrame { at, bytes: media.len() as u32, is_key }, self.media.len()));
        self.media.extend(media);
    }
}

/// A coded frame, or a block of sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodedFrame {
    /// When it is shown.
    pub at: Duration,
    /// Its size.
    pub bytes: u32,
    /// It decodes by itself.
    pub is_key: bool,
}

impl<P: Clone> Object<P> {
    /// Returns the ladder, which has been checked.
    pub fn of_ladder(ladder: &LadderSpec) -> Self {
        let encoding = |clip: &ClipSpec, bit_rate_bps, all_keys| Encoding::new(clip, bit_rate_bps, all_keys);
        let video =
            ladder.video.iter().map(|level| encoding(&level.clip, level.bit_rate_bps, false)).collect();
        let audio =
            ladder.audio.iter().map(|sound| encoding(&sound.clip, sound.bit_rate_bps, true)).collect();
        let mut streams = [video, audio].map(|encodings| Stream { encodings }).to_vec();
        streams.retain(|stream| !stream.encodings.is_empty());
        let duration = ladder.levels().map(|level| level.clip.duration).max().unwrap_or(Duration::ZERO);
        Object { name: ladder.name.clone(), duration, streams }
    }

    /// Returns that of all streams in their highest encodings.
    pub fn most_bps(&self) -> u64 {
        let highest =
            |stream: &Stream<P>| stream.encodings.last().map_or(0, |encoding| encoding.bit_rate_bps);
        self.streams.iter().map(highest).fold(0, u64::saturating_add)
    }

    /// Returns that of sound; 0 without any.
    pub fn audio_bps(&self) -> u64 {
        self.streams.get(AUDIO).map_or(0, |stream| stream.encodings[0].bit_rate_bps)
    }
}

impl<P> Stream<P> {
    /// Returns a file's properties of its highest encoding.
    pub fn properties(&self) -> Option<&P> {
        self.encodings.last()?.properties.as_deref()
    }
}

impl<P> Encoding<P> {
    pub(crate) fn new(clip: &ClipSpec, bit_rate_bps: u64, all_keys: bool) -> Self {
        let interval = clip.frame_interval;
        let pass = clip.frame_bytes.len() as u32;
        let keys: Arc<[u32]> = match all_keys {
            true => (0..pass).collect(),
            false if clip.key_frames.is_empty() => [0].into(),
            false => clip.key_frames.iter().copied().filter(|key| *key < pass).collect(),
        };
        let of_keys: u64 = keys.iter().map(|key| u64::from(clip.frame_bytes[*key as usize])).sum();
        let lasts = u128::from(interval.as_nanos()) * u128::from(pass.max(1));
        let key_rate_bps = (u128::from(of_keys) * 8_000_000_000 / lasts.max(1)) as u64;
        let count = clip.duration.as_nanos().div_ceil(interval.as_nanos().max(1));
        let frames = Frames::Sizes { interval, count, sizes: clip.frame_bytes.clone(), keys };
        Encoding { bit_rate_bps, key_rate_bps: key_rate_bps.min(bit_rate_bps), properties: None, frames }
    }

    /// Returns the frames of a file, which must have one, at the rate `said_bps` or, where that is 0, theirs.
    pub fn of_frames(coded: CodedFrames, said_bps: u64, properties: P, duration: Duration) -> Self {
        let rate =
            |bytes: u64| (u128::from(bytes) * 8_000_000_000 / u128::from(duration.as_nanos().max(1))) as u64;
        let sum = |keys: bool| {
            coded
                .frames
                .iter()
                .filter(|(frame, _)| frame.is_key || !keys)
                .map(|(frame, _)| u64::from(frame.bytes))
                .sum()
        };
        let bit_rate_bps = Some(said_bps).filter(|rate| *rate > 0).unwrap_or_else(|| rate(sum(false))).max(1);
        let key_rate_bps = rate(sum(true)).min(bit_rate_bps);
        let properties = Some(Arc::new(properties));
        Encoding { bit_rate_bps, key_rate_bps, properties, frames: Frames::Coded(Arc::new(coded)) }
    }

    /// Its frames have bytes of their own.
    pub fn is_coded(&self) -> bool {
        matches!(self.frames, Frames::Coded(_))
    }

    /// Returns how many frames there are.
    pub fn count(&self) -> u64 {
        match &self.frames {
            Frames::Sizes { count, .. } => *count,
            Frames::Coded(coded) => coded.frames.len() as u64,
        }
    }

    /// Returns the frame of that number from 0, if there is one.
    pub fn frame(&self, number: u64) -> Option<CodedFrame> {
        match &self.frames {
            Frames::Sizes { interval, count, sizes, keys } => {
                let within = (number % sizes.len() as u64) as u32;
                (number < *count).then(|| CodedFrame {
                    at: *interval * number,
                    bytes: sizes[within as usize],
                    is_key: keys.binary_search(&within).is_ok(),
                })
            }
            Frames::Coded(coded) => Some(coded.frames.get(usize::try_from(number).ok()?)?.0),
        }
    }

    /// Returns the bytes of the frame of that number, which must exist.
    pub fn media(&self, number: u64, frame: CodedFrame) -> Chunk {
        match &self.frames {
            Frames::Sizes { .. } => Chunk::filler(frame.bytes),
            Frames::Coded(coded) => {
                let begins = coded.frames[number as usize].1;
                Chunk::bytes(&coded.media[begins..begins + frame.bytes as usize])
            }
        }
    }

    /// Returns the first frame at `at` or after it.
    pub fn first_at(&self, at: Duration) -> u64 {
        match &self.frames {
            Frames::Sizes { interval, .. } => at.as_nanos().div_ceil(interval.as_nanos().max(1)),
            Frames::Coded(coded) => coded.frames.partition_point(|(frame, _)| frame.at < at) as u64,
        }
    }

    /// Returns the first key frame of that number or a later one; of a file's it may be that behind the last.
    pub fn key_from(&self, number: u64) -> u64 {
        match &self.frames {
            Frames::Sizes { sizes, keys, .. } => {
                let pass = sizes.len() as u64;
                let (round, within) = (number / pass, (number % pass) as u32);
                match keys.get(keys.partition_point(|key| *key < within)) {
                    Some(key) => round * pass + u64::from(*key),
                    None => (round + 1) * pass + u64::from(keys[0]),
                }
            }
            Frames::Coded(coded) => {
                let later = coded.frames.iter().skip(number as usize).position(|(frame, _)| frame.is_key);
                later.map_or(coded.frames.len() as u64, |later| number + later as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::LevelSpec;
    use super::*;

    fn clip(frame_bytes: Vec<u32>, key_frames: Vec<u32>, frames: u64) -> ClipSpec {
        let interval = Duration::from_millis(100);
        ClipSpec {
            name: "test".into(),
            duration: interval * frames,
            frame_interval: interval,
            frame_bytes: frame_bytes.into(),
            key_frames: key_frames.into(),
            ..ClipSpec::default()
        }
    }

    #[test]
    fn pictures_come_first_and_sound_is_all_key_frames() {
        let level = |rate: u64| LevelSpec {
            bit_rate_bps: rate,
            size: (0, 0),
            clip: clip(vec![500, 100, 100, 100], vec![], 40),
        };
        let ladder = LadderSpec {
            name: "x".into(),
            segment: Duration::from_secs(1),
            video: vec![level(16_000), level(32_000)],
            audio: Some(level(8_000)),
        };
        let object = Object::<()>::of_ladder(&ladder);
        assert_eq!((object.streams.len(), object.audio_bps()), (2, 8_000));
        let [video, audio] = [VIDEO, AUDIO].map(|stream| &object.streams[stream].encodings[0]);
        assert!(!video.frame(1).unwrap().is_key && audio.frame(1).unwrap().is_key);
        assert_eq!(video.key_rate_bps, 10_000);
        assert_eq!((video.count(), video.frame(40)), (40, None));
    }

    proptest! {
        #[test]
        fn a_key_frame_is_found_and_none_is_passed(
            keys in prop::collection::btree_set(0u32..12, 1..6), number in 0u64..100,
        ) {
            let found = Encoding::<()>::new(&clip(vec![10; 12], keys.into_iter().collect(), 200), 1, false);
            let key = found.key_from(number);
            prop_assert!(key >= number && found.frame(key).unwrap().is_key);
            prop_assert!((number..key).all(|between| !found.frame(between).unwrap().is_key));
        }
    }
}
