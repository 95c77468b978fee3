//! Addresses of resources with several copies in an MPD (BaseURL, ISO/IEC 23009-1 section 5.6).

use std::collections::BTreeSet;

use streamgauge_base::Duration;

use super::fault::ManifestError;
use super::left_out::{LeftOut, shown};
use super::place::Place;
use super::segments::early;
use super::xml::Element;

/// Copies of one thing that are kept in mind.
const MOST_COPIES: usize = 16;

/// A place, and which copy it is.
#[derive(Clone)]
pub struct Base {
    pub place: Place,
    /// The innermost BaseURL that has others beside it, which is given up when it fails.
    copy: Option<String>,
    /// Its `@availabilityTimeOffset`.
    pub early: Option<Duration>,
}

/// All copies of one thing, the preferred first.
#[derive(Clone)]
pub struct Bases(Vec<Base>);

impl Bases {
    /// The manifest's own place.
    pub fn of(place: Place) -> Self {
        Bases(vec![Base { place, copy: None, early: None }])
    }

    /// The addresses of the resources in `element`. Its BaseURLs are sorted by DVB's priority and weight (ETSI TS 103
    /// 285 section 10.8.2.1), else as written.
    pub fn within(&self, element: Element<'_>, left: &mut LeftOut) -> Result<Bases, ManifestError> {
        let mut own: Vec<Element<'_>> = element.all("BaseURL").collect();
        let number = |base: &Element<'_>, name: &str| {
            base.get_any(name).and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(1)
        };
        own.sort_by_key(|base| (number(base, "priority"), std::cmp::Reverse(number(base, "weight"))));
        if own.is_empty() {
            return Ok(self.clone());
        }
        let is_only = own.len() == 1;
        let mut bases = Vec::new();
        for outer in &self.0 {
            for base in &own {
                let place = match outer.place.resolve(base.text(), base.line()) {
                    Ok(place) => place,
                    Err(error) if is_only => return Err(error),
                    Err(_) => {
                        let what = format!("BaseURL {} of line {}", shown(base.text()), base.line());
                        left.add(what, "no address of http or https");
                        continue;
                    }
                };
                let copy = if is_only { outer.copy.clone() } else { Some(place.url().to_owned()) };
                bases.push(Base { place, copy, early: early(*base) });
            }
        }
        bases.truncate(MOST_COPIES);
        if bases.is_empty() {
            return Ok(self.clone());
        }
        Ok(Bases(bases))
    }

    /// The first copy that has not failed, and its name if there is another one to try.
    pub fn choose(&self, failed: &BTreeSet<String>) -> (&Base, Option<String>) {
        let stands = |base: &&Base| base.copy.as_ref().is_none_or(|copy| !failed.contains(copy));
        let mut standing = self.0.iter().filter(stands);
        let Some(first) = standing.next() else { return (&self.0[0], None) };
        let is_last = standing.all(|other| other.copy == first.copy);
        (first, first.copy.clone().filter(|_| !is_last))
    }
}
