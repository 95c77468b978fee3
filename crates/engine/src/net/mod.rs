//! Transport of a machine's channels: sockets that never block.

pub mod batch;
pub mod came;
pub mod datagram;
pub mod echo;
pub mod host;
pub mod ports;
pub mod stream;
pub mod udp_listener;
pub mod wake;

use std::net::{Ipv4Addr, SocketAddr};

use nix::sys::socket::SockaddrStorage;

/// The two addresses of a trial's flow as one end sees them.
#[derive(Clone, Copy, Debug)]
pub struct AddressPair {
    /// Ours.
    pub own: Ipv4Addr,
    /// The other end's.
    pub peer: Ipv4Addr,
}

/// Returns the address of IPv4 or IPv6 that this is.
pub fn address_of(stored: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = stored.as_sockaddr_in().map(|&a| SocketAddr::V4(a.into()));
    v4.or_else(|| stored.as_sockaddr_in6().map(|&a| SocketAddr::V6(a.into())))
}
