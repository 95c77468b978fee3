//! Model predictive control, of Yin et al. (SIGCOMM'15).

mod plan;
#[cfg(test)]
mod tests;

use super::recent::Recent;
use super::{Decision, Fetched, Rule, Situation, Tuning};
use plan::{Outlook, Planner};

/// Segments that the predicted throughput, and RobustMPC's errors, are of.
const SEGMENTS: usize = 5;

/// MPC and RobustMPC (sections 4 and 5): the first step of the best plan for the next five segments.
///
/// A plan's quality is the sum of its levels' rates in kbit/s, less the differences between neighbours, less 3000 for
/// each second without media. The predicted throughput is the harmonic mean of the last five (request to last byte).
/// RobustMPC divides it by 1 + the largest of the last five errors of prediction, relative to the measured throughput.
/// The buffer is full at the player's target. Sizes are the ladder's. If plans are equally good, the one that begins
/// higher wins.
///
/// The first segment is of the lowest level. The paper also plans the start-up delay; this rule does not. The weights
/// are recalled from section 7 and not read again. Horizon, means and errors agree with Pensieve's `mpc.py`.
pub struct Mpc {
    throughput: Recent,
    errors: Recent,
    /// The mean at the request of the segment in flight.
    predicted_bps: Option<f64>,
    is_robust: bool,
    planner: Planner,
    initial_bps: Option<f64>,
    share: f64,
}

impl Mpc {
    /// MPC, without history.
    pub fn new(tuning: &Tuning) -> Self {
        Mpc {
            throughput: Recent::new(SEGMENTS),
            errors: Recent::new(SEGMENTS),
            predicted_bps: None,
            is_robust: false,
            planner: Planner::default(),
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(1.0),
        }
    }

    /// RobustMPC, without history.
    pub fn robust(tuning: &Tuning) -> Self {
        Mpc { is_robust: true, ..Mpc::new(tuning) }
    }
}

impl Rule for Mpc {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        self.predicted_bps = self.throughput.harmonic_mean();
        let Some(mean_bps) = self.predicted_bps else {
            let level = self.initial_bps.map_or(0, |bps| now.ladder.at_most(self.share * bps));
            return Decision::at_once(level, self.initial_bps, "the first");
        };
        let error = if self.is_robust { self.errors.iter().fold(0.0, f64::max) } else { 0.0 };
        let bps = self.share * mean_bps / (1.0 + error);
        let outlook = Outlook {
            ladder: now.ladder,
            segment: now.segment,
            before: now.level,
            buffer_s: now.buffer.as_secs_f64(),
            most_s: now.target.as_secs_f64(),
            bps,
        };
        let best = self.planner.best(&outlook);
        let why = format!(
            "the best plan at {:.0} kbit/s (mean {:.0}, error {:.0} %) and {:.1} s of buffer, of quality {:.0}",
            bps / 1e3,
            mean_bps / 1e3,
            error * 100.0,
            outlook.buffer_s,
            best.quality,
        );
        Decision::at_once(best.level, bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        let bps = fetched.throughput_from_request_bps();
        if let Some(predicted_bps) = self.predicted_bps.take() {
            self.errors.push((predicted_bps - bps).abs() / bps.max(1.0));
        }
        self.throughput.push(bps);
    }
}
