//! MPEG-DASH (ISO/IEC 23009-1): what an MPD tells of one period.

use std::str::FromStr;

use streamgauge_base::{BitRate, Duration};

use super::fault::{ManifestError, Room, broken, unsupported};
use super::place::Place;
use super::segments::{Of, Told, early};
use super::time::{of_xs_date_time, of_xs_duration};
use super::xml::{Element, parse};
use super::{AdaptationSet, Live, Manifest, MediaKind, Representation};

/// Representations of one manifest: each takes memory even without segments.
const MOST_REPRESENTATIONS: usize = 1_000;

/// Trick modes: pictures that are shown while one looks for a place (DASH-IF IOP part 5).
const TRICK_MODE: &str = "http://dashif.org/guidelines/trickmode";

/// Reads `text`, which stands at `url`. Times count from the period's start.
pub fn read(text: &str, url: &str) -> Result<Manifest, ManifestError> {
    let document = parse(text)?;
    let mpd = Element(document.root_element());
    if mpd.name() != "MPD" {
        return Err(broken(mpd.line(), format!("the root is {:.40}, and an MPD's is MPD", mpd.name())));
    }
    let mut periods = mpd.all("Period");
    let period = periods.next().ok_or_else(|| broken(mpd.line(), "there is no Period"))?;
    if let Some(second) = periods.next() {
        let count = periods.count() + 2;
        return Err(unsupported(second.line(), format!("the presentation has {count} periods")));
    }
    let time = |element: Element<'_>, name: &str| {
        element.read(name, of_xs_duration, "a duration as PT2.5S without years and months is wanted")
    };
    let is_live = match mpd.get("type") {
        None | Some("static") => false,
        Some("dynamic") => true,
        Some(_) => return Err(mpd.wrong("type", "static or dynamic is wanted")),
    };
    let begins = time(period, "start")?.unwrap_or(Duration::ZERO);
    let whole = time(mpd, "mediaPresentationDuration")?.map(|whole| whole.saturating_sub(begins));
    let duration = time(period, "duration")?.or(whole);
    let mut live = Live::default();
    if is_live {
        let starts = mpd.read("availabilityStartTime", of_xs_date_time, "a date of XML Schema is wanted")?;
        let starts =
            starts.ok_or_else(|| broken(mpd.line(), "dynamic, and without @availabilityStartTime"))?;
        live = Live {
            starts: Some(starts + begins),
            update: time(mpd, "minimumUpdatePeriod")?,
            delay: time(mpd, "suggestedPresentationDelay")?,
            depth: time(mpd, "timeShiftBufferDepth")?,
            early: Duration::ZERO,
        };
    }
    let place = at(mpd, &Place::of(url)?)?;
    let mut reader = Reader { room: Room::new(), early: None, count: 0, duration, is_live };
    let sets = reader.period(period, &place)?;
    if sets.is_empty() {
        return Err(broken(period.line(), "the Period has no Representation"));
    }
    live.early = reader.early.unwrap_or(Duration::ZERO);
    let longest = || sets.iter().flat_map(|set| &set.representations).filter_map(Representation::end).max();
    let duration = duration.or_else(|| if is_live { None } else { longest() });
    Ok(Manifest { duration, live: is_live.then_some(live), sets })
}

/// Where what is in `element` stands: the first BaseURL is taken, the others are further copies.
fn at(element: Element<'_>, place: &Place) -> Result<Place, ManifestError> {
    match element.first("BaseURL") {
        Some(base) => place.resolve(base.text(), base.line()),
        None => Ok(place.clone()),
    }
}

struct Reader {
    room: Room,
    /// What all representations may be asked for early.
    early: Option<Duration>,
    count: usize,
    duration: Option<Duration>,
    is_live: bool,
}

impl Reader {
    fn period(&mut self, period: Element<'_>, place: &Place) -> Result<Vec<AdaptationSet>, ManifestError> {
        let place = at(period, place)?;
        let told = Told::default().within(period)?;
        let mut sets = Vec::new();
        for set in period.all("AdaptationSet") {
            let (place, told) = (at(set, &place)?, told.within(set)?);
            let mut representations = Vec::new();
            for one in set.all("Representation") {
                self.count += 1;
                if self.count > MOST_REPRESENTATIONS {
                    return Err(unsupported(one.line(), "more than 1000 representations"));
                }
                representations.push(self.representation([period, set, one], &place, &told)?);
            }
            representations.sort_by_key(|one| one.rate);
            if let Some(one) = set.first("Representation") {
                sets.push(AdaptationSet { kind: kind(set, one), representations });
            }
        }
        Ok(sets)
    }

    fn representation(
        &mut self,
        [period, set, one]: [Element<'_>; 3],
        place: &Place,
        told: &Told<'_>,
    ) -> Result<Representation, ManifestError> {
        let id = one.get("id").unwrap_or_default().to_owned();
        let wanted = || broken(one.line(), "a Representation without @bandwidth");
        let bandwidth = one.number("bandwidth")?.ok_or_else(wanted)?;
        let bases = [period, set, one].into_iter().rev().find_map(|element| element.first("BaseURL"));
        let place = at(one, place)?;
        let told = told.within(one)?;
        let sides =
            ["width", "height"].map(|name| side(one, name).transpose().or(side(set, name).transpose()));
        let [width, height] = sides.map(Option::transpose);
        let of_base = bases.map_or(Ok(None), early)?;
        let early = of_base.unwrap_or(Duration::ZERO) + told.early.unwrap_or(Duration::ZERO);
        self.early = Some(self.early.map_or(early, |all| all.min(early)));
        let of = Of {
            id: &id,
            bandwidth,
            place: &place,
            line: one.line(),
            duration: self.duration,
            is_live: self.is_live,
        };
        let (init, segments) = told.segments(&of, &mut self.room)?;
        Ok(Representation {
            rate: BitRate::from_bps(bandwidth),
            size: width?.zip(height?),
            codecs: one.get("codecs").or(set.get("codecs")).map(str::to_owned),
            init,
            segments,
            id,
        })
    }
}

fn side(element: Element<'_>, name: &str) -> Result<Option<u32>, ManifestError> {
    element.read(name, |text| u32::from_str(text).ok(), "a number of pixels is wanted")
}

/// What a set is, by its type or that of its first representation, else by its codecs.
fn kind(set: Element<'_>, one: Element<'_>) -> MediaKind {
    let is_trick = |property: Element<'_>| property.get("schemeIdUri") == Some(TRICK_MODE);
    if set.all("EssentialProperty").chain(one.all("EssentialProperty")).any(is_trick) {
        return MediaKind::Other;
    }
    let component = set.first("ContentComponent").and_then(|component| component.get("contentType"));
    let told = set.get("contentType").or(component).or(set.get("mimeType")).or(one.get("mimeType"));
    match told.map(|told| told.split('/').next().unwrap_or_default()) {
        Some("video") => MediaKind::Video,
        Some("audio") => MediaKind::Audio,
        Some(_) => MediaKind::Other,
        None => match one.get("codecs").or(set.get("codecs")) {
            Some(codecs) if !is_sound(codecs) => MediaKind::Video,
            Some(_) => MediaKind::Audio,
            None if one.get("width").or(set.get("width")).is_some() => MediaKind::Video,
            None => MediaKind::Other,
        },
    }
}

/// True if all of these codecs are of sound (RFC 6381, the registries that it names).
pub(super) fn is_sound(codecs: &str) -> bool {
    const SOUND: [&str; 11] =
        ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "flac", "vorbis", "alac", "mp3", "dts", "mha1"];
    let is_sound = |codec: &str| {
        let codec = codec.trim().to_ascii_lowercase();
        SOUND.iter().any(|sound| codec.starts_with(sound))
    };
    codecs.split(',').all(is_sound)
}
