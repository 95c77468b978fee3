//! Whom a relay's streams lead to: the ends of its flows, which it knows by their addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use streamgauge_systems::Peer;

/// The two ends of a flow that goes through a relay.
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
    /// Whose an address is, and whether it is a server's.
    peers: BTreeMap<IpAddr, (Peer, bool)>,
    /// Bytes read from servers.
    pub from_servers: u64,
}

impl Relayed {
    /// Those with these ends, in the plan's order.
    pub fn new(users: &[Ends]) -> Self {
        let ends = (0u16..).map(Peer).zip(users).flat_map(|(peer, ends)| {
            [(ends.server.into(), (peer, true)), (ends.player.into(), (peer, false))]
        });
        Relayed {
            servers: users.iter().map(|ends| ends.server).collect(),
            peers: ends.collect(),
            from_servers: 0,
        }
    }

    /// The server of a flow.
    pub fn server(&self, peer: Peer) -> Option<Ipv4Addr> {
        self.servers.get(usize::from(peer.0)).copied()
    }

    /// Whose end is there; `None` of a stranger.
    pub fn peer(&self, there: SocketAddr) -> Option<Peer> {
        self.peers.get(&there.ip()).map(|&(peer, _)| peer)
    }

    /// Whether one of its flows' players is there, who may come to it; servers are only gone to.
    pub fn may_come(&self, there: SocketAddr) -> bool {
        self.peers.get(&there.ip()).is_some_and(|&(_, serves)| !serves)
    }

    /// Bytes were read from there.
    pub fn read(&mut self, there: SocketAddr, bytes: usize) {
        if self.peers.get(&there.ip()).is_some_and(|&(_, serves)| serves) {
            self.from_servers += bytes as u64;
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
