//! Secure Reliable Transport (SRT): packets of draft-sharabayko-srt-01 section 3, one in a UDP datagram. Bytes to packets and
//! back, no I/O.
//!
//! Payloads of data and contents of extensions are borrowed. A payload may be filler ([`Body`]); everything else must be
//! real. Encrypted payloads and key material are kept as they are.

mod control;
mod fault;
mod fields;
mod handshake;
mod packet;
mod sequence;

pub use crate::body::Body;
pub use control::{AckReport, DropRequest, LossRange, MOST_RANGES};
pub use fault::{Fault, Problem};
pub use handshake::{Extension, Handshake, HandshakeKind, Latencies, MAGIC, extension_fields, flags};
pub use packet::{Data, Packet, PacketContent, Position};
pub use sequence::SequenceNumber;

/// Bytes of a packet's header (section 3).
pub const HEADER_BYTES: usize = 16;

#[cfg(test)]
mod tests;
