//! From a flow of the plan to its machines and the channels between them.

use crate::app::{App, ChannelId};
use crate::plan::{AppSpec, FlowSpec, TcpSpec};
use crate::{bulk, cbr, ping, rtp};

/// What a channel rides on.
#[derive(Clone, PartialEq, Debug)]
pub enum Carrier {
    /// UDP; both ends use this port.
    Udp {
        /// Port at either end.
        port: u16,
    },
    /// TCP. The server listens on this port and the player connects to it.
    Tcp {
        /// The server's port.
        port: u16,
        /// Settings of both ends.
        settings: TcpSpec,
    },
    /// ICMP echo. The server's datagrams are requests, the player's host answers them without asking the
    /// player's machine, and the server gets the replies. A datagram is the sequence number (2 bytes,
    /// big-endian) and then the data; the driver adds type, code, checksum and identifier.
    IcmpEcho,
}

/// One channel of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Its number at both ends.
    pub id: ChannelId,
    /// What it rides on.
    pub carrier: Carrier,
}

/// Both ends of a flow. The driver opens all channels, then gives each machine `Input::Start`.
pub struct Machines {
    /// Between the two, in order of their ids, which count from 0.
    pub channels: Vec<Channel>,
    /// The end that `down` leads away from.
    pub server: Box<dyn App + Send>,
    /// The end that `down` leads to.
    pub player: Box<dyn App + Send>,
}

/// A flow that cannot be made into machines.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("flows.{flow}.{key}: {what}")]
pub struct MachineError {
    /// The flow's name.
    pub flow: String,
    /// The key within the flow's plan.
    pub key: String,
    /// What is wrong and what would be right.
    pub what: String,
}

/// The machines of `flow`. Their random streams are named by `seed` and the flow's name.
pub fn machines(flow: &FlowSpec, seed: u64) -> Result<Machines, MachineError> {
    let refuse = |key: &str, what: String| MachineError { flow: flow.name.clone(), key: key.into(), what };
    let made = match &flow.app {
        AppSpec::Bulk(spec) => bulk::machines(spec),
        AppSpec::Cbr(spec) => cbr::machines(spec),
        AppSpec::Ping(spec) => ping::machines(spec),
        AppSpec::Rtp(spec) => rtp::machines(spec, &flow.name, seed),
        AppSpec::External => {
            let what = "a third-party system runs in emu only; give the flow a stand-in for sim \
                        (sim: {system: rtp}) or run with --mode emu";
            Err(("app", what.into()))
        }
    };
    made.map_err(|(key, what)| refuse(key, what))
}

/// What a folder's own `machines` says is wrong: the key, and the fault with its remedy.
pub(crate) type Refusal = (&'static str, String);
