//! The ways in which CUBIC leaves slow start.

/// How CUBIC leaves slow start before a loss makes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hystart {
    /// HyStart as Linux has it: by the length of an ACK train, and by rising delay.
    #[default]
    Linux,
    /// HyStart++ (RFC 9406).
    PlusPlus,
    /// Not at all: slow start ends with a loss.
    Off,
}

impl Hystart {
    /// Every kind by the name that scenarios give it.
    pub const NAMED: &[(&str, Hystart)] =
        &[("linux", Hystart::Linux), ("plus_plus", Hystart::PlusPlus), ("off", Hystart::Off)];

    /// Returns the kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind)
    }
}
