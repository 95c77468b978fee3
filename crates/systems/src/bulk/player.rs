//! The end that reads.

use streamgauge_base::{Event, Instant};

use super::DATA;
use crate::app::{App, CloseReason, Input, Io};
use crate::outbox::{MEDIA_END, Outbox};

/// Reads whatever arrives, at once.
#[derive(Default)]
pub struct BulkPlayer {
    received: u64,
    events: Outbox,
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
                    CloseReason::Failed => "the connection failed",
                };
                self.events.say(now, MEDIA_END, self.received as f64, "B", reason);
                io.close(DATA);
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
