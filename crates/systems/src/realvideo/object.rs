//! A SureStream object: what it is made of, and the rules by which a player takes some of it.
//!
//! An encoding has two rules: the even one is its key frames, the odd one all that depends on them.

use streamgauge_base::Duration;
use streamgauge_wire::rm::StreamProperties;

use crate::media::object;
pub use crate::media::object::{AUDIO, CodedFrame, CodedFrames, OneObject, Shelf, VIDEO};

/// More encodings than a rule's six bits can tell apart are none.
pub const MOST_ENCODINGS: usize = 31;

/// Something to stream.
pub type Object = object::Object<StreamProperties>;

/// Pictures or sound.
pub type Stream = object::Stream<StreamProperties>;

/// A stream at one rate.
pub type Encoding = object::Encoding<StreamProperties>;

/// Frames of a file, of which there is one, at the rate that `said` gives or, where that is 0, theirs.
pub fn of_frames(coded: CodedFrames, said: &StreamProperties, duration: Duration) -> Encoding {
    Encoding::of_frames(coded, said.avg_bit_rate_bps.into(), said.clone(), duration)
}

/// The rules of an encoding: its key frames, and what depends on them.
pub fn rules_of(encoding: usize) -> [u16; 2] {
    [2 * encoding as u16, 2 * encoding as u16 + 1]
}

impl Stream {
    /// Its book has a rule of that number.
    pub fn has_rule(&self, rule: u16) -> bool {
        (0..self.encodings.len()).any(|encoding| rules_of(encoding).contains(&rule))
    }
}
