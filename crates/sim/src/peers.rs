//! How the packets of an end reach the other ends that it talks to.

use streamgauge_base::{Direction, Ecn, FlowId};
use streamgauge_systems::Peer;

use crate::store::NO_RELAY;

/// The way of an endpoint's packets.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub flow: FlowId,
    pub direction: Direction,
    /// Whether it is the flow's server, or a relay at the servers' side.
    pub serves: bool,
    /// They enter at the bottleneck.
    pub at_router: bool,
    /// Their ECN field where no TCP decides.
    pub ecn: Ecn,
}

/// From one end to another.
#[derive(Clone, Copy, Debug)]
pub struct PeerLink {
    /// The identity of its packets on the path.
    pub line: Line,
    /// Between a relay and an end of a flow, that flow; else [`NO_RELAY`].
    pub user: u16,
    /// The endpoint that they reach at their own side, without the path.
    pub local: Option<u32>,
    /// IPv4, of this end and of the other.
    pub addresses: [[u8; 4]; 2],
}

/// The links of one end. By number: 0 is that of an end with one other end; a relay's count from 1, two for each of its
/// flows: across the path, and at its own side.
pub struct PeerLinks {
    /// The flow that this end's events belong to.
    pub flow: FlowId,
    /// For a relay, a link without packets.
    only: PeerLink,
    relayed: Option<Box<Relayed>>,
}

/// A relay's links.
struct Relayed {
    /// Its flows, ascending.
    users: Vec<u16>,
    /// Those across the path and at its side of each.
    links: Vec<[PeerLink; 2]>,
}

impl PeerLinks {
    /// Makes the links of an end of `flow` that has one other end.
    pub fn one(flow: FlowId, link: PeerLink) -> Self {
        PeerLinks { flow, only: link, relayed: None }
    }

    /// Makes the links of the relay `flow`, with packets of `line`, across the path and at its side for each of its
    /// users.
    pub fn of_relay(flow: FlowId, line: Line, users: Vec<[PeerLink; 2]>) -> Self {
        let only = PeerLink { line, user: NO_RELAY, local: None, addresses: [[0; 4]; 2] };
        let relayed = Relayed { users: users.iter().map(|[link, _]| link.user).collect(), links: users };
        PeerLinks { flow, only, relayed: Some(Box::new(relayed)) }
    }

    /// Returns the link with that number.
    #[inline]
    pub fn to(&self, whom: u32) -> &PeerLink {
        match &self.relayed {
            Some(relayed) if whom > 0 => {
                let place = whom - 1;
                &relayed.links[(place / 2) as usize][(place % 2) as usize]
            }
            _ => &self.only,
        }
    }

    /// Returns the number of the link that a packet with this [`PeerLink::user`] arrived by.
    #[inline]
    pub fn from(&self, user: u16, locally: bool) -> u32 {
        let Some(relayed) = &self.relayed else { return 0 };
        let place = relayed.users.binary_search(&user).expect("packets of its flows alone reach a relay");
        1 + 2 * place as u32 + u32::from(locally)
    }

    /// Returns the number of a relay's link to the server of that flow; `None` if it has no such flow.
    pub fn upstream(&self, peer: Peer) -> Option<u32> {
        let relayed = self.relayed.as_ref()?;
        let exists = usize::from(peer.0) < relayed.users.len();
        exists.then(|| 1 + 2 * u32::from(peer.0) + u32::from(self.only.line.serves))
    }

    /// Returns whether that is a relay's link to a server: it only opens connections there and accepts none.
    pub fn leads_to_server(&self, whom: u32) -> bool {
        self.peer(whom).is_some_and(|peer| self.upstream(peer) == Some(whom))
    }

    /// Returns the flow of a relay's link.
    pub fn peer(&self, whom: u32) -> Option<Peer> {
        Some(Peer(((whom.checked_sub(1)?) / 2) as u16))
    }

    pub fn is_relay(&self) -> bool {
        self.relayed.is_some()
    }
}
