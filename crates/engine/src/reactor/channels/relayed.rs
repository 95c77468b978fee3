//! The peers of a relay's channels: the ends of its flows, identified by their addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use nix::libc;
use streamgauge_systems::{Carrier, Channel, ChannelId, Input, Peer};

use super::{Arrival, Channels, Room, Socket};
use crate::error::{EngineError, Result};
use crate::net::AddressPair;
use crate::net::came::Came;
use crate::net::datagram::SharedUdp;

/// The two ends of a flow through a relay.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Its server's address.
    pub server: Ipv4Addr,
    /// Its player's.
    pub player: Ipv4Addr,
}

/// The flows of a relay.
pub struct Relayed {
    /// In the plan's order.
    servers: Vec<Ipv4Addr>,
    /// The end at an address, and whether it is a server's.
    peers: BTreeMap<IpAddr, (Peer, bool)>,
    /// Channels of its listeners of UDP, by listener and the other end's address.
    datagrams: BTreeMap<(ChannelId, IpAddr), ChannelId>,
    /// A first datagram that the machine has yet to be given, once it has accepted its channel.
    first: Option<(ChannelId, Came)>,
    /// Bytes read from servers.
    pub from_servers: u64,
    /// Datagrams among them.
    pub datagrams_from_servers: u64,
}

impl Relayed {
    /// Returns those with these ends, in the plan's order.
    pub fn new(users: &[Ends]) -> Self {
        let ends = (0u16..).map(Peer).zip(users).flat_map(|(peer, ends)| {
            [(ends.server.into(), (peer, true)), (ends.player.into(), (peer, false))]
        });
        Relayed {
            servers: users.iter().map(|ends| ends.server).collect(),
            peers: ends.collect(),
            datagrams: BTreeMap::new(),
            first: None,
            from_servers: 0,
            datagrams_from_servers: 0,
        }
    }

    /// Returns the server of a flow.
    pub fn server(&self, peer: Peer) -> Option<Ipv4Addr> {
        self.servers.get(usize::from(peer.0)).copied()
    }

    /// Returns the end there; `None` for a stranger.
    pub fn peer(&self, there: SocketAddr) -> Option<Peer> {
        self.peers.get(&there.ip()).map(|&(peer, _)| peer)
    }

    /// Returns whether one of its flows' players is there, which may connect to it; servers never connect.
    pub fn may_come(&self, there: SocketAddr) -> bool {
        self.peers.get(&there.ip()).is_some_and(|&(_, serves)| !serves)
    }

    /// Counts bytes that were read from there.
    pub fn read(&mut self, there: SocketAddr, bytes: usize) {
        if self.serves(there) {
            self.from_servers += bytes as u64;
        }
    }

    fn serves(&self, there: SocketAddr) -> bool {
        self.peers.get(&there.ip()).is_some_and(|&(_, serves)| serves)
    }
}

impl Channels {
    /// Returns those that a relay at the address `own` begins with, for the flows with these ends, in the
    /// plan's order: its listeners listen from here on.
    pub fn of_relay(own: Ipv4Addr, users: &[Ends], begins_with: &[Channel]) -> Result<Channels> {
        // Its listeners receive from any peer; a channel's destination is given when it is opened.
        let addresses = AddressPair { own, peer: own };
        let mut channels = Channels::open(addresses, true, &[])?;
        channels.relayed = Some(Relayed::new(users));
        channels.begin(addresses, true, begins_with)?;
        Ok(channels)
    }

    /// Returns the socket of a relay's listener of UDP.
    pub(super) fn shared(&self, listener: ChannelId) -> Option<&SharedUdp> {
        match &self.list.get(&listener)?.socket {
            Socket::UdpListener(udp) => Some(udp),
            _ => None,
        }
    }

    /// Returns a relay's listener of UDP, or its channel to a server by one that it has: a socket of its own
    /// could not have the same port.
    pub(super) fn make_relayed(
        &mut self,
        id: ChannelId,
        carrier: &Carrier,
        AddressPair { own, peer }: AddressPair,
    ) -> Result<Socket> {
        match carrier {
            Carrier::UdpListener { port, ecn } => Ok(Socket::UdpListener(SharedUdp::open(own, *port, *ecn)?)),
            Carrier::Udp { port, .. } => {
                let listener = self.list.keys().copied().find(|&one| self.is_at(one, *port));
                let (Some(listener), Some(relayed)) = (listener, &mut self.relayed) else {
                    let why = "a relay sends datagrams from a port at which it listens; begin with a listener there";
                    return Err(EngineError::new("open a channel", why));
                };
                let key = (listener, IpAddr::from(peer));
                if relayed.datagrams.contains_key(&key) {
                    let taken = std::io::Error::from_raw_os_error(libc::EADDRINUSE);
                    return Err(EngineError::io(format!("open UDP port {port}"), &taken));
                }
                relayed.datagrams.insert(key, id);
                Ok(Socket::OfListener(listener, (peer, *port).into()))
            }
            _ => unreachable!("a relay's streams are made as others' are"),
        }
    }

    fn is_at(&self, listener: ChannelId, port: u16) -> bool {
        self.shared(listener).is_some_and(|udp| udp.port() == port)
    }

    /// Returns the arrival at a relay's listener of UDP.
    pub(super) fn relayed_arrival(&mut self, listener: ChannelId, room: &mut Room) -> Option<Arrival> {
        loop {
            let relayed = self.relayed.as_mut()?;
            if let Some((channel, came)) = relayed.first.take() {
                if self.list.contains_key(&channel) {
                    return Some(self.datagram(channel, came));
                }
                continue;
            }
            let (came, from) = self.shared(listener)?.receive(&mut room.0)?;
            let relayed = self.relayed.as_mut()?;
            if let Some(&channel) = relayed.datagrams.get(&(listener, from.ip())) {
                relayed.read(from, came.bytes.len());
                relayed.datagrams_from_servers += u64::from(relayed.serves(from));
                return Some(self.datagram(channel, came));
            }
            // Players alone come, and strangers' are passed over.
            if relayed.may_come(from) {
                let channel = self.number();
                let relayed = self.relayed.as_mut()?;
                relayed.datagrams.insert((listener, from.ip()), channel);
                relayed.first = Some((channel, came));
                self.insert(channel, Socket::OfListener(listener, from));
                return Some(Arrival::Input(Input::Accepted { channel, on: listener }));
            }
        }
    }

    /// Drops a channel that is gone: with a listener of UDP those of its port are.
    pub(super) fn forget_relayed(&mut self, id: ChannelId, socket: &Socket) {
        let Some(relayed) = &mut self.relayed else { return };
        match socket {
            Socket::OfListener(listener, there) => {
                relayed.datagrams.remove(&(*listener, there.ip()));
            }
            Socket::UdpListener(_) => {
                let (gone, kept) = std::mem::take(&mut relayed.datagrams)
                    .into_iter()
                    .partition::<BTreeMap<_, _>, _>(|((listener, _), _)| *listener == id);
                relayed.datagrams = kept;
                gone.into_values().for_each(|channel| self.remove(channel));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_may_come_and_servers_may_not() {
        let [server, player, stranger] = [1, 2, 3].map(|last| Ipv4Addr::new(10, 1, 0, last));
        let relayed = Relayed::new(&[Ends { server, player }]);
        let may_come = |who: Ipv4Addr| relayed.may_come((who, 80).into());
        assert_eq!([server, player, stranger].map(may_come), [false, true, false]);
        assert_eq!(relayed.peer((server, 80).into()), relayed.peer((player, 80).into()));
    }
}
