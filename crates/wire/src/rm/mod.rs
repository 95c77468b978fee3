//! RealMedia: files as chunks (Internet-Draft draft-heftagaub-rmff-00, March 1998), servers' descriptions of
//! streams for players, and the layout of RealVideo's frames in packets.
//!
//! Points that the draft leaves open follow ffmpeg's reader and writer; each place notes it.

mod fault;
mod fields;
mod file;
mod headers;
mod opaque;
mod video;
mod write;

pub use fault::{ChunkName, Fault, Problem};
pub use file::{FLAG_KEY, FLAG_RELIABLE, MOST_STREAMS, Packet, RealMedia};
pub use headers::{ContentDescription, FileProperties, StreamProperties, VideoFormat};
pub use opaque::{OpaqueData, OpaqueError};
pub use video::{
    Assembler, MOST_FRAME_BYTES, MOST_PARTS, NoFit, PieceKind, Pieces, VideoFrame, VideoPiece, among_several,
    fragment, several, whole,
};
pub use write::{MOST_PAYLOAD_BYTES, write_head, write_packet};

#[cfg(test)]
mod tests;
