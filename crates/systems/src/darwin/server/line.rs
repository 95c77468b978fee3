//! A session's outputs: datagrams, the RTSP connection, events.

use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::interleave;

use crate::app::Io;
use crate::outbox::Outbox;
use crate::rtsp::Backlog;

/// Counts of packets sent to a client, over all its sessions.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sent {
    /// RTP packets, on any carrier.
    pub packets: u64,
    /// Their bytes, RTP headers included.
    pub bytes: u64,
    /// Those of them on the RTSP connection.
    pub interleaved: u64,
    /// RTCP datagrams on UDP.
    pub rtcp_datagrams: u64,
}

/// A session's way out.
pub struct Line<'a> {
    pub io: &'a mut dyn Io,
    pub backlog: &'a mut Backlog,
    pub events: &'a mut Outbox,
    pub sent: &'a mut Sent,
}

impl Line<'_> {
    /// Sends a packet on a channel of the connection (RFC 2326 section 10.12).
    pub fn interleaved(&mut self, channel: u8, packet: &Chunk) {
        self.backlog.push(interleave(channel, packet), self.io);
    }
}
