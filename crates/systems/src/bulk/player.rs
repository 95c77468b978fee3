//! The end that reads.

use streamgauge_base::{Event, Instant};

use super::DATA;
use crate::app::{App, ChannelId, CloseReason, Input, Io};
use crate::outbox::{MEDIA_END, Outbox};

/// Reads all arrivals at once. Stopped, it resets the connection, as the kernel does for a reader that is
/// gone.
pub struct BulkPlayer {
    data: ChannelId,
    received: u64,
    ended: bool,
    events: Outbox,
}

impl Default for BulkPlayer {
    fn default() -> Self {
        BulkPlayer::on(DATA)
    }
}

impl BulkPlayer {
    /// Reads this channel.
    pub(super) fn on(data: ChannelId) -> Self {
        BulkPlayer { data, received: 0, ended: false, events: Outbox::default() }
    }

    fn end(&mut self, now: Instant, why: &'static str) {
        if !std::mem::replace(&mut self.ended, true) {
            self.events.say(now, MEDIA_END, self.received as f64, "B", why);
        }
    }
}

impl App for BulkPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Readable(channel) if channel == self.data => {
                while let Some(chunk) = io.read(channel, usize::MAX) {
                    self.received += chunk.len() as u64;
                }
            }
            Input::Closed(channel, why) if channel == self.data => {
                let reason = match why {
                    CloseReason::Finished => "the server finished",
                    CloseReason::Reset | CloseReason::TimedOut => "the connection failed",
                };
                self.end(now, reason);
                io.close(channel);
            }
            Input::Refused(channel, _) if channel == self.data => self.end(now, "the connection failed"),
            Input::Stop => {
                self.end(now, "stopped");
                io.abort(self.data);
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
