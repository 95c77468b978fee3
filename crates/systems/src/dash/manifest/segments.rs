//! Where the segments of a representation are (ISO/IEC 23009-1 section 5.3.9): templates, lists, one file.

use streamgauge_base::Duration;

use super::fault::{MOST_SEGMENTS, ManifestError, Room, broken, unsupported};
use super::place::Place;
use super::template::{filled, has, resolved};
use super::time::{of_decimal, of_ticks};
use super::xml::Element;
use super::{Address, MediaSegment, Outside, Segments, Template, Window};

/// The data of a representation.
pub struct Of<'a> {
    pub id: &'a str,
    pub bandwidth: u64,
    pub place: &'a Place,
    pub line: u32,
    /// Its period.
    pub window: Window,
    pub is_live: bool,
    /// It is live, or was.
    pub has_clock: bool,
}

impl Of<'_> {
    /// The length of its period, if known.
    fn duration(&self) -> Option<Duration> {
        self.window.end.map(|end| end.saturating_sub(self.window.start))
    }
}

/// A shorter remainder is a rounding of times.
const LEAST: Duration = Duration::from_millis(1);

impl Window {
    /// Fits a segment in, which has the media from one time to another.
    pub fn fit(&self, number: u64, address: Address, from: Duration, to: Duration) -> Option<MediaSegment> {
        let before = self.offset.saturating_sub(from);
        let [shown, behind] =
            [from.max(self.offset), to].map(|time| time.saturating_sub(self.offset) + self.start);
        let end = self.end.map_or(behind, |end| behind.min(end));
        let (duration, after) = (end.saturating_sub(shown), behind.saturating_sub(end));
        let is_cut = before > Duration::ZERO || after > Duration::ZERO;
        if shown > end || is_cut && duration < LEAST {
            return None;
        }
        let outside = Outside { before, after, nominal: false };
        Some(MediaSegment { outside, ..MediaSegment::whole(number, address, shown, duration) })
    }
}

/// The segment elements of period, set and representation, the inner ones before the outer ones.
#[derive(Clone, Default)]
pub struct SegmentSettings<'a> {
    /// The innermost element with segments.
    by: Option<Element<'a>>,
    timescale: Option<u64>,
    length: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    /// `@presentationTimeOffset`.
    offset: Option<u64>,
    timeline: Option<Element<'a>>,
    media: Option<&'a str>,
    init_pattern: Option<&'a str>,
    init: Option<Element<'a>>,
    /// The innermost SegmentList that has segments.
    list: Option<Element<'a>>,
    index: Option<(u64, u64)>,
    /// `@availabilityTimeOffset`.
    pub early: Option<Duration>,
}

/// A run of segments of one length, in ticks.
struct Run {
    start: u64,
    length: u64,
    count: u64,
    /// It is as long as the presentation.
    is_open: bool,
    line: u32,
}

type Found = (Option<Address>, Segments);

/// `first-last`, both included.
fn range(element: Element<'_>, name: &str) -> Result<Option<(u64, u64)>, ManifestError> {
    let read = |text: &str| {
        let (first, last) = text.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < u64::MAX).then_some((first, last))
    };
    element.read(name, read, "a range of bytes as 0-99 is wanted")
}

/// `@availabilityTimeOffset`: seconds, or INF. In another form, the player waits until segments are complete.
pub fn early(element: Element<'_>) -> Option<Duration> {
    let read = |text: &str| if text == "INF" { Some(Duration::MAX) } else { of_decimal(text) };
    element.hint("availabilityTimeOffset", read)
}

impl<'a> SegmentSettings<'a> {
    /// Adds the data of `element`.
    pub fn within(&self, element: Element<'a>) -> Result<SegmentSettings<'a>, ManifestError> {
        let mut told = self.clone();
        let kinds = ["SegmentTemplate", "SegmentList", "SegmentBase"];
        let Some(by) = kinds.into_iter().find_map(|kind| element.first(kind)) else { return Ok(told) };
        // An element of another kind passes nothing on (section 5.3.9.1).
        if told.by.is_some_and(|outer| outer.name() != by.name()) {
            told = SegmentSettings::default();
        }
        told.by = Some(by);
        told.timescale = by.number("timescale")?.or(told.timescale);
        if told.timescale == Some(0) {
            return Err(by.wrong("timescale", "1 or more is wanted"));
        }
        told.length = by.number("duration")?.or(told.length);
        told.first = by.number("startNumber")?.or(told.first);
        told.last = by.number("endNumber")?.or(told.last);
        told.offset = by.number("presentationTimeOffset")?.or(told.offset);
        told.timeline = by.first("SegmentTimeline").or(told.timeline);
        told.media = by.get("media").or(told.media);
        told.init_pattern = by.get("initialization").or(told.init_pattern);
        told.init = by.first("Initialization").or(told.init);
        told.list = by.first("SegmentURL").map(|_| by).or(told.list);
        told.index = range(by, "indexRange")?.or(told.index);
        told.early = early(by).or(told.early);
        Ok(told)
    }

    /// The decoder's configuration, and the segments or the place of their list.
    pub fn segments(&self, of: &Of<'_>, room: &mut Room) -> Result<Found, ManifestError> {
        match self.by.map(Element::name) {
            Some("SegmentTemplate") => Ok((self.init(of)?, self.of_template(of, room)?)),
            Some("SegmentList") => Ok((self.init(of)?, self.of_list(of, room)?)),
            Some("SegmentBase") if self.index.is_some() => self.of_base(of),
            _ => self.of_whole(of, room),
        }
    }

    fn init(&self, of: &Of<'_>) -> Result<Option<Address>, ManifestError> {
        if let Some(pattern) = self.init_pattern {
            let url = resolved(pattern, of.id, of.bandwidth, of.place, of.line)?;
            if has(&url, "Number") || has(&url, "Time") {
                return Err(broken(of.line, "the address of the initialization has $Number$ or $Time$"));
            }
            return Ok(Some(Address { url: filled(&url, 0, 0), range: None }));
        }
        let Some(init) = self.init else { return Ok(None) };
        let url = init.get("sourceURL").unwrap_or_default();
        let url = of.place.resolve(url, init.line())?.url().to_owned();
        Ok(Some(Address { url, range: range(init, "range")? }))
    }

    fn timescale(&self) -> u64 {
        self.timescale.unwrap_or(1)
    }

    /// The number of ticks in a duration, rounded up.
    fn ticks(&self, duration: Duration) -> u64 {
        let ticks = (u128::from(duration.as_nanos()) * u128::from(self.timescale())).div_ceil(1_000_000_000);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// The number of segments of `@duration` in a duration. Less than a millisecond is a rounding of the duration.
    fn count(&self, duration: Duration, length: u64) -> u64 {
        let whole = self.ticks(duration.saturating_sub(Duration::from_millis(1))).div_ceil(length.max(1));
        whole.max(1)
    }

    fn length(&self) -> Result<Option<u64>, ManifestError> {
        match (self.length, self.by) {
            (Some(0), Some(by)) => Err(broken(by.line(), format!("{}@duration is 0", by.name()))),
            (length, _) => Ok(length),
        }
    }

    fn of_template(&self, of: &Of<'_>, room: &mut Room) -> Result<Segments, ManifestError> {
        let media = self.media.ok_or_else(|| broken(of.line, "a SegmentTemplate without @media"))?;
        let pattern = resolved(media, of.id, of.bandwidth, of.place, of.line)?;
        let (by_number, by_time) = (has(&pattern, "Number"), has(&pattern, "Time"));
        let first = self.first.unwrap_or(1);
        if let Some(timeline) = self.timeline {
            let mut runs = self.runs(timeline, of)?;
            if !by_number && !by_time && (runs.len() > 1 || runs.iter().any(|run| run.count > 1)) {
                return Err(broken(
                    of.line,
                    "one address for several segments: @media has no $Number$ or $Time$",
                ));
            }
            if let Some(open) = runs.iter().find(|run| run.is_open && self.end(of).is_none()) {
                return self.endless(open, &runs, pattern, first, by_time, of);
            }
            let url = |number, time| filled(&pattern, number, time);
            // Without a startNumber that moves with a live window, times alone stay the same.
            let by_time_alone = of.has_clock && !by_number && self.first.is_none();
            let number_of = |number, time| if by_time_alone { time } else { number };
            return self.listed(&mut runs, first, pattern.len(), of, room, |number, time| {
                let address = Address { url: url(number, time), range: None };
                Ok((number_of(number, time), address))
            });
        }
        let length = self.length()?.ok_or_else(|| {
            broken(of.line, "a SegmentTemplate with neither @duration nor a SegmentTimeline")
        })?;
        let asked = |last: u64| last.saturating_sub(first).saturating_add(1);
        let fitting = of.duration().map(|whole| self.count(whole, length));
        let count = match (self.last.map(asked), fitting) {
            (Some(asked), Some(fitting)) => Some(asked.min(fitting)),
            (asked, fitting) => asked.or(fitting),
        };
        if count.is_none() && !of.is_live {
            return Err(broken(
                of.line,
                "neither the presentation's duration nor the last segment's number is given",
            ));
        }
        if count.is_some_and(|count| count > MOST_SEGMENTS) {
            return Err(ManifestError::TooMany { line: of.line, what: "this SegmentTemplate".into() });
        }
        if !by_number && !by_time && count != Some(1) {
            return Err(broken(
                of.line,
                "one address for several segments: @media has no $Number$ or $Time$",
            ));
        }
        if by_time && self.offset.unwrap_or(0) > 0 {
            return Err(unsupported(of.line, "$Time$ with @duration and @presentationTimeOffset"));
        }
        let Window { start, end, .. } = of.window;
        let timescale = self.timescale();
        Ok(Segments::Numbered(Template { pattern, first, length, timescale, count, start, end }))
    }

    /// Where the period ends on the media's time, if that is known.
    fn end(&self, of: &Of<'_>) -> Option<u64> {
        Some(self.offset.unwrap_or(0).saturating_add(self.ticks(of.duration()?)))
    }

    /// A live timeline of one run without an end is a pattern without an end.
    fn endless(
        &self,
        open: &Run,
        runs: &[Run],
        pattern: String,
        first: u64,
        by_time: bool,
        of: &Of<'_>,
    ) -> Result<Segments, ManifestError> {
        let offset = self.offset.unwrap_or(0);
        if runs.len() > 1 || open.start != offset || (by_time && offset > 0) {
            return Err(unsupported(open.line, "a SegmentTimeline without an end behind its first segments"));
        }
        let (timescale, length) = (self.timescale(), open.length);
        let Window { start, end, .. } = of.window;
        Ok(Segments::Numbered(Template { pattern, first, length, timescale, count: None, start, end }))
    }

    /// The runs of a timeline; those that go on to the next or to the period's end are counted.
    fn runs(&self, timeline: Element<'a>, of: &Of<'_>) -> Result<Vec<Run>, ManifestError> {
        let mut runs: Vec<Run> = Vec::new();
        let mut next = 0u64;
        for (place, told) in timeline.all("S").enumerate() {
            let wanted = || broken(told.line(), "an S without @d");
            let length = told.number("d")?.ok_or_else(wanted)?;
            if length == 0 {
                return Err(told.wrong("d", "1 or more is wanted"));
            }
            let start = told.number("t")?.unwrap_or(next);
            if let Some(open) = runs.last_mut().filter(|run| run.is_open) {
                (open.count, open.is_open) =
                    (start.saturating_sub(open.start).div_ceil(open.length).max(1), false);
            }
            let last = |run: &Run| run.start + run.length * (run.count - 1);
            if runs.last().is_some_and(|run| last(run) >= start) {
                return Err(broken(
                    told.line(),
                    format!("S number {} begins before the last segment of the one before it", place + 1),
                ));
            }
            let repeats = |text: &str| text.parse::<i64>().ok();
            let repeats = told.read("r", repeats, "-1 or a number of repetitions is wanted")?.unwrap_or(0);
            let count = u64::try_from(repeats).unwrap_or(0).saturating_add(1);
            let end = length.checked_mul(count).and_then(|all| start.checked_add(all));
            next = end.ok_or_else(|| broken(told.line(), "a time beyond all bounds"))?;
            runs.push(Run { start, length, count, is_open: repeats < 0, line: told.line() });
        }
        let end = self.end(of);
        if let Some(open) = runs.last_mut().filter(|run| run.is_open) {
            match end {
                Some(end) => {
                    open.count = end.saturating_sub(open.start).div_ceil(open.length).max(1);
                }
                None if of.is_live => {}
                None => {
                    return Err(broken(open.line, "S@r is -1, and the presentation's duration is not given"));
                }
            }
        }
        Ok(runs)
    }

    /// Every segment of `runs` by itself.
    fn listed(
        &self,
        runs: &mut [Run],
        first: u64,
        address_bytes: usize,
        of: &Of<'_>,
        room: &mut Room,
        address: impl Fn(u64, u64) -> Result<(u64, Address), ManifestError>,
    ) -> Result<Segments, ManifestError> {
        let (scale, window) = (self.timescale(), self.window(of));
        let behind = self.end(of).unwrap_or(u64::MAX);
        let mut segments = Vec::new();
        let mut number = first;
        for run in runs {
            // A segment that begins after the period is not part of it.
            let fitting = behind.saturating_sub(run.start).div_ceil(run.length);
            run.count = run.count.min(fitting);
            // Adds the most bytes that its numbers can take.
            room.take(run.count, address_bytes + 40, run.line, "this S of the SegmentTimeline")?;
            let end = run.length.checked_mul(run.count).and_then(|all| run.start.checked_add(all));
            end.ok_or_else(|| broken(run.line, "a time beyond all bounds"))?;
            for place in 0..run.count {
                let time = run.start + run.length * place;
                let (from, to) = (of_ticks(time, scale), of_ticks(time.saturating_add(run.length), scale));
                // A segment that is completely before the offset is not part of the period.
                if to > window.offset {
                    let (number, address) = address(number, time)?;
                    segments.extend(window.fit(number, address, from, to));
                }
                number = number.checked_add(1).ok_or_else(|| broken(of.line, "numbers beyond all bounds"))?;
            }
        }
        Ok(Segments::Listed(segments))
    }

    /// The period, with the media's time at its beginning.
    fn window(&self, of: &Of<'_>) -> Window {
        Window { offset: of_ticks(self.offset.unwrap_or(0), self.timescale()), ..of.window }
    }

    fn of_list(&self, of: &Of<'_>, room: &mut Room) -> Result<Segments, ManifestError> {
        let list = self.list.ok_or_else(|| broken(of.line, "a SegmentList without a SegmentURL"))?;
        let urls: Vec<Element<'a>> = list.all("SegmentURL").collect();
        let mut runs = match self.timeline {
            Some(timeline) => self.runs(timeline, of)?,
            None => {
                let offset = self.offset.unwrap_or(0);
                let length = self.length()?.or_else(|| self.end(of).filter(|_| urls.len() == 1));
                let length = length.filter(|length| *length > 0).ok_or_else(|| {
                    broken(list.line(), "a SegmentList with neither @duration nor a SegmentTimeline")
                })?;
                vec![Run {
                    start: offset,
                    length,
                    count: urls.len() as u64,
                    is_open: false,
                    line: list.line(),
                }]
            }
        };
        let mut left = urls.len() as u64;
        for run in &mut runs {
            // Times without an address are no segments.
            run.count = run.count.min(left);
            left -= run.count;
        }
        let first = self.first.unwrap_or(1);
        let longest = urls.iter().filter_map(|url| url.get("media")).map(str::len).max().unwrap_or(0);
        let bytes = longest.saturating_mul(3) + of.place.url().len();
        self.listed(&mut runs, first, bytes, of, room, |number, _| {
            let url = urls[(number - first) as usize];
            let place = of.place.resolve(url.get("media").unwrap_or_default(), of.line)?;
            Ok((number, Address { url: place.url().to_owned(), range: range(url, "mediaRange")? }))
        })
    }

    fn of_base(&self, of: &Of<'_>) -> Result<Found, ManifestError> {
        let url = of.place.url().to_owned();
        // A decoder needs the bytes before the index, unless the manifest names others.
        let before = self.index.filter(|(first, _)| *first > 0).map(|(first, _)| (0, first - 1));
        let init = match self.init(of)? {
            Some(init) => Some(init),
            None => before.map(|range| Address { url: url.clone(), range: Some(range) }),
        };
        let address = Address { url, range: self.index };
        Ok((init, Segments::Indexed { address, window: self.window(of) }))
    }

    /// One file without an index is one segment.
    fn of_whole(&self, of: &Of<'_>, room: &mut Room) -> Result<Found, ManifestError> {
        let duration = of.duration().filter(|duration| *duration > Duration::ZERO).ok_or_else(|| {
            broken(of.line, "one file without a SegmentBase@indexRange, and its duration is not given")
        })?;
        room.take(1, of.place.url().len(), of.line, "this Representation")?;
        let address = Address { url: of.place.url().to_owned(), range: None };
        let segment = MediaSegment::whole(1, address, of.window.start, duration);
        Ok((None, Segments::Listed(vec![segment])))
    }
}
