//! A SureStream object: its parts, and the rules by which a player selects some of it.
//!
//! An encoding has two rules: the even one is its key frames, the odd one all that depends on them.

use streamgauge_base::Duration;
use streamgauge_wire::rm::StreamProperties;

use crate::media::object;
pub use crate::media::object::{AUDIO, CodedFrame, CodedFrames, OneObject, Shelf, VIDEO};

/// A rule's six bits cannot number more encodings.
pub const MOST_ENCODINGS: usize = 31;

/// Something to stream.
pub type Object = object::Object<StreamProperties>;

/// Pictures or sound.
pub type Stream = object::Stream<StreamProperties>;

/// A stream at one rate.
pub type Encoding = object::Encoding<StreamProperties>;

/// Makes an object of a file's frames, with one encoding, at the rate in `said` or, where that is 0, theirs.
pub fn of_frames(coded: CodedFrames, said: &StreamProperties, duration: Duration) -> Encoding {
    Encoding::of_frames(coded, said.avg_bit_rate_bps.into(), said.clone(), duration)
}

/// Returns the rules of an encoding: its key frames, and the frames that depend on them.
pub fn rules_of(encoding: usize) -> [u16; 2] {
    [2 * encoding as u16, 2 * encoding as u16 + 1]
}

impl Stream {
    /// Returns whether its book has a rule of that number.
    pub fn has_rule(&self, rule: u16) -> bool {
        (0..self.encodings.len()).any(|encoding| rules_of(encoding).contains(&rule))
    }
}
