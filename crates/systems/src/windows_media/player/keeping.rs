//! What is kept of the media, for who saves it.

use std::collections::BTreeMap;

use streamgauge_wire::asf::{DataPayload, Header};

/// Media objects of which it is remembered what they are.
const MOST_KEPT: usize = 4_096;

/// What is kept of the media, and what is known of media objects by their tracks and times.
#[derive(Default)]
pub struct Keeping {
    pub is_wanted: bool,
    pub header: Header,
    known: BTreeMap<(usize, u32), Known>,
}

/// What a media object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// Its stream's number.
    pub stream: u8,
    pub is_key: bool,
}

impl Keeping {
    /// Nothing has come.
    pub fn of(is_wanted: bool) -> Self {
        Keeping { is_wanted, ..Keeping::default() }
    }

    /// A part of a media object of that time came.
    pub fn came(&mut self, track: usize, timestamp_ms: u32, payload: &DataPayload<'_>) {
        if self.is_wanted {
            let known = Known { stream: payload.stream, is_key: payload.is_key };
            self.known.insert((track, timestamp_ms), known);
            while self.known.len() > MOST_KEPT {
                self.known.pop_first();
            }
        }
    }

    /// What is known of a media object, which nobody asks for again.
    pub fn take(&mut self, track: usize, timestamp_ms: u32) -> Option<Known> {
        self.known.remove(&(track, timestamp_ms))
    }
}
