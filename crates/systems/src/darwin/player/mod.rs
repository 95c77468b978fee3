//! The player's end.

mod settings;

pub use settings::{PlayerKind, PlayerSettings, Transport};

use streamgauge_base::{Event, Instant};

use crate::app::{App, Input, Io};

/// Plays one asset.
pub struct DarwinPlayer {}

impl DarwinPlayer {
    /// Plays what `url` names.
    pub fn new(_settings: PlayerSettings, _url: &str, _flow: &str, _seed: u64) -> Self {
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
