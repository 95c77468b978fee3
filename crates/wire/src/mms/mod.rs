//! The Microsoft Media Server (MMS) protocol ([MS-MMSP]): the messages of Windows Media Services and its
//! players over TCP, the packets of media beside it over UDP or on the same connection, and the requests for
//! lost ones. Bytes to messages and back, no I/O.
//!
//! Each message is named as in the specification's section 2.2.4, without `LinkViewerToMac` (from the player)
//! and `LinkMacToViewer` (from the server). All numbers are little-endian. A field that has to have one value
//! is written so and not read: players and servers leave arbitrary bytes in many ([MS-MMSP] appendix A). Data
//! behind the known fields are left out.
//!
//! [`Reader`] takes messages and media out of a connection's bytes; the media's header is that of [MS-WMSP] as well, and
//! of [`wmsp`](crate::wmsp).

mod connect;
mod data;
mod fault;
mod fields;
mod file;
mod log;
mod message;
mod play;
mod reader;
mod resend;

pub use connect::{Connect, ConnectFunnel, ConnectedEx, FunnelReport, PacketPairMode, TCP_PACKET_PAIR_BYTES};
pub use data::{DATA_HEADER_BYTES, DataPacket, data_flags, sequence_near};
pub use fault::{Fault, Problem};
pub use file::{FileReport, OpenFile, ReadBlock, Redirect, SecurityToken, attributes};
pub use log::ClientLog;
pub use message::{MmsMessage, TCP_HEADER_BYTES, TcpHeader, mids, parse, write};
pub use play::{EndOfStream, Position, StartPlaying, Stop, StreamChange, StreamSwitch, ThinningLevel};
pub use reader::{MOST_MESSAGE_BYTES, MmsItem, Reader};
pub use resend::{MOST_RESENDS, ResendRequest};

/// The port of the server, over TCP and UDP ([MS-MMSP] section 4.5.1).
pub const PORT: u16 = 1755;

#[cfg(test)]
mod tests;
