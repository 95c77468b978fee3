//! The virtual clock: composes machines, transports and a path into a trial that any machine repeats bit by
//! bit.
//!
//! [`run`] is the loop; [`simulate`] runs a plan and writes its record, [`simulate_many`] does so on several
//! threads. Nothing is shared between trials.
//!
//! A packet costs few events. A path shows one time, that of its head; timers alone are in a heap, one entry an
//! endpoint, and an entry that turns out to be early is put back rather than removed when a timer moves.

#![deny(unsafe_code)]

mod budget;
mod capture;
mod channels;
mod error;
mod files;
mod frame;
mod host;
mod lingering;
mod many;
mod network;
#[cfg(unix)]
mod paced;
mod peers;
mod pending;
mod ports;
mod prefetch;
mod reassembly;
mod recorder;
mod relays;
mod replay;
mod run;
mod sampler;
mod settings;
mod store;
mod summary;
mod table;
mod timers;

pub use error::SimError;
pub use files::{InMemory, simulate, simulate_captured, simulate_in_memory, simulate_with};
pub use many::simulate_many;
#[cfg(unix)]
pub use paced::{inherited, simulate_live};
pub use reassembly::HostCounts;
pub use recorder::{Recorder, Steer};
pub use replay::{PathPlan, Replay, replay};
pub use run::{run, run_machines, run_made, run_with};
pub use summary::{EndedBy, FlowSummary, Hosts, RelaySummary, Summary, TcpSummary};

/// Version of the model; it is raised whenever the same plan and seed would give another record.
pub const MODEL_VERSION: u32 = 21;
