//! The end that sends.

use streamgauge_base::{Chunk, Event, Instant};

use super::{DATA, OFFER};
use crate::app::{App, ChannelId, Input, Io};

/// Writes as much as the stream takes until its bytes are spent.
pub struct BulkServer {
    data: ChannelId,
    left: Option<u64>,
    open: bool,
    paused: bool,
}

impl BulkServer {
    /// Sends `bytes`, or without end.
    pub fn new(bytes: Option<u64>) -> Self {
        BulkServer { data: DATA, left: bytes, open: false, paused: false }
    }

    /// Begins likewise, on a channel that was accepted.
    pub(super) fn begin(&mut self, data: ChannelId, io: &mut dyn Io) {
        self.data = data;
        self.open = true;
        self.fill(io);
    }

    fn fill(&mut self, io: &mut dyn Io) {
        while self.open && !self.paused {
            let offer = self.left.unwrap_or(OFFER).min(OFFER);
            let taken = if offer == 0 { 0 } else { io.write(self.data, Chunk::filler(offer as u32)) as u64 };
            if let Some(left) = &mut self.left {
                *left -= taken;
                if *left == 0 {
                    io.close(self.data);
                    self.open = false;
                }
            }
            if taken < offer {
                return;
            }
        }
    }
}

impl App for BulkServer {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Opened(channel) if channel == self.data => self.begin(channel, io),
            Input::Writable(channel) if channel == self.data => self.fill(io),
            Input::Pause => self.paused = true,
            Input::Resume => {
                self.paused = false;
                self.fill(io);
            }
            // The player is stopped, and this end learns of it by the reset, as iperf3's does.
            Input::Closed(..) => self.open = false,
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
