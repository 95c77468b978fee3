//! VLC 3's adaptive streaming.

use super::recent::Recent;
use super::{Decision, Fetched, Ladder, Rule, Situation, Tuning};

/// Samples that the average looks at to see how steady they are.
const SAMPLES: usize = 10;
/// The share of the average that the logic `rate` uses, and the shortest time of its samples.
const RATE_SHARE: f64 = 0.75;
const RATE_WINDOW_S: f64 = 0.25;
/// The buffer's least and its target.
const LEAST_S: f64 = 6.0;
const TARGET_S: f64 = 30.0;

/// An average that follows steady samples. If they moved one way, it keeps up to 33 % of its old value. If they moved
/// up and down, it keeps ever less.
struct Average {
    samples: Recent,
    /// The sample before the ones kept.
    before: f64,
    value: f64,
}

impl Average {
    fn new() -> Self {
        Average { samples: Recent::new(SAMPLES), before: 0.0, value: 0.0 }
    }

    fn push(&mut self, bps: f64) {
        if self.samples.len() == SAMPLES {
            self.before = self.samples.iter().next().unwrap_or(0.0);
        }
        self.samples.push(bps);
        let (mut previous, mut moved) = (self.before, 0.0);
        let (mut least, mut most) = (f64::INFINITY, 0.0f64);
        for sample in self.samples.iter() {
            moved += (sample - previous).abs();
            (previous, least, most) = (sample, least.min(sample), most.max(sample));
        }
        let kept = if moved > 0.0 { 0.33 * (most - least) / moved } else { 0.5 };
        self.value = kept * self.value + (1.0 - kept) * bps;
    }
}

/// The first decision of both logics.
fn first(ladder: &Ladder, initial_bps: Option<f64>, share: f64) -> Decision {
    initial_bps.map_or_else(
        || Decision::at_once(0, None, "nothing came yet: the lowest"),
        |bps| Decision::at_once(ladder.below(share * bps), bps, "the first, of the throughput that was set"),
    )
}

/// The logic `rate` of VLC 3 (`demux/adaptive`): the highest level strictly below three quarters of an average over
/// stretches of at least 250 ms of fetching.
pub struct Vlc3Rate {
    average: Average,
    bits: f64,
    seconds: f64,
    initial_bps: Option<f64>,
    share: f64,
}

impl Vlc3Rate {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        Vlc3Rate {
            average: Average::new(),
            bits: 0.0,
            seconds: 0.0,
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(RATE_SHARE),
        }
    }
}

impl Rule for Vlc3Rate {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        if now.level.is_none() {
            return first(now.ladder, self.initial_bps, self.share);
        }
        let bps = self.average.value;
        let why =
            format!("strictly below {:.0} % of {:.0} kbit/s, the average", self.share * 100.0, bps / 1e3);
        Decision::at_once(now.ladder.below(self.share * bps), bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        self.bits += fetched.bytes as f64 * 8.0;
        self.seconds += fetched.done.saturating_sub(fetched.asked).as_secs_f64();
        if self.seconds >= RATE_WINDOW_S {
            self.average.push(self.bits / self.seconds);
            (self.bits, self.seconds) = (0.0, 0.0);
        }
    }
}

/// The default logic of VLC 3, `nearoptimal`: a form of BOLA (Spiteri et al., INFOCOM'16) with u = ln R, and with times
/// where BOLA has counts of segments. It selects the level with the highest (V (u - u_min + gamma) - B) / R, where
/// gamma = 1 + (u_max - u_min) / (30 / 6 - 1) and V = (6 - 1) / (u_min + gamma). The throughput counts for levels down
/// alone.
///
/// V is so small that all scores are negative once the buffer exceeds a second or two. Then the division by the highest
/// R makes its score the least negative, and the highest level wins at any throughput. This is VLC's behaviour.
pub struct Vlc3NearOptimal {
    average: Average,
    initial_bps: Option<f64>,
    share: f64,
}

impl Vlc3NearOptimal {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        Vlc3NearOptimal {
            average: Average::new(),
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(1.0),
        }
    }
}

/// Returns the level with the highest score, of equal scores the higher level.
fn near_optimal(ladder: &Ladder, buffer_s: f64) -> usize {
    let utility = |level| libm::log(ladder.bps(level));
    let (least, most) = (utility(0), utility(ladder.top()));
    let gamma = 1.0 + (most - least) / (TARGET_S / LEAST_S - 1.0);
    let v = (LEAST_S - 1.0) / (least + gamma);
    let score = |level| (v * (utility(level) - least + gamma) - buffer_s) / ladder.bps(level);
    (0..=ladder.top()).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap_or(0)
}

impl Rule for Vlc3NearOptimal {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let Some(before) = now.level else {
            return first(now.ladder, self.initial_bps, self.share);
        };
        let (bps, buffer_s) = (self.average.value, now.buffer.as_secs_f64());
        let best = near_optimal(now.ladder, buffer_s);
        if best >= before {
            return Decision::at_once(best, bps, format!("the highest score at {buffer_s:.1} s of buffer"));
        }
        let afforded = now.ladder.below(self.share * bps);
        let level = match afforded {
            level if level <= best => best,
            level if level > before => before,
            level => level.saturating_sub(1),
        };
        let why = format!(
            "level {best} has the highest score at {buffer_s:.1} s of buffer, {:.0} kbit/s afford level {afforded}",
            bps / 1e3
        );
        Decision::at_once(level, bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        self.average.push(fetched.throughput_from_request_bps());
    }
}

#[cfg(test)]
mod tests {
    use super::super::telling::{came, ladder, made, playing, start};
    use super::*;

    /// The first sample moves 1000 from 0 and spans nothing: it is the average. The second moves 1000 + 500 and spans 500:
    /// 0.33 * 500 / 1500 = 0.11 is kept. The third, equal: 0.11 again.
    #[test]
    fn the_average_keeps_less_of_what_moves_more() {
        let mut average = Average::new();
        average.push(1000.0);
        assert_eq!(average.value, 1000.0);
        average.push(1500.0);
        assert!((average.value - (0.11 * 1000.0 + 0.89 * 1500.0)).abs() < 1e-9);
        let before = average.value;
        average.push(1500.0);
        assert!((average.value - (0.11 * before + 0.89 * 1500.0)).abs() < 1e-9);
        for _ in 0..20 {
            average.push(700.0);
        }
        // Ten equal samples after an equal one move nothing: the average keeps half of its value, which is 700 by then.
        assert!((average.value - 700.0).abs() < 1.0);
    }

    #[test]
    fn rate_uses_three_quarters_of_no_less_than_a_quarter_of_a_second() {
        let ladder = ladder(&[100, 750, 1500, 3000], 2);
        let mut rule = made("vlc-3-rate", Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 0);
        let now = playing(&ladder, 0, 10.0);
        rule.fetched(&came(0, 200.0, 0.0, 0.0, 0.1), &now);
        assert_eq!(rule.decide(&now).level, 0);
        // 400 kbit in 0.4 s: 1000 kbit/s. The rule may use 750, and the level must be below.
        rule.fetched(&came(0, 200.0, 0.1, 0.0, 0.3), &now);
        assert_eq!((rule.decide(&now).level, rule.decide(&now).estimate.unwrap().as_bps()), (0, 1_000_000));
        rule.fetched(&came(0, 410.0, 0.4, 0.0, 0.4), &now);
        assert_eq!(rule.decide(&now).level, 1);
    }

    /// Levels of 100 to 1500 kbit/s: gamma = 1 + ln 15 / 4 = 1.677, V = 5 / (ln 100000 + 1.677) = 0.379. At 0.5 s of
    /// buffer the scores are (0.636 - 0.5) / 100 = 0.00136 and (1.662 - 0.5) / 1500 = 0.00077. At 0.6 s they are 0.0004
    /// and 0.0007. At 1.7 s all are negative, the highest level's least so.
    #[test]
    fn from_a_second_of_buffer_on_the_highest_level_wins() {
        let ladder = ladder(&[100, 1500], 2);
        assert_eq!([0.5, 0.6, 1.7, 20.0].map(|buffer_s| near_optimal(&ladder, buffer_s)), [0, 1, 1, 1]);
        let mut rule = made("vlc-3", Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 0);
        rule.fetched(&came(0, 200.0, 0.0, 0.1, 2.0), &playing(&ladder, 0, 2.0));
        assert_eq!(rule.decide(&playing(&ladder, 0, 2.0)).level, 1);
    }

    #[test]
    fn the_throughput_has_a_say_in_levels_down() {
        let ladder = ladder(&[100, 300, 600, 1500], 2);
        let level = |bps: f64, before| {
            let mut rule = made("vlc-3", Tuning::default());
            rule.fetched(&came(0, bps / 1000.0, 0.0, 0.0, 1.0), &playing(&ladder, before, 0.0));
            rule.decide(&playing(&ladder, before, 0.0)).level
        };
        assert_eq!(near_optimal(&ladder, 0.0), 0);
        // Below the lowest, one below the affordable level, and the previous level.
        assert_eq!((level(50e3, 3), level(700e3, 3), level(400e3, 3), level(2e6, 2)), (0, 1, 0, 2));
    }
}
