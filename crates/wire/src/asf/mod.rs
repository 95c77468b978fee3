//! The Advanced Systems Format (ASF Specification, revision 01.20.03, Microsoft 2004; section numbers refer
//! to it): files of Windows Media as objects, data packets and media objects; read, written, and several
//! combined into one of several rates.
//!
//! Points that the specification leaves open follow ffmpeg's reader and writer; each place notes it.

mod fault;
mod fields;
mod file;
mod guid;
mod header;
mod headers;
mod multiplex;
mod object;
mod packet;
mod packing;
mod select;
mod write;

pub use fault::{Fault, Problem};
pub use file::{Asf, LEAST_PACKET_BYTES, MediaObjects};
pub use guid::Guid;
pub use header::{Header, MutualExclusion, OpaqueObject, StreamBitRate};
pub use headers::{
    AudioFormat, ExtendedStreamProperties, FLAG_BROADCAST, FLAG_SEEKABLE, FileProperties, LeakyBucket,
    PayloadExtension, StreamName, StreamProperties, VideoFormat,
};
pub use multiplex::{MOST_STREAMS, MultiplexError, MultiplexInput, MultiplexSettings, multiplex};
pub use object::{MediaObject, ObjectAssembler};
pub use packet::{
    DataPacket, DataPayload, MOST_OBJECT_BYTES, MOST_PACKET_BYTES, ObjectFields, without_padding,
};
pub use packing::pack;
pub use select::StreamSelection;
pub use write::{PacketSize, write_head, write_packet};

#[cfg(test)]
mod tests;
