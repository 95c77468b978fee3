//! RealNetworks Data Transport (RDT): the media packets of RealServer and RealPlayer beside RTSP, over UDP
//! and interleaved with it. Bytes to packets and back, no I/O.
//!
//! There is no specification. The layouts are those that Wireshark's dissector and FFmpeg's `rdt.c` read and
//! that RealNetworks' published Helix sources have; all numbers are big-endian. Several packets may share one
//! datagram: one without a length extends to its end.
//!
//! A packet's payload may be filler ([`Body`]), which in a datagram only the last packet's can be. On an RTSP
//! connection [`rtsp::interleave`](crate::rtsp::interleave) frames a packet, and
//! [`rtsp::Reader`](crate::rtsp::Reader) returns it.

mod ack;
mod control;
mod data;
mod fault;
mod fields;
mod packet;
mod sequence;

pub use crate::body::Body;
pub use ack::{AckPacket, MOST_BITS, StreamAck};
pub use control::{
    BandwidthReport, BufferInfo, EndReason, RttInfo, StreamEnd, TransportInfo, TransportInfoRequest,
};
pub use data::DataPacket;
pub use fault::{Fault, Problem};
pub use packet::{Packet, Packets, parse, types, write};
pub use sequence::SequenceNumber;

/// This stream number in five bits means that the number is in 16 bits behind.
const EXTENDED_STREAM: u8 = 31;

#[cfg(test)]
mod tests;
