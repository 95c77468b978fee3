//! A server's content: resources by their paths. The server machine has no files; its owner gives it a
//! [`Library`]: a trial [`OneFile`] of a made clip, a program its own, over the files of a folder.

use std::sync::Arc;

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::http::EntityTag;

use crate::media::mp4::{WriteError, write_head};
use crate::media::{Asset, ClipSpec};

/// A sequence of bytes that has a length and does not change as long as its tag does not.
pub trait Resource: Send + Sync {
    /// Returns the bytes in all.
    fn length(&self) -> u64;

    /// Its version: another one where a byte of it is another. A strong tag (RFC 9110 section 8.8.1).
    fn tag(&self) -> EntityTag;

    /// Its media type, as `video/mp4`.
    fn content_type(&self) -> &str;

    /// Returns the bytes from `first` on: at least one and at most `most`. `first` is always below the size.
    ///
    /// # Errors
    ///
    /// The fault, as for a file that became shorter. The connection is reset, for its answer cannot be
    /// finished.
    fn read(&self, first: u64, most: u64) -> Result<Chunk, String>;

    /// Returns how long a cache may use it without asking, in seconds; `usual` is the server's default.
    fn max_age_s(&self, usual: u64) -> u64 {
        usual
    }
}

/// A resource is there and cannot be opened now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

/// Finds resources.
pub trait Library: Send + Sync {
    /// Returns the resource for `path` at `now`, as in the request, `/clip.mp4`: the library handles
    /// percent-encoding and `..`. `None` if it names nothing.
    ///
    /// # Errors
    ///
    /// The resource exists and cannot be opened at this time, as without free file descriptors.
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy>;

    /// Returns true if pages of any origin may play from it: answers then declare it (Fetch section 3.2).
    fn is_for_pages(&self) -> bool {
        false
    }
}

/// One resource.
pub struct OneFile {
    /// The paths that name it.
    pub paths: Vec<String>,
    /// The named resource.
    pub resource: Arc<dyn Resource>,
}

impl Library for OneFile {
    fn find(&self, path: &str, _: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        Ok(self.paths.iter().any(|own| own == path).then(|| self.resource.clone()))
    }
}

/// An MP4 file with a real head and samples of filler.
pub struct MadeFile {
    head: Vec<u8>,
    length: u64,
    tag: EntityTag,
}

impl MadeFile {
    /// Returns the clip as an MP4 file with its moov box in front.
    ///
    /// # Errors
    ///
    /// The part of the clip that does not fit the format.
    pub fn of_clip(clip: &ClipSpec) -> Result<Self, WriteError> {
        let asset = Asset::of_clip(clip);
        let track = asset.tracks.first().ok_or(WriteError::Empty)?;
        let head = write_head(track)?;
        let length = head.len() as u64 + track.media_bytes();
        // The head has every frame's size: clips of one length differ in it.
        let digest = blake3::hash(&head).to_hex();
        let tag = EntityTag { weak: false, tag: format!("{length:x}-{}", &digest[..16]) };
        Ok(MadeFile { head, length, tag })
    }
}

impl Resource for MadeFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn tag(&self) -> EntityTag {
        self.tag.clone()
    }

    fn content_type(&self) -> &str {
        "video/mp4"
    }

    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        let most = most.min(1 << 30) as usize;
        let real = usize::try_from(first).ok().and_then(|first| self.head.get(first..)).unwrap_or_default();
        let real = &real[..real.len().min(most)];
        let behind = self.length.saturating_sub(first + real.len() as u64);
        Ok(Chunk::with_filler(real, behind.min((most - real.len()) as u64) as u32))
    }
}
