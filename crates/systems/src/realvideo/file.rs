//! Objects of RealMedia files.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use streamgauge_base::{Chunk, Duration};
use streamgauge_wire::rm::{Assembler, RealMedia, StreamProperties};

use super::object::{CodedFrames, Encoding, Object, Shelf, Stream};
use crate::media::{Library, OpenError};

/// A file that is larger is not read into memory.
const MOST_BYTES: u64 = 512 << 20;

/// What the names of files end with.
const ENDINGS: [&str; 2] = [".rm", ".rmvb"];

/// Objects by their files' paths and versions.
type Played = BTreeMap<(String, String), Weak<Object>>;

/// Files that somebody plays: all who play one share it.
static PLAYED: LazyLock<Mutex<Played>> = LazyLock::new(Mutex::default);

/// The RealMedia files of a library.
pub struct Files(pub Arc<dyn Library>);

impl Shelf for Files {
    fn open(&self, path: &str) -> Result<Arc<Object>, OpenError> {
        let file = self.0.plain(path)?;
        let lower = path.to_ascii_lowercase();
        if !ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
            return Err(OpenError::Unsupported(format!("its name ends with none of {}", ENDINGS.join(", "))));
        }
        if file.length() > MOST_BYTES {
            let what = format!("{} bytes; {MOST_BYTES} are read at most", file.length());
            return Err(OpenError::Unsupported(what));
        }
        let key = (path.to_owned(), file.version().to_owned());
        let mut played = PLAYED.lock().unwrap_or_else(PoisonError::into_inner);
        played.retain(|_, object| object.strong_count() > 0);
        if let Some(object) = played.get(&key).and_then(Weak::upgrade) {
            return Ok(object);
        }
        let bytes = file.read(0, file.length()).map_err(OpenError::Failed)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        let object = Arc::new(object_of(name, &bytes).map_err(OpenError::Unsupported)?);
        played.insert(key, Arc::downgrade(&object));
        Ok(object)
    }
}

/// The object of a file: its first stream of RealVideo, and its first of sound. One that is cut short plays up to there.
///
/// # Errors
///
/// What is wrong with it.
pub fn object_of(name: &str, file: &[u8]) -> Result<Object, String> {
    let media = RealMedia::read(file).map_err(|problem| problem.to_string())?;
    let first = |kind: &str| {
        let mut known = media.streams.iter().filter(|stream| !stream.is_logical());
        known.find(|stream| stream.mime_type.starts_with(kind))
    };
    let video = first("video/x-pn-realvideo").ok_or("no stream of RealVideo is in it")?;
    let ends = media.packets.iter().map(|packet| packet.timestamp_ms).max().unwrap_or(0);
    let duration = Duration::from_millis(u64::from(media.properties.duration_ms.max(ends)).max(1));
    let mut streams = vec![stream(video, pictures(&media, video, file)?, duration)];
    if let Some(audio) = first("audio/") {
        streams.push(stream(audio, blocks(&media, audio, file), duration));
    }
    let title = media.description.title.trim();
    Ok(Object { name: if title.is_empty() { name.into() } else { title.into() }, duration, streams })
}

fn stream(properties: &StreamProperties, frames: CodedFrames, duration: Duration) -> Stream {
    let encoding = Encoding::of_frames(frames, properties.avg_bit_rate_bps.into(), duration);
    Stream { encodings: vec![encoding], properties: Some(Arc::new(properties.clone())) }
}

/// The frames of pictures, out of the pieces in packets.
fn pictures(media: &RealMedia, of: &StreamProperties, file: &[u8]) -> Result<CodedFrames, String> {
    let (mut found, mut assembler) = (CodedFrames::default(), Assembler::default());
    for packet in media.packets.iter().filter(|packet| packet.stream == of.number) {
        let payload = Chunk::bytes(packet.payload(file));
        let frames = assembler.push(payload).map_err(|problem| format!("RealVideo: {problem}"))?;
        for frame in frames {
            let at = Duration::from_millis(frame.timestamp_ms.unwrap_or(packet.timestamp_ms).into());
            // The first has to be one that players can begin with.
            found.push(at, packet.is_key() || found.frames.is_empty(), frame.media.head());
        }
    }
    if found.frames.is_empty() {
        return Err("no frame of RealVideo is in it".into());
    }
    Ok(found)
}

/// Packets of sound, each as it is.
fn blocks(media: &RealMedia, of: &StreamProperties, file: &[u8]) -> CodedFrames {
    let mut found = CodedFrames::default();
    for packet in media.packets.iter().filter(|packet| packet.stream == of.number) {
        found.push(Duration::from_millis(packet.timestamp_ms.into()), true, packet.payload(file));
    }
    found
}
