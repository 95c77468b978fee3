//! The loss-based estimate: the candidate that best explains the recent losses.
//!
//! Source: libwebrtc's loss-based estimation, second version (branch 7204): a path loses a share of its own, and
//! everything sent beyond its capacity; both are fitted by the likelihood of the last observations.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

/// Candidates, as multiples of the estimate.
const CANDIDATES: [f64; 3] = [1.02, 1.0, 0.95];
const OBSERVATION: Duration = Duration::from_millis(250);
const WINDOW: usize = 15;
const LEAST_OBSERVATIONS: usize = 3;
const WEIGHT: f64 = 0.9;
const NEWTON_STEP: f64 = 0.75;
const FIRST_INHERENT: f64 = 0.01;
const LEAST_INHERENT: f64 = 1e-3;
/// No share beyond this is the path's own, but for low rates.
const MOST_INHERENT: f64 = 0.05;
/// The rate at which all loss may be the path's own, bit/s.
const BALANCE_BPS: f64 = 75e3;
/// Higher candidates are preferred below this loss.
const PREFERENCE_LOSS: f64 = 0.15;
const PREFERENCE_SMOOTHING: f64 = 0.002;
const PREFERENCE: f64 = 0.0002;
const LOG_PREFERENCE: f64 = 0.02;
/// Upper bound of a candidate, as a multiple of the arriving rate; lower where the estimate was held.
const RAMP: f64 = 1.5;
const HELD_RAMP: f64 = 1.2;
/// Growth while loss limits, from the estimate at the window's begin.
const MOST_GROWTH: f64 = 1.3;
const GROWTH_WINDOW: Duration = Duration::from_millis(300);
const FIRST_HOLD: Duration = Duration::from_millis(300);
const LONGEST_HOLD: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    lost: f64,
    arrived: f64,
    sent_bps: f64,
}

#[derive(Clone, Copy, Debug)]
struct Fit {
    bps: f64,
    inherent: f64,
}

#[derive(Clone, Debug)]
pub(super) struct LossBased {
    bounds: (f64, f64),
    observations: VecDeque<Observation>,
    /// Reports since the last observation: lost, arrived, bytes, and the time when the first of these packets was sent.
    partial: (f64, f64, f64, Option<Instant>),
    last_sent: Option<Instant>,
    fit: Fit,
    /// Loss keeps it below the delay-based estimate.
    limits: bool,
    /// Its end and its rate.
    hold: (Instant, f64),
    hold_for: Duration,
    /// The growth's window: until when, and the rate that it allows.
    growth: (Instant, f64),
}

impl LossBased {
    pub fn new(start: f64, bounds: (f64, f64)) -> Self {
        LossBased {
            bounds,
            observations: VecDeque::new(),
            partial: (0.0, 0.0, 0.0, None),
            last_sent: None,
            fit: Fit { bps: start, inherent: FIRST_INHERENT },
            limits: false,
            hold: (Instant::ZERO, f64::INFINITY),
            hold_for: FIRST_HOLD,
            growth: (Instant::ZERO, f64::INFINITY),
        }
    }

    /// Returns the estimate, bit/s, where loss limits.
    pub fn rate(&self) -> Option<f64> {
        self.limits.then_some(self.fit.bps)
    }

    /// Notes that a packet was reported.
    pub fn packet(&mut self, sent: Instant, bytes: f64, is_lost: bool) {
        let (lost, arrived, sum, first) = &mut self.partial;
        *lost += f64::from(u8::from(is_lost));
        *arrived += f64::from(u8::from(!is_lost));
        *sum += bytes;
        let begin = *first.get_or_insert(self.last_sent.unwrap_or(sent));
        if sent.saturating_since(begin) >= OBSERVATION {
            let seconds = sent.saturating_since(begin).as_secs_f64();
            let observation = Observation { lost: *lost, arrived: *arrived, sent_bps: *sum * 8.0 / seconds };
            self.observations.push_back(observation);
            if self.observations.len() > WINDOW {
                self.observations.pop_front();
            }
            self.last_sent = Some(sent);
            self.partial = (0.0, 0.0, 0.0, None);
        }
    }

    /// Returns the lost share in the observations, weighted by their age.
    fn average_loss(&self) -> f64 {
        let (mut lost, mut all, mut weight) = (0.0, 0.0, 1.0);
        for one in self.observations.iter().rev() {
            lost += weight * one.lost;
            all += weight * (one.lost + one.arrived);
            weight *= WEIGHT;
        }
        if all > 0.0 { lost / all } else { 0.0 }
    }

    /// Updates the estimate after a report, with the delay-based estimate and the arriving rate.
    pub fn update(&mut self, now: Instant, delay_based: f64, acked: Option<f64>) {
        if self.observations.len() < LEAST_OBSERVATIONS {
            self.fit.bps = delay_based;
            return;
        }
        let before = self.fit.bps;
        let best = self.best(now, delay_based, acked);
        self.fit.inherent = best.inherent;
        let mut bps = best.bps.min(delay_based).min(self.instant_bound());
        if self.limits && bps > before && best.inherent < self.average_loss() {
            // Excess sending causes the losses beyond the path's own share.
            bps = before;
        }
        if self.limits && now < self.hold.0 {
            bps = bps.min(self.hold.1);
        }
        bps = bps.clamp(self.bounds.0, self.bounds.1.max(self.bounds.0));
        let is_limited = bps < delay_based;
        if is_limited && bps < before {
            self.hold = (now + self.hold_for, bps);
            self.hold_for = Duration::from_nanos((self.hold_for.as_nanos() * 2).min(LONGEST_HOLD.as_nanos()));
        }
        if !is_limited {
            (self.hold_for, self.hold) = (FIRST_HOLD, (Instant::ZERO, f64::INFINITY));
            self.growth = (Instant::ZERO, f64::INFINITY);
        } else if now >= self.growth.0 {
            self.growth = (now + GROWTH_WINDOW, (bps * MOST_GROWTH).max(self.bounds.0));
        }
        (self.limits, self.fit.bps) = (is_limited, bps);
    }

    fn best(&self, now: Instant, delay_based: f64, acked: Option<f64>) -> Fit {
        let mut bound = if self.limits { self.growth.1 } else { f64::INFINITY };
        if let Some(acked) = acked.filter(|_| self.limits) {
            let ramp = if self.limits && now < self.hold.0 { HELD_RAMP } else { RAMP };
            bound = bound.min(ramp * acked);
        }
        let multiples = CANDIDATES.map(|factor| factor * self.fit.bps);
        let others = [acked, Some(delay_based)];
        let candidates = multiples.into_iter().chain(others.into_iter().flatten());
        let mut best: Option<(f64, Fit)> = None;
        for bps in candidates {
            let bps = if bps > self.fit.bps { bps.min(bound.max(self.fit.bps)) } else { bps };
            let fit = self.fitted(bps);
            let value = self.objective(fit);
            if best.is_none_or(|(known, _)| value > known) {
                best = Some((value, fit));
            }
        }
        best.map_or(self.fit, |(_, fit)| fit)
    }

    /// Returns the path's own loss that explains the observations best if its capacity is `bps`, by one step of
    /// Newton's method.
    fn fitted(&self, bps: f64) -> Fit {
        let most = (MOST_INHERENT + BALANCE_BPS / bps).min(1.0);
        let inherent = self.fit.inherent.clamp(LEAST_INHERENT, most);
        let (mut first, mut second, mut weight) = (0.0, 0.0, 1.0);
        for one in self.observations.iter().rev() {
            let p = loss(inherent, bps, one.sent_bps);
            first += weight * (one.lost / p - one.arrived / (1.0 - p));
            second -= weight * (one.lost / (p * p) + one.arrived / ((1.0 - p) * (1.0 - p)));
            weight *= WEIGHT;
        }
        let step = if second == 0.0 { 0.0 } else { NEWTON_STEP * first / second };
        Fit { bps, inherent: (inherent - step).clamp(LEAST_INHERENT, most) }
    }

    fn objective(&self, fit: Fit) -> f64 {
        let short = PREFERENCE_LOSS - self.average_loss();
        let scale = short / (PREFERENCE_SMOOTHING + short.abs());
        let kbps = fit.bps / 1e3;
        let preference = scale * (PREFERENCE * kbps + LOG_PREFERENCE * libm::log(1.0 + kbps));
        let (mut sum, mut weight) = (0.0, 1.0);
        for one in self.observations.iter().rev() {
            let p = loss(fit.inherent, fit.bps, one.sent_bps);
            sum += weight * (one.lost * libm::log(p) + one.arrived * libm::log(1.0 - p));
            sum += weight * preference * (one.lost + one.arrived);
            weight *= WEIGHT;
        }
        sum
    }

    /// Returns the rate that may be sent at once while losses exceed any path's own share.
    fn instant_bound(&self) -> f64 {
        let beyond = self.average_loss() - MOST_INHERENT;
        if beyond > 0.0 { BALANCE_BPS / beyond } else { f64::INFINITY }
    }
}

/// Returns the chance that a packet is lost which was sent at `sent` over a path of capacity `bps`.
fn loss(inherent: f64, bps: f64, sent: f64) -> f64 {
    let beyond = if sent > bps { (1.0 - inherent) * (sent - bps) / sent } else { 0.0 };
    (inherent + beyond).clamp(1e-6, 1.0 - 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends at the estimate for a while over a path that loses `lost(rate)` of it, spread evenly.
    fn after(seconds: u64, start: f64, delay_based: f64, lost: impl Fn(f64) -> f64) -> LossBased {
        let mut based = LossBased::new(start, (5e3, 1e9));
        let (mut now, mut owed) = (0.0, 0.0);
        let mut reported = 0.0;
        while now < seconds as f64 {
            let rate = based.rate().unwrap_or(delay_based);
            owed += lost(rate);
            let is_lost = owed >= 1.0;
            owed -= if is_lost { 1.0 } else { 0.0 };
            let at = Instant::from_nanos((now * 1e9) as u64);
            based.packet(at, 1200.0, is_lost);
            if now - reported >= 0.1 {
                based.update(at, delay_based, Some(rate * (1.0 - lost(rate))));
                reported = now;
            }
            now += 9600.0 / rate;
        }
        based
    }

    #[test]
    fn no_loss_leaves_the_delay_based_estimate() {
        let based = after(20, 1e6, 1e6, |_| 0.0);
        assert_eq!(based.rate(), None);
    }

    #[test]
    fn a_share_that_the_path_loses_by_itself_hardly_limits() {
        let based = after(60, 1e6, 1e6, |_| 0.02);
        assert!(based.rate().unwrap_or(1e6) > 0.8e6, "{:?}", based.rate());
    }

    #[test]
    fn a_policer_of_half_the_rate_is_found() {
        let over = |rate: f64| ((rate - 500e3) / rate).max(0.0);
        let based = after(60, 1e6, 1e6, over);
        let rate = based.rate().unwrap();
        assert!((300e3..650e3).contains(&rate), "{rate}");
    }

    #[test]
    fn the_bound_of_a_large_loss_is_the_balance_over_what_is_beyond_five_percent() {
        let based = after(10, 1e6, 1e6, |_| 0.3);
        assert!(based.rate().unwrap() <= BALANCE_BPS / 0.2, "{:?}", based.rate());
    }
}
