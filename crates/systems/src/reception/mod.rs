//! What a receiver of RTP does whatever it plays (RFC 3550): which packets came, what it reports of them, and when.

mod packets;
mod reports;
mod seen;
mod source;

pub use packets::Late;
pub use reports::Reports;
pub use source::{Announced, Media, Place, Source, receiver_report};
