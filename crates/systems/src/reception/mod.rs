//! A receiver of RTP for any media (RFC 3550): received packets, reports about them, and their times.

mod packets;
mod reports;
mod seen;
mod source;

pub use packets::Late;
pub use reports::Reports;
pub use seen::Seen;
pub use source::{Announced, Media, Place, Source, receiver_report};
