//! By the throughput while little is buffered, by BOLA once more is.

use super::super::{Decision, Fetched, Progress, Rule, Situation, Tuning};
use super::{Bola, BolaE, Throughput};
use streamgauge_base::Duration;

/// Above so much, in s, BOLA may take over.
const HIGH_S: f64 = 10.0;
/// The buffer, in s, below which `dynamic-dash` returns to the throughput rule.
const LOW_S: f64 = 5.0;

/// DYNAMIC (MMSys 2018): both rules decide each time; to BOLA above 10 s if that is not lower, back below 10 s
/// if it is.
pub struct Dynamic {
    bola: Bola,
    throughput: Throughput,
    by_bola: bool,
}

impl Dynamic {
    /// By the throughput.
    pub fn new(tuning: &Tuning) -> Self {
        Dynamic { bola: Bola::new(tuning), throughput: Throughput::new(tuning), by_bola: false }
    }
}

impl Rule for Dynamic {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let by_bola = self.bola.decide(now);
        let by_throughput = self.throughput.decide(now);
        let buffer_s = now.buffer.as_secs_f64();
        if self.by_bola {
            self.by_bola = buffer_s >= HIGH_S || by_bola.level >= by_throughput.level;
        } else {
            self.by_bola = buffer_s > HIGH_S && by_bola.level >= by_throughput.level;
        }
        if self.by_bola { by_bola } else { by_throughput }
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        self.bola.fetched(fetched, now);
        self.throughput.fetched(fetched, now);
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        self.throughput.abandon(progress, now)
    }
}

/// DYNAMIC with BOLA-E: from above 10 s to below 5 s. Only the one in force decides; the placeholder is kept throughout.
pub struct DynamicDash {
    bola: BolaE,
    throughput: Throughput,
    by_bola: bool,
}

impl DynamicDash {
    /// By the throughput.
    pub fn new(tuning: &Tuning) -> Self {
        DynamicDash { bola: BolaE::new(tuning), throughput: Throughput::new(tuning), by_bola: false }
    }

    fn in_force(&mut self) -> &mut dyn Rule {
        if self.by_bola { &mut self.bola } else { &mut self.throughput }
    }
}

impl Rule for DynamicDash {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let buffer_s = now.buffer.as_secs_f64();
        self.by_bola = if self.by_bola { buffer_s >= LOW_S } else { buffer_s > HIGH_S };
        self.in_force().decide(now)
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        self.bola.fetched(fetched, now);
        self.throughput.fetched(fetched, now);
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        self.in_force().abandon(progress, now)
    }

    fn idled(&mut self, time: Duration) {
        self.bola.idled(time);
    }
}
