//! dash.js 5.2.1 with its defaults: the rules that are in force, and of their proposals the lowest
//! (`streaming/controllers/AbrController.js`, `streaming/rules/abr/ABRRulesCollection.js`). We read them in the
//! package's sources.
//!
//! Left out are parts that a rule here cannot observe: the rule of dropped frames (off by default), and the bitrate
//! that the browser remembers from an earlier session. The player may hold `buffer.bufferTimeDefault`.

mod abandonment;
mod bola;
mod bounds;
mod l2a;
mod lolp;
mod measured;

pub use l2a::L2a;
pub use lolp::LolPlus;

use super::{Decision, Fetched, Progress, Rule, Situation, Tuning};
use abandonment::Abandonment;
use bola::Bola;
use bounds::SwitchHistory;
use measured::Measured;
use streamgauge_base::Duration;

/// From so much, in s, BOLA is in force (`abr.hybridSwitchBufferTime`), until half of it.
const HYBRID_S: f64 = 12.0;
/// A buffer of no more than this, in s, counts as empty (`buffer.stallThreshold`).
const EMPTY_S: f64 = 0.3;
/// For so long after a segment was given up nothing higher is asked for (`abandonLoadTimeout`).
const AFTER_ABANDONMENT: Duration = Duration::from_secs(10);
/// The assumed throughput before the first segment, in bit/s.
const START_BPS: f64 = 1e6;

/// The level before anything was measured.
fn start_level(now: &Situation<'_>, tuning: &Tuning) -> usize {
    now.ladder.at_most(tuning.initial.map_or(START_BPS, |rate| rate.as_bps() as f64))
}

/// How much the player holds, in s, or its delay behind a live stream if that is less (`getBufferTimeDefault`).
fn buffer_time_s(now: &Situation<'_>) -> f64 {
    now.live.map_or(now.target, |live| now.target.min(live.target)).as_secs_f64()
}

/// Which of the two main rules are active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Active {
    /// ThroughputRule alone.
    Throughput,
    /// BolaRule alone.
    Bola,
    /// Both: DYNAMIC.
    Both,
}

/// dash.js's decisions for video on demand and live, not of its low-latency mode.
pub struct DashJs {
    active: Active,
    tuning: Tuning,
    measured: Measured,
    bola: Bola,
    history: SwitchHistory,
    abandonment: Abandonment,
    by_bola: bool,
    /// The selected level, which may differ from the level of the last fetch.
    selected: Option<usize>,
    /// Complete segments.
    came: usize,
    /// The time until which an abandonment is remembered.
    wary_until: Duration,
}

impl DashJs {
    /// Before anything was fetched.
    pub fn new(active: Active, tuning: &Tuning) -> Self {
        DashJs {
            active,
            tuning: *tuning,
            measured: Measured::new(tuning),
            bola: Bola::new(),
            history: SwitchHistory::default(),
            abandonment: Abandonment::default(),
            by_bola: active == Active::Bola,
            selected: None,
            came: 0,
            wary_until: Duration::ZERO,
        }
    }

    /// DYNAMIC's choice between the two, at each look at the buffer.
    fn choose(&mut self, buffer: Duration) {
        if self.active == Active::Both {
            let from_s = if self.by_bola { HYBRID_S / 2.0 } else { HYBRID_S };
            self.by_bola = buffer.as_secs_f64() >= from_s;
        }
    }

    /// ThroughputRule: the highest level within 0.9 of the estimate.
    fn by_throughput(&self, now: &Situation<'_>) -> Option<(usize, String)> {
        let safe_bps = self.measured.safe_bps()?;
        let live = now.live.is_some() || now.ladder.segments.is_none();
        let speaks = now.now >= self.wary_until && (live || now.buffer.as_secs_f64() > EMPTY_S);
        speaks.then(|| (now.ladder.at_most(safe_bps), self.measured.why()))
    }
}

impl Rule for DashJs {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        self.choose(now.buffer);
        let selected = *self.selected.get_or_insert_with(|| start_level(now, &self.tuning));
        let (mut wait, mut proposals) = (Duration::ZERO, Vec::new());
        if self.by_bola {
            if let Some((level, its_wait, why)) = self.bola.propose(now, &self.measured) {
                wait = its_wait;
                proposals.push((level, why));
            }
        } else {
            proposals.extend(self.by_throughput(now));
        }
        proposals.extend(bounds::insufficient_buffer(now, &self.measured, self.came));
        proposals.extend(self.history.propose());
        let estimate = self.measured.bps();
        let Some((level, mut why)) = proposals.into_iter().min_by_key(|one| one.0) else {
            let why = if estimate.is_none() { "to start with" } else { "no rule says otherwise" };
            return Decision::at_once(selected, estimate, why);
        };
        self.history.push(selected, level);
        if level <= selected || now.now >= self.wary_until {
            self.selected = Some(level);
            self.bola.selected(level);
        } else {
            why = format!("no rise for 10 s after a segment was given up, though {why}");
        }
        Decision { wait, ..Decision::at_once(level.min(self.selected.unwrap_or(level)), estimate, why) }
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        self.choose(now.buffer);
        match self.abandonment.reported().filter(|_| fetched.abandoned) {
            Some((bytes, time)) => self.measured.push_given_up(bytes, time),
            None if fetched.abandoned => {}
            None => self.measured.push(fetched),
        }
        self.bola.fetched(fetched, now);
        self.came += usize::from(!fetched.abandoned);
    }

    fn cache_had(&mut self, level: usize, now: &Situation<'_>) {
        self.choose(now.buffer);
        self.measured.push_cached(level, now.segment);
        self.bola.cache_had(level, now);
        self.came += 1;
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        self.choose(now.buffer);
        let decision = self.abandonment.look(progress, now).filter(|_| self.tuning.abandons)?;
        self.history = SwitchHistory::default();
        self.selected = Some(decision.level);
        self.bola.selected(decision.level);
        self.wary_until = now.now + AFTER_ABANDONMENT;
        Some(decision)
    }

    /// The browser's own pauses are in the rule.
    fn asked_each(&self) -> Duration {
        Duration::ZERO
    }

    fn looks_again(&self) -> Option<Duration> {
        self.abandonment.looks_again()
    }

    fn ran_dry(&mut self) {
        self.choose(Duration::ZERO);
        self.bola.ran_dry();
    }
}

#[cfg(test)]
mod tests;
