//! Adaptive streaming over HTTP: a ladder as MPEG-DASH (ISO/IEC 23009-1) or HLS (RFC 8216), from one set of segments.

pub mod manifest;
pub mod origin;
mod standalone;

pub use standalone::DashServerSettings;
