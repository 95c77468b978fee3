//! A ladder in a folder: `content.json` and MP4 files, as `streamgauge ladder` writes them.

use std::sync::Arc;

use serde::Deserialize;
use streamgauge_base::Duration;

use super::entry::Entry;
use super::frames::{Frames, StoredFrames};
use super::level::Uncut;
use super::{OriginSettings, Presentation};
use crate::media::content::SCHEMA;
use crate::media::mp4::read_head;
use crate::media::{Asset, Library, OpenError, StoredFile, Track};

/// The file that marks a ladder's folder.
pub const DESCRIPTION: &str = "content.json";

/// A longer description is rejected: a day of 20 encodings has some 200 MB, which is not served.
const MOST_DESCRIPTION: u64 = 64 << 20;

/// A longer moov box is none.
const MOST_MOVIE: u64 = 64 << 20;

/// Boxes of a file before its moov box.
const MOST_BOXES: usize = 1_000;

/// The length of segments where the description has none.
const USUAL_SEGMENT: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Description {
    schema: String,
    #[serde(rename = "segment_ns")]
    segment: Option<Duration>,
    tracks: Vec<DescribedTrack>,
}

#[derive(Deserialize)]
struct DescribedTrack {
    kind: String,
    encodings: Vec<Encoding>,
}

#[derive(Deserialize)]
struct Encoding {
    file: Option<String>,
    bit_rate_bps: Option<f64>,
    size: Option<(u32, u32)>,
}

/// A file's bytes from the first on, all that were asked for.
fn exactly(file: &dyn StoredFile, first: u64, bytes: u64) -> Result<Vec<u8>, String> {
    let mut read = Vec::new();
    while (read.len() as u64) < bytes {
        let at = read.len() as u64;
        let more = file.read(first + at, bytes - at)?;
        if more.is_empty() {
            return Err("it became shorter while it was read".into());
        }
        read.extend(more);
    }
    Ok(read)
}

/// The tables of an MP4 file, wherever in it they are.
fn asset(file: &dyn StoredFile) -> Result<Asset, String> {
    let mut at = 0;
    for _ in 0..MOST_BOXES {
        let left = file.length().saturating_sub(at);
        if left < 8 {
            break;
        }
        let header = exactly(file, at, left.min(16))?;
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let size = match number(&header[..4]) {
            0 => left,
            1 => header.get(8..16).map_or(0, number),
            size => size,
        };
        if size < 8 || size > left {
            break;
        }
        if &header[4..8] == b"moov" {
            if size > MOST_MOVIE {
                return Err(format!("its moov box has {size} B"));
            }
            let movie = exactly(file, at, size)?;
            return read_head("", &movie, file.length()).map_err(|error| error.to_string());
        }
        at += size;
    }
    Err("it has no moov box, or none that is whole; copy or record it again".into())
}

/// The content of the folder, by the names in it.
struct Folder<'a> {
    library: &'a dyn Library,
    path: &'a str,
}

impl Folder<'_> {
    /// A name in the folder is a name, not a path.
    fn file(&self, name: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            return Err(OpenError::Unsupported(format!(
                "{DESCRIPTION}: {name:?} is no name of a file in its folder"
            )));
        }
        self.library.plain(&format!("{}/{name}", self.path))
    }

    fn level(&self, encoding: &Encoding, id: String, is_video: bool) -> Result<Uncut, OpenError> {
        let name = encoding.file.as_deref().ok_or_else(|| {
            OpenError::Unsupported(format!("{DESCRIPTION}: an encoding without a file cannot be served"))
        })?;
        let file = self.file(name)?;
        let wrong = |what: String| OpenError::Unsupported(format!("{name}: {what}"));
        let asset = asset(&*file).map_err(wrong)?;
        let kind = if is_video { "pictures" } else { "sound" };
        let found = asset.tracks.iter().find(|track| track.is_video() == is_video);
        let track = found.ok_or_else(|| wrong(format!("it has no {kind} that are served")))?;
        let size = encoding.size.unwrap_or_default();
        let mean = Track::bit_rate_bps(track);
        let told = encoding.bit_rate_bps.filter(|rate| *rate >= 1.0).map(|rate| rate as u64);
        Ok(Uncut {
            id,
            is_video,
            rate_bps: told.unwrap_or(mean).max(1),
            size,
            entry: Entry::of_codec(&track.codec, size, track.clock_rate),
            version: file.version().to_owned(),
            frames: Frames::Stored(StoredFrames::of_track(track, file)),
        })
    }
}

impl Presentation {
    /// Opens the ladder in the folder at `path` of `library` (`/films`, or an empty path for the whole library): its
    /// `content.json`, and the files that this names, which stay open.
    ///
    /// # Errors
    ///
    /// [`OpenError::NotFound`] if there is no `content.json`; else the part that cannot be served, and the reason.
    pub fn of_folder(
        library: &dyn Library,
        path: &str,
        settings: &OriginSettings,
    ) -> Result<Presentation, OpenError> {
        let folder = Folder { library, path: path.trim_end_matches('/') };
        let file = folder.file(DESCRIPTION)?;
        let wrong = |what: String| OpenError::Unsupported(format!("{DESCRIPTION}: {what}"));
        if file.length() > MOST_DESCRIPTION {
            return Err(wrong(format!("{} B; at most {MOST_DESCRIPTION} are read", file.length())));
        }
        let bytes = exactly(&*file, 0, file.length()).map_err(OpenError::Failed)?;
        let read: Description = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if read.schema != SCHEMA {
            return Err(wrong(format!("its schema is {:?}, and this version reads {SCHEMA}", read.schema)));
        }
        let of_kind =
            |kind| read.tracks.iter().find(|track| track.kind == kind).map(|track| &track.encodings);
        let mut levels = Vec::new();
        for encoding in of_kind("video").into_iter().flatten() {
            levels.push(folder.level(encoding, String::new(), true)?);
        }
        levels.sort_by_key(|level| level.rate_bps);
        levels.iter_mut().enumerate().for_each(|(number, level)| level.id = format!("v{number}"));
        if let Some(encoding) = of_kind("audio").and_then(|encodings| encodings.first()) {
            levels.push(folder.level(encoding, "a0".into(), false)?);
        }
        let segment = read.segment.unwrap_or(USUAL_SEGMENT);
        Presentation::of_levels(levels, segment, settings).map_err(OpenError::Unsupported)
    }
}
