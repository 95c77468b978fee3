//! What a server has: resources by their paths. The server machine knows no files; who runs it gives it a [`Library`]:
//! a trial [`OneFile`] of a made clip, a program its own, over the files of a folder.

use std::sync::Arc;

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::http::EntityTag;

use crate::media::mp4::{WriteError, write_head};
use crate::media::{Asset, ClipSpec};

/// A sequence of bytes that has a length and does not change as long as its tag does not.
pub trait Resource: Send + Sync {
    /// Bytes in all.
    fn length(&self) -> u64;

    /// Its version: another one where a byte of it is another. A strong tag (RFC 9110 section 8.8.1).
    fn tag(&self) -> EntityTag;

    /// Its media type, as `video/mp4`.
    fn content_type(&self) -> &str;

    /// The bytes from `first` on: at least one and at most `most`. Nobody asks for more than there is.
    ///
    /// # Errors
    ///
    /// What went wrong, as of a file that became shorter. The connection is reset, for its answer cannot be finished.
    fn read(&self, first: u64, most: u64) -> Result<Chunk, String>;

    /// How long a cache may hand it out without asking, in seconds; `usual` is what the server says of what it has.
    fn max_age_s(&self, usual: u64) -> u64 {
        usual
    }
}

/// A resource is there and cannot be opened now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

/// Finds resources.
pub trait Library: Send + Sync {
    /// What `path` names at `now`, as it stands in the request, `/clip.mp4`: percent-encoding and `..` are the library's to heed.
    /// `None` if it names nothing.
    ///
    /// # Errors
    ///
    /// There is something that cannot be opened at this time, as for want of file descriptors.
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy>;

    /// True if pages from anywhere may play from it: answers then say so (Fetch section 3.2).
    fn is_for_pages(&self) -> bool {
        false
    }
}

/// One resource.
pub struct OneFile {
    /// The paths that name it.
    pub paths: Vec<String>,
    /// What it names.
    pub resource: Arc<dyn Resource>,
}

impl Library for OneFile {
    fn find(&self, path: &str, _: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        Ok(self.paths.iter().any(|own| own == path).then(|| self.resource.clone()))
    }
}

/// An MP4 file whose head is real and whose samples are filler.
pub struct MadeFile {
    head: Vec<u8>,
    length: u64,
    tag: EntityTag,
}

impl MadeFile {
    /// The clip as an MP4 file with its moov box in front.
    ///
    /// # Errors
    ///
    /// What of the clip does not fit the format.
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
