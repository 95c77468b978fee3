//! The link model: what a packet meets between server and player. The same code runs in virtual time (sim)
//! and under the emulator (emu).
//!
//! No clock and no IO: time comes in as an argument, and departure times are logical, so that a driver that
//! is late never adds to a packet's delay.

pub mod spec;
mod stage;

pub use stage::{Change, Departure, Stage};
