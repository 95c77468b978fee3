//! A ladder as a plan has it: one content at several rates, by the sizes of its frames.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Parameter, Setting};

use super::clip::ClipSpec;
use super::content::Contents;

/// Encodings of the same pictures with key frames at the same times, from the lowest rate up, and their sound.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LadderSpec {
    /// Its name.
    pub name: String,
    /// How long a segment plays, the last excepted: a key frame begins each.
    pub segment: Duration,
    /// The pictures at each rate.
    pub video: Vec<LevelSpec>,
    /// The sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<LevelSpec>,
}

/// A ladder's content at one rate.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelSpec {
    /// The rate that a manifest declares, in bit/s.
    pub bit_rate_bps: u64,
    /// Width and height; 0 of sound.
    #[serde(default)]
    pub size: (u32, u32),
    /// Its frames.
    pub clip: ClipSpec,
}

impl LadderSpec {
    /// Returns every encoding of it.
    pub fn levels(&self) -> impl Iterator<Item = &LevelSpec> {
        self.video.iter().chain(&self.audio)
    }

    /// Refuses pictures that are shown in another order than sent, for a system that sends each at the time at which it is
    /// shown.
    pub fn check_in_order(&self) -> Result<(), (&'static str, String)> {
        match self.levels().find(|level| !level.clip.display_order.is_empty()) {
            Some(level) => {
                let name = &level.clip.name;
                let what = format!(
                    "{name} has B-frames, and this system sends pictures in the order of showing; encode with -bf 0"
                );
                Err(("video", what))
            }
            None => Ok(()),
        }
    }

    /// Takes all frames from `contents`, if the plan names content.
    ///
    /// # Errors
    ///
    /// The field, the fault and the remedy.
    pub fn resolve(&mut self, contents: &Contents) -> Result<(), (&'static str, String)> {
        self.video.iter_mut().chain(&mut self.audio).try_for_each(|level| level.clip.resolve(contents))
    }

    /// Refuses ladders that cannot be played: the field, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.video.is_empty() {
            return Err(("video", "no encoding; give at least one".into()));
        }
        if self.segment < Duration::from_millis(100) {
            return Err(("segment", "shorter than 0.1 s; give 0.1 s or more".into()));
        }
        if let Some(pair) = self.video.windows(2).find(|pair| pair[0].bit_rate_bps >= pair[1].bit_rate_bps) {
            let rates = (pair[0].bit_rate_bps, pair[1].bit_rate_bps);
            return Err((
                "video",
                format!("{} bit/s stands before {} bit/s; give the lowest first", rates.0, rates.1),
            ));
        }
        if self.levels().any(|level| level.bit_rate_bps == 0) {
            return Err(("bit_rate_bps", "0 bit/s; give 1 or more".into()));
        }
        self.levels().try_for_each(|level| level.clip.check())
    }
}

impl Setting for LadderSpec {
    /// A flow names its clip in a place of its own.
    fn tell(_: &'static str, _: &[&str]) -> Vec<Parameter> {
        Vec::new()
    }
}
