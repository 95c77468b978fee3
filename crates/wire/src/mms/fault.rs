//! Faults of bytes that should be messages or packets of media.

/// A fault and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct Problem {
    /// Bytes of the packet before it.
    pub at: u64,
    /// The fault.
    pub fault: Fault,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It ends within a field, or before its declared length.
    #[error("{missing} B more are needed than there are")]
    Truncated {
        /// How many more bytes there should be.
        missing: u64,
    },
    /// A length too small for required fields, or for all present data.
    #[error("a length of {0}, which it cannot have")]
    Length(u32),
    /// A message beyond the limit.
    #[error("a message of {0} B, beyond the limit")]
    TooLong(u32),
    /// No header of a message begins here.
    #[error("no MMS: it does not begin like a message")]
    NotMms,
    /// No request to send packets again.
    #[error("it does not begin like a request to send packets again")]
    NotResend,
    /// Text that is not UTF-16.
    #[error("text that is not UTF-16")]
    Text,
    /// A funnel's name that is none, such as `\\10.0.0.1\UDP\1234`.
    #[error("a funnel's name that says no transport and port")]
    Funnel,
    /// Seconds that are negative, no number, or more than 26 days.
    #[error("a time that is negative, no number, or beyond 26 days")]
    Time,
    /// A rate of play that is 0, no number, or beyond 5 either way.
    #[error("a rate of play that is 0, no number, or beyond 5")]
    Rate,
    /// A level of thinning other than 0, 1 and 2.
    #[error("a thinning level of {0}")]
    Thinning(u16),
    /// More packets to send again than 32, or none.
    #[error("a request for {0} packets, which may be 1 to 32")]
    Resends(u16),
    /// A kind of redirection other than 1 and 2.
    #[error("a redirection of kind {0}")]
    Redirection(u16),
    /// Bytes that have to be there are counted only.
    #[error("filler where real bytes are needed")]
    Filler,
}

impl Fault {
    /// Returns the problem of this fault at this byte.
    pub(crate) fn at(self, at: usize) -> Problem {
        Problem { at: at as u64, fault: self }
    }
}
