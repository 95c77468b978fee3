//! Named Data Networking: packets (NDN Packet Format Specification version 0.3), the link protocol's packets around them
//! (NDNLPv2), and names. Bytes to messages and back, no I/O.
//!
//! A packet is a [`Chunk`](streamgauge_base::Chunk); its payload may be filler. A Data's signature is behind
//! its content. Where the content has filler, the signature lies in it: every length is right, and the
//! signature is [`Signature::Absent`]. With all bytes real a packet is NDN's, byte for byte.
//!
//! Bounds: [`types::MOST_PACKET_BYTES`] for a packet, [`types::MOST_COMPONENTS`] and
//! [`types::MOST_NAME_BYTES`] for a name, [`types::MOST_FRAGMENTS`] for a fragmented packet. Elements are
//! read to a fixed depth (LpPacket, Fragment, Data, MetaInfo, FinalBlockId, its component), and nothing
//! allocates more than was received.

mod component;
mod data;
mod fault;
mod fragments;
mod interest;
mod lp;
mod metadata;
mod name;
mod packet;
mod stream;
mod tlv;
pub mod types;
mod uri;

pub use component::Component;
pub use data::{Data, Signature, implicit_digest};
pub use fault::{Fault, Problem};
pub use fragments::{Fragmenter, Reassembler, ReassemblyLimits};
pub use interest::{DEFAULT_LIFETIME_MS, Interest, Parameters};
pub use lp::{LpPacket, NackReason};
pub use metadata::{Metadata, ObjectSize};
pub use name::{Components, Name};
pub use packet::Packet;
pub use stream::{Reader, refilled};

#[cfg(test)]
mod tests;
