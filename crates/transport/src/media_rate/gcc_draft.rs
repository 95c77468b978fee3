//! `gcc-draft`: Google's congestion control as its draft of 2016 has it, which pion and GStreamer implement.
//!
//! Source: draft-ietf-rmcat-gcc-02: the arrival-time filter is Kalman's (section 5.3), loss counts by two thresholds
//! (section 6). The filter's result is weighted by at most 60 groups, as implementations do. There are no probes.

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Duration, Instant};

use super::groups::{Groups, ms};
use super::overuse::{Gains, Overuse, Usage};
use super::{PacketResult, RateController, RateStart, bps, round_trip};

const GAINS: Gains = Gains { up: 0.01, down: 0.00018 };
const MOST_GROUPS: f64 = 60.0;
/// Constants of the Kalman filter: the state's noise, the first error, and the weight of the measured noise.
const STATE_NOISE: f64 = 1e-3;
const FIRST_ERROR: f64 = 0.1;
const NOISE_WEIGHT: f64 = 0.01;
/// The fraction of the arriving rate that remains after a reduction.
const BACKOFF: f64 = 0.85;
const GROWTH: f64 = 1.08;
const AHEAD: f64 = 1.5;
/// The arriving rate is a mean over this time, ms.
const RATE_MS: f64 = 500.0;
/// The mean rate of overuses: the weight of the last, and how many deviations are near.
const NEAR_WEIGHT: f64 = 0.05;
const NEAR_DEVIATIONS: f64 = 3.0;
const DETECTOR_S: f64 = 0.1;
const PACKET_BITS: f64 = 9600.0;
/// Loss below the first raises the loss-based rate, above the second lowers it.
const LITTLE_LOSS: f64 = 0.02;
const MUCH_LOSS: f64 = 0.10;
const LOSS_GROWTH: f64 = 1.05;
const LOSS_EVERY: Duration = Duration::from_millis(200);
const PACING: f64 = 1.5;

/// The arrival-time filter: how much longer the queue gets from one group to the next, ms.
#[derive(Clone, Debug)]
struct Kalman {
    estimate: f64,
    error: f64,
    noise: f64,
}

impl Default for Kalman {
    fn default() -> Self {
        Kalman { estimate: 0.0, error: FIRST_ERROR, noise: 1.0 }
    }
}

impl Kalman {
    fn add(&mut self, delay_ms: f64) -> f64 {
        let off = delay_ms - self.estimate;
        let bound = 3.0 * self.noise.sqrt();
        let bounded = off.clamp(-bound, bound);
        self.noise = ((1.0 - NOISE_WEIGHT) * self.noise + NOISE_WEIGHT * bounded * bounded).max(1.0);
        let before = self.error + STATE_NOISE;
        let gain = before / (self.noise + before);
        self.error = (1.0 - gain) * before;
        self.estimate += gain * bounded;
        self.estimate
    }
}

/// The controller of a sender.
#[derive(Debug)]
pub(super) struct GccDraft {
    bounds: (f64, f64),
    groups: Groups,
    counted: f64,
    kalman: Kalman,
    detector: Overuse,
    /// When arrived, ms; bits. Covers the last half second.
    arrived: VecDeque<(f64, f64)>,
    delay_based: f64,
    loss_based: f64,
    /// Mean and variance of the rate that arrived at overuses.
    near: Option<(f64, f64)>,
    is_held: bool,
    changed: Option<Instant>,
    rtt: Duration,
    /// Since when, and lost and reported packets.
    losses: (Option<Instant>, u32, u32),
}

impl GccDraft {
    pub fn new(start: &RateStart) -> Self {
        let first = start.first();
        GccDraft {
            bounds: start.bounds(),
            groups: Groups::default(),
            counted: 0.0,
            kalman: Kalman::default(),
            detector: Overuse::new(GAINS),
            arrived: VecDeque::new(),
            delay_based: first,
            loss_based: first,
            near: None,
            is_held: true,
            changed: None,
            rtt: Duration::from_millis(200),
            losses: (None, 0, 0),
        }
    }

    fn arrive(&mut self, result: &PacketResult, at: Instant) {
        self.arrived.push_back((ms(at), f64::from(result.bytes) * 8.0));
        let last = self.arrived.iter().fold(0.0f64, |last, packet| last.max(packet.0));
        self.arrived.retain(|packet| packet.0 > last - RATE_MS);
        if let Some(apart) = self.groups.add(result.sent, at) {
            self.counted = (self.counted + 1.0).min(MOST_GROUPS);
            let estimate = self.kalman.add(apart.arrived - apart.sent);
            self.detector.sample(self.counted * estimate, apart.sent, ms(at));
        }
    }

    /// Returns the rate that arrives, bit/s.
    fn rate(&self) -> f64 {
        self.arrived.iter().map(|packet| packet.1).sum::<f64>() * 1e3 / RATE_MS
    }

    fn is_near(&self, rate: f64) -> bool {
        self.near.is_some_and(|(mean, variance)| (rate - mean).abs() <= NEAR_DEVIATIONS * variance.sqrt())
    }

    fn by_delay(&mut self, now: Instant) {
        let rate = self.rate();
        match self.detector.usage() {
            Usage::Over if !self.is_held => {
                let (mean, variance) = self.near.filter(|_| self.is_near(rate)).unwrap_or((rate, 0.0));
                let off = rate - mean;
                let variance = (1.0 - NEAR_WEIGHT) * (variance + NEAR_WEIGHT * off * off);
                // The least deviation keeps one overuse from being a point that no rate is near to.
                self.near = Some((mean + NEAR_WEIGHT * off, variance.max(4e2 * mean)));
                self.delay_based = (BACKOFF * rate).min(self.delay_based).clamp(self.bounds.0, self.bounds.1);
                (self.is_held, self.changed) = (true, Some(now));
            }
            Usage::Over | Usage::Under => self.is_held = true,
            Usage::Normal => {
                let since =
                    self.changed.replace(now).map_or(0.0, |at| now.saturating_since(at).as_secs_f64());
                if !std::mem::replace(&mut self.is_held, false) {
                    self.increase(rate, since.min(1.0));
                }
            }
        }
    }

    fn increase(&mut self, rate: f64, since: f64) {
        if self.near.is_some_and(|(mean, _)| rate > mean) && !self.is_near(rate) {
            self.near = None;
        }
        let more = if self.is_near(rate) {
            let frame = self.delay_based / 30.0;
            let packet = frame / (frame / PACKET_BITS).ceil().max(1.0);
            let alpha = 0.5 * (since / (DETECTOR_S + self.rtt.as_secs_f64())).min(1.0);
            (alpha * packet).max(1000.0 * since)
        } else {
            self.delay_based * (libm::pow(GROWTH, since) - 1.0)
        };
        let limit = (AHEAD * rate).max(self.bounds.0);
        if self.delay_based < limit {
            self.delay_based = (self.delay_based + more).min(limit).clamp(self.bounds.0, self.bounds.1);
        }
    }

    fn by_loss(&mut self, now: Instant, results: &[PacketResult]) {
        let (since, lost, all) = &mut self.losses;
        *lost += results.iter().filter(|result| result.is_lost()).count() as u32;
        *all += results.len() as u32;
        let begin = *since.get_or_insert(now);
        if now.saturating_since(begin) < LOSS_EVERY || *all == 0 {
            return;
        }
        let share = f64::from(*lost) / f64::from(*all);
        self.losses = (Some(now), 0, 0);
        let factor = if share < LITTLE_LOSS {
            LOSS_GROWTH
        } else if share > MUCH_LOSS {
            1.0 - 0.5 * share
        } else {
            1.0
        };
        // It stays near the other estimate; far above it, it would have no effect when loss occurs.
        let most = self.bounds.1.min(2.0 * self.delay_based);
        self.loss_based = (self.loss_based * factor).min(most).max(self.bounds.0);
    }
}

impl RateController for GccDraft {
    fn on_feedback(&mut self, now: Instant, results: &[PacketResult]) {
        let mut arrived: Vec<&PacketResult> = results.iter().filter(|result| !result.is_lost()).collect();
        arrived.sort_by_key(|result| result.arrived);
        if let Some(rtt) = round_trip(now, results) {
            self.rtt = rtt;
        }
        for result in &arrived {
            if let Some(at) = result.arrived {
                self.arrive(result, at);
            }
        }
        if !arrived.is_empty() {
            self.by_delay(now);
        }
        self.by_loss(now, results);
    }

    fn target(&self) -> BitRate {
        bps(self.delay_based.min(self.loss_based).clamp(self.bounds.0, self.bounds.1))
    }

    fn pacing(&self) -> BitRate {
        bps(self.target().as_bps() as f64 * PACING)
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Ecn;

    use super::super::bed::Bed;
    use super::super::tests::start;
    use super::*;

    #[test]
    fn the_filter_finds_a_queue_that_grows() {
        let mut kalman = Kalman::default();
        assert!(kalman.add(0.0).abs() < 1e-12);
        let last = (0..2000).fold(0.0, |_, _| kalman.add(2.0));
        assert!((last - 2.0).abs() < 0.01, "{last}");
    }

    #[test]
    fn the_first_step_of_the_filter_is_the_draft_s() {
        let mut kalman = Kalman::default();
        // e = 0.101, var_v = max(0.99 + 0.01 * 4, 1) = 1.03, k = 0.101 / 1.131, m = 2 k.
        assert!((kalman.add(2.0) - 2.0 * 0.101 / 1.131).abs() < 1e-12);
    }

    #[test]
    fn loss_between_the_thresholds_moves_nothing_and_beyond_takes_half_of_it() {
        for (lost, factor) in [(0u64, 1.05), (5, 1.0), (20, 0.9)] {
            let mut draft = GccDraft::new(&start());
            draft.losses.0 = Some(Instant::ZERO);
            let results: Vec<PacketResult> = (0..100)
                .map(|number| PacketResult {
                    number,
                    bytes: 1200,
                    sent: Instant::ZERO,
                    arrived: (number >= lost).then_some(Instant::ZERO),
                    ecn: Ecn::NotEct,
                    probe: None,
                })
                .collect();
            draft.by_loss(Instant::ZERO + LOSS_EVERY, &results);
            assert!((draft.loss_based / 800e3 - factor).abs() < 1e-9, "{lost} of 100 lost");
        }
    }

    #[test]
    fn alone_it_fills_the_link_and_keeps_the_queue_short() {
        let mut bed = Bed::new("gcc-draft", 1_000_000);
        bed.run(60);
        assert!(bed.used(30, 60) > 0.7, "{}", bed.used(30, 60));
        assert!(bed.queue_p95_ms(30, 60) < 150.0, "{}", bed.queue_p95_ms(30, 60));
    }

    #[test]
    fn from_300_kbit_s_it_needs_more_than_ten_seconds_to_a_megabit() {
        let mut bed = Bed::new("gcc-draft", 10_000_000);
        bed.run(30);
        let reached = bed.reaches(1_000_000).unwrap();
        assert!((10.0..25.0).contains(&reached), "{reached} s");
    }
}
