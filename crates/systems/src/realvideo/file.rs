//! Objects of RealMedia files.

use std::sync::{LazyLock, Mutex};

use streamgauge_base::{Chunk, Duration};
use streamgauge_wire::rm::{Assembler, RealMedia, StreamProperties};

use super::object::{self, CodedFrames, Encoding, MOST_ENCODINGS, Object, Stream};
use crate::media::object_files::{Format, ReadObjects};

/// A file with a last packet this long before its stated end was cut short, or was never finished: ffmpeg writes an
/// hour.
const MOST_SILENCE_MS: u32 = 10_000;

/// A longer picture cannot be sent: it has 127 parts at most, and a datagram holds less than 64 kB.
const MOST_PICTURE_BYTES: usize = 4 << 20;

/// Longer packets of sound cannot be sent either, as they are not cut up.
const MOST_SOUND_BYTES: u16 = 60_000;

/// The endings of file names, and of folders with several encodings.
pub const ENDINGS: [&str; 2] = [".rm", ".rmvb"];

/// Files of RealMedia.
pub struct RealMediaFiles;

impl Format for RealMediaFiles {
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

/// Returns the object of `files`, each with its name: all their streams of RealVideo, as encodings of one, the lowest
/// rate first, and the first stream of sound of the file of the lowest rate that has one. A file that is cut short
/// plays up to there.
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
    let duration = read.iter().map(|file| file.duration).max().ok_or("no file of RealMedia is in it")?;
    let rate = |file: &Read| file.video.iter().map(|(said, _)| said.avg_bit_rate_bps).min();
    read.sort_by_key(rate);
    let title = read.iter().map(|file| file.title.trim()).find(|title| !title.is_empty());
    let name = title.unwrap_or(name).to_owned();
    let sound = read.iter_mut().find_map(|file| file.sound.take());
    let of_frames =
        |(said, frames): (StreamProperties, CodedFrames)| object::of_frames(frames, &said, duration);
    let mut video: Vec<Encoding> = read.into_iter().flat_map(|file| file.video).map(of_frames).collect();
    video.sort_by_key(|encoding| encoding.bit_rate_bps);
    if video.len() > MOST_ENCODINGS {
        return Err(format!("{} encodings; {MOST_ENCODINGS} are served at most", video.len()));
    }
    if let Some(same) = video.windows(2).find(|pair| pair[0].bit_rate_bps == pair[1].bit_rate_bps) {
        return Err(format!(
            "two encodings of {} bit/s, of which no player could choose one",
            same[0].bit_rate_bps
        ));
    }
    let sound = sound.map(of_frames).into_iter().collect();
    let mut streams = [video, sound].map(|encodings| Stream { encodings }).to_vec();
    streams.retain(|stream| !stream.encodings.is_empty());
    Ok(Object { name, duration, streams })
}

/// The content of a file, pictures once at least.
struct Read {
    title: String,
    duration: Duration,
    video: Vec<(StreamProperties, CodedFrames)>,
    sound: Option<(StreamProperties, CodedFrames)>,
}

fn read_file(file: &[u8]) -> Result<Read, String> {
    let media = RealMedia::read(file).map_err(|problem| problem.to_string())?;
    let of_kind = |kind: &'static str| {
        let known = media.streams.iter().filter(|stream| !stream.is_logical());
        known.filter(move |stream| stream.mime_type.starts_with(kind))
    };
    let mut video = Vec::new();
    for said in of_kind("video/x-pn-realvideo") {
        let frames = pictures(&media, said, file)?;
        // ffmpeg writes its data of two streams into the second.
        if !frames.frames.is_empty() {
            video.push((said.clone(), frames));
        }
    }
    if video.is_empty() {
        return Err(match of_kind("video/x-pn-realvideo").next() {
            Some(_) => "no frame of RealVideo is in it".into(),
            None => "no stream of RealVideo is in it".into(),
        });
    }
    let ends = media.packets.iter().map(|packet| packet.timestamp_ms).max().unwrap_or(0);
    let said_ms = media.properties.duration_ms;
    let ends_ms = if said_ms.saturating_sub(ends) > MOST_SILENCE_MS { ends } else { said_ms.max(ends) };
    let duration = Duration::from_millis(u64::from(ends_ms).max(1));
    let sound = match of_kind("audio/").next() {
        Some(said) => Some((said.clone(), blocks(&media, said, file)?)),
        None => None,
    };
    let sound = sound.filter(|(_, blocks)| !blocks.frames.is_empty());
    Ok(Read { title: media.description.title.clone(), duration, video, sound })
}

/// Returns the frames of pictures, out of the pieces in packets.
fn pictures(media: &RealMedia, of: &StreamProperties, file: &[u8]) -> Result<CodedFrames, String> {
    let (mut found, mut assembler) = (CodedFrames::default(), Assembler::default());
    for packet in media.packets.iter().filter(|packet| packet.stream == of.number) {
        let payload = Chunk::bytes(packet.payload(file));
        let frames = assembler.push(payload).map_err(|problem| format!("RealVideo: {problem}"))?;
        for frame in frames {
            let at = Duration::from_millis(frame.timestamp_ms.unwrap_or(packet.timestamp_ms).into());
            if frame.media.len() > MOST_PICTURE_BYTES {
                let bytes = frame.media.len();
                return Err(format!("a picture of {bytes} bytes; {MOST_PICTURE_BYTES} are sent at most"));
            }
            // The first has to be one that players can begin with.
            found.push(at, packet.is_key() || found.frames.is_empty(), frame.media.head());
        }
    }
    Ok(found)
}

/// Returns the packets of sound, each as it is.
fn blocks(media: &RealMedia, of: &StreamProperties, file: &[u8]) -> Result<CodedFrames, String> {
    let mut found = CodedFrames::default();
    for packet in media.packets.iter().filter(|packet| packet.stream == of.number) {
        if packet.bytes > MOST_SOUND_BYTES {
            let bytes = packet.bytes;
            return Err(format!("a packet of sound of {bytes} bytes; {MOST_SOUND_BYTES} are sent at most"));
        }
        found.push(Duration::from_millis(packet.timestamp_ms.into()), true, packet.payload(file));
    }
    Ok(found)
}
