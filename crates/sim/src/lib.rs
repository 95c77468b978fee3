//! The virtual clock: composes machines, transports and a path into a trial that any machine repeats bit by
//! bit.
//!
//! [`run`] is the loop; [`simulate`] runs a plan and writes its record, [`simulate_many`] does so on several
//! threads. Nothing is shared between trials.
//!
//! A packet costs few events. A path shows one time, that of its head; timers alone are in a heap, one entry an
//! endpoint, and an entry that turns out to be early is put back rather than removed when a timer moves.

mod error;
mod files;
mod host;
mod many;
mod network;
mod prefetch;
mod reassembly;
mod recorder;
mod replay;
mod run;
mod sampler;
mod store;
mod summary;
mod timers;

pub use error::SimError;
pub use files::{legend, simulate};
pub use many::simulate_many;
pub use reassembly::HostCounts;
pub use recorder::Recorder;
pub use replay::{PathPlan, Replay, replay};
pub use run::run;
pub use summary::{EndedBy, FlowSummary, Hosts, Summary, TcpSummary};

/// Goes up whenever the same plan and seed would give another record.
pub const MODEL_VERSION: u32 = 8;
