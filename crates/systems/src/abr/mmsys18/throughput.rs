//! By the throughput alone.

use super::super::{Decision, Fetched, Progress, Rule, Situation, Tuning};
use super::{Measured, Reserve, first, size};

/// How much of the estimate may be used.
const SHARE: f64 = 0.9;
/// Not before this, in s, is a segment given up.
const GRACE_S: f64 = 0.5;
/// A segment is given up if it needs longer than this multiple of its playing time.
const TOO_LONG: f64 = 1.8;

/// The highest level within 0.9 of the estimate, or lower while little is buffered. Gives up a segment that would take
/// 1.8 times its playing time.
pub struct Throughput {
    tuning: Tuning,
    share: f64,
    measured: Measured,
    reserve: Reserve,
}

impl Throughput {
    /// Before anything was measured.
    pub fn new(tuning: &Tuning) -> Self {
        Throughput {
            tuning: *tuning,
            share: tuning.safety_factor.unwrap_or(SHARE),
            measured: Measured::new(),
            reserve: Reserve::new(),
        }
    }
}

impl Rule for Throughput {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let Some(bps) = self.measured.throughput() else { return first(now, &self.tuning) };
        let fits = self.measured.fit(now.ladder, self.share * bps);
        let level = self.reserve.bound(fits, now, &self.measured, bps);
        let kbps = bps / 1e3;
        let why = if level < fits {
            let buffer_s = now.buffer.as_secs_f64();
            format!(
                "level {fits} would be within {kbps:.0} kbit/s, but {buffer_s:.1} s in the buffer is too little"
            )
        } else {
            format!("the highest within {} of an estimated {kbps:.0} kbit/s", self.share)
        };
        Decision::at_once(level, bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        self.measured.push(fetched, now.ladder);
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        let first_byte = progress.first_byte.filter(|_| self.tuning.abandons)?;
        let elapsed_s = now.now.saturating_sub(progress.asked).as_secs_f64();
        let reading_s = now.now.saturating_sub(first_byte).as_secs_f64();
        if elapsed_s < GRACE_S || reading_s <= 0.0 {
            return None;
        }
        let size = size(progress, now.ladder);
        let bps = progress.bytes as f64 * 8.0 / reading_s;
        let rest = size - progress.bytes as f64;
        let total_s = elapsed_s + rest * 8.0 / bps;
        if total_s.is_nan() || total_s <= TOO_LONG * now.ladder.segment.as_secs_f64() {
            return None;
        }
        let level = self.measured.fit(now.ladder, self.share * bps);
        let instead = size * now.ladder.bps(level) / now.ladder.bps(progress.level);
        (level < progress.level && instead < rest).then(|| {
            let kbps = bps / 1e3;
            let why = format!("at {kbps:.0} kbit/s it would take {total_s:.1} s; level {level} instead");
            Decision::at_once(level, bps, why)
        })
    }
}
