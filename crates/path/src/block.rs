//! A firewall that lets a protocol not through.

use streamgauge_base::{Cause, Item, Ports, Protocol, StageId};

use crate::error::StageProblem;
use crate::passing::{Effect, Passing};
use crate::schedule::{Schedule, ascending, starts_on};
use crate::spec::{BlockSpec, BlockedProtocol};

/// Ports that one firewall may name, which each packet is compared with.
const MOST_PORTS: usize = 16;

/// Drops every packet of a protocol, or of some of its ports, without any notice, as a firewall that drops rather than
/// rejects: a sender detects it by its own time-outs. Fragments of a datagram pass if the driver has no ports for them.
pub type Block = Passing<Blocking>;

/// The blocked packets.
#[derive(Clone, Debug)]
pub struct Blocking {
    protocol: Protocol,
    /// All without.
    ports: Vec<u16>,
    name: &'static str,
}

impl Blocking {
    fn stops(&self, protocol: Protocol, ports: Ports) -> bool {
        let named = |port: u16| self.ports.contains(&port);
        protocol == self.protocol
            && (self.ports.is_empty() || named(ports.source) || named(ports.destination))
    }
}

impl Block {
    /// Makes the stage as at time zero.
    pub fn new(id: StageId, spec: &BlockSpec) -> Self {
        let (protocol, name) = match spec.protocol {
            BlockedProtocol::Tcp => (Protocol::Tcp, "tcp_blocked"),
            BlockedProtocol::Udp => (Protocol::Udp, "udp_blocked"),
            BlockedProtocol::Icmp => (Protocol::Icmp, "icmp_blocked"),
        };
        Passing::with(id, starts_on(&spec.switches), Blocking { protocol, ports: spec.ports.clone(), name })
    }
}

impl Effect for Blocking {
    fn meet(&mut self, item: Item, _: &mut impl FnMut(Item)) -> Result<Item, Cause> {
        if self.stops(item.protocol, item.ports) { Err(Cause::Blocked) } else { Ok(item) }
    }

    fn setting(&self, on: bool) -> (&'static str, f64, &'static str) {
        (self.name, f64::from(u8::from(on)), "1")
    }
}

impl BlockSpec {
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::switched(&self.switches)
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        let wrong = |what: String| Err(StageProblem::Ports(what));
        if self.protocol == BlockedProtocol::Icmp && !self.ports.is_empty() {
            return wrong("ICMP has no ports; leave them away".into());
        }
        if self.ports.len() > MOST_PORTS {
            return wrong(format!("{} ports; give at most {MOST_PORTS}", self.ports.len()));
        }
        let is_twice = |at: usize| self.ports[..at].contains(&self.ports[at]);
        if let Some(at) = (0..self.ports.len()).find(|at| self.ports[*at] == 0 || is_twice(*at)) {
            return wrong(format!(
                "{} stands twice or is no port; give each of 1 to 65535 once",
                self.ports[at]
            ));
        }
        ascending("switches", &self.switches)
    }
}
