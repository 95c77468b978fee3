//! Prague (RFC 9331 section 4; draft-briscoe-iccrg-prague-congestion-control): a window that falls in proportion to the
//! share of marks, grows by the bytes that arrive without one, and is paced.
//!
//! A loss halves it, as Reno. Over a round trip shorter than 25 ms it grows and falls as over one of 25 ms, so that it
//! gets no larger share than flows over longer paths (RFC 9331 section 4.3, the draft's section on reduced RTT
//! dependence).

use streamgauge_base::{Duration, Instant};

use super::mark_share::MarkShare;
use super::{Ack, Controller, Repair};

/// The round trip as over which it behaves if its own is shorter.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Least window after a reduction, in segments.
const LEAST: f64 = 2.0;
/// A burst lasts no longer than this (RFC 9331 section 4.3).
const LONGEST_BURST_S: f64 = 250e-6;

/// Prague's sender.
#[derive(Clone, Debug)]
pub struct Prague {
    mss: f64,
    initial: f64,
    /// In segments.
    window: f64,
    threshold: f64,
    /// Window and threshold before the last answer to a loss.
    prior: Option<(f64, f64)>,
    share: MarkShare,
    scales: bool,
    /// The round of the average ends when this byte is acknowledged and this time has passed.
    round_end: (u64, Instant),
    /// The window falls again for marks from here on.
    reduced_until: (u64, Instant),
    srtt: Duration,
}

impl Prague {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them; `scales`: it behaves as over 25
    /// ms at least.
    pub fn new(mss: u32, initial: u32, scales: bool) -> Self {
        Prague {
            mss: f64::from(mss),
            initial: f64::from(initial),
            window: f64::from(initial),
            threshold: f64::INFINITY,
            prior: None,
            share: MarkShare::new(),
            scales,
            round_end: (0, Instant::ZERO),
            reduced_until: (0, Instant::ZERO),
            srtt: Duration::ZERO,
        }
    }

    /// Returns the round trip that its behaviour corresponds to.
    fn reference_rtt(&self) -> Duration {
        if self.scales { self.srtt.max(VIRTUAL_RTT) } else { self.srtt }
    }

    /// Returns the segments that a window without marks adds in a round trip: the square of the ratio, for reductions
    /// are one a reference round trip too, so that rates are as over it.
    fn increase(&self) -> f64 {
        let ratio = self.srtt.as_secs_f64() / self.reference_rtt().as_secs_f64().max(1e-9);
        ratio * ratio
    }

    fn reduce(&mut self, left: f64) {
        self.window = left.max(LEAST);
        self.threshold = self.window;
    }
}

impl Controller for Prague {
    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        self.share.count(ack.segments, ack.marked);
        let after = |end: &(u64, Instant)| ack.una > end.0 && ack.now >= end.1;
        // A round trip by sequence numbers; the reference may last longer.
        let reference = self.reference_rtt();
        let longer = if reference > self.srtt { reference } else { Duration::ZERO };
        let end = (ack.next, ack.now + longer);
        if after(&self.round_end) {
            self.share.end_round();
            self.round_end = end;
        }
        if ack.marked > 0 && after(&self.reduced_until) {
            self.reduce(self.window * (1.0 - self.share.alpha() / 2.0));
            self.reduced_until = end;
        }
        if !ack.window_limited || ack.repair == Repair::Recovery {
            return;
        }
        let clean = f64::from(ack.segments.saturating_sub(ack.marked));
        if self.window < self.threshold {
            self.window = (self.window + clean).min(self.threshold);
        } else {
            self.window += self.increase() * clean / self.window;
        }
    }
    fn on_congestion_event(&mut self, _now: Instant) {
        self.prior = Some((self.window, self.threshold));
        self.reduce(self.window / 2.0);
    }
    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            self.prior = Some((self.window, self.threshold));
            self.threshold = (self.window / 2.0).max(LEAST);
        }
        self.window = 1.0;
    }
    fn on_idle(&mut self, _now: Instant, _idle: Duration, _rto: Duration) {
        self.threshold = self.threshold.max(0.75 * self.window);
        self.window = self.window.min(self.initial);
    }
    fn on_undo(&mut self, _now: Instant) {
        if let Some((window, threshold)) = self.prior.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
        }
    }
    fn on_open(&mut self, _now: Instant, rtt: Option<Duration>) {
        self.srtt = rtt.unwrap_or(Duration::from_millis(1));
    }
    fn window(&self) -> u64 {
        // Whole segments, as in sequence numbers; the fraction is kept.
        (self.window.floor().max(1.0) * self.mss) as u64
    }
    fn ssthresh(&self) -> u64 {
        if self.threshold.is_finite() { (self.threshold * self.mss) as u64 } else { u64::MAX }
    }
    fn pacing_rate(&self) -> Option<u64> {
        let factor = if self.window < self.threshold / 2.0 { 2.0 } else { 1.0 };
        let srtt = self.srtt.as_secs_f64().max(1e-6);
        Some((factor * self.window * self.mss / srtt).max(1.0) as u64)
    }
    fn least_burst(&self) -> u64 {
        1
    }
    fn most_burst(&self) -> u64 {
        let rate = self.pacing_rate().unwrap_or(0) as f64;
        ((rate * LONGEST_BURST_S / self.mss) as u64).max(1)
    }
    fn governs_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    const MSS: u64 = 1000;

    /// Marks every `every`-th segment for `seconds` over a round trip of `rtt_ms`; returns the mean window of the last
    /// half, in segments.
    fn steady(every: u64, rtt_ms: u64, seconds: f64, scales: bool) -> f64 {
        let mut prague = Prague::new(MSS as u32, 10, scales);
        let rtt = Duration::from_millis(rtt_ms);
        prague.on_open(Instant::ZERO, Some(rtt));
        let (mut now, mut una, mut number) = (0.0, 1u64, 0u64);
        let (mut sum, mut count) = (0.0, 0u64);
        while now < seconds {
            now += rtt.as_secs_f64() / prague.window;
            una += MSS;
            number += 1;
            let mut ack = test_ack(Instant::from_nanos((now * 1e9) as u64), MSS, rtt);
            (ack.una, ack.next) = (una, una + prague.window());
            ack.marked = u32::from(number.is_multiple_of(every));
            prague.on_ack(&ack);
            if now > seconds / 2.0 {
                (sum, count) = (sum + prague.window, count + 1);
            }
        }
        sum / count as f64
    }

    /// RFC 9331 section 4.3: the rate is proportional to 1 / p, so that marks per round trip are the same at any rate.
    #[test]
    fn half_the_marks_double_the_window() {
        let (few, many) = (steady(40, 30, 300.0, true), steady(20, 30, 300.0, true));
        assert!((1.8..2.2).contains(&(few / many)), "{few} {many}");
        // About two marks a round trip (RFC 9332 appendix A, W = 2 / p).
        assert!((1.5..2.6).contains(&(many / 20.0)), "{many}");
    }

    #[test]
    fn a_short_round_trip_gives_the_rate_of_one_of_25_ms() {
        let rate = |rtt_ms: u64, scales| steady(20, rtt_ms, 300.0, scales) / rtt_ms as f64;
        let scaled = rate(10, true) / rate(25, true);
        assert!((0.75..1.33).contains(&scaled), "{scaled}");
        let plain = rate(10, false) / rate(25, false);
        assert!(plain > 2.0, "{plain}");
    }

    #[test]
    fn a_loss_halves_and_a_false_alarm_gives_back() {
        let mut prague = Prague::new(MSS as u32, 40, true);
        prague.on_congestion_event(Instant::ZERO);
        assert_eq!((prague.window(), prague.ssthresh()), (20 * MSS, 20 * MSS));
        prague.on_undo(Instant::ZERO);
        assert_eq!((prague.window(), prague.ssthresh()), (40 * MSS, u64::MAX));
    }

    #[test]
    fn a_burst_lasts_a_quarter_of_a_millisecond() {
        let mut prague = Prague::new(MSS as u32, 40, true);
        prague.on_open(Instant::ZERO, Some(Duration::from_millis(10)));
        prague.reduce(40.0);
        // 40 segments in 10 ms: one in 250 us.
        assert_eq!((prague.pacing_rate(), prague.most_burst()), (Some(4_000_000), 1));
        prague.reduce(400.0);
        assert_eq!(prague.most_burst(), 10);
    }
}
