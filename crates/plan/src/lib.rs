//! The plan of a trial: what sim, the emulator, the record and our machines on real sockets agree on.
//!
//! A scenario is lowered to SI integers, with every default filled in and every random start drawn. The plan
//! does not know the streaming systems: what a flow runs is a name and its settings ([`AppSpec`]), which that
//! system reads.

#![forbid(unsafe_code)]

mod addresses;
mod app;
mod arrivals;
mod bounds;
mod legend;
mod parameter;
mod protocols;
mod relay;
mod tcp;
mod trial;

pub use addresses::{Addresses, PathPair, addresses, relay_address};
pub use app::{AppSpec, EXTERNAL};
pub use arrivals::{Arrivals, Transfer};
pub use bounds::check_bounds;
pub use legend::{
    CAUSES, DIRECTIONS, FlowEntry, Legend, OTHER, StageEntry, cause_name, direction_name, kind_name,
    outcome_name,
};
pub use parameter::{Kind, Parameter, Setting};
pub use protocols::{DatagramProtocol, Protocols, StreamProtocol};
pub use relay::{RelaySide, RelaySpec};
pub use tcp::{FlowTcp, TcpSpec};
pub use trial::{Action, Entry, FlowSpec, Keep, MediaWay, Role, TrialPlan};
