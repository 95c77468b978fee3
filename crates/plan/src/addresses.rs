//! The IPv4 addresses of flows and relays, the same in sim and in emu.

use std::net::Ipv4Addr;

use streamgauge_base::FlowId;

use crate::relay::RelaySide;
use crate::trial::{Entry, FlowSpec, MediaWay, TrialPlan};

/// A flow's pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Address of its server, or of its source at the router.
    pub server: Ipv4Addr,
    /// Address of its player.
    pub player: Ipv4Addr,
}

/// Returns the pair of the flow with that index in the plan: 10.1.*i*.1 (10.3.*i*.1 if it enters at the router) and
/// 10.2.*i*.1, the other way about where media has the direction up. Flows beyond the 256th, which emu does not have,
/// count on in the last octet.
pub fn addresses(index: u16, entry: Entry, way: MediaWay) -> Addresses {
    let [high, low] = index.to_be_bytes();
    // 65,280 flows and more would wrap; a plan has fewer.
    let last = high.wrapping_add(1);
    let network = match entry {
        Entry::Server => 1,
        Entry::Router => 3,
    };
    let (near, far) = (Ipv4Addr::new(10, network, low, last), Ipv4Addr::new(10, 2, low, last));
    match way {
        MediaWay::Down => Addresses { server: near, player: far },
        MediaWay::Up => Addresses { server: far, player: near },
    }
}

/// Returns the address of the relay with that code ([`TrialPlan::relay_id`](crate::TrialPlan::relay_id)): the one that
/// a flow's end at its side would have there.
pub fn relay_address(code: u16, at: RelaySide) -> Ipv4Addr {
    let Addresses { server, player } = addresses(code, Entry::Server, MediaWay::Down);
    match at {
        RelaySide::Client => player,
        RelaySide::Server => server,
    }
}

/// A pair of addresses between which packets cross the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathPair {
    /// The flow or relay that its packets are counted as.
    pub of: FlowId,
    /// The two ends.
    pub ends: Addresses,
}

impl TrialPlan {
    /// Returns the pair of each flow that crosses the path, in the plan's order. A flow through a relay has the relay's
    /// address and its end on the far side.
    pub fn path_pairs(&self) -> impl Iterator<Item = PathPair> {
        (0u16..).zip(&self.flows).map(|(code, flow)| self.path_pair(FlowId(code), flow))
    }

    fn path_pair(&self, id: FlowId, flow: &FlowSpec) -> PathPair {
        let own = addresses(id.0, flow.entry, flow.direction);
        let Some(nth) = self.relay_of(flow) else { return PathPair { of: id, ends: own } };
        let (relay, at) = (self.relay_id(nth), self.relays[nth].at);
        let there = relay_address(relay.0, at);
        match at {
            RelaySide::Client => PathPair { of: relay, ends: Addresses { player: there, ..own } },
            RelaySide::Server => PathPair { of: id, ends: Addresses { server: there, ..own } },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_flows_share_an_address() {
        let mut seen = HashSet::new();
        for index in 0..2_000 {
            for entry in [Entry::Server, Entry::Router] {
                let pair = addresses(index, entry, MediaWay::Down);
                assert!(seen.insert((pair.server, pair.player)));
                assert_ne!(pair.server, pair.player);
            }
        }
    }

    #[test]
    fn what_crosses_is_a_relays_or_a_flows_and_between_whom() {
        let text = |at| {
            format!(
                r#"{{"scenario": "x", "seed": 1, "duration": 1, "path": {{"down": [], "up": []}}, "flows": [
                {{"name": "a", "role": "subject", "start": 0, "app": "external"}},
                {{"name": "b", "role": "subject", "start": 0, "app": "external", "via": "home"}}],
                "relays": [{{"name": "home", "at": "{at}", "app": "external"}}]}}"#
            )
        };
        for (at, of, server, player) in
            [("client", 2, [10, 1, 1, 1], [10, 2, 2, 1]), ("server", 1, [10, 1, 2, 1], [10, 2, 1, 1])]
        {
            let plan: TrialPlan = serde_json::from_str(&text(at)).unwrap();
            let own = addresses(0, Entry::Server, MediaWay::Down);
            let ends = Addresses { server: server.into(), player: player.into() };
            let expected = [PathPair { of: FlowId(0), ends: own }, PathPair { of: FlowId(of), ends }];
            assert_eq!(plan.path_pairs().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_source_at_the_router_has_a_network_of_its_own() {
        let pair = addresses(7, Entry::Router, MediaWay::Down);
        assert_eq!((pair.server, pair.player), (Ipv4Addr::new(10, 3, 7, 1), Ipv4Addr::new(10, 2, 7, 1)));
        assert_eq!(addresses(7, Entry::Server, MediaWay::Down).server, Ipv4Addr::new(10, 1, 7, 1));
    }

    #[test]
    fn where_media_goes_up_the_server_has_the_address_of_the_clients_end() {
        let down = addresses(7, Entry::Server, MediaWay::Down);
        let up = addresses(7, Entry::Server, MediaWay::Up);
        assert_eq!((up.server, up.player), (down.player, down.server));
    }
}
