//! What a machine's channels ride on: sockets that never block.

pub mod datagram;
pub mod echo;
pub mod host;
pub mod ports;
pub mod stream;
pub mod udp_listener;
pub mod wake;

use std::net::Ipv4Addr;

/// The two addresses of a trial's flow as one end sees them.
#[derive(Clone, Copy, Debug)]
pub struct AddressPair {
    /// Ours.
    pub own: Ipv4Addr,
    /// The other end's.
    pub peer: Ipv4Addr,
}
