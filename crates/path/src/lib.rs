//! The link model: what a packet meets between server and player. The same code runs in virtual time (sim)
//! and under the emulator (emu).
//!
//! No clock and no IO: time comes in as an argument, and departure times are logical, so that a driver that
//! is late never adds to a packet's delay.
//!
//! A [`Path`] is one direction, built from [`spec`]: a [`Chain`] of elements that implement [`Stage`]. A new
//! element is a file with its type, an arm in `path.rs`, and a variant in [`spec::StageKind`]; a new queue
//! discipline implements [`Queue`] and gets a [`Bottleneck`] around it for nothing.

mod bottleneck;
mod chain;
mod delay;
mod droptail;
mod error;
mod loss;
mod path;
mod preflight;
mod queue;
mod rate;
mod schedule;
pub mod spec;
mod stage;

pub use bottleneck::Bottleneck;
pub use chain::Chain;
pub use delay::Delay;
pub use droptail::Droptail;
pub use error::{Problem, SpecError};
pub use loss::Loss;
pub use path::{AnyStage, Path};
pub use preflight::without_loss;
pub use queue::{LinkState, Queue, QueuedPacket};
pub use schedule::Schedule;
pub use stage::{Change, Departure, Stage};
