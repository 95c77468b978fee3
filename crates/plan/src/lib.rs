//! The plan of a trial, which sim, the emulator, the record and our machines on real sockets share.
//!
//! A scenario is lowered to SI integers, with every default filled in and every random start drawn. The plan is
//! independent of the streaming systems: a flow's application is a name and its settings ([`AppSpec`]), which that
//! system reads.

#![forbid(unsafe_code)]

mod addresses;
mod app;
mod arrivals;
mod bounds;
mod legend;
mod limits;
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
pub use limits::TrialLimits;
pub use parameter::{Kind, Parameter, Setting};
pub use protocols::{DatagramProtocol, Protocols, StreamProtocol};
pub use relay::{RelaySide, RelaySpec};
pub use tcp::{FlowTcp, TcpSpec};
pub use trial::{Action, Entry, FlowSpec, Keep, MediaWay, Role, TrialPlan, mark_event};
