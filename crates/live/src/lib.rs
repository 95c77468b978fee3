//! A trial while it runs: aggregates ten times a second, and changes of its path, over one Unix socket.
//!
//! The driver of a path (the emulator, or sim at a pace) counts into [`Aggregates`], which never allocate,
//! and hands them over by [`Watched::offer`], which never waits. Threads of this crate write lines, read
//! requests, and refuse invalid ones. `crates/engine/PROTOCOL.md` states the lines.

#![forbid(unsafe_code)]

#[cfg(unix)]
mod asked;
mod counts;
mod histogram;
#[cfg(unix)]
mod lines;
#[cfg(unix)]
mod socket;

#[cfg(unix)]
pub use asked::{Applied, Asked, Steering};
pub use counts::{Aggregates, Way};
pub use histogram::Histogram;
#[cfg(unix)]
pub use lines::Moment;
#[cfg(unix)]
pub use socket::{Options, Watched};

/// Aggregates are offered so often.
pub const EVERY_NS: u64 = 100_000_000;
