//! One track's way through the presentation: the next segment, its level, and the known data of each level.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use streamgauge_base::{BitRate, Duration, Instant};

use super::clock::{Held, ROUNDING};
use super::fragment::Timing;
use crate::abr::{Ladder, Rule};
use crate::dash::manifest::{
    AdaptationSet, Address, Manifest, MediaKind, MediaSegment, Outside, Period, Segments, Template,
};
use crate::media::segment::Known;

/// The known data on a level's segments.
pub enum Index {
    /// A list; its first segment has the track's ordinal `from`.
    Listed { from: u64, segments: Arc<Vec<MediaSegment>>, complete: bool },
    /// Each by a pattern.
    Numbered(Template),
}

/// Where a segment is.
#[derive(Debug)]
pub enum Place {
    /// There.
    Found(MediaSegment),
    /// A playlist or an index has to be fetched first.
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
}

/// A track's part in one period; nothing where the period has none of its kind.
#[derive(Clone)]
pub struct Part {
    pub id: String,
    pub start: Duration,
    pub end: Option<Duration>,
    pub set: Option<AdaptationSet>,
}

impl Part {
    fn of(period: &Period, kind: MediaKind) -> Self {
        let (id, start, end) = (period.id.clone(), period.start, period.end);
        Part { id, start, end, set: period.set(kind).cloned() }
    }

    /// A kind's part in each period.
    pub fn all(manifest: &Manifest, kind: MediaKind) -> VecDeque<Part> {
        manifest.periods.iter().map(|period| Part::of(period, kind)).collect()
    }

    /// It has segments already.
    fn has_begun(&self) -> bool {
        let levels = self.set.iter().flat_map(|set| &set.representations);
        let mut lists = levels.map(|one| &one.segments);
        lists.any(|list| matches!(list, Segments::Listed(segments) if !segments.is_empty()))
    }

    /// The same period, as it was read another time.
    pub fn is(&self, other: &Part) -> bool {
        if self.id.is_empty() { self.start == other.start } else { self.id == other.id }
    }
}

/// One of the tracks that are played.
pub struct Track {
    pub set: AdaptationSet,
    pub ladder: Ladder,
    pub rule: Box<dyn Rule>,
    pub indexes: Vec<Option<Index>>,
    /// Received initialisation segments.
    pub inits: BTreeMap<Address, Option<Timing>>,
    /// The tracks that each level's segments contain, by their initialisation.
    pub known: BTreeMap<(usize, Option<Address>), Known>,
    /// The period of the current segments.
    pub part: Part,
    /// The periods behind it.
    pub later: VecDeque<Part>,
    /// The ordinal of the period's first segment.
    pub first: u64,
    /// Between ordinals and the places or numbers of the period's lists.
    shift: u64,
    /// The rule's last estimate of the throughput, and the last segment's throughput.
    pub estimate: Option<BitRate>,
    pub measured: Option<BitRate>,
    /// The segment that is asked for next.
    pub next: u64,
    /// The level of the segment that was asked for last.
    pub level: Option<usize>,
    pub chosen: Option<Chosen>,
    /// The end of the requested part of the presentation.
    pub asked_to: Duration,
    /// The buffer is full since then, and is looked at again at that time.
    pub off: Option<Instant>,
    pub look: Option<Instant>,
    /// Complete segments by level and ordinal, if a browser's cache keeps them.
    pub cached: HashMap<(usize, u64), Held>,
    /// When one was last given up.
    pub gave_up: Option<Instant>,
    /// Attempts that failed at the segment that is next, and when it is asked for again.
    pub failures: u32,
    pub again: Option<Instant>,
    /// It has had a complete segment.
    pub has_appended: bool,
    /// The time that the page will take for the next segment.
    pub append_time: Duration,
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
    pub fn new(part: Part, set: AdaptationSet, rule: Box<dyn Rule>) -> Self {
        Track {
            ladder: ladder_of(&set),
            rule,
            indexes: set.representations.iter().map(|_| None).collect(),
            set,
            inits: BTreeMap::new(),
            known: BTreeMap::new(),
            part,
            later: VecDeque::new(),
            first: 0,
            shift: 0,
            estimate: None,
            measured: None,
            next: 0,
            level: None,
            chosen: None,
            asked_to: Duration::ZERO,
            off: None,
            look: None,
            cached: HashMap::new(),
            gave_up: None,
            failures: 0,
            again: None,
            has_appended: false,
            append_time: Duration::ZERO,
            skipped: 0,
            is_complete: false,
            reload: None,
            ends: None,
        }
    }

    /// The known data on a segment's tracks before it arrives; nothing before an initialisation segment.
    pub fn known_before(&self, level: usize, segment: Option<&MediaSegment>) -> Known {
        let of = |segment| self.known.get(&(level, self.init_of(level, segment))).cloned();
        segment.and_then(of).unwrap_or_default()
    }

    /// Keeps a segment's data on its tracks.
    pub fn learn(&mut self, level: usize, segment: Option<&MediaSegment>, known: Known) {
        if let Some(segment) = segment {
            self.known.insert((level, self.init_of(level, segment)), known);
        }
    }

    fn init_of(&self, level: usize, segment: &MediaSegment) -> Option<Address> {
        segment.init.as_deref().or(self.set.representations[level].init.as_ref()).cloned()
    }

    pub fn is_video(&self) -> bool {
        self.set.kind == MediaKind::Video
    }

    /// Moves to another period: its first segment has the next ordinal.
    pub fn enter(&mut self, part: Part, set: AdaptationSet) {
        self.ladder = ladder_of(&set);
        self.indexes = set.representations.iter().map(|_| None).collect();
        (self.set, self.part, self.chosen) = (set, part, None);
        (self.first, self.shift, self.reload) = (self.next, self.next, None);
    }

    /// Takes a level out, which is not played.
    pub fn leave_out(&mut self, level: usize) {
        self.set.representations.remove(level);
        self.indexes.remove(level);
        self.ladder.rates.remove(level);
        self.ladder.sizes.remove(level);
        (self.level, self.chosen) = (None, None);
    }

    /// Sets the manifest's own data on each level. The presentation ends at `ends`, if known. It `goes_on` while more
    /// may be listed.
    pub fn know(&mut self, ends: Option<Duration>, goes_on: bool) {
        let ends = self.part.end.or(ends);
        self.ends = ends;
        for level in 0..self.indexes.len() {
            match &self.set.representations[level].segments {
                Segments::Numbered(template) => {
                    let length = Duration::from_nanos(scaled(template.length, template.timescale));
                    self.ladder.segment = length;
                    self.ladder.segments = template.count.map(|count| (self.first + count) as usize);
                    self.indexes[level] = Some(Index::Numbered(template.clone()));
                }
                Segments::Listed(segments) => {
                    let segments = segments.clone();
                    // A live list is complete at its end, or when the next period has begun.
                    let last = segments.last().map(|last| last.start + last.duration + ROUNDING);
                    let is_whole = !goes_on
                        || ends.zip(last).is_some_and(|(ends, last)| last >= ends)
                        || self.later.iter().any(Part::has_begun);
                    self.listed(level, segments, is_whole);
                }
                Segments::Indexed { .. } | Segments::Playlist(_) => {}
            }
        }
        if !self.later.is_empty() {
            self.ladder.segments = None;
        }
    }

    /// Sets the list of a level's segments, which is `complete` or live.
    pub fn listed(&mut self, level: usize, mut segments: Vec<MediaSegment>, complete: bool) {
        if segments.is_empty() {
            self.indexes[level] = Some(Index::Listed { from: 0, segments: Arc::default(), complete });
            return;
        }
        // In a live stream, numbers identify segments across the lists of all levels and times.
        let goes_on = |index: &Index| matches!(index, Index::Listed { complete: false, .. });
        let is_new = complete && !self.indexes.iter().flatten().any(goes_on);
        let from = if is_new { 0 } else { self.local(level, &segments) };
        let is_playlist = matches!(self.set.representations[level].segments, Segments::Playlist(_));
        if !complete && is_playlist {
            self.put_in_time(&mut segments);
        }
        if self.ladder.segment == Duration::ZERO {
            let middle = segments.len() / 2;
            self.ladder.segment = segments[middle].duration;
        }
        if self.indexes.iter().all(Option::is_none) && self.first > 0 {
            self.shift = self.first.wrapping_sub(from);
        }
        if complete && self.later.is_empty() {
            let end = from.wrapping_add(self.shift) + segments.len() as u64;
            self.ladder.segments = Some(end as usize);
        }
        let known = segments.iter().map(|one| one.address.range.map(|(first, last)| last - first + 1));
        if let Some(sizes) = known.collect::<Option<Vec<u64>>>()
            && from == 0
        {
            // Ordinals count from the presentation's first segment.
            self.ladder.sizes[level] = std::iter::repeat_n(0, self.shift as usize).chain(sizes).collect();
        }
        self.indexes[level] = Some(Index::Listed { from, segments: Arc::new(segments), complete });
    }

    /// Gives the segments of a live list the times that the same numbers had before, in any list. A playlist's own
    /// times begin with its first segment, which changes each time.
    fn put_in_time(&self, segments: &mut [MediaSegment]) {
        let known = self.indexes.iter().flatten().filter_map(|index| match index {
            Index::Listed { segments, complete: false, .. } => segments.last(),
            _ => None,
        });
        let (Some(last), Some(first)) = (known.max_by_key(|last| last.number), segments.first()) else {
            return;
        };
        // If the lists do not overlap, the segments between them count with the usual length.
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

    /// A live list and the ordinal of its first segment: the level's own list, else another's.
    fn growing(&self, level: usize) -> Option<(u64, &[MediaSegment])> {
        let own = self.indexes.get(level).into_iter().chain(&self.indexes).flatten();
        own.filter_map(|index| match index {
            Index::Listed { from, segments, complete: false } if !segments.is_empty() => {
                Some((*from, &segments[..]))
            }
            _ => None,
        })
        .next()
    }

    /// The ordinal of the first of `segments`. It is its number, unless numbers are times, which leave others out between
    /// them: those count from where the lists overlap.
    fn local(&self, level: usize, segments: &[MediaSegment]) -> u64 {
        let first = segments[0].number;
        let Some((from, known)) = self.growing(level) else { return first };
        if let Some(place) = known.iter().position(|one| one.number == first) {
            return from + place as u64;
        }
        if let Some(place) = segments.iter().position(|one| one.number == known[0].number) {
            return from.wrapping_sub(place as u64);
        }
        let is_counted = known.windows(2).all(|two| two[0].number + 1 == two[1].number);
        let apart = if is_counted { first.wrapping_sub(known[0].number) } else { known.len() as u64 };
        from.wrapping_add(apart)
    }

    /// Where segment `ordinal` of `level` is.
    pub fn place(&self, level: usize, ordinal: u64) -> Place {
        let representation = &self.set.representations[level];
        let ordinal = ordinal.wrapping_sub(self.shift);
        match (&self.indexes[level], &representation.segments) {
            (Some(Index::Numbered(template)), _) => {
                let found = template.first.checked_add(ordinal).and_then(|number| template.segment(number));
                match found {
                    Some(segment) if self.ends.is_none_or(|ends| segment.start < ends) => {
                        // The last one ends with the presentation.
                        let left = self.ends.map(|ends| ends.saturating_sub(segment.start));
                        let duration = left.map_or(segment.duration, |left| segment.duration.min(left));
                        let after = segment.outside.after + segment.duration.saturating_sub(duration);
                        let outside = Outside { after, ..segment.outside };
                        Place::Found(MediaSegment { duration, outside, ..segment })
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
            (None, Segments::Playlist(address) | Segments::Indexed { address, .. }) => {
                Place::Ask(address.clone())
            }
            (None, _) => Place::End,
        }
    }

    /// The first and the last ordinal that a level's list has now.
    pub fn listed_now(&self, level: usize) -> Option<(u64, u64)> {
        match self.indexes[level].as_ref()? {
            Index::Listed { from, segments, .. } => {
                let first = from.wrapping_add(self.shift);
                Some((first, first + (segments.len() as u64).checked_sub(1)?))
            }
            Index::Numbered(_) => None,
        }
    }

    /// No more is listed of the period than is known.
    pub fn close(&mut self) {
        for index in self.indexes.iter_mut().flatten() {
            match index {
                Index::Listed { complete, .. } => *complete = true,
                Index::Numbered(template) => template.end = template.end.or(Some(self.asked_to)),
            }
        }
    }

    /// A level's list is known, and there will be more of it.
    pub fn goes_on(&self, level: usize) -> bool {
        matches!(self.indexes[level], Some(Index::Listed { complete: false, .. }))
    }
}

fn ladder_of(set: &AdaptationSet) -> Ladder {
    let rates: Vec<BitRate> = set.representations.iter().map(|one| one.rate).collect();
    let sizes = vec![Vec::new(); rates.len()];
    Ladder { rates, segment: Duration::ZERO, segments: None, sizes }
}

/// `units` of `timescale` in nanoseconds.
pub fn scaled(units: u64, timescale: u64) -> u64 {
    (u128::from(units) * 1_000_000_000 / u128::from(timescale.max(1))) as u64
}
