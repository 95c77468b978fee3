//! Content as a server sees it: tracks of access units, and how each codec rides in RTP.

mod aac;
mod asset;
mod clip;
pub(crate) mod content;
pub(crate) mod h264;
mod ladder;
mod library;
pub mod live;
pub mod mp4;
mod mpeg4;
pub mod mpegts;
mod numbers;
pub(crate) mod object;
pub(crate) mod object_files;
mod packets;
mod payload;
pub mod sdp;
pub mod segment;

pub use asset::{Asset, Bytes, Codec, Track, Unit, UnitKind};
pub use clip::ClipSpec;
pub use content::{Content, ContentRef, Contents, Encoding, Frames};
pub use ladder::{LadderSpec, LevelSpec};
pub use library::{Library, NamedFile, OneAsset, OpenError, StoredFile};
pub use mp4::MediaError;
pub use numbers::Numbers;
pub use packets::{LEAST_PAYLOAD_BYTES, assemble, begins_unit, preamble};
pub use payload::Payload;

#[cfg(test)]
mod tests;
