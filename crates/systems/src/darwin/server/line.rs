//! What a session sends on: datagrams, the RTSP connection, events.

use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::interleave;

use crate::app::Io;
use crate::darwin::backlog::Backlog;
use crate::outbox::Outbox;

/// A session's way out.
pub struct Line<'a> {
    pub io: &'a mut dyn Io,
    pub backlog: &'a mut Backlog,
    pub events: &'a mut Outbox,
}

impl Line<'_> {
    /// Sends a packet on a channel of the connection (RFC 2326 section 10.12).
    pub fn interleaved(&mut self, channel: u8, packet: &Chunk) {
        self.backlog.push(interleave(channel, packet), self.io);
    }
}
