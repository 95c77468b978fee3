//! By the buffer alone, but for rises.

use super::super::utilities::{Ties, Utilities};
use super::super::{Decision, Fetched, Ladder, Progress, Rule, Situation, Tuning};
use super::{Measured, first, size};

/// The value of playing at all, beside ln(R/R_0): the paper's gamma p.
const PLAYING: f64 = 5.0;
/// However near an end of the content is, V is that of so many segments at least.
const LEAST_SEGMENTS: f64 = 3.0;

/// BOLA with the V of finite content (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016). A rise is bounded by one level
/// above the level that the throughput carries. It uses declared rates, where the paper has segment sizes.
pub struct Bola {
    tuning: Tuning,
    share: f64,
    measured: Measured,
    last: usize,
    utilities: Option<Utilities>,
}

impl Bola {
    /// Before anything was measured.
    pub fn new(tuning: &Tuning) -> Self {
        Bola {
            tuning: *tuning,
            share: tuning.safety_factor.unwrap_or(1.0),
            measured: Measured::new(),
            last: 0,
            utilities: None,
        }
    }

    fn utilities(now: &Situation<'_>) -> Utilities {
        let segment_s = now.ladder.segment.as_secs_f64();
        let ahead = now.ladder.segments.map_or(usize::MAX, |all| all.saturating_sub(now.segment));
        let from_an_end = (now.segment.min(ahead) as f64 / 2.0).max(LEAST_SEGMENTS);
        let buffer_s = now.target.as_secs_f64().min(from_an_end * segment_s);
        Utilities::of_buffer(now.ladder, buffer_s, segment_s, PLAYING)
    }
}

impl Rule for Bola {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let utilities = self.utilities.insert(Self::utilities(now));
        let Some(bps) = self.measured.throughput() else {
            let first = first(now, &self.tuning);
            self.last = first.level;
            return first;
        };
        let buffer_s = now.buffer.as_secs_f64();
        let best = utilities.best(now.ladder, PLAYING, buffer_s, Ties::Low);
        let fits = self.measured.fit(now.ladder, self.share * bps);
        let level = if best <= self.last || best <= fits { best } else { self.last.max(fits + 1) };
        let mut why = format!("buffer {buffer_s:.1} s: BOLA prefers level {best}");
        if level < best {
            let kbps = bps / 1e3;
            why += &format!(", an estimated {kbps:.0} kbit/s allows a rise to {level}");
        }
        self.last = level;
        Decision::at_once(level, bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        self.measured.push(fetched, now.ladder);
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        let utilities = self.utilities.as_ref().filter(|_| self.tuning.abandons && progress.bytes > 0)?;
        let size = size(progress, now.ladder);
        let rest = size - progress.bytes as f64;
        let buffer_s = now.buffer.as_secs_f64();
        let stay = utilities.score(progress.level, PLAYING, buffer_s, rest);
        if rest <= 0.0 || stay < 0.0 {
            return None;
        }
        let level = better(utilities, now.ladder, progress.level, size, rest, PLAYING, buffer_s)?;
        self.last = level;
        let why = format!("buffer {buffer_s:.1} s: BOLA prefers level {level} to the rest of this segment");
        Some(Decision::at_once(level, self.measured.throughput(), why))
    }
}

/// The level below `level` that scores best, if better than the `rest` of `size` bytes that are yet to come and smaller.
pub(super) fn better(
    utilities: &Utilities,
    ladder: &Ladder,
    level: usize,
    size: f64,
    rest: f64,
    offset: f64,
    buffer_s: f64,
) -> Option<usize> {
    let (mut score, mut found) = (utilities.score(level, offset, buffer_s, rest), None);
    for lower in 0..level {
        let instead = size * ladder.bps(lower) / ladder.bps(level);
        let its = utilities.score(lower, offset, buffer_s, instead);
        if instead < rest && its > score {
            (score, found) = (its, Some(lower));
        }
    }
    found
}
