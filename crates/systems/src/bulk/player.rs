//! The end that reads.

use streamgauge_base::{Event, Instant};

use super::DATA;
use crate::app::{App, CloseReason, Input, Io};
use crate::outbox::{MEDIA_END, Outbox};

/// Reads whatever arrives, at once. Stopped, it resets the connection, as the kernel does for a reader that is gone.
#[derive(Default)]
pub struct BulkPlayer {
    received: u64,
    ended: bool,
    events: Outbox,
}

impl BulkPlayer {
    fn end(&mut self, now: Instant, why: &'static str) {
        if !std::mem::replace(&mut self.ended, true) {
            self.events.say(now, MEDIA_END, self.received as f64, "B", why);
        }
    }
}

impl App for BulkPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Readable(DATA) => {
                while let Some(chunk) = io.read(DATA, usize::MAX) {
                    self.received += chunk.len() as u64;
                }
            }
            Input::Closed(DATA, why) => {
                let reason = match why {
                    CloseReason::Finished => "the server finished",
                    CloseReason::Reset | CloseReason::TimedOut => "the connection failed",
                };
                self.end(now, reason);
                io.close(DATA);
            }
            Input::Refused(DATA, _) => self.end(now, "the connection failed"),
            Input::Stop => {
                self.end(now, "stopped");
                io.abort(DATA);
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
