//! The end that has the objects: the content of its library, as named segments.

use std::sync::Arc;

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::ndn::{Component, Data, Interest, Metadata, NackReason, Name, ObjectSize};

use super::forwarder::FacePacket;
use super::names::{metadata_of, object_of_metadata, path_of};
use super::spec::CcnSettings;
use crate::http::{Library, Resource};

/// Freshness of an object's metadata, and of the answer that there is none.
const TOLD_FRESH_MS: u64 = 10;

/// Unchanging objects have one version.
const VERSION: u64 = 1;

/// Answers Interests out of a library.
pub struct Producer {
    prefix: Name,
    library: Arc<dyn Library>,
    chunk_bytes: u64,
    freshness_ms: u64,
    answers_unknown: bool,
    /// Objects may change: the version of the current content is the number of its entity tag.
    tells_changes: bool,
}

impl Producer {
    /// Returns a producer of the content of `library`, under `prefix`.
    pub fn new(prefix: Name, library: Arc<dyn Library>, settings: &CcnSettings) -> Self {
        Producer {
            prefix,
            library,
            chunk_bytes: settings.chunk_bytes.into(),
            freshness_ms: settings.freshness.as_nanos() / 1_000_000,
            answers_unknown: settings.nacks,
            tells_changes: false,
        }
    }

    /// Returns it for objects that may change: another content is another version, and caches do not mix
    /// them.
    pub fn with_versions(self) -> Self {
        Producer { tells_changes: true, ..self }
    }

    fn version_of(&self, resource: &dyn Resource) -> u64 {
        if !self.tells_changes {
            return VERSION;
        }
        let hash = blake3::hash(resource.tag().tag.as_bytes());
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
    }

    /// Returns the answer to `interest`; `None` is silence. Filler content stays filler, and is sent without
    /// a signature, where it arrives as filler ([`Io::keeps_filler`](crate::app::Io::keeps_filler)).
    pub fn answer(&self, now: Instant, interest: &Interest, keeps_filler: bool) -> Option<FacePacket> {
        match self.find(now, interest, keeps_filler) {
            Ok(data) => Some(FacePacket::Data(data)),
            Err(Missing::Busy) => {
                self.answers_unknown.then(|| FacePacket::Nack(NackReason::Congestion, interest.clone()))
            }
            Err(Missing::Unknown) => self.answers_unknown.then(|| {
                let no = Data::no(interest.name.clone());
                FacePacket::Data(Data { freshness_ms: Some(TOLD_FRESH_MS), ..no })
            }),
        }
    }

    fn find(&self, now: Instant, interest: &Interest, keeps_filler: bool) -> Result<Data, Missing> {
        let last = interest.name.last().ok_or(Missing::Unknown)?;
        if let Some(segment) = last.as_segment() {
            return self.segment(now, &interest.name, segment, keeps_filler);
        }
        if let Some(object) = object_of_metadata(&interest.name) {
            return self.metadata(now, &object);
        }
        // A consumer that asks for the object itself learns the names of its parts from its first segment.
        match interest.can_be_prefix {
            true => self.segment(
                now,
                &interest.name.child(Component::segment(0)).map_err(|_| Missing::Unknown)?,
                0,
                keeps_filler,
            ),
            false => Err(Missing::Unknown),
        }
    }

    fn segment(&self, now: Instant, name: &Name, segment: u64, keeps_filler: bool) -> Result<Data, Missing> {
        let mut object = name.parent();
        let version = object.last().and_then(|last| last.as_version());
        if version.is_some() {
            object = object.parent();
        }
        let resource = self.resource(now, &object)?;
        if version.is_some_and(|version| version != self.version_of(resource.as_ref())) {
            return Err(Missing::Unknown);
        }
        let last = resource.length().max(1).div_ceil(self.chunk_bytes) - 1;
        if segment > last {
            return Err(Missing::Unknown);
        }
        let first = segment * self.chunk_bytes;
        let bytes = self.chunk_bytes.min(resource.length() - first);
        let (mut real, mut filler) = (Vec::new(), 0);
        while ((real.len() + filler) as u64) < bytes {
            let read = (real.len() + filler) as u64;
            let piece = resource.read(first + read, bytes - read).map_err(|_| Missing::Unknown)?;
            if piece.is_empty() {
                return Err(Missing::Unknown);
            }
            if !piece.head().is_empty() {
                real.resize(real.len() + std::mem::take(&mut filler), 0);
                real.extend_from_slice(piece.head());
            }
            filler += piece.len() - piece.head().len();
        }
        if !keeps_filler {
            // Behind the content is a digest of it: a packet has all its bytes.
            real.resize(real.len() + std::mem::take(&mut filler), 0);
        }
        Ok(Data {
            freshness_ms: Some(self.freshness_ms),
            final_block_id: Some(Component::segment(last)),
            ..Data::of(name.clone(), Chunk::with_filler(real, filler as u32))
        })
    }

    fn metadata(&self, now: Instant, object: &Name) -> Result<Data, Missing> {
        let resource = self.resource(now, object)?;
        let version = Component::version(self.version_of(resource.as_ref()));
        let versioned = object.child(version).map_err(|_| Missing::Unknown)?;
        let size = ObjectSize { segment_bytes: self.chunk_bytes, bytes: resource.length() };
        let told = Metadata { name: versioned, size: Some(size) };
        let version = Component::version(now.as_nanos() / 1_000);
        let name = metadata_of(object).and_then(|name| name.with([version, Component::segment(0)]).ok());
        let name = name.ok_or(Missing::Unknown)?;
        Ok(Data {
            freshness_ms: Some(TOLD_FRESH_MS),
            final_block_id: Some(Component::segment(0)),
            ..Data::of(name, told.write())
        })
    }

    fn resource(&self, now: Instant, object: &Name) -> Result<Arc<dyn Resource>, Missing> {
        let path = path_of(&self.prefix, object).ok_or(Missing::Unknown)?;
        self.library.find(&path, now).map_err(|_| Missing::Busy)?.ok_or(Missing::Unknown)
    }
}

enum Missing {
    Unknown,
    Busy,
}
