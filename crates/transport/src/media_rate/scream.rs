//! `scream-v2`: Self-Clocked Rate Adaptation for Multimedia, second version, which responds to L4S.
//!
//! Source: draft-ietf-ccwg-rfc8298bis-screamv2, sections 5 to 7 and their constants. The restriction by varying delay,
//! optional in the draft, is included; the compensation of clock drift is left out, as a simulated clock has no drift.

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Ecn, Instant};

use super::groups::ms;
use super::{PacketResult, RateController, RateStart, bps, round_trip};

const MSS: f64 = 1000.0;
const LEAST_WINDOW: f64 = 3000.0;
/// Seconds.
const VIRTUAL_RTT: f64 = 0.025;
const TARGET_LOW: f64 = 0.06;
const TARGET_HIGH: f64 = 0.4;
const DELAY_WEIGHT: f64 = 0.25;
const DEVIATION_WEIGHT: f64 = 1.0 / 64.0;
const DEVIATION_NORM: f64 = 0.025;
const ALPHA_UP: f64 = 1.0 / 8.0;
const ALPHA_DOWN: f64 = 1.0 / 128.0;
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
const HEAD_ROOM: f64 = 1.5;
const OVERHEAD: (f64, f64) = (1.5, 3.0);
/// The growth of a window in a round trip, and after how many of these it is allowed in full.
const GROWTH: f64 = 0.02;
const CAUTIOUS_RTTS: f64 = 100.0;
const LEAST_SCALE: f64 = 0.1;
const PACING: f64 = 1.5;
const PACING_RELAXED: f64 = 4.0;
const RELAXED_FROM: f64 = 0.8;
const LEAST_PACING: f64 = 50e3;
const FRAME_S: f64 = 1.0 / 30.0;
const ADJUST_GAIN: f64 = 1.0 / 16.0;
const PACKET_OVERHEAD: f64 = 20.0;
/// A delay older than this is no base any more, ms (RFC 6817).
const BASE_MS: f64 = 600_000.0;

/// How the queueing delay has been, by its target's low end.
#[derive(Clone, Debug, Default)]
struct DelayHistory(VecDeque<f64>);

impl DelayHistory {
    fn push(&mut self, normed: f64) {
        self.0.push_back(normed);
        if self.0.len() > 200 {
            self.0.pop_front();
        }
    }
    fn mean(&self, last: usize) -> f64 {
        let taken = self.0.len().min(last);
        self.0.iter().rev().take(last).sum::<f64>() / taken.max(1) as f64
    }
    fn variance(&self) -> f64 {
        let mean = self.mean(200);
        self.0.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / self.0.len().max(1) as f64
    }
}

/// The controller of a sender.
#[derive(Debug)]
pub(super) struct Scream {
    bounds: (f64, f64),
    is_l4s: bool,
    window: f64,
    inflection: f64,
    inflection_at: f64,
    rtt: f64,
    base_ms: f64,
    base_at: f64,
    delay: f64,
    delay_mean: f64,
    delay_at: f64,
    target_delay: f64,
    history: DelayHistory,
    deviation: f64,
    loss_events: f64,
    alpha: f64,
    alpha_at: f64,
    units: (f64, f64),
    seen: (bool, bool),
    congested_at: f64,
    reacted_at: f64,
    in_flight: VecDeque<(u64, u32)>,
    flying: f64,
    most_flying: (f64, f64),
    flying_at: f64,
    adjust: f64,
    bitrate: f64,
}

impl Scream {
    pub fn new(start: &RateStart) -> Self {
        let first = start.first();
        // The window that carries the start rate on the first round trip that is assumed.
        let rtt = 0.1;
        Scream {
            bounds: start.bounds(),
            is_l4s: true,
            window: (first * rtt / 8.0 * 1.2).max(LEAST_WINDOW),
            inflection: 1.0,
            inflection_at: 0.0,
            rtt,
            base_ms: f64::INFINITY,
            base_at: 0.0,
            delay: 0.0,
            delay_mean: 0.0,
            delay_at: 0.0,
            target_delay: TARGET_LOW,
            history: DelayHistory::default(),
            deviation: 0.0,
            loss_events: 0.0,
            alpha: 0.0,
            alpha_at: 0.0,
            units: (0.0, 0.0),
            seen: (false, false),
            congested_at: 0.0,
            reacted_at: 0.0,
            in_flight: VecDeque::new(),
            flying: 0.0,
            most_flying: (0.0, 0.0),
            flying_at: 0.0,
            adjust: 0.0,
            bitrate: first,
        }
    }

    fn ratio(&self) -> f64 {
        MSS / self.window
    }

    /// Returns how much of the window's growth a varying delay leaves.
    fn steadiness(&self) -> f64 {
        let threshold = self.deviation_threshold();
        (threshold - self.deviation) / threshold
    }

    fn deviation_threshold(&self) -> f64 {
        (0.1 * (1.0 - self.ratio() / 0.1)).max(0.05)
    }

    fn land(&mut self, results: &[PacketResult]) {
        let Some(highest) = results.iter().map(|result| result.number).max() else { return };
        while let Some(&(_, bytes)) = self.in_flight.front().filter(|(number, _)| *number <= highest) {
            self.flying -= f64::from(bytes);
            self.in_flight.pop_front();
        }
    }

    fn measure(&mut self, now: f64, results: &[PacketResult]) {
        let mut least = f64::INFINITY;
        for result in results {
            let Some(arrived) = result.arrived else { continue };
            let one_way = ms(arrived) - ms(result.sent);
            if one_way < self.base_ms || now * 1e3 - self.base_at > BASE_MS {
                (self.base_ms, self.base_at) = (one_way, now * 1e3);
            }
            least = least.min(one_way);
        }
        if least.is_finite() {
            self.delay = (least - self.base_ms).max(0.0) / 1e3;
        }
        if now - self.delay_at < VIRTUAL_RTT.min(self.rtt) {
            return;
        }
        self.delay_at = now;
        self.delay_mean = if self.delay < self.delay_mean {
            self.delay
        } else {
            DELAY_WEIGHT * self.delay + (1.0 - DELAY_WEIGHT) * self.delay_mean
        };
        let most = 1.5 * self.deviation_threshold();
        let off = ((self.delay - DEVIATION_NORM / 4.0) / DEVIATION_NORM).clamp(0.0, most);
        self.deviation += DEVIATION_WEIGHT * (off - self.deviation);
        self.adjust_target();
    }

    /// Compensates for flows that fill the queue.
    fn adjust_target(&mut self) {
        self.history.push(self.delay / TARGET_LOW);
        let variance = self.history.variance();
        let fresh = (self.history.mean(50) + variance.sqrt()) * TARGET_LOW;
        self.target_delay = if self.loss_events > 0.002 {
            1.5 * fresh
        } else if variance < 0.2 {
            fresh
        } else if fresh < TARGET_LOW {
            (self.target_delay * 0.5).max(fresh)
        } else {
            self.target_delay * 0.9
        }
        .clamp(TARGET_LOW, TARGET_HIGH);
    }

    fn count_marks(&mut self, now: f64, results: &[PacketResult]) {
        let marked = results.iter().filter(|result| result.is_marked()).count() as f64;
        let lost = results.iter().any(PacketResult::is_lost);
        self.seen = (self.seen.0 || lost, self.seen.1 || marked > 0.0);
        self.units.0 += results.iter().filter(|result| !result.is_lost()).count() as f64;
        self.units.1 += marked;
        if now - self.alpha_at < self.rtt.min(0.01) || self.units.0 == 0.0 {
            return;
        }
        let share = self.units.1 / self.units.0;
        self.alpha = if share >= self.alpha {
            ALPHA_UP * share + (1.0 - ALPHA_UP) * self.alpha
        } else {
            (1.0 - ALPHA_DOWN) * self.alpha
        };
        (self.alpha_at, self.units) = (now, (0.0, 0.0));
    }

    /// Returns how far the window is from the one at which congestion was met before.
    fn distance(&self) -> f64 {
        let off = 8.0 * (self.window - self.inflection) / self.inflection;
        (off * off).clamp(0.1, 1.0)
    }

    fn reduce(&mut self, now: f64, scale: f64) {
        let (is_lost, is_marked) = self.seen;
        if is_lost || is_marked {
            self.congested_at = now;
        }
        if now - self.reacted_at < VIRTUAL_RTT.min(self.rtt) {
            return;
        }
        let half = self.target_delay / 2.0;
        let virtual_alpha = ((self.delay_mean - half) / half).clamp(0.0, 1.0);
        let is_virtual = !is_lost && !is_marked && virtual_alpha > 0.0;
        self.loss_events += (f64::from(u8::from(is_lost)) - self.loss_events) / 200.0;
        if !(is_lost || is_marked || is_virtual) {
            return;
        }
        if now - self.inflection_at > 10.0 * self.rtt {
            (self.inflection_at, self.inflection) = (now, self.window);
        }
        let long = (self.rtt / VIRTUAL_RTT).max(1.0);
        if is_lost {
            self.window *= BETA_LOSS;
        } else if is_marked && self.is_l4s {
            let mut backoff = self.alpha / 2.0 / long;
            if self.delay < self.target_delay * 0.25 {
                backoff *= scale.max(0.25) * self.steadiness().max(LEAST_SCALE);
            }
            if now - self.reacted_at > CAUTIOUS_RTTS * self.rtt.max(VIRTUAL_RTT) {
                self.window = self.window.min(self.most_flying.1.max(LEAST_WINDOW));
            }
            self.window *= 1.0 - backoff;
        } else if is_marked {
            self.window *= BETA_ECN;
        } else {
            self.window *= 1.0 - virtual_alpha / 2.0 / long;
        }
        self.window = self.window.max(LEAST_WINDOW);
        (self.reacted_at, self.seen) = (now, (false, false));
    }

    fn grow(&mut self, now: f64, scale: f64, acked: f64) {
        let caution = (now - self.congested_at) / (CAUTIOUS_RTTS * self.rtt.max(VIRTUAL_RTT));
        let mut more = acked * self.ratio() * (self.rtt / VIRTUAL_RTT).min(1.0);
        more *= scale.max(0.25) * self.steadiness().max(LEAST_SCALE);
        more *= 1.0 + GROWTH * self.window / MSS * caution.clamp(0.0, 1.0) * scale;
        let most = MSS + self.most_flying.0.max(self.most_flying.1) * HEAD_ROOM;
        if self.window + more <= most && self.bitrate < self.bounds.1 {
            self.window += more;
        }
    }

    fn rate(&mut self) {
        let mut factor = 1.0 - (self.ratio() - 0.1).clamp(0.0, 0.2);
        factor *= MSS / (MSS + PACKET_OVERHEAD);
        factor /= 1.2 + self.adjust;
        self.bitrate = (factor * 8.0 * self.window / self.rtt).clamp(self.bounds.0, self.bounds.1);
    }
}

impl RateController for Scream {
    fn on_sent(&mut self, now: Instant, number: u64, bytes: u32) {
        self.in_flight.push_back((number, bytes));
        self.flying += f64::from(bytes);
        let at = now.as_secs_f64();
        if at - self.flying_at > self.rtt {
            (self.flying_at, self.most_flying) = (at, (0.0, self.most_flying.0));
        }
        self.most_flying.0 = self.most_flying.0.max(self.flying);
    }

    fn on_backlog(&mut self, _now: Instant, bytes: u64) {
        // The time that the backlog needs at the target approximates the time that the oldest packet has waited.
        let waits = bytes as f64 * 8.0 / self.bitrate.max(1.0);
        let error = (waits - FRAME_S / 4.0) / FRAME_S;
        self.adjust = (self.adjust + error * ADJUST_GAIN).clamp(0.0, 0.5);
    }

    fn on_feedback(&mut self, now: Instant, results: &[PacketResult]) {
        if results.is_empty() {
            return;
        }
        let at = now.as_secs_f64();
        if let Some(rtt) = round_trip(now, results) {
            let rtt = rtt.as_secs_f64().max(1e-3);
            self.rtt += (rtt - self.rtt) / 8.0;
        }
        let acked: f64 = results
            .iter()
            .filter(|result| result.arrived.is_none() || result.ecn != Ecn::Ce)
            .map(|result| f64::from(result.bytes))
            .sum();
        self.land(results);
        self.measure(at, results);
        self.count_marks(at, results);
        let scale = self.distance();
        self.reduce(at, scale);
        self.grow(at, scale, acked);
        self.rate();
    }

    fn target(&self) -> BitRate {
        bps(self.bitrate)
    }

    fn pacing(&self) -> BitRate {
        let near = (self.bitrate / self.bounds.1 - RELAXED_FROM) / (1.0 - RELAXED_FROM);
        let scale = (1.0 - near.min(1.0)).clamp(1.0 / PACING_RELAXED, 1.0);
        bps(self.bitrate.max(LEAST_PACING) * PACING / scale)
    }

    fn window(&self) -> Option<u64> {
        let overhead = OVERHEAD.0 + (OVERHEAD.1 - OVERHEAD.0) * self.steadiness().max(0.0);
        Some((self.window * overhead) as u64)
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect1
    }
}

#[cfg(test)]
mod tests {
    use super::super::bed::Bed;
    use super::super::tests::start;
    use super::*;

    #[test]
    fn marks_raise_alpha_by_an_eighth_and_their_absence_lowers_it_by_a_128th() {
        let mut scream = Scream::new(&start());
        let came = |ecn| PacketResult {
            number: 0,
            bytes: 1000,
            sent: Instant::ZERO,
            arrived: Some(Instant::ZERO),
            ecn,
            probe: None,
        };
        scream.count_marks(1.0, &[came(Ecn::Ce), came(Ecn::Ect1)]);
        assert!((scream.alpha - 0.5 / 8.0).abs() < 1e-12);
        scream.count_marks(2.0, &[came(Ecn::Ect1)]);
        assert!((scream.alpha - 0.5 / 8.0 * 127.0 / 128.0).abs() < 1e-12);
    }

    #[test]
    fn a_loss_leaves_0_7_of_the_window_once_a_round_trip() {
        let mut scream = Scream::new(&start());
        scream.window = 20_000.0;
        scream.seen.0 = true;
        scream.reduce(1.0, 1.0);
        assert!((scream.window - 14_000.0).abs() < 1e-9);
        scream.seen.0 = true;
        scream.reduce(1.01, 1.0);
        assert!((scream.window - 14_000.0).abs() < 1e-9);
        scream.reduce(1.03, 1.0);
        assert!((scream.window - 9_800.0).abs() < 1e-9);
    }

    #[test]
    fn a_delay_between_half_the_target_and_the_target_takes_up_to_half_over_the_round_trip() {
        let mut scream = Scream::new(&start());
        (scream.window, scream.rtt, scream.delay_mean) = (20_000.0, 0.05, 0.045);
        scream.reduce(1.0, 1.0);
        // Alpha 0.5, half of it, over 50 / 25.
        assert!((scream.window - 20_000.0 * (1.0 - 0.125)).abs() < 1e-9);
    }

    #[test]
    fn alone_it_keeps_half_the_link_and_its_queue_below_the_target() {
        let mut bed = Bed::new("scream-v2", 1_000_000);
        bed.run(60);
        assert!(bed.used(30, 60) > 0.5, "{}", bed.used(30, 60));
        assert!(bed.queue_p95_ms(30, 60) < 80.0, "{}", bed.queue_p95_ms(30, 60));
    }

    #[test]
    fn a_link_that_marks_is_obeyed_without_loss() {
        let mut bed = Bed::new("scream-v2", 1_000_000).marks_beyond_ms(10.0);
        bed.run(60);
        assert_eq!(bed.lost, 0);
        assert!(bed.used(30, 60) > 0.4, "{}", bed.used(30, 60));
        assert!(bed.queue_p95_ms(30, 60) < 40.0, "{}", bed.queue_p95_ms(30, 60));
    }
}
