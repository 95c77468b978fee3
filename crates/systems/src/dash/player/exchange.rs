//! Requests and their received parts.

use streamgauge_base::{Chunk, Duration, Instant};

use crate::dash::manifest::{Address, MediaSegment};
use crate::media::segment::Counter;

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The manifest.
    Manifest,
    /// The media playlist of a track's level.
    Playlist(usize, usize),
    /// The index of its segments.
    Index(usize, usize),
    /// The initialization, which a decoder needs first.
    Init(usize, usize),
    /// A segment of it, by its ordinal.
    Segment(usize, usize, u64),
}

impl What {
    /// The track that it is of.
    pub fn track(self) -> Option<usize> {
        match self {
            What::Manifest => None,
            What::Playlist(track, _)
            | What::Index(track, _)
            | What::Init(track, _)
            | What::Segment(track, ..) => Some(track),
        }
    }

    /// The level that it is of.
    pub fn level(self) -> Option<usize> {
        match self {
            What::Manifest => None,
            What::Playlist(_, level)
            | What::Index(_, level)
            | What::Init(_, level)
            | What::Segment(_, level, _) => Some(level),
        }
    }
}

/// A request on a line, or at its front.
pub struct Exchange {
    pub what: What,
    pub address: Address,
    /// The segment, of a request for one.
    pub segment: Option<MediaSegment>,
    pub asked: Instant,
    pub first_byte: Option<Instant>,
    /// The body's length, if its head contains it.
    pub length: Option<u64>,
    /// Received bytes of it.
    pub bytes: u64,
    /// How many of them the page has read, and when it reads more.
    pub read: u64,
    pub reads: Option<Instant>,
    /// The whole body of a resource that is read at once: a manifest, a playlist, an index.
    pub head: Vec<u8>,
    /// Counts the pictures of a segment, once its first bytes have come.
    pub counter: Option<Counter>,
    /// The body of a kept resource, once it is complete.
    pub body: Vec<Chunk>,
    /// The time since which it is at the front and can be read.
    pub front_since: Option<Instant>,
    /// Time in which it was at the front and not read.
    pub unread: Duration,
    /// When the rule was last asked whether to give it up.
    pub asked_rule: Option<Instant>,
}

impl Exchange {
    pub fn new(what: What, address: Address, segment: Option<MediaSegment>, now: Instant) -> Self {
        Exchange {
            what,
            address,
            segment,
            asked: now,
            first_byte: None,
            length: None,
            bytes: 0,
            read: 0,
            reads: None,
            head: Vec::new(),
            counter: None,
            body: Vec::new(),
            front_since: None,
            unread: Duration::ZERO,
            asked_rule: None,
        }
    }
}
