//! AbandonRequestsRule: a segment that comes too slowly is given up.

use super::super::{Decision, Progress, Situation};
use super::buffer_time_s;
use streamgauge_base::Duration;

/// `abandonRequestsRule.parameters`.
const SAMPLES: usize = 6;
const AFTER: Duration = Duration::from_millis(500);
const TOO_LONG: f64 = 1.8;
/// A browser tells of progress not more often than this (XMLHttpRequest standard, "process response body").
const PAUSE: Duration = Duration::from_millis(50);

/// What was told of the segment that comes: its first sample, for its latency left out, and its last.
#[derive(Default)]
pub struct Abandonment {
    of: Option<(usize, Duration)>,
    samples: usize,
    first: (Duration, u64),
    last: (Duration, u64),
}

impl Abandonment {
    /// Another level if with up to 18 s in the buffer, six samples and 500 ms from the first byte the segment would need
    /// 1.8 times what it plays at least, and the rest is more than all of that level.
    pub fn look(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        if self.of != Some((progress.segment, progress.asked)) {
            let of = Some((progress.segment, progress.asked));
            *self = Abandonment { of, ..Abandonment::default() };
        }
        let (at, bytes) = self.last;
        if progress.bytes <= bytes || (self.samples > 0 && now.now < at + PAUSE) {
            return None;
        }
        self.last = (now.now, progress.bytes);
        self.samples += 1;
        if self.samples == 1 {
            self.first = self.last;
        }
        let (first_byte, of) = (progress.first_byte?, progress.of?);
        let ready = self.samples >= SAMPLES && now.now > first_byte + AFTER && progress.bytes < of;
        if !ready || now.buffer.as_secs_f64() > buffer_time_s(now) || progress.level == 0 {
            return None;
        }
        let time_ms = (self.last.0.saturating_sub(self.first.0).as_secs_f64() * 1e3).max(1.0);
        let kbps = ((self.last.1 - self.first.1) as f64 * 8.0 / time_ms).round();
        let total_s = (of as f64 * 8.0 / kbps / 10.0).round() / 100.0;
        if total_s < TOO_LONG * now.ladder.segment.as_secs_f64() {
            return None;
        }
        let level = now.ladder.at_most(kbps * 1e3);
        let instead = of as f64 * now.ladder.bps(level) / now.ladder.bps(progress.level);
        ((of - progress.bytes) as f64 > instead).then(|| {
            let why = format!("at {kbps:.0} kbit/s it would take {total_s:.1} s; level {level} instead");
            Decision::at_once(level, kbps * 1e3, why)
        })
    }
}
