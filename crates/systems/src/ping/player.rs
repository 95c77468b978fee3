//! The end that is asked.

use streamgauge_base::{Event, Instant};

use crate::app::{App, Input, Io};

/// Does nothing: the host answers echo requests.
pub struct PingPlayer;

impl App for PingPlayer {
    fn handle(&mut self, _: Instant, _: Input<'_>, _: &mut dyn Io) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
