//! The way out on a connection that RTSP and interleaved packets share, for either end.

use std::collections::VecDeque;

use streamgauge_base::Chunk;

use crate::app::{ChannelId, Io};

/// While more than this waits, the server reads no further request and the player answers none.
const MOST_BYTES: usize = 64 * 1024;

/// Data that the connection has not accepted yet.
pub struct Backlog {
    channel: ChannelId,
    waiting: VecDeque<Chunk>,
    bytes: usize,
    taken: u64,
    open: bool,
}

impl Backlog {
    /// Makes the backlog of the stream `channel`, which is not open yet.
    pub fn new(channel: ChannelId) -> Self {
        Backlog { channel, waiting: VecDeque::new(), bytes: 0, taken: 0, open: false }
    }

    /// Notes that the connection is open.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Returns whether the connection is still open.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns whether nothing waits.
    pub fn is_clear(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether the backlog is so long that optional data is left out.
    pub fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Returns how many chunks wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how much the connection has accepted so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Sends `chunk` behind the waiting data.
    pub fn push(&mut self, chunk: Chunk, io: &mut dyn Io) {
        self.bytes += chunk.len();
        self.waiting.push_back(chunk);
        self.flush(io);
    }

    /// Gives the connection as much as it accepts.
    pub fn flush(&mut self, io: &mut dyn Io) {
        while self.open {
            let Some(mut chunk) = self.waiting.pop_front() else { return };
            let taken = io.write(self.channel, chunk.clone());
            self.bytes -= taken;
            self.taken += taken as u64;
            let rest = chunk.split_off(taken);
            if !rest.is_empty() {
                self.waiting.push_front(rest);
                return;
            }
        }
    }

    /// Ends the connection behind the data it has accepted.
    pub fn close(&mut self, io: &mut dyn Io) {
        if std::mem::take(&mut self.open) {
            io.close(self.channel);
        }
        self.forget();
    }

    /// Ends the connection at once, established or not, with its unsent data.
    pub fn abort(&mut self, io: &mut dyn Io) {
        io.abort(self.channel);
        self.forget();
    }

    /// Drops the connection, which is closed.
    pub fn forget(&mut self) {
        *self = Backlog::new(self.channel);
    }
}
