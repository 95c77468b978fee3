//! The server's end of one RTSP connection.

use std::sync::Arc;

use streamgauge_base::{Event, Instant};

use super::settings::ServerSettings;
use crate::app::{App, Input, Io};
use crate::media::Asset;

/// Serves one client.
pub struct DarwinServer {}

impl DarwinServer {
    /// Serves `asset`, whatever the URL's path.
    pub fn new(_asset: Arc<Asset>, _settings: ServerSettings, _flow: &str, _seed: u64) -> Self {
        DarwinServer {}
    }
}

impl App for DarwinServer {
    fn handle(&mut self, _: Instant, _: Input<'_>, _: &mut dyn Io) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
