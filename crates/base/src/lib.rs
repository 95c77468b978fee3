//! The common vocabulary of all other crates: time, units, ids, items and packets, events, named random streams and the
//! sinks that a record implements.
//!
//! Nothing here reads a clock, opens a socket or draws unseeded randomness.

#![forbid(unsafe_code)]

mod chunk;
mod event;
mod fate;
mod headers;
mod item;
mod rate;
mod rng;
mod time;

pub use chunk::Chunk;
pub use event::{Event, EventSink};
pub use fate::{Cause, Fate, FateSink, Outcome, QueueDepth};
pub use headers::{Headers, PacketInfo, PacketKind, TcpFlags, TransportHeader, packet_flags};
pub use item::{Direction, Ecn, FlowId, Fragment, Item, PacketId, Ports, Protocol, StageId};
pub use rate::BitRate;
pub use rng::RandomStream;
pub use time::{Duration, Instant};

/// Bytes that Ethernet adds to an IP packet in every count of this project: the 14-byte header, no FCS,
/// as Linux `tc` counts.
pub const ETHERNET_HEADER_BYTES: u32 = 14;

/// Bytes of an IPv4 header without options (RFC 791 section 3.1), as fragments that a path makes have it.
pub const IPV4_HEADER_BYTES: u32 = 20;
