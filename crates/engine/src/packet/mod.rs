//! Packet sockets: a receive ring with kernel stamps, and batched sending.

mod ring;
mod send;

pub use ring::{Outgoing, Ring, RingOptions, raw_socket};
pub use send::{MAX_BATCH, Parts, Sender};

/// Room for one frame in rings and slab: an Ethernet frame of 1,500 bytes of MTU and the kernel's header
/// before it.
pub const FRAME_ROOM: usize = 2048;
