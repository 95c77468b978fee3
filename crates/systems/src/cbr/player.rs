//! The end that receives.

use streamgauge_base::{Event, Instant};

use crate::app::{App, Input, Io};

/// A sink: the record has the arrivals.
pub struct CbrPlayer;

impl App for CbrPlayer {
    fn handle(&mut self, _: Instant, _: Input<'_>, _: &mut dyn Io) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
