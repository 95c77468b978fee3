//! The names of one end in two captures, where addresses are translated between them.

use std::net::{IpAddr, SocketAddr};

use crate::packet::{Address, End};

/// B's name of an end, and A's; without a port, of all ports of that address.
pub type Renamed = (End, End);

/// Gives an end of B the name that it has in A.
pub fn rename(end: &mut End, renamed: &[Renamed]) {
    for (theirs, ours) in renamed {
        if theirs.address == end.address && (theirs.port == 0 || theirs.port == end.port) {
            end.address = ours.address;
            if ours.port != 0 {
                end.port = ours.port;
            }
            return;
        }
    }
}

/// Reads an end: an address, or an address with its port.
pub fn end_of(text: &str) -> Option<End> {
    let address = |of: IpAddr| match of {
        IpAddr::V4(of) => Address(of.to_ipv6_mapped().to_bits()),
        IpAddr::V6(of) => Address(of.to_bits()),
    };
    if let Ok(both) = text.parse::<SocketAddr>() {
        return Some(End { address: address(both.ip()), port: both.port() });
    }
    text.parse().ok().map(|of| End { address: address(of), port: 0 })
}
