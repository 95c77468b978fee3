//! The record of a trial: both modes write it and every metric reads it.
//!
//! [`PacketWriter`] turns a path's fates and the [`Classifier`]'s findings into `packets.parquet`, [`write_events`] the
//! machines' events into `events.parquet`. [`verify`] reads a record back and recomputes its digests. [`write_metrics`]
//! keeps the measurements beside them; a measurement that is slow in numpy is made here ([`queue_depth`]).
//! [`PcapngWriter`] keeps the packets themselves.

#![forbid(unsafe_code)]

mod balance;
mod canonical;
mod classify;
mod columns;
mod depth;
mod error;
mod events;
mod file;
mod frame;
mod in_memory;
mod metrics;
mod packets;
mod pages;
mod pcapng;
mod rows;
mod sender;
mod tables;
mod verify;

pub use balance::{Balance, BalanceRow, Count, Ledger};
pub use canonical::canonical_json;
pub use classify::{Classifier, Message};
pub use columns::PACKETS_SCHEMA;
pub use depth::{Depth, queue_depth};
pub use error::RecordError;
pub use events::{EVENTS_SCHEMA, write_events};
pub use file::{EVENTS_FILE, PACKETS_FILE, TRIAL_FILE};
pub use frame::{Frame, flow_hash, parse_frame};
pub use in_memory::{PacketsInMemory, events_in_memory};
pub use metrics::{
    METRICS_FILE, METRICS_SCHEMA, MetricRow, Metrics, about_metrics, read_metrics, write_metrics,
};
pub use packets::{Compression, PacketWriter, PacketsSummary};
pub use pcapng::{InterfaceId, PacketDirection, PcapngWriter};
pub use rows::PacketRow;
pub use sender::PacketSender;
pub use tables::{EventSeries, HIDDEN, NEVER, PacketTable, read_event_series, read_packet_table};
pub use verify::{
    FileFooter, TRIAL_SCHEMA, Verified, VerifiedTrial, footer, read_packets, trial_digest, verify,
    verify_events, verify_events_in, verify_packets, verify_packets_in,
};
