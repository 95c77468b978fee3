//! The rate rule of the literature: as much as the harmonic mean of recent throughput allows.

use super::recent::Recent;
use super::{Decision, Fetched, Rule, Situation, Tuning};

/// Segments that the mean is over.
const SEGMENTS: usize = 5;

/// The highest level within the harmonic mean of the last five segments' throughput, from the request to the last byte.
/// This is the rule RB, with which Yin et al. compare theirs (SIGCOMM'15, section 7; recalled, not read again). It uses
/// the whole mean, unless the tuning gives a share. Before the first segment it selects the lowest level.
pub struct Harmonic {
    throughput: Recent,
    initial_bps: Option<f64>,
    share: f64,
}

impl Harmonic {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        Harmonic {
            throughput: Recent::new(SEGMENTS),
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(1.0),
        }
    }
}

impl Rule for Harmonic {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let Some(bps) = self.throughput.harmonic_mean().or(self.initial_bps) else {
            return Decision::at_once(0, None, "nothing came yet: the lowest");
        };
        let why = format!(
            "{:.0} % of {:.0} kbit/s, the harmonic mean of {} segments",
            self.share * 100.0,
            bps / 1e3,
            self.throughput.len(),
        );
        Decision::at_once(now.ladder.at_most(self.share * bps), bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        self.throughput.push(fetched.throughput_from_request_bps());
    }
}

#[cfg(test)]
mod tests {
    use super::super::telling::{came, ladder, made, playing, start};
    use super::*;

    /// 2000 kbit in 1, 2, 4, 4 and 4 s: 5 / (15 s / 2000 kbit) = 666.7 kbit/s, the segment before them forgotten.
    #[test]
    fn the_mean_is_harmonic_and_of_five_segments() {
        let ladder = ladder(&[200, 400, 600, 800], 4);
        let mut rule = made("harmonic", Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 0);
        for took_s in [0.001, 1.0, 2.0, 4.0, 4.0, 4.0] {
            rule.fetched(&came(0, 2000.0, 0.0, 0.1, took_s), &playing(&ladder, 0, 10.0));
        }
        let decision = rule.decide(&playing(&ladder, 0, 10.0));
        assert_eq!((decision.level, decision.estimate.unwrap().as_bps()), (2, 666_666));
    }

    #[test]
    fn a_share_and_a_first_throughput_may_be_set() {
        let ladder = ladder(&[200, 400, 600, 800], 4);
        let initial = Some(streamgauge_base::BitRate::from_bps(800_000));
        let tuning = Tuning { safety_factor: Some(0.8), initial, ..Tuning::default() };
        assert_eq!(made("harmonic", tuning).decide(&start(&ladder)).level, 2);
    }
}
