//! The initial state of a flow, before it starts.

use std::sync::Arc;

use streamgauge_base::{Ecn, RandomStream};
use streamgauge_plan::TcpSpec;
use streamgauge_systems::{Carrier, Channel};

use crate::error::SimError;
use crate::settings::{Settings, settings};

/// A channel that a flow begins with, before it starts.
#[derive(PartialEq)]
pub enum Opening {
    /// Its port, and the value that it sets in the ECN field.
    Udp(u16, Ecn),
    /// The same, for a relay that players connect to.
    UdpListener(u16, Ecn),
    Echo,
    RtpPair,
    /// The server's port.
    Tcp(u16, Settings),
    /// The server's port, and how many may wait there.
    Listener(u16, Settings, u32),
}

impl Opening {
    /// Makes the settings of `channel`. Settings that are those of `last` are shared with it.
    pub fn new(channel: &Channel, last: &mut Option<Settings>) -> Result<Self, SimError> {
        let mut shared = |spec: &TcpSpec| -> Result<Settings, SimError> {
            let made = settings(spec)?;
            let made = last.take().filter(|last| last.config == made.config).unwrap_or(made);
            *last = Some(made.clone());
            Ok(made)
        };
        Ok(match &channel.carrier {
            Carrier::Udp { port, ecn } => Opening::Udp(*port, *ecn),
            Carrier::UdpListener { port, ecn } => Opening::UdpListener(*port, *ecn),
            Carrier::IcmpEcho => Opening::Echo,
            Carrier::RtpPair => Opening::RtpPair,
            Carrier::Tcp { port, settings } => Opening::Tcp(*port, shared(settings)?),
            Carrier::Listener { port, settings, backlog } => {
                Opening::Listener(*port, shared(settings)?, *backlog)
            }
        })
    }
}

/// The inputs of a flow's start.
pub struct Start {
    pub openings: Arc<Vec<Opening>>,
    pub roots: Arc<Roots>,
}

/// The state that both ends of a flow, or a relay, use whenever a channel opens.
pub struct Roots {
    /// Seed of the stream that draws the initial sequence numbers of its connections.
    seed: u64,
    key: u64,
    /// Begins the random streams of its congestion controllers.
    pub control_seed: u64,
}

impl Roots {
    /// Draws the initial sequence numbers of the connections, from the first on.
    pub fn sequences(&self) -> RandomStream {
        RandomStream::of(self.seed, self.key)
    }

    /// Makes the roots of the flow or relay of that name.
    pub fn named(seed: u64, name: &str) -> Self {
        Roots {
            seed,
            key: RandomStream::key(name, "tcp_initial_sequence"),
            control_seed: RandomStream::named(seed, name, "tcp_congestion_control").bits(),
        }
    }
}
