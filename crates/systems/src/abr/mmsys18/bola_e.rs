//! BOLA with a placeholder for buffer that the player could have.

use super::super::utilities::{LOW_S, Ties, Utilities};
use super::super::{Decision, Fetched, Progress, Rule, Situation, Tuning};
use super::bola::better;
use super::{Measured, Reserve, first, size};
use streamgauge_base::Duration;

/// BOLA-E (MMSys 2018): a placeholder is added to the buffer, so that neither a start nor a pause looks like a
/// lack of throughput.
pub struct BolaE {
    tuning: Tuning,
    share: f64,
    measured: Measured,
    reserve: Reserve,
    steady: bool,
    placeholder_s: f64,
    last: usize,
    abandoned_to: Option<usize>,
    own_wait: Duration,
}

impl BolaE {
    /// Before anything was measured.
    pub fn new(tuning: &Tuning) -> Self {
        BolaE {
            tuning: *tuning,
            share: tuning.safety_factor.unwrap_or(1.0),
            measured: Measured::new(),
            reserve: Reserve::new(),
            steady: false,
            placeholder_s: 0.0,
            last: 0,
            abandoned_to: None,
            own_wait: Duration::ZERO,
        }
    }

    fn utilities(now: &Situation<'_>) -> Option<Utilities> {
        Utilities::of_reach(now.ladder, now.target.as_secs_f64())
    }

    /// The first decision that has an estimate follows it; the placeholder makes BOLA agree.
    fn start(&mut self, now: &Situation<'_>, of: &Utilities, bps: f64) -> Decision {
        let level = self.measured.fit(now.ladder, self.share * bps);
        self.steady = true;
        self.placeholder_s = (of.least(now.ladder, level) - now.buffer.as_secs_f64()).max(0.0);
        let why = format!("the highest within an estimated {:.0} kbit/s, to start with", bps / 1e3);
        Decision::at_once(level, bps, why)
    }

    /// How long to wait so that no more than `most_s` is held, once the placeholder is used up.
    fn wait_s(&mut self, buffer_s: f64, most_s: f64) -> f64 {
        let over_s = (buffer_s + self.placeholder_s - most_s).max(0.0);
        let taken_s = over_s.min(self.placeholder_s);
        self.placeholder_s -= taken_s;
        over_s - taken_s
    }

    fn at_most(&mut self, level_s: f64, buffer_s: f64) {
        self.placeholder_s = self.placeholder_s.min((level_s - buffer_s).max(0.0));
    }
}

impl Rule for BolaE {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let Some(of) = Self::utilities(now) else { return Decision::at_once(0, None, "the only level") };
        let Some(bps) = self.measured.throughput() else { return first(now, &self.tuning) };
        if !self.steady {
            return self.start(now, &of, bps);
        }
        let (buffer_s, kbps) = (now.buffer.as_secs_f64(), bps / 1e3);
        let held_s = buffer_s + self.placeholder_s;
        let best = of.best(now.ladder, 1.0 + of.g, held_s, Ties::Low);
        let fits = self.measured.fit(now.ladder, self.share * bps);
        let asked = if best <= self.last || best <= fits { best } else { self.last.max(fits) + 1 };
        let mut wait_s = self.wait_s(buffer_s, of.most(asked));
        if asked == now.ladder.top() {
            wait_s = 0.0;
        }
        let level = self.reserve.bound(asked, now, &self.measured, bps);
        let mut why =
            format!("buffer {buffer_s:.1} s, with the placeholder {held_s:.1} s: BOLA prefers level {best}");
        if asked < best {
            why += &format!(", an estimated {kbps:.0} kbit/s allows a rise to {asked}");
        }
        if level < asked {
            wait_s = 0.0;
            self.at_most(of.least(now.ladder, level), buffer_s);
            why += &format!(", the buffer is too little for more than {level} at {kbps:.0} kbit/s");
        }
        self.own_wait = Duration::from_nanos((wait_s * 1e9).round() as u64);
        Decision { wait: self.own_wait, ..Decision::at_once(level, bps, why) }
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        self.measured.push(fetched, now.ladder);
        self.own_wait = Duration::ZERO;
        self.last = fetched.level;
        let Some(of) = Self::utilities(now) else { return };
        let buffer_s = now.buffer.as_secs_f64();
        if fetched.abandoned {
            let to = self.abandoned_to.take().unwrap_or(0);
            self.at_most(if to > 0 { of.least(now.ladder, to) } else { LOW_S }, buffer_s);
            return;
        }
        let before_s = buffer_s + fetched.done.saturating_sub(fetched.asked).as_secs_f64();
        self.at_most(of.most(fetched.level), before_s);
        if buffer_s > 0.0 {
            self.placeholder_s = self.placeholder_s.max(of.least(now.ladder, fetched.level) - before_s);
        }
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        let first_byte = progress.first_byte.filter(|_| self.tuning.abandons && progress.bytes > 0)?;
        let of = Self::utilities(now)?;
        let latency_s = first_byte.saturating_sub(progress.asked).as_secs_f64();
        let reading_s = now.now.saturating_sub(first_byte).as_secs_f64();
        let size = size(progress, now.ladder);
        // Another request costs the latency once more: by then so much of the rest will have come, and been played.
        let bytes_per_s = progress.bytes as f64 / reading_s;
        let rest = size - progress.bytes as f64 - latency_s * bytes_per_s;
        let held_s = (now.buffer.as_secs_f64() + self.placeholder_s - latency_s).max(0.0);
        if reading_s <= 0.0 || rest <= 0.0 {
            return None;
        }
        let level = better(&of, now.ladder, progress.level, size, rest, 1.0 + of.g, held_s)?;
        self.abandoned_to = Some(level);
        let why = format!("buffer {held_s:.1} s: BOLA prefers level {level} to the rest of this segment");
        Some(Decision::at_once(level, bytes_per_s * 8.0, why))
    }

    fn idled(&mut self, time: Duration) {
        let own = time.as_nanos().min(self.own_wait.as_nanos());
        self.own_wait = self.own_wait.saturating_sub(Duration::from_nanos(own));
        self.placeholder_s += time.saturating_sub(Duration::from_nanos(own)).as_secs_f64();
    }
}
