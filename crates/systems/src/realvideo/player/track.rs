//! One stream that was set up: its channel, and its arrivals.

use std::sync::Arc;

use streamgauge_wire::rtsp::StreamRule;

use super::super::sdp::StreamDescription;
use super::holes::Holes;
use super::settings::PlayerSettings;
use crate::app::ChannelId;

/// A stream of the session.
pub struct Track {
    pub description: StreamDescription,
    /// Over UDP, once it has one.
    pub channel: Option<ChannelId>,
    /// On the connection.
    pub interleaved: Option<u8>,
    pub holes: Holes,
    /// Whether the server has announced that all of it is sent.
    pub ended: bool,
}

impl Track {
    pub fn new(description: StreamDescription, settings: Arc<PlayerSettings>) -> Self {
        Track { description, channel: None, interleaved: None, holes: Holes::new(settings), ended: false }
    }

    /// Returns its number, as RDT has it.
    pub fn number(&self) -> u16 {
        self.description.number as u16
    }

    /// Returns its rules of those numbers.
    pub fn rules<'a>(&self, numbers: &'a [u16]) -> impl Iterator<Item = StreamRule> + use<'a> {
        let stream = self.number();
        numbers.iter().map(move |&rule| StreamRule { stream, rule })
    }
}
