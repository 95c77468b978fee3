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
    /// Who has the frames, in place of them; [`ClipSpec::resolve`] puts them in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentRef>,
}

impl ClipSpec {
    /// Takes the frames from `contents`, if the plan names content; frames that are written in stay.
    ///
    /// # Errors
    ///
    /// The field, what is wrong and what would be right.
    pub fn resolve(&mut self, contents: &Contents) -> Result<(), (&'static str, String)> {
        let Some(reference) = self.content.take() else { return Ok(()) };
        if !self.frame_bytes.is_empty() {
            return Err(("content", "the frames are written in beside it; give one of the two".into()));
        }
        let frames = contents.frames(&reference).map_err(|what| ("content", what))?;
        let Some(interval) = frames.interval else {
            let what = "its frames have times of their own, and a clip's have a fixed interval; give content that has";
            return Err(("content", what.into()));
        };
        self.frame_interval = interval;
        self.frame_bytes = frames.bytes.clone();
        self.key_frames = frames.keys.clone();
        Ok(())
    }

    /// Refuses what nobody can play: the field, what is wrong and what would be right.
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
        Ok(())
    }
}

impl Setting for ClipSpec {
    /// A flow names its clip in a place of its own.
    fn tell(_: &'static str, _: &[&str]) -> Vec<Parameter> {
        Vec::new()
    }
}
