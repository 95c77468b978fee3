//! An asset: the media of a URL.

use std::fmt;
use std::sync::Arc;

use streamgauge_base::Duration;

use crate::media::ClipSpec;

/// RTP ticks per second for video (RFC 3551 section 5).
pub const VIDEO_CLOCK_RATE: u32 = 90_000;

/// Something to stream.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its name for people.
    pub name: String,
    /// How long it plays.
    pub duration: Duration,
    /// Video and sound, in the file's order.
    pub tracks: Vec<Track>,
    /// Pictures and sound of the file that are none of these tracks, in words.
    pub left_out: Vec<String>,
}

impl Asset {
    /// Returns the clip, with the sizes of its frames alone: one track of video, repeated until it ends.
    /// Frames are shown when they are decoded; where some are shown out of that order, all are delayed until
    /// each is decoded by its time, as in a file.
    pub fn of_clip(clip: &ClipSpec) -> Self {
        let interval = clip.frame_interval;
        let pass = clip.frame_bytes.len() as u64;
        let (frames, delay) = (clip.frames(), clip.decoding_delay());
        let mut kinds = vec![UnitKind::Predicted; clip.frame_bytes.len()];
        if let Some(first) = kinds.first_mut().filter(|_| clip.key_frames.is_empty()) {
            *first = UnitKind::Key;
        }
        for &key in &clip.key_frames {
            if let Some(kind) = kinds.get_mut(key as usize) {
                *kind = UnitKind::Key;
            }
        }
        let mut offset = 0;
        let units = (0..if pass == 0 { 0 } else { frames }).map(|number| {
            let at = interval * number;
            let within = (number % pass) as usize;
            let (bytes, kind) = (clip.frame_bytes[within], kinds[within]);
            let shown = interval * (clip.shown_place(number) + delay);
            let unit = Unit { at, shown, offset, bytes, kind };
            offset += u64::from(bytes);
            unit
        });
        let track = Track {
            codec: Codec::Sizes,
            clock_rate: VIDEO_CLOCK_RATE,
            units: units.collect(),
            bytes: Bytes::Filler,
        };
        Asset {
            name: clip.name.clone(),
            duration: clip.duration + interval * delay,
            tracks: vec![track],
            left_out: Vec::new(),
        }
    }

    /// Returns all tracks' bits over the time that it plays; 0 if it plays no time.
    pub fn bit_rate_bps(&self) -> u64 {
        self.tracks.iter().map(|track| per_second(track.media_bytes() * 8, self.duration)).sum()
    }
}

fn per_second(amount: u64, time: Duration) -> u64 {
    (u128::from(amount) * 1_000_000_000).checked_div(time.as_nanos().into()).unwrap_or(0) as u64
}

/// One stream of access units.
#[derive(Clone, Debug)]
pub struct Track {
    /// The kind of its bytes.
    pub codec: Codec,
    /// RTP ticks per second.
    pub clock_rate: u32,
    /// In decoding order, which is the order of transmission.
    pub units: Vec<Unit>,
    /// Where the units' bytes are.
    pub bytes: Bytes,
}

impl Track {
    /// Returns the bytes of all units, nothing of RTP among them.
    pub fn media_bytes(&self) -> u64 {
        self.units.iter().map(|unit| u64::from(unit.bytes)).sum()
    }

    /// Returns the time from the first unit to the end of the last, which lasts as long as units do on
    /// average.
    pub fn duration(&self) -> Duration {
        let Some((first, last)) = self.units.first().zip(self.units.last()) else { return Duration::ZERO };
        let between = last.at.saturating_sub(first.at);
        between + between.div((self.units.len() as u64 - 1).max(1))
    }

    /// Returns where the last unit that is shown ends, from the asset's start. `None` without units.
    pub fn end(&self) -> Option<Duration> {
        let last = self.units.iter().map(|unit| unit.shown).max()?;
        Some(last + self.duration().div(self.units.len() as u64))
    }

    /// Returns average over its duration, RTP left out.
    pub fn bit_rate_bps(&self) -> u64 {
        per_second(self.media_bytes() * 8, self.duration())
    }

    /// Returns RTP ticks from the asset's start to `time`, rounded down.
    pub fn ticks(&self, time: Duration) -> u64 {
        (u128::from(time.as_nanos()) * u128::from(self.clock_rate) / 1_000_000_000) as u64
    }

    /// Returns true of pictures.
    pub fn is_video(&self) -> bool {
        !matches!(self.codec, Codec::Aac { .. })
    }
}

/// The kind of a track's bytes, with the parameters that a player needs before the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Codec {
    /// Frames of known sizes without content; sent as one H.264 NAL unit each, all filler.
    Sizes,
    /// H.264 in units of length-prefixed NAL units (ISO/IEC 14496-15); RFC 6184.
    H264 {
        /// Sequence parameter sets.
        sps: Vec<Vec<u8>>,
        /// Picture parameter sets.
        pps: Vec<Vec<u8>>,
        /// Bytes of each length.
        length_bytes: u8,
    },
    /// MPEG-4 Visual; RFC 6416.
    Mpeg4Visual {
        /// Visual object sequence to video object layer: the decoder's configuration.
        config: Vec<u8>,
    },
    /// AAC, one raw access unit each; RFC 3640.
    Aac {
        /// AudioSpecificConfig.
        config: Vec<u8>,
        /// Channels.
        channels: u8,
    },
}

/// An access unit: a coded frame, or a block of sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// When it is decoded, from the asset's start: its transmit time.
    pub at: Duration,
    /// When it is shown.
    pub shown: Duration,
    /// Where it begins in the track's bytes.
    pub offset: u64,
    /// Its size.
    pub bytes: u32,
    /// The units that depend on it.
    pub kind: UnitKind,
}

/// The units that depend on a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitKind {
    /// Decodes by itself.
    Key,
    /// Depends on others, and others may on it.
    Predicted,
    /// Nothing depends on it.
    Disposable,
}

/// Where units' bytes are.
#[derive(Clone)]
pub enum Bytes {
    /// Nowhere: the bytes are filler.
    Filler,
    /// A file in memory, shared by all sessions.
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bytes::Filler => f.write_str("Filler"),
            Bytes::Shared(bytes) => write!(f, "{} bytes", (**bytes).as_ref().len()),
        }
    }
}
