//! Streaming systems and traffic sources as state machines without clock or sockets, a folder each.
//!
//! The same machine runs in virtual time (`streamgauge-sim`) and on real sockets (`streamgauge-engine node`):
//! [`machines`] turns a flow of the plan into its server, its player and the channels between them. A
//! system's description is beside its machine ([`System`]); the registry has a line for each.
//!
//! Parts that several systems share have a module of their own: `rtsp`, `reception` of RTP, `playout`,
//! [`abr`], [`media`]. A system that has a server or a player outside trials declares them too:
//! [`standalone`].

#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as streamgauge_systems;

pub mod abr;
mod app;
pub mod bulk;
pub mod call;
mod carrier;
pub mod cbr;
pub mod ccn;
mod contribution;
pub mod darwin;
pub mod dash;
mod describe;
pub mod http;
pub mod http_cache;
mod machines;
pub mod media;
mod outbox;
pub mod ping;
mod playout;
mod rates;
pub mod realvideo;
mod reception;
mod registry;
pub mod rist;
pub mod rtp;
mod rtsp;
pub mod srt;
pub mod standalone;
#[cfg(test)]
mod testing;
pub mod webrtc;
pub mod windows_media;

pub use app::{App, ChannelError, ChannelId, CloseReason, Envelope, Input, Io, Peer};
pub use carrier::{Carrier, RTP_PORTS};
pub use describe::{
    Content, Description, EventKind, Facts, Hosted, MediaOver, Pace, Presets, Refusal, Relay, System,
};
pub use machines::{Channel, Machines, RelayMachine};
pub use outbox::MEDIA_END;
pub use registry::{
    MachineError, RelayDescription, begins_with_control, descriptions, facts, machines, media_tcp,
    player_called, player_of, protocols, relay_descriptions, relay_machine, relay_protocols, server_of,
    standalone_players, standalone_proxies, standalone_servers,
};
