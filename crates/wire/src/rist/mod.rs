//! Reliable Internet Stream Transport (RIST), simple profile (VSF TR-06-1): RTP with repeated packets, requests for them and the
//! echo that measures the round trip. Bytes to packets and back, no I/O.
//!
//! Compounds of RTCP are read by [`rtcp`](crate::rtcp), which has these packets as variants. The main profile's header of GRE
//! (VSF TR-06-2) is read without keys.

mod data;
mod gre;

pub use crate::body::Body;
pub use crate::rtcp::rist::{Echo, MOST_RANGES, NAME, NackRange, RistApp};
pub use data::{CLOCK_RATE, Data, DataFault, HEADER_BYTES, PAYLOAD_TYPE, is_repeated, source_of};
pub use gre::{Gre, GreFault, GrePorts, GreProtocol};

/// Returns the count whose lowest 16 bits are this sequence number, nearest to `near`; 0 or more.
pub fn count_of(sequence: u16, near: u64) -> u64 {
    let ahead = i64::from(sequence.wrapping_sub(near as u16).cast_signed());
    near.checked_add_signed(ahead).unwrap_or(sequence.into())
}

#[cfg(test)]
mod tests;
