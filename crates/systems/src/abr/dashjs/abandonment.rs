//! AbandonRequestsRule: gives up a segment that arrives too slowly.

use super::super::{Decision, Progress, Situation};
use super::buffer_time_s;
use std::collections::BTreeSet;
use streamgauge_base::Duration;

/// `abandonRequestsRule.parameters`.
const SAMPLES: usize = 6;
const AFTER: Duration = Duration::from_millis(500);
const TOO_LONG: f64 = 1.8;
/// A browser reports progress at once, then each time that so long has passed and more has come, until nothing has
/// (XMLHttpRequest standard, "process response body"; Chromium's `XMLHttpRequestProgressEventThrottle`).
const PAUSE: Duration = Duration::from_millis(50);

/// The reports on the segment in flight: its first sample, which is left out because of its latency, and its last.
#[derive(Default)]
pub struct Abandonment {
    of: Option<(usize, Duration)>,
    samples: usize,
    first: (Duration, u64),
    last: (Duration, u64),
    /// Bytes that have come, and until when they are not reported.
    came: u64,
    silent_until: Option<Duration>,
    /// Segments that were given up once. None is given up again, at any level (`abandonDict`).
    given_up: BTreeSet<usize>,
}

impl Abandonment {
    /// When it is to look again, whether more has come by then or not.
    pub fn looks_again(&self) -> Option<Duration> {
        self.silent_until.filter(|_| self.came > self.last.1)
    }

    /// Returns bytes and time from the first report to the last, as the sample of an abandoned segment. A single report
    /// gives none.
    pub fn reported(&self) -> Option<(u64, Duration)> {
        let time = self.last.0.saturating_sub(self.first.0);
        (self.samples > 1).then(|| (self.last.1 - self.first.1, time))
    }

    /// Takes in that so many bytes have come; whether the browser reports them now.
    fn report(&mut self, bytes: u64, now: Duration) -> bool {
        let before = self.samples;
        while let Some(end) = self.silent_until.filter(|end| *end <= now) {
            // Bytes that arrive at the very end of a pause are reported too.
            let waiting = if end == now { bytes } else { self.came };
            if waiting > self.last.1 {
                self.sample(waiting, end);
            } else {
                self.silent_until = None;
            }
        }
        self.came = bytes;
        if self.silent_until.is_none() && bytes > self.last.1 {
            self.sample(bytes, now);
        }
        self.samples > before
    }

    fn sample(&mut self, bytes: u64, at: Duration) {
        self.last = (at, bytes);
        self.samples += 1;
        if self.samples == 1 {
            self.first = self.last;
        }
        self.silent_until = Some(at + PAUSE);
    }

    /// Returns another level if all of these hold: at most 18 s in the buffer; six samples and 500 ms since the first
    /// report; the segment would take 1.8 times its playing time or longer; its rest is more than the whole segment of
    /// the other level.
    pub fn look(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        if self.of != Some((progress.segment, progress.asked)) {
            let of = Some((progress.segment, progress.asked));
            let given_up = std::mem::take(&mut self.given_up);
            *self = Abandonment { of, given_up, ..Abandonment::default() };
        }
        if !self.report(progress.bytes, now.now) {
            return None;
        }
        let of = progress.of?;
        let ready = self.samples >= SAMPLES && now.now > self.first.0 + AFTER && progress.bytes < of;
        let is_full = now.buffer.as_secs_f64() > buffer_time_s(now);
        if !ready || is_full || progress.level == 0 || self.given_up.contains(&progress.segment) {
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
            self.given_up.insert(progress.segment);
            let why = format!("at {kbps:.0} kbit/s it would take {total_s:.1} s; level {level} instead");
            Decision::at_once(level, kbps * 1e3, why)
        })
    }
}
