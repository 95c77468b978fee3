//! FESTIVE, of Jiang et al. (CoNEXT'12).

use std::collections::VecDeque;

use streamgauge_base::{Duration, RandomStream};

use super::recent::Recent;
use super::{Decision, Fetched, Rule, Situation, Tuning};

/// Segments that the harmonic mean is over.
const SEGMENTS: usize = 20;
/// The share of the throughput that a level may need.
const SHARE: f64 = 0.85;
/// The weight of efficiency against stability.
const ALPHA: f64 = 12.0;
/// Switches count for so long.
const MEMORY: Duration = Duration::from_secs(20);
/// The buffer's target, before a random part of up to a segment more or less.
const TARGET: Duration = Duration::from_secs(30);

/// FESTIVE: a level at a time, up from the k-th level only after k segments of it, down at once; and that only if it makes
/// stability and efficiency together better: of a level at rate R that is 2^n + 12 |R / min(T, R_ref) - 1|, the lower the
/// better, with n switches in the last 20 s and this one counted, T the harmonic mean of 20 segments and R_ref the rate of
/// the next level. Requests wait until the buffer is below 30 s and a random part of a segment's length more or less, drawn
/// anew each time.
///
/// Checked in others' implementations: 0.85, 12, 30 s, the mean of 20, the two scores. The exponential of n and the 20 s
/// agree with slides on the paper. Recalled alone: that k counts levels from 1.
pub struct Festive {
    throughput: Recent,
    /// Segments in a row at the level of the last one.
    in_a_row: usize,
    switches: VecDeque<Duration>,
    random: RandomStream,
    initial_bps: Option<f64>,
    share: f64,
}

impl Festive {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        Festive {
            throughput: Recent::new(SEGMENTS),
            in_a_row: 0,
            switches: VecDeque::new(),
            random: RandomStream::named(tuning.seed, "festive", "buffer target"),
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(SHARE),
        }
    }

    /// How long to wait until the buffer is at its target.
    fn wait(&mut self, now: &Situation<'_>) -> Duration {
        let segment = now.ladder.segment.as_nanos();
        let target = TARGET.as_nanos().saturating_sub(segment) + self.random.below(2 * segment + 1);
        now.buffer.saturating_sub(Duration::from_nanos(target))
    }

    fn level(&mut self, now: &Situation<'_>, before: usize, bps: f64) -> (usize, String) {
        let target = now.ladder.at_most(self.share * bps);
        let kbps = bps / 1e3;
        let reference = if target < before {
            before - 1
        } else if target > before && self.in_a_row > before {
            before + 1
        } else {
            let why = if target > before {
                format!("{kbps:.0} kbit/s afford level {target}, after {} segments of this one", before + 1)
            } else {
                format!("{:.0} % of {kbps:.0} kbit/s", self.share * 100.0)
            };
            return (before, why);
        };
        while self.switches.front().is_some_and(|&at| now.now.saturating_sub(at) > MEMORY) {
            self.switches.pop_front();
        }
        let of = bps.min(now.ladder.bps(reference)).max(1.0);
        let score = |level: usize| {
            let switches = self.switches.len() + usize::from(level != before);
            libm::exp2(switches as f64) + ALPHA * (now.ladder.bps(level) / of - 1.0).abs()
        };
        let (staying, going) = (score(before), score(reference));
        let why = format!("{kbps:.0} kbit/s; level {before} scores {staying:.2}, {reference} {going:.2}");
        (if going < staying { reference } else { before }, why)
    }
}

impl Rule for Festive {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let wait = self.wait(now);
        let Some(before) = now.level else {
            self.in_a_row = 1;
            let level = self.initial_bps.map_or(0, |bps| now.ladder.at_most(self.share * bps));
            return Decision::at_once(level, self.initial_bps, "the first");
        };
        let bps = self.throughput.harmonic_mean().unwrap_or(0.0);
        let (level, why) = self.level(now, before, bps);
        if level == before {
            self.in_a_row += 1;
        } else {
            self.in_a_row = 1;
            self.switches.push_back(now.now);
        }
        Decision { wait, ..Decision::at_once(level, bps, why) }
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        self.throughput.push(fetched.throughput_from_request_bps());
    }
}

#[cfg(test)]
mod tests {
    use super::super::telling::{came, ladder, made, playing, s, start};
    use super::*;

    /// Levels chosen of segments that all come at `kbps`, one each 2 s from 0 s on.
    fn levels(rates: &[u64], kbps: f64, segments: usize) -> Vec<usize> {
        let ladder = ladder(rates, 2);
        let mut rule = made("festive", Tuning::default());
        let mut levels = vec![rule.decide(&start(&ladder)).level];
        for segment in 1..segments {
            let before = levels[segment - 1];
            let now = Situation { now: s(2.0 * segment as f64), ..playing(&ladder, before, 10.0) };
            rule.fetched(&came(before, kbps, 0.0, 0.1, 1.0), &now);
            levels.push(rule.decide(&now).level);
        }
        levels
    }

    /// After one segment of the first level, two of the second, three of the third: stability 2, 4, 8 of going against
    /// 1, 2, 4 of staying, efficiency 12 * 0.5 = 6 of staying.
    #[test]
    fn it_climbs_a_level_at_a_time_more_slowly_the_higher() {
        assert_eq!(levels(&[100, 200, 400, 800], 1000.0, 8), [0, 1, 1, 2, 2, 2, 3, 3]);
        // 850 of 1000 kbit/s may be used.
        assert_eq!(levels(&[100, 851], 1000.0, 4), [0, 0, 0, 0]);
        // Steps of 20 %: 1 + 12 / 6 of staying against 2; of the next 2 + 12 / 6 against 4, no better.
        assert_eq!(levels(&[500, 600, 720], 1000.0, 8), [0, 1, 1, 1, 1, 1, 1, 1]);
    }

    /// Level 3 (800) at 300 kbit/s: the level for 255 is 1, but the next down is 2: efficiency 12 |800 / 300 - 1| = 20
    /// against 12 |400 / 300 - 1| = 4. Then level 1.
    #[test]
    fn it_falls_a_level_at_a_time_at_once() {
        let ladder = ladder(&[100, 200, 400, 800], 2);
        let mut rule = made("festive", Tuning::default());
        for segment in 0..3 {
            rule.fetched(&came(3, 300.0, segment.into(), 0.1, 1.0), &playing(&ladder, 3, 10.0));
        }
        let level = |rule: &mut dyn Rule, before| rule.decide(&playing(&ladder, before, 10.0)).level;
        assert_eq!((level(&mut *rule, 3), level(&mut *rule, 2), level(&mut *rule, 1)), (2, 1, 1));
    }

    /// Switches of the last 20 s make each further one dearer, and then they are forgotten.
    #[test]
    fn switches_count_for_twenty_seconds() {
        let ladder = ladder(&[300, 600], 2);
        let mut rule = Festive::new(&Tuning::default());
        rule.fetched(&came(0, 1000.0, 0.0, 0.1, 1.0), &start(&ladder));
        rule.in_a_row = 9;
        rule.switches.extend([s(80.0), s(85.0), s(90.0)]);
        // Staying 8 + 6, going 16 + 0; with two 4 + 6 against 8.
        assert_eq!(rule.decide(&playing(&ladder, 0, 10.0)).level, 0);
        let later = Situation { now: s(100.1), ..playing(&ladder, 0, 10.0) };
        assert_eq!(rule.decide(&later).level, 1);
    }

    #[test]
    fn the_buffer_target_is_drawn_by_the_seed() {
        let ladder = ladder(&[100], 4);
        let waits = |seed| {
            let mut rule = made("festive", Tuning { seed, ..Tuning::default() });
            (0..100).map(|_| rule.decide(&playing(&ladder, 0, 40.0)).wait.as_secs_f64()).collect::<Vec<_>>()
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
        assert!(waits(1).iter().all(|wait_s| (6.0..=14.0).contains(wait_s)));
        let (least, most) = waits(1).iter().fold((99.0f64, 0.0f64), |(l, m), &w| (l.min(w), m.max(w)));
        assert!(least < 6.5 && most > 13.5);
        let mut rule = made("festive", Tuning::default());
        assert_eq!(rule.decide(&playing(&ladder, 0, 26.0)).wait, Duration::ZERO);
    }
}
