//! Clients of a full server.

use streamgauge_base::{Chunk, Event, Instant};

use crate::app::{App, ChannelId, Input, Io};

/// Bytes of a request that are read at a time.
const READ_BYTES: usize = 4096;

/// Answers the first request of a connection, and closes. `answer` gets all input until it returns an answer.
pub struct TurnAway<F> {
    channel: ChannelId,
    answer: F,
    answered: bool,
}

impl<F: FnMut(Chunk) -> Option<Vec<u8>>> TurnAway<F> {
    /// Returns the machine for this connection.
    pub fn on(channel: ChannelId, answer: F) -> Self {
        TurnAway { channel, answer, answered: false }
    }
}

impl<F: FnMut(Chunk) -> Option<Vec<u8>>> App for TurnAway<F> {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        if input != Input::Readable(self.channel) {
            return;
        }
        while let Some(chunk) = io.read(self.channel, READ_BYTES) {
            if self.answered {
                continue;
            }
            if let Some(answer) = (self.answer)(chunk) {
                self.answered = true;
                io.write(self.channel, Chunk::bytes(answer));
                io.close(self.channel);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
