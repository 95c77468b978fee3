//! Oddities of a manifest that can be played all the same.

use std::fmt;

use streamgauge_base::Duration;

use super::{Manifest, MediaSegment, Playlist, Segments};

/// More than this between two segments is no rounding: half of a block of sound at 48 kHz.
const TOLERANCE: Duration = Duration::from_millis(10);

/// Further ones add nothing new.
const MOST_FLAWS: usize = 100;

/// Something odd. In words: `v1: segments missing between 12.000 s and 14.000 s`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// The representation.
    pub id: String,
    /// The oddity.
    pub what: Oddity,
}

/// Oddities between two segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oddity {
    /// Nothing plays between these times.
    Gap(Duration, Duration),
    /// Two segments play between these times, or begin at one.
    Overlap(Duration, Duration),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, from, to) = match self.what {
            Oddity::Gap(from, to) => ("segments missing", from, to),
            Oddity::Overlap(from, to) => ("two segments", from, to),
        };
        write!(f, "{}: {what} between {:.3} s and {:.3} s", self.id, from.as_secs_f64(), to.as_secs_f64())
    }
}

fn flaws<'a>(id: &'a str, segments: &'a [MediaSegment]) -> impl Iterator<Item = Flaw> + 'a {
    segments.windows(2).filter_map(move |pair| {
        let (end, next) = (pair[0].start + pair[0].duration, pair[1].start);
        let what = if next.saturating_sub(end) > TOLERANCE {
            Oddity::Gap(end, next)
        } else if end.saturating_sub(next) > TOLERANCE {
            Oddity::Overlap(next, end)
        } else {
            return None;
        };
        Some(Flaw { id: id.into(), what })
    })
}

impl Manifest {
    /// The oddities of its lists of segments, up to a hundred.
    pub fn flaws(&self) -> Vec<Flaw> {
        let all = self.sets().flat_map(|set| &set.representations);
        let listed = all.filter_map(|one| match &one.segments {
            Segments::Listed(segments) => Some((&one.id, segments)),
            _ => None,
        });
        listed.flat_map(|(id, segments)| flaws(id, segments)).take(MOST_FLAWS).collect()
    }
}

impl Playlist {
    /// The oddities of its segments, up to a hundred; `id` names them.
    pub fn flaws(&self, id: &str) -> Vec<Flaw> {
        flaws(id, &self.segments).take(MOST_FLAWS).collect()
    }
}
