//! The record of a trial: what both modes write and every metric reads.
//!
//! [`PacketWriter`] turns a path's fates and the [`Classifier`]'s findings into `packets.parquet`,
//! [`write_events`] what the machines say into `events.parquet`.

mod balance;
mod classify;
mod columns;
mod error;
mod events;
mod file;
mod frame;
mod legend;
mod packets;
mod sender;

pub use balance::{Balance, BalanceRow, Count, Ledger};
pub use classify::Classifier;
pub use columns::PACKETS_SCHEMA;
pub use error::RecordError;
pub use events::{EVENTS_SCHEMA, write_events};
pub use file::{EVENTS_FILE, PACKETS_FILE, TRIAL_FILE};
pub use frame::{Frame, flow_hash, parse_frame};
pub use legend::{FlowEntry, Legend, OTHER, StageEntry, cause_name, direction_name, kind_name, outcome_name};
pub use packets::{PacketWriter, PacketsSummary};
pub use sender::PacketSender;
