//! BolaRule: BOLA-E's descendant, with BOLA-O's bound on rises.

use super::super::utilities::{LOW_S, Ties, Utilities};
use super::super::{Fetched, Situation};
use super::{Measured, buffer_time_s};
use streamgauge_base::Duration;

/// The share of the placeholder that remains after each segment.
const DECAY: f64 = 0.99;

/// The state between two segments. It is empty until the rule is first in force, and earlier segments do not count.
#[derive(Default)]
pub struct Bola {
    begun: bool,
    steady: bool,
    placeholder_s: f64,
    selected: usize,
    a_segment_came: bool,
    asked_at: Option<Duration>,
    came_at: Option<Duration>,
    /// The highest segment number that has arrived.
    furthest: Option<usize>,
}

impl Bola {
    /// Before it is in force.
    pub fn new() -> Self {
        Bola::default()
    }

    fn utilities(now: &Situation<'_>) -> Option<Utilities> {
        Utilities::of_reach(now.ladder, buffer_time_s(now))
    }

    /// Its level, how long to wait, and why; nothing of a single level, and nothing before there is an estimate.
    pub fn propose(&mut self, now: &Situation<'_>, measured: &Measured) -> Option<(usize, Duration, String)> {
        let of = Self::utilities(now)?;
        self.begun = true;
        let safe_bps = measured.safe_bps()?;
        let (buffer_s, fits) = (now.buffer.as_secs_f64(), now.ladder.at_most(safe_bps));
        if !self.steady {
            self.placeholder_s = (of.least(now.ladder, fits) - buffer_s).max(0.0);
            self.selected = fits;
            self.steady = self.a_segment_came && buffer_s >= now.ladder.segment.as_secs_f64();
            return Some((fits, Duration::ZERO, format!("BOLA starts with {}", measured.why())));
        }
        // Time without a fetch was no lack of throughput.
        let since = self.came_at.take().or(self.asked_at);
        let idle_s = since.map_or(0.0, |since| now.now.saturating_sub(since).as_secs_f64());
        self.placeholder_s += idle_s;
        self.asked_at = Some(now.now);

        let held_s = buffer_s + self.placeholder_s;
        // 5.2.1 compares V (ln(R/R_0) + g) - B; its least and most buffer of a level are those of V (ln(R/R_0) + 1 + g).
        let best = of.best(now.ladder, of.g, held_s, Ties::High);
        let bound = if best > self.selected && best > fits { fits.max(self.selected) } else { best };
        let over_s = (held_s - of.most(bound)).max(0.0);
        let taken_s = over_s.min(self.placeholder_s);
        self.placeholder_s -= taken_s;
        let wait_s = if bound == now.ladder.top() { 0.0 } else { over_s - taken_s };
        self.selected = bound;
        let mut why =
            format!("buffer {buffer_s:.1} s, with the placeholder {held_s:.1} s: BOLA prefers level {best}");
        if bound < best {
            why += &format!(", {:.0} kbit/s allow no rise above {bound}", safe_bps / 1e3);
        }
        Some((bound, Duration::from_nanos((wait_s * 1e9).round() as u64), why))
    }

    /// That level was selected in the end.
    pub fn selected(&mut self, level: usize) {
        self.selected = level;
    }

    /// Takes in a segment that arrived, or that was given up for the selected level.
    pub fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        let Some(of) = Self::utilities(now).filter(|_| self.begun) else { return };
        let buffer_s = now.buffer.as_secs_f64();
        let most_s = if fetched.abandoned {
            let held_s = if self.selected > 0 { of.least(now.ladder, self.selected) } else { LOW_S };
            held_s - buffer_s
        } else {
            self.a_segment_came = true;
            self.selected = fetched.level;
            self.placeholder_s *= DECAY;
            // It looks before the segment is in the buffer.
            let took_s = fetched.done.saturating_sub(fetched.asked).as_secs_f64();
            of.most(fetched.level) - (buffer_s - now.ladder.segment.as_secs_f64()).max(0.0) - took_s
        };
        self.came_at = Some(fetched.done);
        self.placeholder_s = self.placeholder_s.min(most_s.max(0.0));
        if !fetched.abandoned {
            // One in a held one's place made the buffer no longer (`lastSegmentWasReplacement`).
            if self.furthest.is_some_and(|furthest| fetched.segment <= furthest) {
                self.placeholder_s += now.ladder.segment.as_secs_f64();
            }
            self.furthest = self.furthest.max(Some(fetched.segment));
        }
    }

    /// Takes in a segment from the browser's cache.
    pub fn cache_had(&mut self, level: usize, now: &Situation<'_>) {
        let came = Fetched {
            segment: now.segment,
            level,
            bytes: 0,
            asked: now.now,
            first_byte: now.now,
            done: now.now,
            seen: now.now,
            appended: now.now,
            reading: Duration::ZERO,
            abandoned: false,
        };
        self.fetched(&came, now);
    }

    /// The buffer ran dry.
    pub fn ran_dry(&mut self) {
        if self.steady {
            self.placeholder_s = 0.0;
        }
    }
}

#[cfg(test)]
impl Bola {
    pub fn placeholder_s(&self) -> f64 {
        self.placeholder_s
    }

    pub fn placeholder_of(&mut self, placeholder_s: f64) {
        self.placeholder_s = placeholder_s;
    }
}
