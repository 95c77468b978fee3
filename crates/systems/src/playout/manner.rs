//! Differences of players with the same buffer.

use streamgauge_base::Duration;

/// Where the media ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// In the media's time.
    pub at: Duration,
    /// It is the pictures' own end. Else it is the end of the longest track, perhaps sound.
    pub of_pictures: bool,
}

/// When play begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Once `prebuffer` of media is gathered: a server may send it ahead of its time. The events
    /// `playout_start` and `buffer` report its progress.
    Gathered,
    /// `prebuffer` after the first packet arrived, regardless of the rest: a server sends at the media's
    /// pace.
    Delayed,
}

/// The media that count as gathered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gathers {
    /// All up to the newest unit with a received part.
    Begun,
    /// Units that are whole, up to the first that is not: on a stream. A unit that lost something is waited for as
    /// long as the clock may stop.
    Whole,
}

/// Handling of the time by which the host looks later than it should, or by which play is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostLate {
    /// It counts: a unit of a stream is shown when it was whole, and one that is whole more than a second after it was
    /// due is incomplete.
    Counts,
    /// It is forgiven: a unit of a stream that is there when the host looks is shown when it was due, and one that has
    /// not been given up when it is whole is late.
    Forgiven,
}

/// How it plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// When play begins.
    pub start: Start,
    /// Media gathered, or time that passes, before play begins.
    pub prebuffer: Duration,
    /// Media gathered before play resumes after a stall.
    pub rebuffer: Duration,
    /// The media that count as gathered.
    pub gathers: Gathers,
    /// Handling of a host that looks late.
    pub host_late: HostLate,
    /// The clock stops when the buffer has run dry.
    pub stalls: bool,
    /// Missing units arrive later, and late is not lost: the media is on a stream.
    pub in_order: bool,
}
