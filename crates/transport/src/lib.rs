//! Transports without clock or sockets: TCP as Linux speaks it, and the statistics of an RTP receiver.
//!
//! Time comes in as an argument, segments go in and out as values; a driver owns the wire and the timers.

#![forbid(unsafe_code)]

pub mod rtp;
pub mod tcp;
