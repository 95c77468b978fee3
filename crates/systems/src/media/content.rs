//! Content as campaigns store it: named by its digest, loaded once, shared by all flows and trials that play it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

use super::numbers::Numbers;

/// The one form that is read.
pub const SCHEMA: &str = "streamgauge.content/1";

/// A plan's reference to content in place of its frames.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentRef {
    /// Names the content: equal content, equal digest.
    pub digest: String,
    /// Which of its encodings, counted from 0 over all tracks in their order.
    #[serde(default)]
    pub encoding: u32,
}

/// The streamed content: tracks of encodings of frames.
#[derive(Debug, Deserialize)]
pub struct Content {
    schema: String,
    /// Its name for people.
    pub name: String,
    #[serde(rename = "duration_ns")]
    /// How long it plays.
    pub duration: Duration,
    tracks: Vec<StoredTrack>,
}

#[derive(Debug, Deserialize)]
struct StoredTrack {
    encodings: Vec<Encoding>,
}

/// A track at one rate.
#[derive(Debug, Deserialize)]
pub struct Encoding {
    /// Its name for people.
    pub name: String,
    /// Its frames.
    pub frames: Frames,
}

/// Frames in the order in which they are decoded and sent, repeated from their start where the content is longer.
#[derive(Debug, Deserialize)]
#[serde(from = "StoredFrames")]
pub struct Frames {
    /// Between two of them as they are shown, where that is the same throughout.
    pub interval: Option<Duration>,
    /// Size of each in bytes.
    pub bytes: Numbers,
    /// Those that decode by themselves, counted from 0.
    pub keys: Numbers,
    /// The place of each in the order in which they are shown, counted from 0; empty where that is this order.
    pub display_order: Numbers,
}

/// As content is stored: with the interval where frames are shown in this order, else with the time at which each is.
#[derive(Deserialize)]
struct StoredFrames {
    interval_ns: Option<Duration>,
    #[serde(default)]
    times_ns: Vec<u64>,
    frame_bytes: Numbers,
    key_frames: Numbers,
}

impl From<StoredFrames> for Frames {
    fn from(stored: StoredFrames) -> Self {
        let in_turn = stored.interval_ns.map(|interval| (interval, Numbers::default()));
        let found = in_turn.or_else(|| out_of_turn(&stored.times_ns));
        let (interval, display_order) = found.unzip();
        Frames {
            interval,
            bytes: stored.frame_bytes,
            keys: stored.key_frames,
            display_order: display_order.unwrap_or_default(),
        }
    }
}

/// Returns the interval between times that are evenly spaced in another order than theirs, and the place of
/// each.
fn out_of_turn(times_ns: &[u64]) -> Option<(Duration, Numbers)> {
    let mut shown = times_ns.to_vec();
    shown.sort_unstable();
    let interval = *shown.get(1)?;
    let is_even = (0u64..).zip(&shown).all(|(place, at)| place.checked_mul(interval) == Some(*at));
    if interval == 0 || !is_even {
        return None;
    }
    let places: Vec<u32> = times_ns.iter().map(|at| (at / interval) as u32).collect();
    Some((Duration::from_nanos(interval), places.into()))
}

impl Content {
    /// Reads a stored content.
    ///
    /// # Errors
    ///
    /// The fault, and the remedy.
    pub fn read(text: &str) -> Result<Self, String> {
        let read: Content =
            serde_json::from_str(text).map_err(|error| format!("it does not read: {error}"))?;
        match read.schema == SCHEMA {
            true => Ok(read),
            false => Err(format!("its schema is {:?}, and this version reads {SCHEMA}", read.schema)),
        }
    }

    /// Returns the encodings of all tracks, in order.
    pub fn encodings(&self) -> impl Iterator<Item = &Encoding> {
        self.tracks.iter().flat_map(|track| &track.encodings)
    }
}

/// The contents that plans may name, by their digests.
#[derive(Clone, Debug, Default)]
pub struct Contents(BTreeMap<String, Arc<Content>>);

impl Contents {
    /// None: of plans that have their frames written in.
    pub const NONE: Contents = Contents(BTreeMap::new());

    /// Adds the content for `digest`. It is the caller's to have held the two against each other.
    pub fn add(&mut self, digest: String, content: Content) {
        self.0.insert(digest, Arc::new(content));
    }

    /// Returns the frames of `reference`; else the fault and the remedy.
    pub fn frames(&self, reference: &ContentRef) -> Result<&Frames, String> {
        let ContentRef { digest, encoding } = reference;
        let Some(content) = self.0.get(digest) else {
            return Err(format!(
                "no content {digest} is at hand; give the plan with the contents that it names"
            ));
        };
        content.encodings().nth(*encoding as usize).map(|found| &found.frames).ok_or_else(|| {
            let last = content.encodings().count().saturating_sub(1);
            format!("{} has no encoding {encoding}; give 0 to {last}", content.name)
        })
    }
}

impl FromIterator<(String, Content)> for Contents {
    fn from_iter<I: IntoIterator<Item = (String, Content)>>(contents: I) -> Self {
        Contents(contents.into_iter().map(|(digest, content)| (digest, Arc::new(content))).collect())
    }
}
