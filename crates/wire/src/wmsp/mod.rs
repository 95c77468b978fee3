//! The Windows Media HTTP Streaming Protocol ([MS-WMSP]): packets in the bodies of HTTP's messages, and the
//! Pragma headers that identify a request. Bytes to packets and back, no I/O; HTTP itself is
//! [`http`](crate::http)'s.
//!
//! Media and ASF headers are [`mms`](crate::mms)'s packets with four bytes before them. All numbers are little-endian.

mod fault;
mod metadata;
mod packet;
mod pragma;
mod reader;
mod request;

pub use fault::{Fault, Problem};
pub use metadata::Metadata;
pub use packet::{FRAMING_BYTES, PacketContent, WmspPacket, reasons};
pub use pragma::{ContentFeature, PragmaFault, Pragmas};
pub use reader::Reader;
pub use request::{RequestKind, media_types};

#[cfg(test)]
mod tests;
