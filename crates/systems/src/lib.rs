//! Streaming systems and traffic sources as state machines without clock or sockets, a folder each, and the
//! plan of a trial that says which of them run.
//!
//! The same machine runs in virtual time (`streamgauge-sim`) and on real sockets (`streamgauge-engine node`):
//! [`machines`] turns a flow of the plan into its server, its player and the channels between them.

mod app;
pub mod bulk;
pub mod cbr;
pub mod darwin;
mod machines;
pub mod media;
mod outbox;
pub mod ping;
pub mod plan;
mod reports;
pub mod rtp;
mod seen;
#[cfg(test)]
mod testing;

pub use app::{App, ChannelId, CloseReason, Input, Io};
pub use machines::{Carrier, Channel, MachineError, Machines, machines};
pub use outbox::MEDIA_END;
