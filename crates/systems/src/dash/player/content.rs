//! The content that the segments of a presentation turned out to have.

use std::collections::BTreeSet;

use streamgauge_base::Duration;

use crate::media::segment::{Counted, Pictures};
use crate::standalone::Shows;

/// The content of the segments of the track that counts.
#[derive(Default)]
pub struct Content {
    /// The manifest has no pictures: its segments are sound in any case.
    pub is_sound: bool,
    has_pictures: bool,
    has_sound: bool,
    uncounted: Option<String>,
    left_out: BTreeSet<String>,
}

impl Content {
    /// Takes the content of segment `ordinal`: the number of pictures, and the time of each if known.
    pub fn take(&mut self, ordinal: u64, counted: Counted) -> (u32, Vec<Duration>) {
        self.left_out.extend(counted.left_out);
        if self.is_sound {
            return (0, Vec::new());
        }
        match counted.pictures {
            Pictures::Counted { count, times } => {
                self.has_pictures |= count > 0;
                self.has_sound |= count == 0 && counted.is_media;
                (count, times)
            }
            Pictures::Unknown(why) => {
                self.uncounted.get_or_insert_with(|| format!("segment {ordinal}: {why}"));
                (0, Vec::new())
            }
        }
    }

    /// Pictures that count as shown.
    pub fn shows(&self) -> Shows {
        match &self.uncounted {
            Some(why) => Shows::Uncounted(why.clone()),
            None if !self.has_pictures && (self.is_sound || self.has_sound) => Shows::SoundAlone,
            None => Shows::Pictures,
        }
    }

    /// Tracks that are not played, in words.
    pub fn left_out(&self) -> impl Iterator<Item = &String> {
        self.left_out.iter()
    }
}
