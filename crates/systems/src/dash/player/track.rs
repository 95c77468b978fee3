//! One track's way through the presentation: which segment is next, at which level, and what is known of each level.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use super::clock::ROUNDING;
use crate::abr::{Ladder, Rule};
use crate::dash::manifest::{AdaptationSet, Address, MediaKind, MediaSegment, Segments, Template};

/// What is known of where a level's segments are.
pub enum Index {
    /// By a list, whose first segment has the track's ordinal `from`.
    Listed { from: u64, segments: Arc<Vec<MediaSegment>>, complete: bool },
    /// Each by a pattern.
    Numbered(Template),
}

/// Where a segment is.
#[derive(Debug)]
pub enum Place {
    /// There.
    Found(MediaSegment),
    /// Somebody must be asked first: a playlist or an index.
    Ask(Address),
    /// Not listed yet.
    NotYet,
    /// There is none: the presentation ends before it.
    End,
}

/// A level that a rule chose, and when it may be asked for.
#[derive(Clone, Copy)]
pub struct Chosen {
    pub level: usize,
    pub from: Instant,
    /// It takes the place of a segment that was given up.
    pub again: bool,
}

/// One of the tracks that are played.
pub struct Track {
    pub set: AdaptationSet,
    pub ladder: Ladder,
    pub rule: Box<dyn Rule>,
    pub indexes: Vec<Option<Index>>,
    /// Levels whose initialisation segment came.
    pub inits: Vec<bool>,
    /// The segment that is asked for next.
    pub next: u64,
    /// The level of the segment that was asked for last.
    pub level: Option<usize>,
    pub chosen: Option<Chosen>,
    /// Where what has been asked for ends in the presentation.
    pub asked_to: Duration,
    /// The buffer is full since then.
    pub off: Option<Instant>,
    /// Attempts that failed at the segment that is next, and when it is asked for again.
    pub failures: u32,
    pub again: Option<Instant>,
    /// Segments skipped in a row.
    pub skipped: u32,
    /// Each segment has been asked for.
    pub is_complete: bool,
    /// The live playlist is not fetched before that.
    pub reload: Option<Instant>,
    /// Where the presentation ends, if that is known.
    pub ends: Option<Duration>,
}

impl Track {
    pub fn new(set: AdaptationSet, rule: Box<dyn Rule>) -> Self {
        let levels = set.representations.len();
        let rates = set.representations.iter().map(|one| one.rate).collect();
        let ladder =
            Ladder { rates, segment: Duration::ZERO, segments: None, sizes: vec![Vec::new(); levels] };
        Track {
            set,
            ladder,
            rule,
            indexes: (0..levels).map(|_| None).collect(),
            inits: vec![false; levels],
            next: 0,
            level: None,
            chosen: None,
            asked_to: Duration::ZERO,
            off: None,
            failures: 0,
            again: None,
            skipped: 0,
            is_complete: false,
            reload: None,
            ends: None,
        }
    }

    pub fn is_video(&self) -> bool {
        self.set.kind == MediaKind::Video
    }

    /// What the manifest itself tells of each level.
    pub fn know(&mut self, ends: Option<Duration>, is_live: bool) {
        self.ends = ends;
        for level in 0..self.indexes.len() {
            match &self.set.representations[level].segments {
                Segments::Numbered(template) => {
                    let length = Duration::from_nanos(scaled(template.length, template.timescale));
                    self.ladder.segment = length;
                    self.ladder.segments = template.count.map(|count| count as usize);
                    self.indexes[level] = Some(Index::Numbered(template.clone()));
                }
                Segments::Listed(segments) => {
                    let segments = segments.clone();
                    // Of a live one the list is whole when it comes to the end.
                    let last = segments.last().map(|last| last.start + last.duration + ROUNDING);
                    let is_whole = !is_live || ends.zip(last).is_some_and(|(ends, last)| last >= ends);
                    self.listed(level, segments, is_whole);
                }
                Segments::Indexed(_) | Segments::Playlist(_) => {}
            }
        }
    }

    /// The list of a level's segments, which is `complete` or goes on.
    pub fn listed(&mut self, level: usize, mut segments: Vec<MediaSegment>, complete: bool) {
        let Some(first) = segments.first() else {
            self.indexes[level] = Some(Index::Listed { from: 0, segments: Arc::default(), complete });
            return;
        };
        // Of a stream that goes on, the lists of all levels and of each time are told apart by the numbers.
        let from = if complete && self.next_base().is_none() { 0 } else { first.number };
        if !complete {
            self.put_in_time(&mut segments);
        }
        if self.ladder.segment == Duration::ZERO {
            let middle = segments.len() / 2;
            self.ladder.segment = segments[middle].duration;
        }
        if complete {
            self.ladder.segments = Some((from + segments.len() as u64) as usize);
        }
        let known = segments.iter().map(|one| one.address.range.map(|(first, last)| last - first + 1));
        if let Some(sizes) = known.collect::<Option<Vec<u64>>>()
            && from == 0
        {
            self.ladder.sizes[level] = sizes;
        }
        self.indexes[level] = Some(Index::Listed { from, segments: Arc::new(segments), complete });
    }

    /// Gives the segments of a list that goes on the times that the same numbers had before, in whichever list: a playlist's
    /// own times begin with its first segment, which is another one each time.
    fn put_in_time(&self, segments: &mut [MediaSegment]) {
        let known = self.indexes.iter().flatten().filter_map(|index| match index {
            Index::Listed { segments, complete: false, .. } => segments.last(),
            _ => None,
        });
        let (Some(last), Some(first)) = (known.max_by_key(|last| last.number), segments.first()) else {
            return;
        };
        // Where the lists do not overlap, what lies between them played as long as segments do.
        let shift = match segments.iter().find(|one| one.number == last.number) {
            Some(same) => last.start.as_nanos() as i128 - same.start.as_nanos() as i128,
            None => {
                let apart = i128::from(first.number) - i128::from(last.number);
                last.start.as_nanos() as i128 + apart * last.duration.as_nanos() as i128
                    - first.start.as_nanos() as i128
            }
        };
        for segment in segments {
            let start = (segment.start.as_nanos() as i128 + shift).max(0) as u64;
            segment.start = Duration::from_nanos(start);
        }
    }

    /// Lists whose ordinals are numbers, of a stream that went on when it was first read.
    fn next_base(&self) -> Option<u64> {
        self.indexes.iter().flatten().find_map(|index| match index {
            Index::Listed { from, complete: false, .. } => Some(*from),
            _ => None,
        })
    }

    /// Where segment `ordinal` of `level` is.
    pub fn place(&self, level: usize, ordinal: u64) -> Place {
        let representation = &self.set.representations[level];
        match (&self.indexes[level], &representation.segments) {
            (Some(Index::Numbered(template)), _) => {
                let found = template.first.checked_add(ordinal).and_then(|number| template.segment(number));
                match found {
                    Some(segment) if self.ends.is_none_or(|ends| segment.start < ends) => {
                        // The last one ends with the presentation.
                        let left = self.ends.map(|ends| ends.saturating_sub(segment.start));
                        let duration = left.map_or(segment.duration, |left| segment.duration.min(left));
                        Place::Found(MediaSegment { duration, ..segment })
                    }
                    _ => Place::End,
                }
            }
            (Some(Index::Listed { from, segments, complete, .. }), told) => {
                let found = ordinal.checked_sub(*from).and_then(|place| segments.get(place as usize));
                match (found, told) {
                    (Some(segment), _) => Place::Found(segment.clone()),
                    (None, _) if *complete => Place::End,
                    (None, Segments::Playlist(address)) => Place::Ask(address.clone()),
                    (None, _) => Place::NotYet,
                }
            }
            (None, Segments::Playlist(address) | Segments::Indexed(address)) => Place::Ask(address.clone()),
            (None, _) => Place::End,
        }
    }

    /// The first and the last ordinal that a level's list has now.
    pub fn listed_now(&self, level: usize) -> Option<(u64, u64)> {
        match self.indexes[level].as_ref()? {
            Index::Listed { from, segments, .. } => {
                Some((*from, from + (segments.len() as u64).checked_sub(1)?))
            }
            Index::Numbered(_) => None,
        }
    }

    /// A level's list is known, and there will be more of it.
    pub fn goes_on(&self, level: usize) -> bool {
        matches!(self.indexes[level], Some(Index::Listed { complete: false, .. }))
    }
}

/// `units` of `timescale` in nanoseconds.
pub fn scaled(units: u64, timescale: u64) -> u64 {
    (u128::from(units) * 1_000_000_000 / u128::from(timescale.max(1))) as u64
}
