//! `nada`: Network-Assisted Dynamic Adaptation.
//!
//! Source: RFC 8698, section 4 (algorithm) and the table of section 4.2 (parameters); the receiver's work there is done
//! at the sender, from reports on each packet (section 5.3).

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Duration, Instant};

use super::groups::ms;
use super::{PacketResult, RateController, RateStart, bps, round_trip};

/// The reference congestion level, ms, and the weight of priority.
const XREF_MS: f64 = 10.0;
const PRIORITY: f64 = 1.0;
const KAPPA: f64 = 0.5;
const ETA: f64 = 2.0;
/// The upper bound of the round trip, and the target interval of reports, ms.
const TAU_MS: f64 = 500.0;
const DELTA_MS: f64 = 100.0;
const DELTA: Duration = Duration::from_millis(100);
/// The time of the filters, ms.
const FILTER_MS: f64 = 120.0;
/// The window of observation, ms.
const WINDOW_MS: f64 = 500.0;
/// A queue below this is no queue, ms.
const QEPS_MS: f64 = 10.0;
const MOST_GAMMA: f64 = 0.5;
/// The queue that ramping up may build, ms.
const QBOUND_MS: f64 = 50.0;
/// Delays beyond are warped after a loss, ms.
const QTH_MS: f64 = 50.0;
const LAMBDA: f64 = 0.5;
/// Losses count for this many mean intervals between them.
const LOSS_INTERVALS: f64 = 7.0;
/// Penalties, ms, at the reference ratios.
const DLOSS_MS: f64 = 10.0;
const DMARK_MS: f64 = 2.0;
const LOSS_REFERENCE: f64 = 0.01;
const MARK_REFERENCE: f64 = 0.01;
/// The signal is at most this, ms: ns3-rmcat's implementation has it too; without it a change of much loss would raise
/// the rate by more than itself.
const XMAX_MS: f64 = 500.0;
const ALPHA: f64 = 0.1;
/// The pacer's backlog lowers the encoder's rate and raises the sender's.
const BETA_ENCODER: f64 = 0.1;
const BETA_SENDER: f64 = 0.1;
const FRAMES_PER_S: f64 = 30.0;
/// Samples of the minimum filter.
const TAPS: usize = 15;

/// The controller of a sender.
#[derive(Debug)]
pub(super) struct Nada {
    bounds: (f64, f64),
    reference: f64,
    base_ms: f64,
    /// The last delays, for the minimum filter.
    taps: VecDeque<f64>,
    /// When arrived, ms; queueing delay, ms; bits; lost. Covers the window of observation.
    window: VecDeque<(f64, f64, f64, bool)>,
    /// Filtered shares.
    lost: f64,
    marked: f64,
    /// Packets since the last loss, and the mean of that.
    since_loss: f64,
    loss_interval: Option<f64>,
    before_ms: f64,
    updated: Option<Instant>,
    /// Reported since the last update.
    reported: Vec<PacketResult>,
    backlog_bits: f64,
}

impl Nada {
    pub fn new(start: &RateStart) -> Self {
        Nada {
            bounds: start.bounds(),
            reference: start.first(),
            base_ms: f64::INFINITY,
            taps: VecDeque::new(),
            window: VecDeque::new(),
            lost: 0.0,
            marked: 0.0,
            since_loss: 0.0,
            loss_interval: None,
            before_ms: 0.0,
            updated: None,
            reported: Vec::new(),
            backlog_bits: 0.0,
        }
    }

    fn observe(&mut self, results: &[PacketResult]) {
        let mut last = self.window.back().map_or(0.0, |packet| packet.0);
        for result in results {
            if let Some(arrived) = result.arrived {
                let one_way = ms(arrived) - ms(result.sent);
                self.base_ms = self.base_ms.min(one_way);
                self.taps.push_back(one_way - self.base_ms);
                if self.taps.len() > TAPS {
                    self.taps.pop_front();
                }
                last = last.max(ms(arrived));
                let queue = self.queue_ms();
                self.window.push_back((last, queue, f64::from(result.bytes) * 8.0, false));
                self.since_loss += 1.0;
            } else {
                self.window.push_back((last, self.queue_ms(), 0.0, true));
                let interval =
                    self.loss_interval.map_or(self.since_loss, |mean| 0.9 * mean + 0.1 * self.since_loss);
                (self.loss_interval, self.since_loss) = (Some(interval.max(1.0)), 0.0);
            }
        }
        while self.window.front().is_some_and(|packet| packet.0 <= last - WINDOW_MS) {
            self.window.pop_front();
        }
        let share = |count: usize| count as f64 / results.len() as f64;
        let lost = share(results.iter().filter(|result| result.is_lost()).count());
        let marked = share(results.iter().filter(|result| result.is_marked()).count());
        self.lost += ALPHA * (lost - self.lost);
        self.marked += ALPHA * (marked - self.marked);
    }

    /// Returns the least of the last delays, less the least ever.
    fn queue_ms(&self) -> f64 {
        self.taps.iter().copied().fold(f64::INFINITY, f64::min).min(1e6)
    }

    fn had_loss_of_late(&self) -> bool {
        self.loss_interval.is_some_and(|interval| self.since_loss < LOSS_INTERVALS * interval)
    }

    /// Returns the congestion signal of equation (1) with the warped delay of equation (2), ms.
    fn congestion_ms(&self) -> f64 {
        let queue = self.queue_ms();
        let warped = if self.had_loss_of_late() && queue >= QTH_MS {
            QTH_MS * libm::exp(-LAMBDA * (queue - QTH_MS) / QTH_MS)
        } else {
            queue
        };
        let squared = |share: f64, reference: f64| (share / reference) * (share / reference);
        let marks = DMARK_MS * squared(self.marked, MARK_REFERENCE);
        let losses = DLOSS_MS * squared(self.lost, LOSS_REFERENCE);
        (warped + marks + losses).min(XMAX_MS)
    }

    fn may_ramp_up(&self) -> bool {
        self.window.iter().all(|&(_, queue, _, is_lost)| !is_lost && queue < QEPS_MS)
    }

    /// Returns the rate that arrives, bit/s.
    fn received(&self) -> f64 {
        let lasts = match (self.window.front(), self.window.back()) {
            (Some(first), Some(last)) => (last.0 - first.0).max(WINDOW_MS / 5.0),
            _ => return 0.0,
        };
        self.window.iter().skip(1).map(|packet| packet.2).sum::<f64>() * 1e3 / lasts
    }

    /// Equations (3) and (4).
    fn ramp_up(&mut self, rtt_ms: f64) {
        let gamma = (QBOUND_MS / (rtt_ms + DELTA_MS + FILTER_MS)).min(MOST_GAMMA);
        self.reference = self.reference.max((1.0 + gamma) * self.received());
    }

    /// Equations (5) to (7).
    fn go_gradually(&mut self, congestion_ms: f64, delta_ms: f64) {
        let offset = congestion_ms - PRIORITY * XREF_MS * self.bounds.1 / self.reference;
        let change = congestion_ms - self.before_ms;
        let by_offset = KAPPA * (delta_ms / TAU_MS) * (offset / TAU_MS) * self.reference;
        let by_change = KAPPA * ETA * (change / TAU_MS) * self.reference;
        self.reference -= by_offset + by_change;
    }
}

impl RateController for Nada {
    fn on_backlog(&mut self, _now: Instant, bytes: u64) {
        self.backlog_bits = bytes as f64 * 8.0;
    }

    fn on_feedback(&mut self, now: Instant, results: &[PacketResult]) {
        self.reported.extend_from_slice(results);
        let since = now.saturating_since(*self.updated.get_or_insert(now));
        if self.reported.is_empty() || since < DELTA {
            return;
        }
        self.updated = Some(now);
        let reported = std::mem::take(&mut self.reported);
        self.observe(&reported);
        let congestion = self.congestion_ms();
        let delta_ms = (since.as_nanos() as f64 / 1e6).min(TAU_MS);
        if self.may_ramp_up() {
            let rtt = round_trip(now, results).map_or(DELTA_MS, |rtt| rtt.as_nanos() as f64 / 1e6);
            self.ramp_up(rtt);
        } else {
            self.go_gradually(congestion, delta_ms);
        }
        self.before_ms = congestion;
        self.reference = self.reference.clamp(self.bounds.0, self.bounds.1);
    }

    fn target(&self) -> BitRate {
        let waits = BETA_ENCODER * self.backlog_bits * FRAMES_PER_S;
        bps((self.reference - waits).clamp(self.bounds.0, self.bounds.1))
    }

    fn pacing(&self) -> BitRate {
        let waits = BETA_SENDER * self.backlog_bits * FRAMES_PER_S;
        // The encoder's frames vary around the rate: half more than the RFC's rate lets one leave within its interval.
        bps(1.5 * (self.reference + waits).clamp(self.bounds.0, self.bounds.1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::bed::Bed;
    use super::super::tests::start;
    use super::*;

    #[test]
    fn gradual_rate_follows_the_published_equation() {
        let mut nada = Nada::new(&start());
        nada.before_ms = 20.0;
        nada.go_gradually(30.0, 100.0);
        // Offset 30 - 10 * 2.0 / 0.8 = 5, change 10: 800 k (1 - 0.5 * 0.2 * 0.01 - 0.5 * 2 * 0.02).
        assert!((nada.reference - 800e3 * (1.0 - 0.001 - 0.02)).abs() < 1e-6, "{}", nada.reference);
    }

    #[test]
    fn ramping_up_is_bounded_by_the_queue_that_it_may_build() {
        for (rtt, gamma) in [(100.0, 50.0 / 320.0), (0.0, 50.0 / 220.0)] {
            let mut nada = Nada::new(&start());
            nada.window.extend((0..=50).map(|place| (10.0 * f64::from(place), 0.0, 10_000.0, false)));
            nada.ramp_up(rtt);
            // 50 packets of 10,000 bits in 500 ms.
            assert!((nada.reference - (1.0 + gamma) * 1e6).abs() < 1e-3);
        }
    }

    #[test]
    fn a_percent_of_loss_counts_as_ten_milliseconds_and_a_delay_after_it_is_warped() {
        let mut nada = Nada::new(&start());
        nada.taps.push_back(100.0);
        nada.lost = 0.01;
        assert!((nada.congestion_ms() - 110.0).abs() < 1e-9);
        (nada.loss_interval, nada.since_loss) = (Some(100.0), 10.0);
        let warped = 50.0 * libm::exp(-0.5);
        assert!((nada.congestion_ms() - warped - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_signal_is_bounded_so_that_loss_which_falls_does_not_raise_the_rate() {
        let mut nada = Nada::new(&start());
        nada.taps.push_back(0.0);
        (nada.lost, nada.before_ms) = (0.4, XMAX_MS);
        assert_eq!(nada.congestion_ms(), XMAX_MS);
        nada.lost = 0.3;
        let before = nada.reference;
        nada.go_gradually(nada.congestion_ms(), 100.0);
        assert!(nada.reference < before, "{} from {before}", nada.reference);
    }

    #[test]
    fn alone_it_settles_where_the_queue_is_the_reference_times_the_share_of_the_most() {
        let mut bed = Bed::new("nada", 1_000_000);
        bed.run(60);
        assert!(bed.used(30, 60) > 0.9, "{}", bed.used(30, 60));
        // x = 10 ms * 2.0 / 1.0, and the bed's packets of 1200 B wait for one another.
        let queue = bed.queue_p50_ms(30, 60);
        assert!((15.0..40.0).contains(&queue), "{queue} ms");
    }
}
