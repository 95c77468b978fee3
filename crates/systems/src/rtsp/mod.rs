//! RTSP (RFC 2326) without what any one product adds to it.

mod backlog;
mod client;
mod server;
mod turn_away;

pub use backlog::Backlog;
pub use client::{Client, Step};
pub use server::{Answer, choose, decoded, header, refuse_options, status, target, with};
pub use turn_away::TurnAway;
