//! Content by the sizes of its frames.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Parameter, Setting};

use super::content::{ContentRef, Contents};
use super::numbers::Numbers;

/// Content as a sequence of frame sizes, repeated from its start until `duration`.
///
/// A plan has the frames written in, or names the content that has them; machines see frames in either case.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClipSpec {
    /// Its name.
    pub name: String,
    /// How long it plays.
    pub duration: Duration,
    /// Time between frames.
    #[serde(default)]
    pub frame_interval: Duration,
    /// Size of each coded frame in bytes.
    #[serde(default)]
    pub frame_bytes: Numbers,
    /// Which of them are key frames, counted from 0. None named: the first alone.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub key_frames: Numbers,
    /// The place of each in the order in which they are shown, counted from 0. None named: they are shown in the order in
    /// which they are decoded and sent, so there are no B-frames.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub display_order: Numbers,
    /// A reference to stored frames, in place of them; [`ClipSpec::resolve`] fills them in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentRef>,
}

impl ClipSpec {
    /// Takes the frames from `contents`, if the plan names content; frames that are written in stay.
    ///
    /// # Errors
    ///
    /// The field, the fault and the remedy.
    pub fn resolve(&mut self, contents: &Contents) -> Result<(), (&'static str, String)> {
        let Some(reference) = self.content.take() else { return Ok(()) };
        if !self.frame_bytes.is_empty() {
            return Err(("content", "the frames are written in beside it; give one of the two".into()));
        }
        let frames = contents.frames(&reference).map_err(|what| ("content", what))?;
        let Some(interval) = frames.interval else {
            let what = "its frames are unevenly spaced, and ours play a fixed frame rate; encode it with one";
            return Err(("content", what.into()));
        };
        self.frame_interval = interval;
        self.frame_bytes = frames.bytes.clone();
        self.key_frames = frames.keys.clone();
        self.display_order = frames.display_order.clone();
        Ok(())
    }

    /// Refuses clips that cannot be played: the field, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(reference) = &self.content {
            return Err((
                "content",
                format!("nobody has looked up {}; this is a fault of ours", reference.digest),
            ));
        }
        if self.frame_interval < Duration::from_millis(1) {
            return Err(("frame_interval", "shorter than 1 ms; give 1 ms or more".into()));
        }
        if self.frame_bytes.is_empty() || self.frame_bytes.contains(&0) {
            return Err(("frame_bytes", "give at least one frame, each of 1 B or more".into()));
        }
        self.check_display_order().map_err(|what| ("display_order", what))
    }

    fn check_display_order(&self) -> Result<(), String> {
        let frames = self.frame_bytes.len();
        if self.display_order.is_empty() {
            return Ok(());
        }
        let mut places: Vec<u32> = self.display_order.to_vec();
        places.sort_unstable();
        if places.len() != frames || places.iter().zip(0..).any(|(place, number)| *place != number) {
            return Err(format!("give each place from 0 to {} once", frames - 1));
        }
        // The frames that are decoded first would not be those that are shown first.
        if !self.frames().is_multiple_of(frames as u64) {
            return Err(format!("it plays {} frames; play whole rounds of {frames}", self.frames()));
        }
        Ok(())
    }

    /// Returns how many frames it plays, over all rounds.
    pub fn frames(&self) -> u64 {
        self.duration.as_nanos().div_ceil(self.frame_interval.as_nanos().max(1))
    }

    /// Returns the place of a frame in the order in which they are shown; both are counted from 0 over all
    /// rounds.
    pub fn shown_place(&self, frame: u64) -> u64 {
        let round = self.display_order.len() as u64;
        match self.display_order.get(frame.checked_rem(round).unwrap_or(0) as usize) {
            Some(place) => frame / round * round + u64::from(*place),
            None => frame,
        }
    }

    /// Returns by how many places at most a frame is shown before the one that is decoded in that place: the
    /// same number of intervals must pass between decoding and showing for all frames to be there in time.
    pub fn decoding_delay(&self) -> u64 {
        let early = (0u64..).zip(&self.display_order).map(|(n, place)| n.saturating_sub(u64::from(*place)));
        early.max().unwrap_or(0)
    }

    /// Returns by how many places at most a frame that is decoded before another is shown after it.
    pub fn decoded_ahead(&self) -> u64 {
        let mut furthest = 0;
        let ahead = self.display_order.iter().map(|place| {
            furthest = furthest.max(*place);
            u64::from(furthest - place)
        });
        ahead.max().unwrap_or(0)
    }
}

impl Setting for ClipSpec {
    /// A flow names its clip in a place of its own.
    fn tell(_: &'static str, _: &[&str]) -> Vec<Parameter> {
        Vec::new()
    }
}
