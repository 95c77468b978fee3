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

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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

/// Returns the network with a common count of places: for IPv6 a /64, since a single host has all addresses
/// of one.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_one_host_has_are_counted_together() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff") && same("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1") && !same("10.0.0.1", "10.0.0.2"));
    }
}
