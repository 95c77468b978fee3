//! Which packets a player gets.

use super::packet::DataPacket;
use crate::mms::ThinningLevel;

/// How much of each stream is sent; at first nothing of any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamSelection {
    levels: [ThinningLevel; 128],
}

impl Default for StreamSelection {
    fn default() -> Self {
        StreamSelection { levels: [ThinningLevel::Nothing; 128] }
    }
}

impl StreamSelection {
    /// Returns all of these streams.
    pub fn of(streams: &[u8]) -> Self {
        let mut selection = StreamSelection::default();
        streams.iter().for_each(|&stream| selection.set(stream, ThinningLevel::All));
        selection
    }

    /// Sets the level of `stream` from now on; a number above 127 is that of no stream.
    pub fn set(&mut self, stream: u8, level: ThinningLevel) {
        if let Some(place) = self.levels.get_mut(usize::from(stream)) {
            *place = level;
        }
    }

    /// Returns how much of `stream` is sent.
    pub fn level(&self, stream: u8) -> ThinningLevel {
        self.levels.get(usize::from(stream)).copied().unwrap_or(ThinningLevel::Nothing)
    }

    /// Returns whether a packet is sent: at least one of its payloads is selected. Packets of
    /// [`super::multiplex`] have all of theirs of one stream, and of key frames alone or of others alone.
    pub fn takes(&self, packet: &DataPacket<'_>) -> bool {
        packet.payloads.iter().any(|payload| match self.level(payload.stream) {
            ThinningLevel::All => true,
            ThinningLevel::KeyFrames => payload.is_key,
            ThinningLevel::Nothing => false,
        })
    }
}
