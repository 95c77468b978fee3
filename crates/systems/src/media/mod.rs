//! Content as a server sees it: tracks of access units, and how each codec rides in RTP.

mod asset;

pub use asset::{Asset, Bytes, Codec, Track, Unit, UnitKind};
