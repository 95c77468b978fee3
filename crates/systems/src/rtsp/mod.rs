//! RTSP (RFC 2326) without the additions of any one product.

mod backlog;
mod client;
mod dispatch;
mod media_transport;
mod ports;
mod server;
mod turn_away;

pub use backlog::Backlog;
pub use client::{Client, Step};
pub use dispatch::{Described, RangePlayed, RangeWanted, RtspServer, RtspSession, TrackWanted, answer};
pub use media_transport::MediaTransport;
pub use ports::TrackPorts;
pub use server::{Answer, decoded, header, status, unreadable, written};
pub use turn_away::no_room;
