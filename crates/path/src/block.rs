//! A firewall that lets a protocol not through.

use streamgauge_base::{Cause, Item, Protocol, StageId};

use crate::error::StageProblem;
use crate::passing::{Effect, Passing};
use crate::schedule::{Schedule, ascending, starts_on};
use crate::spec::{BlockSpec, BlockedProtocol};

/// Drops every packet of a protocol and tells nobody, as a firewall that drops rather than rejects: a sender
/// finds out by its own time-outs.
pub type Block = Passing<Blocking>;

/// What it blocks.
#[derive(Clone, Debug)]
pub struct Blocking {
    protocol: Protocol,
    name: &'static str,
}

impl Block {
    /// The stage as at time zero.
    pub fn new(id: StageId, spec: &BlockSpec) -> Self {
        let (protocol, name) = match spec.protocol {
            BlockedProtocol::Tcp => (Protocol::Tcp, "tcp_blocked"),
            BlockedProtocol::Udp => (Protocol::Udp, "udp_blocked"),
            BlockedProtocol::Icmp => (Protocol::Icmp, "icmp_blocked"),
        };
        Passing::with(id, starts_on(&spec.switches), Blocking { protocol, name })
    }
}

impl Effect for Blocking {
    fn meet(&mut self, item: Item, _: &mut impl FnMut(Item)) -> Result<Item, Cause> {
        if item.protocol == self.protocol { Err(Cause::Blocked) } else { Ok(item) }
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
        ascending("switches", &self.switches)
    }
}
