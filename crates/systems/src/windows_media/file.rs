//! Objects of ASF files.

use std::sync::{LazyLock, Mutex};

use streamgauge_base::Duration;
use streamgauge_wire::asf::{
    Asf, FLAG_BROADCAST, Guid, Header, MOST_STREAMS, MediaObject, MediaObjects, StreamProperties,
};

use super::object::{CodedFrames, Encoding, MOST_ENCODINGS, Object, Stream};
use crate::media::object_files::{Format, ReadObjects};

/// A file with media that end this long before the stated end was cut short, or was never finished.
const MOST_SILENCE_MS: u64 = 10_000;

/// Units of 100 ns.
const UNITS_PER_MS: u64 = 10_000;

/// The endings of file names, and of folders with several encodings.
pub const ENDINGS: [&str; 3] = [".asf", ".wmv", ".wma"];

/// Files of ASF.
pub struct AsfFiles;

impl Format for AsfFiles {
    type Said = StreamProperties;

    const ENDINGS: &'static [&'static str] = &ENDINGS;
    const MOST_ENCODINGS: usize = MOST_ENCODINGS;

    fn object_of(name: &str, files: &[(String, Vec<u8>)]) -> Result<Object, String> {
        object_of(name, files)
    }

    fn read() -> &'static Mutex<ReadObjects<StreamProperties>> {
        static READ: LazyLock<Mutex<ReadObjects<StreamProperties>>> = LazyLock::new(Mutex::default);
        &READ
    }
}

/// A stream of a file.
struct Track {
    said: StreamProperties,
    bit_rate_bps: u64,
    media: CodedFrames,
}

/// The content of a file.
struct Read {
    duration: Duration,
    video: Vec<Track>,
    sound: Vec<Track>,
}

/// Returns the object of `files`, each with its name: all their video streams are encodings of one, the lowest rate
/// first, with the sound of the file of the highest rate that has any (Nichols, section 4.2). Streams of one file keep
/// its numbers, those of several are counted from 1. A file that is cut short plays up to there.
///
/// # Errors
///
/// Fails with the fault and the file that has it.
pub fn object_of(name: &str, files: &[(String, Vec<u8>)]) -> Result<Object, String> {
    let mut read = Vec::new();
    for (called, file) in files {
        read.push(read_file(file).map_err(|problem| match files.len() {
            1 => problem,
            _ => format!("{called}: {problem}"),
        })?);
    }
    let duration = read.iter().map(|file| file.duration).max().ok_or("no file of Windows Media is in it")?;
    let highest = |file: &Read| file.video.iter().map(|track| track.bit_rate_bps).max();
    read.sort_by_key(highest);
    let with_sound = read.iter_mut().rev().find(|file| !file.sound.is_empty());
    let mut sound = with_sound.map(|file| std::mem::take(&mut file.sound)).unwrap_or_default();
    let mut video: Vec<Track> = read.into_iter().flat_map(|file| file.video).collect();
    for (kind, tracks) in [("video", &mut video), ("audio", &mut sound)] {
        tracks.sort_by_key(|track| track.bit_rate_bps);
        if tracks.len() > MOST_ENCODINGS {
            let count = tracks.len();
            return Err(format!("{count} streams of {kind}; {MOST_ENCODINGS} are served at most"));
        }
    }
    if files.len() > 1 {
        let all = sound.iter_mut().chain(&mut video);
        (1..).zip(all).for_each(|(number, track)| track.said.number = number);
    }
    // Pictures are the first stream, be there none.
    let mut streams = [video, sound].map(|tracks| Stream {
        encodings: tracks.into_iter().map(|track| track.encoding(duration)).collect(),
    });
    let [_, sound] = &mut streams;
    let is_mute = sound.encodings.is_empty();
    let streams = streams.into_iter().take(if is_mute { 1 } else { 2 }).collect();
    Ok(Object { name: name.to_owned(), duration, streams })
}

impl Track {
    fn encoding(self, duration: Duration) -> Encoding {
        Encoding::of_frames(self.media, self.bit_rate_bps, self.said, duration)
    }
}

fn read_file(file: &[u8]) -> Result<Read, String> {
    let asf = Asf::read(file).map_err(|problem| problem.to_string())?;
    let media = asf.objects(file).map_err(|problem| problem.to_string())?;
    let mut video = tracks(&asf.header, &media, Guid::VIDEO);
    let mut sound = tracks(&asf.header, &media, Guid::AUDIO);
    let ends = [&video, &sound].into_iter().flatten().map(|track| end_ms(&track.media)).max();
    let ends = ends.ok_or("no media object of pictures or sound is in it")?;
    let properties = asf.header.file;
    let said = match properties.flags & FLAG_BROADCAST {
        0 => (properties.play_100ns / UNITS_PER_MS).saturating_sub(properties.preroll_ms),
        _ => 0,
    };
    let ends = if said > ends.saturating_add(MOST_SILENCE_MS) { ends } else { said.max(ends) };
    for track in video.iter_mut().chain(&mut sound).filter(|track| track.bit_rate_bps == 0) {
        track.bit_rate_bps = (track.media.media.len() as u64 * 8_000 / ends).max(1);
    }
    Ok(Read { duration: Duration::from_millis(ends), video, sound })
}

/// Returns the streams of that kind that have media in them; where the file lists streams that exclude each other by
/// bit rate, those of the first such list that has any.
fn tracks(header: &Header, media: &MediaObjects<'_>, kind: Guid) -> Vec<Track> {
    let mut by_number: Vec<Vec<&MediaObject<'_>>> = vec![Vec::new(); MOST_STREAMS + 1];
    for object in media.objects.iter().filter(|object| !object.data.is_empty()) {
        if let Some(objects) = by_number.get_mut(usize::from(object.stream)) {
            objects.push(object);
        }
    }
    let of = |number: u8| by_number.get(usize::from(number)).map_or(&[][..], Vec::as_slice);
    let is_one = |stream: &&StreamProperties| stream.kind == kind && !of(stream.number).is_empty();
    let exclusive = header.exclusions.iter().find(|exclusion| {
        exclusion.kind == Guid::EXCLUSIVE_BY_BIT_RATE
            && header.all_streams().filter(is_one).any(|stream| exclusion.streams.contains(&stream.number))
    });
    let is_meant =
        |stream: &&StreamProperties| exclusive.is_none_or(|one| one.streams.contains(&stream.number));
    let preroll = Duration::from_millis(header.file.preroll_ms.min(u32::MAX.into()));
    header
        .all_streams()
        .filter(is_one)
        .filter(is_meant)
        .map(|stream| Track {
            said: stream.clone(),
            bit_rate_bps: rate_bps(header, stream.number),
            media: frames(of(stream.number), preroll, kind == Guid::AUDIO),
        })
        .collect()
}

/// Returns a stream's rate in the file; 0 where it has none.
fn rate_bps(header: &Header, number: u8) -> u64 {
    let extended = header.extended.iter().find(|extended| extended.number == number);
    let said = header.bit_rate_bps(number).filter(|rate| *rate > 0);
    said.or(extended.map(|extended| extended.average.rate_bps)).unwrap_or(0).into()
}

/// Makes frames of the media objects of one stream. A player can begin with any sound, which ffmpeg does not mark; and
/// it has to begin with the first of the pictures.
fn frames(objects: &[&MediaObject<'_>], preroll: Duration, is_sound: bool) -> CodedFrames {
    let mut found = CodedFrames::default();
    for object in objects {
        let at = Duration::from_millis(object.presentation_ms.into()).saturating_sub(preroll);
        let is_key = is_sound || object.is_key || found.frames.is_empty();
        found.push(at, is_key, &object.data);
    }
    found
}

/// Returns when the last of some frames has been shown, in ms, for as long as the others on average.
fn end_ms(media: &CodedFrames) -> u64 {
    let times = media.frames.iter().map(|(frame, _)| frame.at.as_nanos() / 1_000_000);
    let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
    let apart = (last - first).checked_div((media.frames.len() as u64).saturating_sub(1)).unwrap_or(0);
    last + apart.max(1)
}

#[cfg(test)]
mod tests;
