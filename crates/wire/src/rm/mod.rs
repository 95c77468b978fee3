//! RealMedia: files as chunks (Internet-Draft draft-heftagaub-rmff-00, March 1998), what servers tell players of their
//! streams, and how RealVideo's frames lie in packets.
//!
//! What the draft leaves open is as ffmpeg writes and reads it; each place says so.

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
