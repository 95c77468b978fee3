//! LoLPRule: LoL+ of Bentaleb, Akcay and Lim.

use super::super::{Decision, Fetched, Rule, Situation, Tuning};
use super::{Measured, start_level};

/// A level has to leave so much in the buffer, in s.
const LEAST_BUFFER_S: f64 = 0.3;
/// The share of an observation that a neuron takes on.
const LEARNING: f64 = 0.01;
/// How far it reaches to its neighbours.
const SIGMA: f64 = 0.1;
/// A level this near to the throughput, in bit/s, or above it is shunned.
const NEAR_BPS: f64 = 10_000.0;
/// The weights that the selector tries for each feature.
const WEIGHTS: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

/// The features of a level: throughput, latency, stall and switch, each normalised.
type Features = [f64; 4];

/// LoL+ of dash.js 5.2.1 alone, without the rules beside it: each level is a neuron of a self-organising map, the one
/// nearest to the throughput, with neither latency nor stall nor switch, is asked for. Without a live latency it is 0.
///
/// The selector's QoE depends on two of the four weights that it tries, of latency and buffer; the other two are the first
/// it tries. Its bound on latency holds always, since 5.2.1 makes a selector for each decision, which then knows no
/// latency before. 5.2.1 draws weights for want of such; a level that leaves enough buffer is always found, so none are.
pub struct LolPlus {
    tuning: Tuning,
    measured: Measured,
    selected: Option<usize>,
    neurons: Vec<Features>,
}

impl LolPlus {
    /// Before anything was measured.
    pub fn new(tuning: &Tuning) -> Self {
        LolPlus { tuning: *tuning, measured: Measured::new(tuning), selected: None, neurons: Vec::new() }
    }

    fn choose(&mut self, now: &Situation<'_>, bps: f64, selected: usize) -> (usize, String) {
        let ladder = now.ladder;
        let norm_bps =
            (0..=ladder.top()).map(|level| ladder.bps(level) * ladder.bps(level)).sum::<f64>().sqrt();
        if self.neurons.is_empty() {
            let neuron = |level| [ladder.bps(level) / norm_bps, 0.0, 0.0, 0.0];
            self.neurons = (0..=ladder.top()).map(neuron).collect();
        }
        let (buffer_s, segment_s) = (now.buffer.as_secs_f64(), ladder.segment.as_secs_f64());
        let takes_s = |level: usize| ladder.bps(level) * segment_s / bps;
        let left_s = |level: usize| {
            let takes_s = takes_s(level);
            if takes_s > segment_s { buffer_s - segment_s } else { buffer_s + segment_s - takes_s }
        };
        if buffer_s - takes_s(selected) < LEAST_BUFFER_S {
            let lower = (0..selected).rev().find(|&level| ladder.bps(level) < bps);
            let why =
                format!("buffer {buffer_s:.1} s: too little for level {selected} at {:.0} kbit/s", bps / 1e3);
            return (lower.unwrap_or(selected), why);
        }
        let latency_s = now.live.map_or(0.0, |live| live.latency.as_secs_f64());
        let (of_latency, of_buffer) = self.select(now, takes_s, left_s);
        let highest = self.neurons.iter().map(|neuron| neuron[0]).fold(0.0, f64::max);
        let seen = if bps / norm_bps > 1.0 { highest } else { bps / norm_bps };
        let off = |level: usize| {
            let mut weights = [WEIGHTS[0], of_latency, of_buffer, WEIGHTS[0]];
            let shunned = ladder.bps(level) > bps - NEAR_BPS || left_s(level) < LEAST_BUFFER_S;
            if shunned && level > 0 {
                weights[0] = 100.0;
            }
            distance(&self.neurons[level], &[seen, 0.0, 0.0, 0.0], &weights)
        };
        let level = (1..=ladder.top()).fold(0, |best, one| if off(one) < off(best) { one } else { best });
        let stall_s = (takes_s(selected) - buffer_s).max(0.0);
        let switch = (ladder.bps(selected) - ladder.bps(level)).abs() / norm_bps;
        self.learn(selected, [seen, latency_s / 100.0, stall_s, switch]);
        self.learn(level, [seen, 0.0, 0.0, switch]);
        (level, format!("the neuron nearest to {:.0} kbit/s without latency, stall and switch", bps / 1e3))
    }

    /// Returns the weights of latency and buffer with the best QoE of a segment, among the levels that leave enough
    /// buffer. In dash.js the rates are in bit/s here, while the costs of stalls and latency are per kbit/s. This rule
    /// keeps that.
    fn select(
        &self,
        now: &Situation<'_>,
        takes_s: impl Fn(usize) -> f64,
        left_s: impl Fn(usize) -> f64,
    ) -> (f64, f64) {
        let ladder = now.ladder;
        let (least_kbps, most_kbps) = (ladder.bps(0) / 1e3, ladder.bps(ladder.top()) / 1e3);
        let mut best: Option<(f64, (f64, f64))> = None;
        for level in (0..=ladder.top()).filter(|&level| left_s(level) >= LEAST_BUFFER_S) {
            let stall_s = (takes_s(level) - left_s(level)).max(0.00001);
            for of_latency in WEIGHTS {
                for of_buffer in WEIGHTS {
                    let latency_s = self.neurons[level][1] / of_latency;
                    let each = if latency_s <= 1.1 { least_kbps * 0.05 } else { most_kbps * 0.1 };
                    let gain = ladder.segment.as_secs_f64() * ladder.bps(level);
                    let qoe = gain - most_kbps * stall_s / of_buffer - each * latency_s;
                    if best.is_none_or(|(other, _)| qoe > other) {
                        best = Some((qoe, (of_latency, of_buffer)));
                    }
                }
            }
        }
        best.map_or((WEIGHTS[0], WEIGHTS[0]), |(_, weights)| weights)
    }

    /// All neurons move towards `seen`, the more the nearer they are to that of `level`.
    fn learn(&mut self, level: usize, seen: Features) {
        for one in 0..self.neurons.len() {
            let off = distance(&self.neurons[one], &self.neurons[level], &[1.0; 4]);
            let rate = LEARNING * libm::exp(-off * off / (2.0 * SIGMA * SIGMA));
            for (feature, seen) in self.neurons[one].iter_mut().zip(seen) {
                *feature += (seen - *feature) * rate;
            }
        }
    }
}

impl Rule for LolPlus {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let selected = self.selected.unwrap_or_else(|| start_level(now, &self.tuning));
        let (level, why) = match self.measured.safe_bps().filter(|&bps| bps > 0.0) {
            Some(bps) => self.choose(now, bps, selected),
            None => (selected, "to start with".into()),
        };
        self.selected = Some(level);
        Decision::at_once(level, self.measured.bps(), why)
    }

    fn fetched(&mut self, fetched: &Fetched, _now: &Situation<'_>) {
        self.measured.push(fetched);
    }
}

fn distance(one: &Features, other: &Features, weights: &Features) -> f64 {
    (0..4).map(|at| weights[at] * (one[at] - other[at]) * (one[at] - other[at])).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A neuron at the other's place moves by a hundredth, one at 0.1 from it by exp(-1/2) of that.
    #[test]
    fn neighbours_learn_less() {
        let mut rule = LolPlus::new(&Tuning::default());
        rule.neurons = vec![[0.5, 0.0, 0.0, 0.0], [0.6, 0.0, 0.0, 0.0]];
        rule.learn(1, [0.6, 1.0, 0.0, 0.0]);
        assert!((rule.neurons[1][1] - 0.01).abs() < 1e-12);
        assert!((rule.neurons[0][1] - 0.01 * libm::exp(-0.5)).abs() < 1e-12);
    }
}
