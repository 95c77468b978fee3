//! Content as a server sees it: tracks of access units, and how each codec rides in RTP.

mod aac;
mod asset;
pub(crate) mod h264;
pub mod mp4;
mod mpeg4;
mod payload;
pub mod sdp;

pub use asset::{Asset, Bytes, Codec, Track, Unit, UnitKind};
pub use mp4::MediaError;
pub use payload::{LEAST_PAYLOAD_BYTES, Payload, assemble, begins_unit, preamble};

#[cfg(test)]
mod tests;
