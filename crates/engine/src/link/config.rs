//! Configuration of `link`.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::Deserialize;
use streamgauge_base::FlowId;
use streamgauge_plan::{Entry, Legend, TrialPlan};

use super::sabotage::Fault;
use crate::error::Result;
use crate::lines::bad_field;

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The trial.
    pub plan: TrialPlan,
    /// An existing directory.
    pub out: PathBuf,
    /// SCHED_FIFO at this priority, where allowed.
    #[serde(default)]
    pub fifo_priority: Option<i32>,
    /// Under SCHED_FIFO, spin the last stretch before a departure away. Emulators that share processors had better
    /// sleep.
    #[serde(default = "default_spin")]
    pub spin: bool,
    /// Write `capture.pcapng`.
    #[serde(default)]
    pub capture: bool,
    /// The router's ends of the veths.
    pub interfaces: Interfaces,
    /// Which addresses are which flow's.
    pub flows: Vec<FlowAddresses>,
    /// The flow that every other IPv4 packet belongs to; it has no pair of its own.
    #[serde(default)]
    pub rest: Option<String>,
    /// Faults to inject.
    #[serde(default)]
    pub sabotage: Vec<Fault>,
    /// An inherited descriptor: a Unix stream socket on which the trial is shown while it runs, and steered.
    #[serde(default)]
    pub live_fd: Option<i32>,
    /// Frames that each receive ring holds.
    #[serde(default = "default_ring_frames")]
    pub ring_frames: usize,
    /// Packets in flight that room is made for before the trial, 2 KiB each; more is made while it runs, for as
    /// many as the plan's path can hold.
    #[serde(default = "default_slab_packets")]
    pub slab_packets: usize,
}

fn default_spin() -> bool {
    true
}

/// Returns the frames of 0.2 s at 40,000 packets/s.
fn default_ring_frames() -> usize {
    8192
}

fn default_slab_packets() -> usize {
    16_384
}

/// Interface names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interfaces {
    /// Towards the servers.
    pub server: String,
    /// Towards the players.
    pub client: String,
    /// Towards sources that enter at the router.
    #[serde(default)]
    pub cross: Option<String>,
}

/// A flow's pair of addresses.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowAddresses {
    /// Its name in the plan, or a relay's, which may have several pairs.
    pub name: String,
    /// The server's (or router-entry source's) address.
    pub server_ip: Ipv4Addr,
    /// The player's.
    pub player_ip: Ipv4Addr,
}

/// Finds a packet's flow, or relay, by its addresses.
pub struct AddressBook {
    pairs: HashMap<(Ipv4Addr, Ipv4Addr), FlowId>,
    at_router: Vec<Ipv4Addr>,
    rest: FlowId,
}

impl AddressBook {
    /// Returns the book of `flows`, with the codes of the plan's legend.
    pub fn new(plan: &TrialPlan, flows: &[FlowAddresses], rest: Option<&str>) -> Result<Self> {
        let legend = Legend::of(plan);
        let mut book = AddressBook { pairs: HashMap::new(), at_router: Vec::new(), rest: FlowId::OTHER };
        if let Some(name) = rest {
            let code = plan.flows.iter().position(|f| f.name == name);
            let code = code.ok_or_else(|| bad_field("rest", &format!("the plan has no flow {name:?}")))?;
            book.rest = FlowId(code as u16);
        }
        for (index, flow) in flows.iter().enumerate() {
            let key = format!("flows[{index}]");
            let code = legend.flows.iter().position(|f| f.name == flow.name);
            let code = code
                .ok_or_else(|| bad_field(&key, &format!("the plan has no flow or relay {:?}", flow.name)))?;
            let id = FlowId(code as u16);
            for pair in [(flow.server_ip, flow.player_ip), (flow.player_ip, flow.server_ip)] {
                if book.pairs.insert(pair, id).is_some() {
                    return Err(bad_field(&key, "its pair of addresses is another flow's too"));
                }
            }
            if plan.flows.get(code).is_some_and(|flow| flow.entry == Entry::Router) {
                book.at_router.push(flow.server_ip);
            }
        }
        Ok(book)
    }

    /// Returns the flow between two addresses, in either direction; `None` means other packets than IPv4.
    #[inline]
    pub fn flow(&self, source: Option<Ipv4Addr>, destination: Option<Ipv4Addr>) -> FlowId {
        match (source, destination) {
            (Some(s), Some(d)) => self.pairs.get(&(s, d)).copied().unwrap_or(self.rest),
            _ => FlowId::OTHER,
        }
    }

    /// Returns whether an up packet to this address leaves towards a source at the router.
    #[inline]
    pub fn is_at_router(&self, destination: Option<Ipv4Addr>) -> bool {
        destination.is_some_and(|ip| self.at_router.contains(&ip))
    }
}
