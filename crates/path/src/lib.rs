//! The link model: the treatment of a packet between server and player. The same code runs in virtual time (sim) and
//! under the emulator (emu).
//!
//! No clock and no IO: time is an argument, and departure times are logical, so that a driver that is late never adds
//! to a packet's delay.
//!
//! A [`Path`] is one direction, built from [`spec`]: a [`Chain`] of elements that implement [`Stage`]. A driver
//! enqueues arrivals, and dequeues whenever the path asks for it:
//!
//! ```
//! use streamgauge_base::{BitRate, Direction, Duration, FlowId, Instant, Item, PacketId, StageId};
//! use streamgauge_path::{Path, spec::*};
//!
//! let bottleneck = StageKind::Bottleneck(BottleneckSpec {
//!     rate: RateSpec::Constant(BitRate::from_bps(1_000_000)),
//!     shaper: ShaperSpec::Serial,
//!     queue: QueueSpec::Droptail(Limit::Bytes(10_000)),
//!     layer: Layer::Ethernet,
//! });
//! let delay = StageKind::Delay(DelaySpec::constant(Duration::from_millis(10)));
//! let stages = [
//!     StageSpec { name: "bottleneck".into(), kind: bottleneck, changes: vec![] },
//!     StageSpec { name: "delay".into(), kind: delay, changes: vec![] },
//! ];
//! let mut path = Path::new(&stages, StageId(0), 1, Direction::Down)?;
//! let mut fates = (); // a record goes here
//!
//! let packet = Item::new(PacketId(0), FlowId(0), 1500);
//! path.enqueue(Instant::ZERO, packet, &mut fates);
//! while let Some(now) = path.next_event() {
//!     // Wait until `now`, or be late: the departure is the same.
//!     while let Some(departure) = path.dequeue(now, &mut fates) {
//!         assert_eq!(departure.at, Instant::from_nanos(12_112_000 + 10_000_000));
//!     }
//! }
//! # Ok::<(), streamgauge_path::SpecError>(())
//! ```
//!
//! # Adding an element
//!
//! A queue discipline implements [`Queue`] in a file of its own and gets a [`Bottleneck`] around it, with its rate, its
//! timing and its fates, for nothing. A stage in which nothing waits is an [`Effect`], which [`Passing`] makes a stage
//! of. Any other element implements [`Stage`]. Either way it is then a variant of [`AnyStage`] and of
//! [`spec::QueueSpec`] or [`spec::StageKind`] (the compiler points at their `match`es), and has a test file: against a
//! reference where there is one, and by its properties. `tests/shapes.rs` has the smallest queue that drops another
//! flow's packet, the smallest that drops and marks when the link becomes free, and the smallest stage that sends an
//! item twice.

#![forbid(unsafe_code)]

mod block;
mod bottleneck;
mod chain;
mod chance;
mod changes;
mod codel;
mod corrupt;
mod delay;
mod drd;
mod droptail;
mod dualpi2;
mod duplicate;
mod error;
mod fifo;
mod fq_codel;
mod heap;
mod loss;
mod mtu;
mod nistnet;
mod passing;
mod path;
mod pie;
mod preflight;
mod queue;
mod rate;
mod red;
mod reorder;
mod room;
mod schedule;
pub mod spec;
mod stage;
mod ticks;
pub mod trace;
mod transmit;

pub use block::Block;
pub use bottleneck::Bottleneck;
pub use chain::Chain;
pub use codel::Codel;
pub use corrupt::Corrupt;
pub use delay::{Delay, VaryingDelay};
pub use drd::Drd;
pub use droptail::Droptail;
pub use dualpi2::Dualpi2;
pub use duplicate::Duplicate;
pub use error::{SpecError, StageProblem};
pub use fq_codel::FqCodel;
pub use loss::Loss;
pub use mtu::Mtu;
pub use nistnet::Nistnet;
pub use passing::{Effect, Passing};
pub use path::{AnyStage, Path};
pub use pie::Pie;
pub use preflight::{at_rest, measured_bottleneck};
pub use queue::{Queue, QueuedPacket, TransmitState};
pub use red::Red;
pub use reorder::Reorder;
pub use room::most_packets;
pub use schedule::Schedule;
pub use spec::Change;
pub use stage::{Departure, Stage};
