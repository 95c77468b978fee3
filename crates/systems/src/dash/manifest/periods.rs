//! When the periods of an MPD begin and end (ISO/IEC 23009-1 section 5.3.2.1).

use streamgauge_base::Duration;

use super::fault::{ManifestError, broken};
use super::left_out::{LeftOut, shown};
use super::time::{DURATION, of_xs_duration};
use super::xml::Element;

/// Periods of one manifest: each takes memory even without media.
const MOST_PERIODS: usize = 10_000;

/// A period and its times, on the manifest's clock.
pub struct Timed<'a> {
    pub element: Element<'a>,
    pub start: Duration,
    pub end: Option<Duration>,
}

/// An attribute that is a duration.
pub fn time(element: Element<'_>, name: &str) -> Result<Option<Duration>, ManifestError> {
    element.read(name, of_xs_duration, DURATION)
}

/// The periods that have a length, in order. A period is left out if it begins with the next one or after the
/// presentation's end, or if it is in another file.
pub fn timed<'a>(
    mpd: Element<'a>,
    is_live: bool,
    left: &mut LeftOut,
) -> Result<Vec<Timed<'a>>, ManifestError> {
    let whole = time(mpd, "mediaPresentationDuration")?;
    let mut found: Vec<Timed<'a>> = Vec::new();
    // Where the one before ends, if it has a duration.
    let mut next = Some(Duration::ZERO);
    for element in mpd.all("Period") {
        if found.len() == MOST_PERIODS {
            return Err(broken(element.line(), "more than 10000 periods"));
        }
        let Some(start) = time(element, "start")?.or(next) else {
            if is_live {
                left.add(named(element), "its start is not known yet");
                continue;
            }
            let what = "a Period without @start, and the one before it has no @duration";
            return Err(broken(element.line(), what));
        };
        let duration = time(element, "duration")?;
        next = duration.map(|duration| start + duration);
        if let Some(before) = found.last_mut() {
            before.end = Some(before.end.map_or(start, |end| end.min(start)));
        }
        found.push(Timed { element, start, end: next });
    }
    if found.is_empty() {
        return Err(broken(mpd.line(), "there is no Period"));
    }
    if let Some(whole) = whole {
        for period in &mut found {
            period.end = Some(period.end.map_or(whole, |end| end.min(whole)));
        }
    }
    found.retain(|period| {
        let is_elsewhere = period.element.get_any("href").is_some()
            && period.element.all("AdaptationSet").all(|set| set.first("Representation").is_none());
        let is_empty = period.end.is_some_and(|end| end <= period.start);
        if is_elsewhere {
            let href = shown(period.element.get_any("href").unwrap_or_default());
            // XLink's mark of an empty element.
            if href != "urn:mpeg:dash:resolve-to-zero:2013" {
                left.add(named(period.element), &format!("it is in another file (xlink:href {href})"));
            }
        } else if is_empty {
            left.add(named(period.element), "it ends where it begins");
        }
        !is_elsewhere && !is_empty
    });
    if found.is_empty() {
        let list = std::mem::take(left).into_list().join("; ");
        return Err(broken(mpd.line(), format!("no Period can be played: {list}")));
    }
    Ok(found)
}

/// In words: `period of line 7 (ad-1)`.
pub fn named(period: Element<'_>) -> String {
    let id = period.get("id").map_or(String::new(), |id| format!(" ({})", shown(id)));
    format!("period of line {}{id}", period.line())
}
