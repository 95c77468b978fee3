//! The two sides that BOLA weighs: the value of a level, and the buffer that it may cost.

use super::Ladder;

/// The levels' worth ln(R/R_0), and the two parameters V in s and g of BOLA (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016).
#[derive(Clone, PartialEq, Debug)]
pub struct Utilities {
    /// How much of the buffer a unit of worth may cost, in s.
    pub v: f64,
    /// The value of playing at all.
    pub g: f64,
    worth: Vec<f64>,
}

/// Which of two levels that are equally good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// The lower.
    Low,
    /// The higher.
    High,
}

/// Below this buffer, in s, the lowest level is asked for and nothing is waited for.
pub const LOW_S: f64 = 10.0;

impl Utilities {
    /// For a buffer of `buffer_s` that takes segments of `segment_s`, `g` given: the paper's V.
    pub fn of_buffer(ladder: &Ladder, buffer_s: f64, segment_s: f64, g: f64) -> Self {
        let worth = worth(ladder);
        let v = (buffer_s - segment_s) / (worth[worth.len() - 1] + g);
        Utilities { v, g, worth }
    }

    /// BOLA-E's (Spiteri, Sitaraman, Sparacio, MMSys 2018): the lowest level up to 10 s, the highest from `reach_s`, but
    /// at least 10 s and 2 s a level. `None` if there is only one level.
    pub fn of_reach(ladder: &Ladder, reach_s: f64) -> Option<Self> {
        let worth = worth(ladder);
        let top = worth[worth.len() - 1];
        let reach_s = reach_s.max(LOW_S + 2.0 * worth.len() as f64);
        let g = top / (reach_s / LOW_S - 1.0);
        (top > 0.0).then(|| Utilities { v: LOW_S / g, g, worth })
    }

    /// (V (ln(R/R_0) + offset) - B)/S: the worth of `level` less the buffer that is held, per `size`.
    pub fn score(&self, level: usize, offset: f64, buffer_s: f64, size: f64) -> f64 {
        (self.v * (self.worth[level] + offset) - buffer_s) / size
    }

    /// The level with the best score by its declared rate.
    pub fn best(&self, ladder: &Ladder, offset: f64, buffer_s: f64, ties: Ties) -> usize {
        let score = |level: usize| self.score(level, offset, buffer_s, ladder.bps(level));
        (1..self.worth.len()).fold(0, |best, level| {
            let better = match ties {
                Ties::Low => score(level) > score(best),
                Ties::High => score(level) >= score(best),
            };
            if better { level } else { best }
        })
    }

    /// The least buffer, in s, at which V (ln(R/R_0) + 1 + g) puts `level` before all that are lower.
    pub fn least(&self, ladder: &Ladder, level: usize) -> f64 {
        let rate = ladder.bps(level);
        let of = |other: usize| {
            let lower = ladder.bps(other);
            let meet =
                (rate * (self.worth[other] + 1.0) - lower * (self.worth[level] + 1.0)) / (rate - lower);
            self.v * (self.g + meet)
        };
        (0..level).filter(|&other| ladder.bps(other) < rate).map(of).fold(0.0, f64::max)
    }

    /// The buffer, in s, above which it is better to wait than to fetch at `level`.
    pub fn most(&self, level: usize) -> f64 {
        self.v * (self.worth[level] + 1.0 + self.g)
    }
}

fn worth(ladder: &Ladder) -> Vec<f64> {
    (0..ladder.rates.len()).map(|level| libm::log(ladder.bps(level) / ladder.bps(0))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamgauge_base::{BitRate, Duration};

    use super::*;

    fn ladder(kbps: &[u64]) -> Ladder {
        Ladder {
            rates: kbps.iter().map(|kbps| BitRate::from_bps(kbps * 1000)).collect(),
            segment: Duration::from_secs(4),
            segments: None,
            sizes: Vec::new(),
        }
    }

    /// 1000 and 2000 kbit/s with 10 + 2 * 2 = 14 s: g = ln 2/0.4 = 1.732868, V = 5.770780; the two are equal at
    /// V (g + 2 - (1 + ln 2)) = 10 + V (1 - ln 2) = 11.770780 s.
    #[test]
    fn two_levels_by_hand() {
        let ladder = ladder(&[1000, 2000]);
        let two = Utilities::of_reach(&ladder, 0.0).unwrap();
        assert!((two.g - 1.732868).abs() < 1e-6 && (two.v - 5.770780).abs() < 1e-6);
        assert!((two.least(&ladder, 1) - 11.770780).abs() < 1e-6);
        assert!((two.most(0) - 15.770780).abs() < 1e-6 && (two.most(1) - 19.770780).abs() < 1e-6);
        let best = |buffer_s| two.best(&ladder, 1.0 + two.g, buffer_s, Ties::Low);
        assert_eq!((best(11.77), best(11.78)), (0, 1));
        assert!(Utilities::of_reach(&super::tests::ladder(&[1000]), 30.0).is_none());
    }

    proptest! {
        #[test]
        fn more_buffer_never_prefers_a_lower_level(
            kbps in prop::collection::btree_set(50..20_000u64, 2..14),
            reach_s in 0.0..80.0f64,
            (less, more) in (0.0..100.0f64, 0.0..40.0f64),
            high in any::<bool>(),
        ) {
            let ladder = ladder(&Vec::from_iter(kbps));
            let of = Utilities::of_reach(&ladder, reach_s).unwrap();
            let ties = if high { Ties::High } else { Ties::Low };
            let best = |buffer_s| of.best(&ladder, 1.0 + of.g, buffer_s, ties);
            prop_assert!(best(less) <= best(less + more));
            for level in 1..ladder.rates.len() {
                prop_assert!(best(of.least(&ladder, level) + 1e-6) >= level);
            }
        }
    }
}
