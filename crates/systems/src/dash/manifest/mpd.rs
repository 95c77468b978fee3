//! MPEG-DASH (ISO/IEC 23009-1): reads an MPD.

use std::collections::BTreeSet;
use std::str::FromStr;

use streamgauge_base::{BitRate, Duration};

use super::bases::Bases;
use super::fault::{ManifestError, Room, broken, encrypted, unsupported};
use super::left_out::LeftOut;
use super::periods::{self, Timed, time};
use super::place::Place;
use super::segments::{Of, SegmentSettings};
use super::sets::{self, Chosen};
use super::time::{of_xs_date_time, rate};
use super::xml::{Element, line_ends, parse};
use super::{AdaptationSet, Live, Manifest, Period, Representation, Segments, Window};

/// Representations of one manifest: each takes memory even without segments.
const MOST_REPRESENTATIONS: usize = 10_000;

/// Reads `text` from `url`, without the copies in `failed`. Times count from `@availabilityStartTime`, which a live
/// presentation keeps when it has ended, else from the first period's start.
pub fn read(text: &str, url: &str, failed: &BTreeSet<String>) -> Result<Manifest, ManifestError> {
    let document = parse(text)?;
    let line_ends = line_ends(text);
    let mpd = Element::root(&document, &line_ends);
    if mpd.name() != "MPD" {
        return Err(broken(mpd.line(), format!("the root is {:.40}, and an MPD's is MPD", mpd.name())));
    }
    let is_live = match mpd.get("type").map(str::trim) {
        None | Some("static") => false,
        Some("dynamic") => true,
        Some(_) => return Err(mpd.wrong("type", "static or dynamic is wanted")),
    };
    let mut left = LeftOut::default();
    let timed = periods::timed(mpd, is_live, &mut left)?;
    let mut live = Live::default();
    if is_live {
        let starts = mpd.read("availabilityStartTime", of_xs_date_time, "a date of XML Schema is wanted")?;
        let starts =
            starts.ok_or_else(|| broken(mpd.line(), "dynamic, and without @availabilityStartTime"))?;
        live = Live {
            starts: Some(starts),
            update: time(mpd, "minimumUpdatePeriod")?,
            delay: time(mpd, "suggestedPresentationDelay").ok().flatten(),
            depth: time(mpd, "timeShiftBufferDepth").ok().flatten(),
            early: Duration::ZERO,
        };
    }
    let bases = Bases::of(Place::of(url)?).within(mpd, &mut left)?;
    let has_clock = mpd.get("availabilityStartTime").is_some();
    let origin = if has_clock { Duration::ZERO } else { timed[0].start };
    let mut reader =
        Reader { room: Room::new(), early: None, count: 0, is_live, has_clock, origin, failed, left };
    let mut found = Vec::new();
    for period in &timed {
        found.extend(reader.period(mpd, period, &bases)?);
    }
    if found.is_empty() {
        return Err(reader.nothing(mpd, &timed));
    }
    live.early = reader.early.unwrap_or(Duration::ZERO);
    let told = timed.last().and_then(|last| last.end).map(|end| end.saturating_sub(origin));
    let longest = || {
        let all = found.iter().flat_map(|period: &Period| &period.sets).flat_map(|set| &set.representations);
        all.filter_map(Representation::end).max()
    };
    let duration = told.or_else(|| if is_live { None } else { longest() });
    let left_out = reader.left.into_list();
    let live = is_live.then_some(live);
    Ok(Manifest { duration, live, periods: found, left_out, variables: Vec::new() })
}

struct Reader<'f> {
    room: Room,
    /// The earliest offset of availability that all representations have.
    early: Option<Duration>,
    count: usize,
    is_live: bool,
    /// It is live, or was.
    has_clock: bool,
    /// When the presentation begins, on the manifest's clock.
    origin: Duration,
    failed: &'f BTreeSet<String>,
    left: LeftOut,
}

impl Reader<'_> {
    /// The played parts of a period, or none if nothing is played.
    fn period(
        &mut self,
        mpd: Element<'_>,
        timed: &Timed<'_>,
        bases: &Bases,
    ) -> Result<Option<Period>, ManifestError> {
        let period = timed.element;
        let bases = bases.within(period, &mut self.left)?;
        let told = SegmentSettings::default().within(period)?;
        let chosen = sets::choose(mpd, period, &mut self.left);
        let mut found = Vec::new();
        for chosen in &chosen {
            let representations = self.representations(timed, chosen, &bases, &told)?;
            if !representations.is_empty() {
                found.push(AdaptationSet { kind: chosen.kind, representations });
            }
        }
        if found.is_empty() {
            // A live one fills later.
            let why = if self.is_live { "it has nothing to play yet" } else { "it has nothing to play" };
            self.left.add(periods::named(period), why);
            return Ok(None);
        }
        let from = |time: Duration| time.saturating_sub(self.origin);
        let (start, end) = (from(timed.start), timed.end.map(from));
        Ok(Some(Period { id: period.get("id").unwrap_or_default().to_owned(), start, end, sets: found }))
    }

    fn representations(
        &mut self,
        timed: &Timed<'_>,
        chosen: &Chosen<'_>,
        bases: &Bases,
        told: &SegmentSettings<'_>,
    ) -> Result<Vec<Representation>, ManifestError> {
        let mut representations: Vec<Representation> = Vec::new();
        for [set, one] in &chosen.representations {
            self.count += 1;
            if self.count > MOST_REPRESENTATIONS {
                return Err(unsupported(one.line(), "more than 10000 representations"));
            }
            let (bases, told) = (bases.within(*set, &mut self.left)?, told.within(*set)?);
            let bandwidth = one.hint("bandwidth", rate);
            if bandwidth.is_none() && chosen.representations.len() > 1 {
                self.left.add(sets::representation(*one), "no @bandwidth tells its place among the levels");
                continue;
            }
            let read = self.representation(timed, [*set, *one], bandwidth.unwrap_or(0), &bases, &told)?;
            let is_empty = matches!(&read.segments, Segments::Listed(segments) if segments.is_empty());
            if is_empty && !self.is_live {
                self.left.add(sets::representation(*one), "no segment of it lies in its period");
                continue;
            }
            representations.push(read);
        }
        representations.sort_by_key(|one| one.rate);
        Ok(representations)
    }

    fn representation(
        &mut self,
        timed: &Timed<'_>,
        [set, one]: [Element<'_>; 2],
        bandwidth: u64,
        bases: &Bases,
        told: &SegmentSettings<'_>,
    ) -> Result<Representation, ManifestError> {
        let id = one.get("id").unwrap_or_default().to_owned();
        let bases = bases.within(one, &mut self.left)?;
        let told = told.within(one)?;
        let [width, height] = ["width", "height"].map(|name| side(one, name).or(side(set, name)));
        let (base, copy) = bases.choose(self.failed);
        let early = base.early.unwrap_or(Duration::ZERO) + told.early.unwrap_or(Duration::ZERO);
        self.early = Some(self.early.map_or(early, |all| all.min(early)));
        let window = Window {
            start: timed.start.saturating_sub(self.origin),
            end: timed.end.map(|end| end.saturating_sub(self.origin)),
            offset: Duration::ZERO,
        };
        let of = Of {
            id: &id,
            bandwidth,
            place: &base.place,
            line: one.line(),
            window,
            is_live: self.is_live,
            has_clock: self.has_clock,
        };
        let (init, segments) = told.segments(&of, &mut self.room)?;
        Ok(Representation {
            rate: BitRate::from_bps(bandwidth),
            size: width.zip(height),
            codecs: one.get("codecs").or(set.get("codecs")).map(str::to_owned),
            init,
            segments,
            copy,
            id,
        })
    }

    /// Why nothing can be played.
    fn nothing(self, mpd: Element<'_>, timed: &[Timed<'_>]) -> ManifestError {
        let periods = timed.iter().map(|period| period.element);
        let mut sets = periods.clone().flat_map(|period| period.all("AdaptationSet"));
        let line = timed[0].element.line();
        if sets.all(|set| set.first("Representation").is_none()) {
            return broken(line, "the Period has no Representation");
        }
        let list = self.left.into_list();
        let protected = list.iter().find(|entry| entry.contains(": encrypted with "));
        let inner = periods.flat_map(|period| std::iter::once(period).chain(period.all("AdaptationSet")));
        let inner = inner.flat_map(|one| std::iter::once(one).chain(one.all("Representation")));
        let all = std::iter::once(mpd).chain(inner);
        let first = all.flat_map(|one| one.all("ContentProtection")).next();
        match (protected, first) {
            (Some(what), Some(protection)) => encrypted(protection.line(), what.clone()),
            _ => broken(line, format!("nothing can be played: {}", list.join("; "))),
        }
    }
}

fn side(element: Element<'_>, name: &str) -> Option<u32> {
    element.hint(name, |text| u32::from_str(text).ok())
}
