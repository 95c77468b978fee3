//! The peers of each end where flows pass through relays.

use streamgauge_base::{Direction, Ecn, FlowId};
use streamgauge_plan::{
    Entry, FlowSpec, MediaWay, RelaySide, RelaySpec, TrialPlan, addresses, relay_address,
};

use crate::error::SimError;
use crate::peers::{Line, PeerLink, PeerLinks};
use crate::store::NO_RELAY;

/// Returns the place of a relay among endpoints: behind both ends of every flow.
pub fn endpoint(plan: &TrialPlan, relay: usize) -> usize {
    2 * plan.flows.len() + relay
}

/// Makes the line of a server if it `serves`, else of a player.
fn line(flow: FlowId, direction: Direction, serves: bool) -> Line {
    Line { flow, direction, serves, at_router: false, ecn: Ecn::NotEct }
}

/// Returns the links of the server and of the player of the flow `id`.
pub fn links(plan: &TrialPlan, id: FlowId, flow: &FlowSpec) -> [PeerLinks; 2] {
    let own = addresses(id.0, flow.entry, flow.direction);
    let (server, player) = (own.server.octets(), own.player.octets());
    let one = |link| PeerLinks::one(id, link);
    let Some(nth) = plan.relay_of(flow) else {
        let at_router = flow.entry == Entry::Router;
        let direction = flow.direction.direction();
        let media = Line { at_router, ..line(id, direction, true) };
        let back = line(id, direction.opposite(), false);
        let link = |line, addresses| PeerLink { line, user: NO_RELAY, local: None, addresses };
        return [one(link(media, [server, player])), one(link(back, [player, server]))];
    };
    let relay = plan.relay_id(nth);
    let at = plan.relays[nth].at;
    let its = relay_address(relay.0, at).octets();
    let near = Some(endpoint(plan, nth) as u32);
    // Packets that cross the path are the relay's where it shares it, between itself and the servers.
    let (down, to_server_end, to_player_end) = match at {
        RelaySide::Client => (relay, None, near),
        RelaySide::Server => (id, near, None),
    };
    let link = |line, local, own| PeerLink { line, user: id.0, local, addresses: [own, its] };
    [
        one(link(line(down, Direction::Down, true), to_server_end, server)),
        one(link(line(id, Direction::Up, false), to_player_end, player)),
    ]
}

/// Returns the links of the relay at that place.
pub fn relay_links(plan: &TrialPlan, nth: usize, relay: &RelaySpec) -> PeerLinks {
    let id = plan.relay_id(nth);
    let own = relay_address(id.0, relay.at).octets();
    let users = plan.users(relay).map(|(flow, spec)| {
        let ends = addresses(flow.0, spec.entry, spec.direction);
        let [server, player] = [ends.server, ends.player].map(|address| [own, address.octets()]);
        let index = 2 * u32::from(flow.0);
        let link = |line, local, addresses| PeerLink { line, user: flow.0, local, addresses };
        match relay.at {
            RelaySide::Client => {
                let up = line(id, Direction::Up, false);
                [link(up, None, server), link(up, Some(index + 1), player)]
            }
            RelaySide::Server => {
                let down = line(flow, Direction::Down, true);
                [link(down, None, player), link(down, Some(index), server)]
            }
        }
    });
    let serves = relay.at == RelaySide::Server;
    let direction = if serves { Direction::Down } else { Direction::Up };
    PeerLinks::of_relay(id, line(id, direction, serves), users.collect())
}

/// Which endpoint the packets of each flow and relay are for, by direction.
pub struct Receivers(Vec<[Receiver; 2]>);

#[derive(Clone, Copy)]
enum Receiver {
    Endpoint(usize),
    /// The server of the flow that the packet names.
    ItsServer,
}

impl Receivers {
    /// Returns the relays; `None` where no flow passes through one.
    pub fn of(plan: &TrialPlan) -> Option<Self> {
        if plan.relays.is_empty() {
            return None;
        }
        let flows = plan.flows.iter().enumerate().map(|(flow, spec)| {
            let server = match plan.relay_of(spec) {
                Some(nth) if plan.relays[nth].at == RelaySide::Server => endpoint(plan, nth),
                _ => 2 * flow,
            };
            let ends = [Receiver::Endpoint(2 * flow + 1), Receiver::Endpoint(server)];
            match spec.direction {
                MediaWay::Down => ends,
                MediaWay::Up => [ends[1], ends[0]],
            }
        });
        let relays =
            (0..plan.relays.len()).map(|nth| [Receiver::Endpoint(endpoint(plan, nth)), Receiver::ItsServer]);
        Some(Receivers(flows.chain(relays).collect()))
    }

    /// Returns the endpoint of a packet that names `user`.
    pub fn endpoint(&self, flow: FlowId, direction: Direction, user: u16) -> usize {
        match self.0[usize::from(flow.0)][direction as usize] {
            Receiver::Endpoint(index) => index,
            Receiver::ItsServer => 2 * usize::from(user),
        }
    }
}

/// Refuses relays and flows that do not fit.
pub fn check(plan: &TrialPlan) -> Result<(), SimError> {
    for flow in &plan.flows {
        let Some(name) = &flow.via else { continue };
        let key = format!("flows.{}.via", flow.name);
        if plan.relay_of(flow).is_none() {
            return Err(SimError::plan(key, format!("there is no relay {name:?}")));
        }
        if flow.entry == Entry::Router {
            let what = "a flow that enters at the router passes no relay; remove one of them";
            return Err(SimError::plan(key, what));
        }
        if flow.direction == MediaWay::Up {
            let what = "a flow with upstream media passes no relay; remove 'via' or 'direction: up'";
            return Err(SimError::plan(key, what));
        }
    }
    for relay in &plan.relays {
        if plan.users(relay).next().is_none() {
            let what = format!("no flow passes it; add 'via: {}' to one, or remove it", relay.name);
            return Err(SimError::plan(format!("relays.{}", relay.name), what));
        }
    }
    Ok(())
}
