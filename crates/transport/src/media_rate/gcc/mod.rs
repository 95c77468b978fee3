//! `gcc`: Google's congestion control as libwebrtc ships it.
//!
//! Source: the constants of libwebrtc's branch 7204 (Chromium 138): delay by a trend line and an adaptive threshold,
//! additive and multiplicative increase, loss by likelihood, probes, and the behaviour of a sender that uses less than
//! its target. How the parts act together is Carlucci et al., "Analysis and Design of the Google Congestion Control"
//! (MMSys 2016).

mod acked;
mod aimd;
mod capacity;
mod loss;
mod probe;
mod trendline;

use streamgauge_base::{BitRate, Duration, Instant};

use super::groups::{Groups, ms};
use super::overuse::{Gains, Overuse, Usage};
use super::{PacketResult, Probe, RateController, RateStart, bps, round_trip};
use acked::Acked;
use aimd::Aimd;
use loss::LossBased;
use probe::Probes;
use trendline::Trendline;

const GAINS: Gains = Gains { up: 0.0087, down: 0.039 };
/// Packets leave no faster than this multiple of the target.
const PACING: f64 = 2.5;
/// A sender that uses less than this share of its target is idle, until it uses it again.
const IDLE: f64 = 0.65;
const IDLE_FROM: f64 = 0.80;
const IDLE_UNTIL: f64 = 0.50;
/// Seconds of the target by which that is counted.
const IDLE_BUDGET_S: f64 = 0.5;
/// While no feedback arrives for longer than this, the target falls by a fifth each second.
const SILENCE: Duration = Duration::from_secs(3);
const SILENCE_STEP: Duration = Duration::from_secs(1);
const SILENCE_FACTOR: f64 = 0.8;

/// Bytes that the sender might have sent beside those that it did.
#[derive(Clone, Debug, Default)]
struct Idle {
    /// As a share of half a second of the target.
    budget: f64,
    counted: Option<Instant>,
    is_idle: bool,
}

impl Idle {
    fn sent(&mut self, now: Instant, bytes: u32, target: f64) {
        let whole = IDLE * target * IDLE_BUDGET_S;
        let since = self.counted.replace(now).map_or(0.0, |at| now.saturating_since(at).as_secs_f64());
        let left = self.budget + (IDLE * target * since - f64::from(bytes) * 8.0) / whole;
        self.budget = left.clamp(-1.0, 1.0);
        self.is_idle = if self.is_idle { self.budget > IDLE_UNTIL } else { self.budget > IDLE_FROM };
    }
}

/// The controller of a sender.
#[derive(Debug)]
pub(super) struct Gcc {
    bounds: (f64, f64),
    groups: Groups,
    trendline: Trendline,
    detector: Overuse,
    acked: Acked,
    aimd: Aimd,
    loss: LossBased,
    probes: Probes,
    idle: Idle,
    target: f64,
    /// A factor that silence has lowered.
    silence: f64,
    heard: Option<Instant>,
    next: Option<Instant>,
}

impl Gcc {
    pub fn new(start: &RateStart) -> Self {
        let bounds = start.bounds();
        let first = start.first();
        Gcc {
            bounds,
            groups: Groups::default(),
            trendline: Trendline::default(),
            detector: Overuse::new(GAINS),
            acked: Acked::default(),
            aimd: Aimd::new(first, bounds),
            loss: LossBased::new(first, bounds),
            probes: Probes::new(first, bounds.1),
            idle: Idle::default(),
            target: first,
            silence: 1.0,
            heard: None,
            next: None,
        }
    }

    /// Passes the delays of the arrived packets to the detector.
    fn detect(&mut self, arrived: &[&PacketResult]) -> Usage {
        for result in arrived {
            let Some(at) = result.arrived else { continue };
            if let Some(apart) = self.groups.add(result.sent, at) {
                let signal = self.trendline.add(apart, ms(at));
                self.detector.sample(signal, apart.sent, ms(at));
            }
        }
        self.detector.usage()
    }

    fn probe_shows(&mut self, arrived: &[&PacketResult]) -> Option<f64> {
        let mut shown = None;
        for result in arrived {
            shown = self.probes.packet(result).or(shown);
        }
        shown
    }

    fn settle(&mut self, now: Instant) {
        let before = self.target;
        let estimate = self.loss.rate().map_or(self.aimd.rate(), |loss| loss.min(self.aimd.rate()));
        self.target = (estimate * self.silence).clamp(self.bounds.0, self.bounds.1);
        self.probes.estimated(now, before, self.target, self.idle.is_idle);
    }
}

impl RateController for Gcc {
    fn on_sent(&mut self, now: Instant, _number: u64, bytes: u32) {
        self.idle.sent(now, bytes, self.target);
        if self.heard.is_none() {
            self.heard = Some(now);
            self.next = Some(now + SILENCE);
        }
    }

    fn on_feedback(&mut self, now: Instant, results: &[PacketResult]) {
        let mut arrived: Vec<&PacketResult> = results.iter().filter(|result| !result.is_lost()).collect();
        arrived.sort_by_key(|result| result.arrived);
        (self.heard, self.next, self.silence) = (Some(now), Some(now + SILENCE), 1.0);
        if let Some(rtt) = round_trip(now, results) {
            self.aimd.round_trip(rtt);
        }
        for result in &arrived {
            self.acked.add(result);
        }
        let acked = self.acked.rate();
        let shown = self.probe_shows(&arrived);
        let usage = self.detect(&arrived);
        match shown {
            Some(shown) if usage != Usage::Over => {
                self.aimd.probed(now, shown);
                self.probes.shown(now, shown);
            }
            _ if !arrived.is_empty() => {
                self.aimd.update(now, usage, acked);
            }
            _ => {}
        }
        for result in results {
            self.loss.packet(result.sent, f64::from(result.bytes), result.is_lost());
        }
        self.loss.update(now, self.aimd.rate(), acked);
        self.settle(now);
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.next.is_some_and(|next| next <= now) {
            self.silence *= SILENCE_FACTOR;
            self.next = Some(now + SILENCE_STEP);
            self.settle(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next.filter(|_| self.target > self.bounds.0)
    }

    fn target(&self) -> BitRate {
        bps(self.target)
    }

    fn pacing(&self) -> BitRate {
        bps(self.target * PACING)
    }

    fn probe(&mut self, now: Instant) -> Option<Probe> {
        self.probes.next(now)
    }
}

#[cfg(test)]
mod tests;
