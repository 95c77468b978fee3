//! L2ARule: Learn2Adapt-LowLatency (Karagkioules, Mekuria, Griffioen, Wagenaar, MMSys 2020).

use super::super::{Decision, Fetched, Rule, Situation, Tuning};
use super::{Measured, start_level};

/// Steps within which it is to converge.
const HORIZON: f64 = 4.0;
/// The buffer, in s, from which it is in force.
const TARGET_S: f64 = 1.5;
/// How much more cautious it becomes after a level above the throughput.
const REACT: f64 = 2.0;

/// L2A-LL of dash.js 5.2.1 alone, without the rules beside it: by the throughput until 1.5 s are held, then levels have
/// weights that gradient descent moves, and the level nearest to the weighted rate is asked for.
///
/// 5.2.1 adds to its multiplier rates in bit/s over a throughput in kbit/s, and bounds a rise by one level only where the
/// next level's bit/s are within the throughput's kbit/s, which never is; it is kept so. The multiplier can grow until the
/// weights vanish in its rounding: then dash.js and this rule stay at the lowest level.
pub struct L2a {
    tuning: Tuning,
    measured: Measured,
    steady: bool,
    selected: Option<usize>,
    a_segment_came: bool,
    weights: Vec<f64>,
    multiplier: f64,
}

/// V_L, how cautious it is.
fn caution() -> f64 {
    libm::pow(HORIZON, 0.99)
}

impl L2a {
    /// Before anything was measured.
    pub fn new(tuning: &Tuning) -> Self {
        L2a {
            tuning: *tuning,
            measured: Measured::new(tuning),
            steady: false,
            selected: None,
            a_segment_came: false,
            weights: Vec::new(),
            multiplier: 0.0,
        }
    }

    fn start(&mut self, now: &Situation<'_>, safe_bps: f64) -> Decision {
        let level = now.ladder.at_most(safe_bps);
        if self.a_segment_came && now.buffer.as_secs_f64() >= TARGET_S {
            self.steady = true;
            self.multiplier = caution();
            self.weights = (0..=now.ladder.top()).map(|one| f64::from(one == level)).collect();
        }
        Decision::at_once(level, self.measured.bps(), self.measured.why())
    }

    fn learn(&mut self, now: &Situation<'_>, last_kbps: f64, selected: usize) -> Decision {
        let ladder = now.ladder;
        let segment_s = ladder.segment.as_secs_f64();
        let speed = now.live.map_or(1.0, |live| live.speed);
        let bps: Vec<f64> = (0..=ladder.top()).map(|level| ladder.bps(level)).collect();
        let step = segment_s / (2.0 * HORIZON.max(caution() * HORIZON.sqrt()));
        // In the order of 5.2.1: the multiplier grows so large that its roundings show.
        let moved = bps.iter().zip(&self.weights).map(|(bps, weight)| {
            let load = speed * (bps / 1e3) / last_kbps;
            let way = if speed * (bps / 1e3) > last_kbps { -step } else { step };
            weight + way * ((self.multiplier + caution()) * load)
        });
        let weights = onto_simplex(&moved.collect::<Vec<_>>());
        let changed: Vec<f64> = weights.iter().zip(&self.weights).map(|(new, old)| new - old).collect();
        self.weights = weights;
        let aim_bps = dot(&bps, &self.weights);
        let load = (aim_bps + dot(&bps, &changed)) / last_kbps;
        self.multiplier = (self.multiplier - segment_s + segment_s * speed * load).max(0.0);

        let off = |level: usize| (bps[level] - aim_bps).abs();
        let mut level = (1..bps.len()).fold(0, |best, one| if off(one) < off(best) { one } else { best });
        if level > selected && bps[selected + 1] <= last_kbps {
            level = selected + 1;
        }
        if bps[level] / 1e3 >= last_kbps {
            self.multiplier = (REACT * self.multiplier.max(caution())).min(f64::MAX);
        }
        let aim_kbps = aim_bps / 1e3;
        let why = format!("{aim_kbps:.0} kbit/s by its weights, after {last_kbps:.0} kbit/s of throughput");
        Decision::at_once(level, self.measured.bps(), why)
    }
}

impl Rule for L2a {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let selected = self.selected.unwrap_or_else(|| start_level(now, &self.tuning));
        let decision = match (self.measured.safe_bps(), self.measured.last_kbps()) {
            (Some(_), Some(last_kbps)) if self.steady => self.learn(now, last_kbps.max(1.0), selected),
            (Some(safe_bps), _) => self.start(now, safe_bps),
            (None, _) => Decision::at_once(selected, None, "to start with"),
        };
        self.selected = Some(decision.level);
        decision
    }

    fn fetched(&mut self, fetched: &Fetched, _now: &Situation<'_>) {
        self.measured.push(fetched);
        self.a_segment_came |= !fetched.abandoned;
        self.selected = Some(fetched.level);
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The nearest point with coordinates that are not negative and add up to 1 (arXiv 1101.6081).
fn onto_simplex(point: &[f64]) -> Vec<f64> {
    let mut descending = point.to_vec();
    descending.sort_by(|one, other| other.total_cmp(one));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (place, one) in descending.iter().enumerate() {
        sum += one;
        shift = (sum - 1.0) / (place + 1) as f64;
        if descending.get(place + 1).is_none_or(|next| shift >= *next) {
            break;
        }
    }
    point.iter().map(|one| (one - shift).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn projections_by_hand() {
        assert_eq!(onto_simplex(&[7.0]), [1.0]);
        assert_eq!(onto_simplex(&[0.0, 1.0, 0.0]), [0.0, 1.0, 0.0]);
        assert_eq!(onto_simplex(&[0.5, 1.0, -3.0]), [0.25, 0.75, 0.0]);
        assert_eq!(onto_simplex(&[2.0, 2.0]), [0.5, 0.5]);
    }

    proptest! {
        #[test]
        fn a_projection_is_a_distribution_in_the_same_order(point in prop::collection::vec(-50.0..50.0f64, 1..12)) {
            let projected = onto_simplex(&point);
            prop_assert!(projected.iter().all(|&one| one >= 0.0));
            prop_assert!((projected.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for (one, its) in point.iter().zip(&projected) {
                prop_assert!(point.iter().zip(&projected).all(|(other, others)| one > other || its <= others));
            }
        }
    }
}
