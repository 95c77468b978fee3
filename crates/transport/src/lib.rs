//! Transports without clock or sockets: TCP as in Linux, and the statistics of an RTP receiver.
//!
//! Time is an argument, segments are values in and out; a driver owns the wire and the timers.

#![forbid(unsafe_code)]

pub mod media_rate;
pub mod rtp;
pub mod tcp;
