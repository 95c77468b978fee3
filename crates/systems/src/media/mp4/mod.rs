//! Assets from MP4 and QuickTime files (ISO/IEC 14496-12, 14496-14, 14496-15). `mp4parse` reads the boxes;
//! this module uses the tables in them, and checks their consistency.

mod boxes;
mod samples;
mod write;

pub(crate) use boxes::{contents, find};
pub(crate) use write::{MATRIX, full, made, words};
pub use write::{WriteError, write_head};

use std::sync::Arc;

use mp4parse::{AudioCodecSpecific, CodecType, SampleEntry, TrackType, VideoCodecSpecific};
use streamgauge_base::Duration;

use super::asset::{Asset, Bytes, Codec, Track, Unit, UnitKind, VIDEO_CLOCK_RATE};
use super::sdp::MOST_TRACKS;
use super::{aac, h264};

/// More units than this in a track are refused: 19 hours of sound and video at 60 frames per second have as many.
pub const MOST_UNITS: usize = 1 << 22;

/// A file that cannot be served, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MediaError {
    /// It is something else.
    #[error("not an MP4 or QuickTime file; convert it with `ffmpeg -i FILE -c copy OUT.mp4`")]
    NotMp4,
    /// The boxes end before the movie.
    #[error("the file has no moov box. It is truncated or unfinished; copy or record it again")]
    NoMovie,
    /// The movie is behind the media.
    #[error(
        "its moov box is behind its media, which delays the first picture to the end. Move it to the front with \
         `ffmpeg -i FILE -c copy -movflags +faststart OUT.mp4`"
    )]
    MovieLast,
    /// The movie is in fragments.
    #[error("a fragmented MP4; make it a plain one with `ffmpeg -i FILE -c copy OUT.mp4`")]
    Fragmented,
    /// A box that contradicts itself.
    #[error("the file's tables are broken: {0}; make it again with `ffmpeg -i FILE -c copy OUT.mp4`")]
    Broken(String),
    /// Nothing in it is of a codec that we can send.
    #[error("no H.264, MPEG-4 Visual or AAC track, but {found}; encode it with `ffmpeg -i FILE OUT.mp4`")]
    NoTrack {
        /// The codecs found.
        found: String,
    },
    /// Some of its pictures or sound is of a codec that we cannot send.
    #[error(
        "{left_out} cannot be sent beside what can; encode all of it with \
         `ffmpeg -i FILE -c:v libx264 -c:a aac OUT.mp4`"
    )]
    LeftOut {
        /// Which.
        left_out: String,
    },
    /// The file ends before its samples.
    #[error(
        "track {track}: sample {sample} ends at byte {end}, but the file has {file}. It is truncated; copy it again"
    )]
    Outside {
        /// Counted from 1.
        track: usize,
        /// Counted from 1.
        sample: usize,
        /// Where the sample ends.
        end: u64,
        /// Bytes of the file.
        file: u64,
    },
}

fn broken(track: usize, what: impl std::fmt::Display) -> MediaError {
    MediaError::Broken(format!("track {}: {what}", track + 1))
}

/// Reads `file`; only the tables are copied. Tracks behind the first [`MOST_TRACKS`] are left out, and those
/// that are neither pictures nor sound.
///
/// # Errors
///
/// If it cannot be read, or has pictures or sound of another codec: a viewer would miss them without an
/// explanation.
pub fn read(name: &str, file: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Result<Asset, MediaError> {
    let bytes = (*file).as_ref();
    let tracks = tracks(bytes, bytes.len() as u64)?;
    if !tracks.left_out.is_empty() {
        return Err(MediaError::LeftOut { left_out: tracks.left_out.join(", ") });
    }
    Ok(place(name, tracks, &Bytes::Shared(file.clone())))
}

/// Reads the same from a file of `file_bytes` with only `head` present, up to the end of its moov box at
/// least: while it is downloaded. The samples' own flags are unknown, and none is [`UnitKind::Disposable`].
/// Tracks of other codecs are named as left out.
pub fn read_head(name: &str, head: &[u8], file_bytes: u64) -> Result<Asset, MediaError> {
    Ok(place(name, tracks(head, file_bytes)?, &Bytes::Filler))
}

/// Returns where the moov box of a file that begins with `head` ends; `None` if more of the file must come
/// before that is known.
///
/// # Errors
///
/// If the file is no MP4, or its media come before its moov box.
pub fn movie_end(head: &[u8]) -> Result<Option<u64>, MediaError> {
    boxes::movie_end(head)
}

/// Returns all data of the moov box in `bytes` about tracks that we can send, of a file of `file_bytes`.
fn tracks(bytes: &[u8], file_bytes: u64) -> Result<Tracks, MediaError> {
    let movie = boxes::movie(bytes)?;
    let read = mp4parse::read_mp4(&mut std::io::Cursor::new(movie));
    let context = read.map_err(|error| MediaError::Broken(error.to_string()))?;
    let movie_scale = context.timescale.map_or(1, |scale| scale.0.max(1));
    let named = boxes::tracks(movie);
    let (mut tracks, mut left_out) = (Vec::new(), Vec::new());
    for (number, track) in context.tracks.iter().enumerate() {
        let Some(codec) = codec(track) else {
            let has_samples = track
                .stsz
                .as_ref()
                .is_some_and(|sizes| sizes.sample_size > 0 || !sizes.sample_sizes.is_empty());
            left_out.extend(named.get(number).filter(|_| has_samples).and_then(|named| other(track, named)));
            continue;
        };
        let units = samples::read(track, number, movie_scale, file_bytes)?;
        let is_sound = matches!(codec, Codec::Aac { .. });
        if is_sound && units.iter().any(|unit| unit.bytes > aac::LARGEST_UNIT) {
            return Err(broken(number, format!("sound in blocks of more than {} B", aac::LARGEST_UNIT)));
        }
        tracks.push(Unplaced { clock_rate: clock_rate(track, &codec), codec, units });
    }
    if tracks.iter().all(|track| track.units.is_empty()) {
        if context.mvex.is_some() {
            return Err(MediaError::Fragmented);
        }
        let mut formats: Vec<String> = named.into_iter().map(|track| track.format).collect();
        formats.retain(|format| !format.is_empty());
        formats.dedup();
        let found = if formats.is_empty() { "no track at all".into() } else { formats.join(", ") };
        return Err(MediaError::NoTrack { found });
    }
    Ok(Tracks { tracks, left_out })
}

/// Returns pictures or sound of another codec, in words; `None` for other tracks.
fn other(track: &mp4parse::Track, named: &boxes::Named) -> Option<String> {
    let kind = match &*named.handler {
        "vide" => "video",
        "soun" => "audio",
        _ => return None,
    };
    let entry = track.stsd.as_ref().and_then(|entries| entries.descriptions.first());
    let is_mp3 = matches!(entry, Some(SampleEntry::Audio(entry)) if entry.codec_type == CodecType::MP3);
    let codec = match &*named.format {
        _ if is_mp3 => "MP3",
        "av01" => "AV1",
        "hvc1" | "hev1" | "dvh1" | "dvhe" => "H.265",
        "vp08" => "VP8",
        "vp09" => "VP9",
        "apch" | "apcn" | "apcs" | "apco" | "ap4h" | "ap4x" => "ProRes",
        "jpeg" | "mjpa" | "mjpb" => "Motion JPEG",
        "s263" | "H263" | "h263" => "H.263",
        ".mp3" => "MP3",
        "ac-3" => "AC-3",
        "ec-3" => "E-AC-3",
        "Opus" => "Opus",
        "fLaC" => "FLAC",
        "alac" => "ALAC",
        "samr" | "sawb" => "AMR",
        "ulaw" | "alaw" => "G.711",
        "encv" | "enca" => "encrypted media",
        "" => return Some(format!("{kind} without a format")),
        other => return Some(format!("{kind} {other}")),
    };
    Some(format!("{kind} {codec} ({})", named.format))
}

/// The content of the moov box.
struct Tracks {
    tracks: Vec<Unplaced>,
    /// Pictures and sound that are not among them, in words.
    left_out: Vec<String>,
}

struct Unplaced {
    codec: Codec,
    clock_rate: u32,
    units: Vec<samples::Sample>,
}

/// Puts the tracks on one time line that begins at 0 with the earliest unit of any. A unit that is decoded before
/// the presentation begins, as before a picture that is shown out of order, moves all of them.
fn place(name: &str, tracks: Tracks, bytes: &Bytes) -> Asset {
    let Tracks { tracks, left_out } = tracks;
    let all = || tracks.iter().flat_map(|track| &track.units);
    let start = all().map(|sample| sample.at_ns.min(sample.shown_ns)).min().unwrap_or(0).min(0);
    let since_start = |ns: i64| Duration::from_nanos(ns.saturating_sub(start).max(0) as u64);
    let disposable = |codec: &Codec, sample: &samples::Sample| match bytes {
        Bytes::Filler => false,
        Bytes::Shared(file) => {
            let from = sample.offset as usize;
            is_disposable(codec, &(**file).as_ref()[from..from + sample.bytes as usize])
        }
    };
    let placed = tracks.iter().filter(|track| !track.units.is_empty()).map(|track| {
        let units = track.units.iter().map(|sample| {
            let (at, shown) = (since_start(sample.at_ns), since_start(sample.shown_ns));
            let kind = match sample.sync {
                true => UnitKind::Key,
                false if disposable(&track.codec, sample) => UnitKind::Disposable,
                false => UnitKind::Predicted,
            };
            Unit { at, shown, offset: sample.offset, bytes: sample.bytes, kind }
        });
        Track {
            codec: track.codec.clone(),
            clock_rate: track.clock_rate,
            units: units.collect(),
            bytes: bytes.clone(),
        }
    });
    let tracks: Vec<Track> = placed.take(MOST_TRACKS).collect();
    let duration = tracks.iter().filter_map(Track::end).max().unwrap_or(Duration::ZERO);
    Asset { name: name.into(), duration, tracks, left_out }
}

/// Returns the codec in the first description of the track's samples, if it is supported.
fn codec(track: &mp4parse::Track) -> Option<Codec> {
    match track.stsd.as_ref()?.descriptions.first()? {
        SampleEntry::Video(entry) if track.track_type == TrackType::Video => match &entry.codec_specific {
            VideoCodecSpecific::AVCConfig(record) if entry.codec_type == CodecType::H264 => avc(record),
            // The entry may also announce JPEG or MPEG-2: only MPEG-4's configuration begins with a start code.
            VideoCodecSpecific::ESDSConfig(config) if config.starts_with(&[0, 0, 1]) => {
                Some(Codec::Mpeg4Visual { config: config.iter().copied().collect() })
            }
            _ => None,
        },
        SampleEntry::Audio(entry) if entry.codec_type == CodecType::AAC => match &entry.codec_specific {
            AudioCodecSpecific::ES_Descriptor(esds) if esds.decoder_specific_data.len() >= 2 => {
                let channels =
                    esds.audio_channel_count.map_or(entry.channelcount, u32::from).clamp(1, 8) as u8;
                Some(Codec::Aac { config: esds.decoder_specific_data.iter().copied().collect(), channels })
            }
            _ => None,
        },
        _ => None,
    }
}

/// Reads an AVCDecoderConfigurationRecord (ISO/IEC 14496-15 section 5.3.3.1).
fn avc(record: &[u8]) -> Option<Codec> {
    let (fixed, mut rest) = record.split_first_chunk::<5>()?;
    let length_bytes = (fixed[4] & 3) + 1;
    let mut sets = |count_bits: u8| {
        let (&count, mut left) = rest.split_first()?;
        let mut made = Vec::new();
        for _ in 0..count & count_bits {
            let (length, tail) = left.split_first_chunk::<2>()?;
            let (set, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            made.push(set.to_vec());
            left = tail;
        }
        rest = left;
        Some(made)
    };
    Some(Codec::H264 { sps: sets(0x1f)?, pps: sets(0xff)?, length_bytes })
}

/// Returns RTP's clock: 90 kHz for video, the sampling rate for sound (RFC 3551 section 4).
fn clock_rate(track: &mp4parse::Track, codec: &Codec) -> u32 {
    let scale = track.timescale.as_ref().and_then(|scale| u32::try_from(scale.0).ok());
    match codec {
        Codec::Aac { .. } => {
            scale.filter(|rate| (7_000..=192_000).contains(rate)).unwrap_or(VIDEO_CLOCK_RATE)
        }
        _ => VIDEO_CLOCK_RATE,
    }
}

/// Returns true if the unit itself is marked as not referred to.
fn is_disposable(codec: &Codec, unit: &[u8]) -> bool {
    match codec {
        Codec::H264 { length_bytes, .. } => {
            let mut slices =
                h264::nal_units(unit, *length_bytes).filter(|nal| matches!(nal[0] & 0x1f, 1..=5)).peekable();
            slices.peek().is_some() && slices.all(|nal| nal[0] & 0x60 == 0)
        }
        // vop_coding_type 2 is B (ISO/IEC 14496-2 section 6.3.5).
        Codec::Mpeg4Visual { .. } => {
            let vop = unit.windows(5).find(|bytes| bytes[..4] == [0, 0, 1, 0xb6]);
            vop.is_some_and(|bytes| bytes[4] >> 6 == 2)
        }
        Codec::Sizes | Codec::Aac { .. } => false,
    }
}

#[cfg(test)]
mod tests;
