//! Clients of one address at a listener.

use std::net::{IpAddr, SocketAddr};

use super::{Channels, Socket};
use crate::net::network;
use crate::net::stream::TcpSocket;

impl Channels {
    /// Returns the number of streams from the host of `address`.
    pub(super) fn come_from(&self, address: IpAddr) -> usize {
        let is_its = |stream: &TcpSocket| stream.serves && network(stream.peer().ip()) == network(address);
        let entries = self.list.values();
        entries.filter(|one| matches!(&one.socket, Socket::Stream(stream, _) if is_its(stream))).count()
    }

    /// Returns the clients that were closed since, for others of their address.
    pub fn take_turned_away(&mut self) -> Vec<SocketAddr> {
        std::mem::take(&mut self.turned_away)
    }
}
