//! The room for hosted libraries: real protocol stacks that take the time as an argument, run in virtual time and on sockets.
//!
//! A hosted library is unmodified. This room gives it a clock that begins at the same reading in every process ([`Clock`]), chance by a seed (`Chance`), and
//! datagrams with zeros that cost no memory ([`datagram`]). Tests end at once when hosted code reads the clock or
//! the chance of the system ([`guard`]).
//!
//! Each library is a feature of its own. Feature `webrtc` is str0m.

#![forbid(unsafe_code)]

#[cfg(feature = "webrtc")]
mod chance;
mod clock;
pub mod datagram;
pub mod guard;
#[cfg(feature = "webrtc")]
pub mod webrtc;

#[cfg(feature = "webrtc")]
pub use chance::Chance;
pub use clock::Clock;
