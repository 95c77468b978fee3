//! Patterns of addresses (ISO/IEC 23009-1 section 5.3.9.4.4).

use std::fmt::Write;

use super::fault::{ManifestError, broken, unsupported};
use super::left_out::shown;
use super::place::Place;
use super::time::of_ticks;
use super::{Address, MediaSegment, Outside, Template};

/// A part of a pattern.
enum Part<'a> {
    Text(&'a str),
    /// `$$`.
    Dollar,
    /// An identifier, and how many digits its number has at least.
    Name(&'a str, usize),
}

/// More digits than this no number needs.
const MOST_WIDTH: usize = 40;

/// Splits the pattern into its parts. The error describes its fault.
fn parts(pattern: &str) -> impl Iterator<Item = Result<Part<'_>, String>> {
    let mut rest = Some(pattern);
    std::iter::from_fn(move || {
        let text = rest.filter(|rest| !rest.is_empty())?;
        let Some(after) = text.strip_prefix('$') else {
            let (before, behind) = text.split_at(text.find('$').unwrap_or(text.len()));
            rest = Some(behind);
            return Some(Ok(Part::Text(before)));
        };
        let Some((name, behind)) = after.split_once('$') else {
            rest = None;
            return Some(Err("a $ without its other one".into()));
        };
        rest = Some(behind);
        if name.is_empty() {
            return Some(Ok(Part::Dollar));
        }
        let (name, format) = name.split_once('%').unwrap_or((name, "01d"));
        // %d is %01d.
        let format = if format == "d" { "01d" } else { format };
        let width = format.strip_prefix('0').and_then(|format| format.strip_suffix('d'));
        match width.and_then(|width| width.parse().ok()).filter(|width| *width <= MOST_WIDTH) {
            Some(width) => Some(Ok(Part::Name(name, width))),
            None => Some(Err(format!("the format %{format} of ${name}$, which is not of the form %05d"))),
        }
    })
}

/// The pattern's absolute address, with everything filled in but `$Number$` and `$Time$`.
pub(super) fn resolved(
    pattern: &str,
    id: &str,
    bandwidth: u64,
    place: &Place,
    line: u32,
) -> Result<String, ManifestError> {
    // An unfilled part passes RFC 3986 as letters that occur nowhere else.
    let mut mark = "sgx".to_owned();
    while [pattern, id, place.url()].iter().any(|text| text.to_ascii_lowercase().contains(&mark)) {
        mark.push('x');
    }
    let (mut text, mut kept) = (String::new(), Vec::new());
    for part in parts(pattern) {
        match part.map_err(|what| broken(line, format!("the pattern {} has {what}", shown(pattern))))? {
            Part::Text(before) => text.push_str(before),
            Part::Dollar => text.push('$'),
            Part::Name("RepresentationID", _) => text.push_str(id),
            Part::Name("Bandwidth", width) => _ = write!(text, "{bandwidth:0width$}"),
            Part::Name(name @ ("Number" | "Time"), width) => {
                _ = write!(text, "{mark}q{}q", kept.len());
                kept.push(if width > 1 { format!("${name}%0{width}d$") } else { format!("${name}$") });
            }
            Part::Name(name, _) => return Err(unsupported(line, format!("${}$ in a pattern", shown(name)))),
        }
    }
    let mut url = place.resolve(&text, line)?.url().replace('$', "$$");
    for (number, identifier) in kept.iter().enumerate() {
        url = url.replacen(&format!("{mark}q{number}q"), identifier, 1);
    }
    Ok(url)
}

/// The address that `pattern`, of ours, has for these.
pub(super) fn filled(pattern: &str, number: u64, time: u64) -> String {
    let mut url = String::with_capacity(pattern.len() + 8);
    for part in parts(pattern) {
        match part {
            Ok(Part::Text(text)) => url.push_str(text),
            Ok(Part::Dollar) => url.push('$'),
            Ok(Part::Name("Time", width)) => _ = write!(url, "{time:0width$}"),
            Ok(Part::Name(_, width)) => _ = write!(url, "{number:0width$}"),
            Err(_) => {}
        }
    }
    url
}

/// True if the pattern has this identifier.
pub(super) fn has(pattern: &str, identifier: &str) -> bool {
    parts(pattern).any(|part| matches!(part, Ok(Part::Name(name, _)) if name == identifier))
}

impl Template {
    /// The segment of this number; `None` of one before the first or behind the last. The last may play less than its
    /// length: it ends with the presentation.
    pub fn segment(&self, number: u64) -> Option<MediaSegment> {
        let place = number.checked_sub(self.first)?;
        if self.count.is_some_and(|count| place >= count) {
            return None;
        }
        let (from, to) = (place.checked_mul(self.length)?, place.checked_add(1)?.checked_mul(self.length)?);
        let [start, behind] = [from, to].map(|ticks| of_ticks(ticks, self.timescale) + self.start);
        let end = self.end.map_or(behind, |end| behind.min(end));
        if self.end.is_some_and(|end| start >= end) {
            return None;
        }
        let address = Address { url: filled(&self.pattern, number, from), range: None };
        let after = behind.saturating_sub(end);
        let outside = Outside { after, nominal: true, ..Outside::default() };
        let segment = MediaSegment::whole(number, address, start, end.saturating_sub(start));
        Some(MediaSegment { outside, ..segment })
    }

    /// The number of the segment at this time of the presentation, listed or not.
    pub fn number_at(&self, time: streamgauge_base::Duration) -> u64 {
        let within = time.saturating_sub(self.start);
        let ticks = u128::from(within.as_nanos()) * u128::from(self.timescale.max(1)) / 1_000_000_000;
        let place = ticks / u128::from(self.length.max(1));
        let number = self.first.saturating_add(u64::try_from(place).unwrap_or(u64::MAX));
        // Starts are rounded to nanoseconds: one may begin at this very time and be half a tick away.
        let begins =
            number.checked_add(1).and_then(|next| self.segment(next)).filter(|next| next.start <= time);
        begins.map_or(number, |next| next.number)
    }

    /// The segments from this number on, without end if the template has none.
    pub fn from(&self, number: u64) -> impl Iterator<Item = MediaSegment> + '_ {
        (number.max(self.first)..).map_while(|number| self.segment(number))
    }
}
