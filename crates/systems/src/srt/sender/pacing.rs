//! LiveCC: the least time between two packets (draft-sharabayko-srt-01 sections 5.1.1 and 5.1.2).

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::srt::HEADER_BYTES;

use super::super::spec::SrtSpec;

/// The greatest payload of a packet, from which the average begins (section 5.1.2).
const MOST_PAYLOAD: f64 = 1456.0;
/// The weight of a new payload in the average.
const WEIGHT: f64 = 1.0 / 8.0;
/// The input rate is counted for this long: at first, and later. libsrt's estimate has these periods.
const FIRST_WINDOW: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_millis(1000);

/// The limit of the rate, in bit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    Fixed(f64),
    /// This multiple of the measured input.
    Measured(f64),
}

/// The pacing of one sender.
pub(super) struct LiveCc {
    limit: Limit,
    average: f64,
    /// Measured input, in bit/s, after the first window.
    input_bps: Option<f64>,
    window: Duration,
    counted_since: Option<Instant>,
    counted_bytes: u64,
    period: Duration,
    next: Instant,
}

impl LiveCc {
    pub fn new(spec: &SrtSpec) -> Self {
        let overhead = 1.0 + f64::from(spec.oheadbw_percent) / 100.0;
        let limit = match (spec.maxbw_bps, spec.inputbw_bps) {
            (0, 0) => Limit::Measured(overhead),
            (0, input) => Limit::Fixed(input as f64 * overhead),
            (most, _) => Limit::Fixed(most as f64),
        };
        let mut pacing = LiveCc {
            limit,
            average: MOST_PAYLOAD,
            input_bps: None,
            window: FIRST_WINDOW,
            counted_since: None,
            counted_bytes: 0,
            period: Duration::ZERO,
            next: Instant::ZERO,
        };
        pacing.update();
        pacing
    }

    /// Returns the limit in bit/s; `None` before the input is measured.
    pub fn limit_bps(&self) -> Option<f64> {
        match self.limit {
            Limit::Fixed(bps) => Some(bps),
            Limit::Measured(overhead) => Some(self.input_bps? * overhead),
        }
    }

    /// Counts a packet of the application.
    pub fn input(&mut self, now: Instant, payload: usize) {
        let since = *self.counted_since.get_or_insert(now);
        let took = now.saturating_since(since);
        if took >= self.window {
            self.input_bps = Some(8e9 * self.counted_bytes as f64 / took.as_nanos() as f64);
            (self.counted_since, self.counted_bytes, self.window) = (Some(now), 0, WINDOW);
        }
        self.counted_bytes += (payload + HEADER_BYTES) as u64;
    }

    /// Returns when the next packet may leave.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Notes that there is something to send, after nothing was waiting.
    pub fn wake(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }

    /// Notes a sent packet, first or repeated.
    pub fn sent(&mut self, payload: usize) {
        self.average += WEIGHT * (payload as f64 - self.average);
        self.next += self.period;
    }

    /// Sets the period anew, as each acknowledgement does.
    pub fn update(&mut self) {
        let bits = 8.0 * (self.average + HEADER_BYTES as f64);
        let period = self.limit_bps().filter(|bps| *bps > 0.0).map_or(0.0, |bps| 1e9 * bits / bps);
        self.period = Duration::from_nanos(period as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::System;

    fn pacing(maxbw_bps: u64, inputbw_bps: u64) -> LiveCc {
        LiveCc::new(&SrtSpec { maxbw_bps, inputbw_bps, ..SrtSpec::usual() })
    }

    #[test]
    fn the_period_is_that_of_the_average_packet_at_the_greatest_rate() {
        let mut pacing = pacing(8_000_000, 0);
        pacing.wake(Instant::from_nanos(7));
        assert_eq!(pacing.next(), Instant::from_nanos(7));
        pacing.sent(1316);
        // 1472 B at 1 B/us, before the first update.
        assert_eq!(pacing.next(), Instant::from_nanos(1_472_007));
        (0..200).for_each(|_| pacing.sent(1316));
        pacing.update();
        let before = pacing.next();
        pacing.sent(1316);
        let period = pacing.next().saturating_since(before).as_nanos();
        assert!((1_332_000..1_332_010).contains(&period), "{period}");
    }

    #[test]
    fn overhead_is_above_the_given_or_the_measured_input() {
        assert_eq!(pacing(0, 4_000_000).limit_bps(), Some(5_000_000.0));
        let mut measured = pacing(0, 0);
        assert_eq!(
            (measured.limit_bps(), measured.period),
            (None, Duration::ZERO),
            "at first without a limit"
        );
        for ms in 0..=500 {
            measured.input(Instant::from_nanos(ms * 1_000_000), 984);
        }
        assert_eq!(measured.limit_bps(), Some(10_000_000.0));
        // The next estimate takes a second.
        for ms in 501..=1_499 {
            measured.input(Instant::from_nanos(ms * 1_000_000), 484);
        }
        assert_eq!(measured.limit_bps(), Some(10_000_000.0));
        measured.input(Instant::from_nanos(1_500_000_000), 484);
        let limit = measured.limit_bps().unwrap();
        assert!((5e6..5.01e6).contains(&limit), "{limit}");
    }
}
