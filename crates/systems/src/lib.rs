//! Streaming systems and traffic sources as state machines without clock or sockets, a module each, and the
//! plan of a trial that says which of them run.
//!
//! The same machine runs in virtual time (`streamgauge-sim`) and on real sockets (`streamgauge-engine node`).

mod app;
pub mod plan;

pub use app::{App, ChannelId, CloseReason, Input, Io};
