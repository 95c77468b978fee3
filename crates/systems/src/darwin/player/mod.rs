//! The player's end.

use streamgauge_base::{Event, Instant};

use super::settings::PlayerSettings;
use crate::app::{App, Input, Io};

/// Plays one asset.
pub struct DarwinPlayer {}

impl DarwinPlayer {
    /// Plays what the server has.
    pub fn new(_settings: PlayerSettings, _flow: &str, _seed: u64) -> Self {
        DarwinPlayer {}
    }
}

impl App for DarwinPlayer {
    fn handle(&mut self, _: Instant, _: Input<'_>, _: &mut dyn Io) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
