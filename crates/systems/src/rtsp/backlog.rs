//! The way out on a connection that RTSP and interleaved packets share, for either end.

use std::collections::VecDeque;

use streamgauge_base::Chunk;

use crate::app::{ChannelId, Io};

/// While more than this waits, the server reads no further request and the player answers none.
const MOST_BYTES: usize = 64 * 1024;

/// What the connection has not taken yet.
pub struct Backlog {
    channel: ChannelId,
    waiting: VecDeque<Chunk>,
    bytes: usize,
    taken: u64,
    open: bool,
}

impl Backlog {
    /// For the stream `channel`, which is not there yet.
    pub fn new(channel: ChannelId) -> Self {
        Backlog { channel, waiting: VecDeque::new(), bytes: 0, taken: 0, open: false }
    }

    /// The connection is there.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// The connection is there still.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Nothing waits.
    pub fn is_clear(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Too much waits for anything to be added that can be left.
    pub fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// How many chunks wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How much the connection has taken so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Sends `chunk` behind what waits.
    pub fn push(&mut self, chunk: Chunk, io: &mut dyn Io) {
        self.bytes += chunk.len();
        self.waiting.push_back(chunk);
        self.flush(io);
    }

    /// Gives the connection what it takes.
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

    /// Ends the connection behind what it has taken.
    pub fn close(&mut self, io: &mut dyn Io) {
        if std::mem::take(&mut self.open) {
            io.close(self.channel);
        }
        self.forget();
    }

    /// Ends the connection at once, be it there yet or not, with what it has not sent yet.
    pub fn abort(&mut self, io: &mut dyn Io) {
        io.abort(self.channel);
        self.forget();
    }

    /// The connection is gone.
    pub fn forget(&mut self) {
        *self = Backlog::new(self.channel);
    }
}
