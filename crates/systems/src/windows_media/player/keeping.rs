//! The media kept for saving.

use std::collections::BTreeMap;

use streamgauge_wire::asf::{DataPayload, Header};

/// Media objects with remembered properties.
const MOST_KEPT: usize = 4_096;

/// The kept media, and the properties of media objects by their tracks and times.
#[derive(Default)]
pub struct Keeping {
    pub is_wanted: bool,
    pub header: Header,
    known: BTreeMap<(usize, u32), Known>,
}

/// The properties of a media object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// Its stream's number.
    pub stream: u8,
    pub is_key: bool,
}

impl Keeping {
    /// Makes the state before any arrival.
    pub fn of(is_wanted: bool) -> Self {
        Keeping { is_wanted, ..Keeping::default() }
    }

    /// Adds a part of a media object of that time.
    pub fn came(&mut self, track: usize, timestamp_ms: u32, payload: &DataPayload<'_>) {
        if self.is_wanted {
            let known = Known { stream: payload.stream, is_key: payload.is_key };
            self.known.insert((track, timestamp_ms), known);
            while self.known.len() > MOST_KEPT {
                self.known.pop_first();
            }
        }
    }

    /// Returns and drops the properties of a media object.
    pub fn take(&mut self, track: usize, timestamp_ms: u32) -> Option<Known> {
        self.known.remove(&(track, timestamp_ms))
    }
}
