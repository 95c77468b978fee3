//! HyStart: slow start that ends before it must (Ha, Rhee, "Taming the Elephants: New TCP Slow Start", Computer Networks
//! 55, 2011), as Linux has it (net/ipv4/tcp_cubic.c of 6.13 and later).
//!
//! Two signs that the path is full: acknowledgements that arrive close together for half a round trip, and a round trip
//! with a least delay above the least of all.

use streamgauge_base::{Duration, Instant};

use super::super::Ack;

/// Segments below which the window is too small to show anything.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements no further apart make a train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Most that aggregation by offloads may lengthen a train.
const MAX_AGGREGATION: Duration = Duration::from_millis(1);
/// Bytes that may be aggregated: four of the largest segments handed to a device.
const AGGREGATED: u64 = 4 * 65_536;
/// Delays measured in a round trip before their least counts.
const SAMPLES: u8 = 8;
/// The rise of delay that ends slow start is an eighth of the least, within these bounds.
const LEAST_RISE: Duration = Duration::from_millis(4);
const MOST_RISE: Duration = Duration::from_millis(16);

const UNSET: u64 = u64::MAX;

/// The state of Linux's HyStart.
#[derive(Clone, Debug)]
pub(super) struct Hystart {
    found: bool,
    /// Time when the round began, and when the last acknowledgement of its train arrived.
    started: Instant,
    last: Instant,
    /// The round ends when this byte is acknowledged, or, if it is `UNSET`, the last byte sent by the next
    /// acknowledgement.
    end: u64,
    /// Least delay of the round, and of how many.
    least: Duration,
    samples: u8,
}

impl Hystart {
    /// Makes the state before the first acknowledgement, which begins a round.
    pub fn new() -> Self {
        Hystart {
            found: false,
            started: Instant::ZERO,
            last: Instant::ZERO,
            end: 0,
            least: Duration::MAX,
            samples: 0,
        }
    }

    /// Looks for the end of slow start once more, after a timeout.
    pub fn restart(&mut self, now: Instant) {
        *self = Hystart { started: now, last: now, end: UNSET, ..Hystart::new() };
    }

    /// Returns whether slow start should end: `delay` is the round trip that `ack` measured, `base` the least of all,
    /// `window` the window in segments of `mss` bytes.
    pub fn ends(&mut self, ack: &Ack, delay: Duration, base: Duration, window: u32, mss: u32) -> bool {
        if self.found {
            return false;
        }
        if self.end == UNSET {
            self.end = ack.next;
        }
        if ack.una > self.end {
            *self = Hystart { started: ack.now, last: ack.now, end: ack.next, ..Hystart::new() };
        }
        if window < LOW_WINDOW {
            return false;
        }
        // Both look at every acknowledgement.
        let train = self.train(ack, base, u64::from(window) * u64::from(mss));
        self.found = self.risen(delay, base) || train;
        self.found
    }

    fn train(&mut self, ack: &Ack, base: Duration, window: u64) -> bool {
        if ack.now - self.last > TRAIN_GAP {
            return false;
        }
        self.last = ack.now;
        // Linux's pacing rate, by which it judges, is two windows per round trip.
        let rate = u128::from(2 * window);
        let aggregation = u128::from(AGGREGATED) * u128::from(ack.srtt.as_nanos()) / rate;
        let aggregation = aggregation.min(u128::from(MAX_AGGREGATION.as_nanos())) as u64;
        ack.now - self.started > (base + Duration::from_nanos(aggregation)).div(2)
    }

    fn risen(&mut self, delay: Duration, base: Duration) -> bool {
        self.least = self.least.min(delay);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.least > base + base.div(8).clamp(LEAST_RISE, MOST_RISE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::test_ack;
    use super::*;

    const MSS: u32 = 1000;

    /// Acknowledges a round of `window` segments, `gap` apart, with round trips of `delay`; true if one ended slow start.
    fn round(
        hystart: &mut Hystart,
        start: Instant,
        window: u32,
        gap: Duration,
        delay: Duration,
    ) -> Option<u32> {
        let base = Duration::from_millis(40);
        let una = hystart.end;
        (1..=window).find(|&n| {
            let ack = Ack {
                una: una + u64::from(n * MSS),
                next: una + u64::from((window + 2 * n) * MSS),
                ..test_ack(start + gap * u64::from(n - 1), MSS.into(), delay)
            };
            hystart.ends(&ack, delay, base, window, MSS)
        })
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_it() {
        let gap = Duration::from_micros(1_160);
        let delay = Duration::from_millis(40);
        // Half of 40 ms and of 1 ms of aggregation is 20.5 ms, that is 17.7 gaps.
        assert_eq!(round(&mut Hystart::new(), Instant::ZERO, 18, gap, delay), None);
        assert_eq!(round(&mut Hystart::new(), Instant::ZERO, 40, gap, delay), Some(19));
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let gap = Duration::from_micros(2_001);
        let delay = Duration::from_millis(40);
        assert_eq!(round(&mut Hystart::new(), Instant::ZERO, 100, gap, delay), None);
    }

    #[test]
    fn the_ninth_delay_of_a_round_that_stays_risen_ends_it() {
        let gap = Duration::from_micros(10);
        // An eighth of 40 ms is 5 ms.
        let risen = |delay| round(&mut Hystart::new(), Instant::ZERO, 40, gap, Duration::from_millis(delay));
        assert_eq!((risen(45), risen(46)), (None, Some(9)));
    }

    #[test]
    fn small_windows_tell_nothing_but_begin_rounds() {
        let mut hystart = Hystart::new();
        let start = Instant::from_nanos(5_000_000);
        let none = round(&mut hystart, start, 15, Duration::from_millis(1), Duration::from_millis(90));
        assert_eq!((none, hystart.started), (None, start));
    }

    #[test]
    fn it_looks_once_and_again_after_a_timeout() {
        let mut hystart = Hystart::new();
        let (gap, delay) = (Duration::from_micros(10), Duration::from_millis(90));
        assert_eq!(round(&mut hystart, Instant::ZERO, 40, gap, delay), Some(9));
        assert_eq!(round(&mut hystart, Instant::ZERO, 40, gap, delay), None);
        hystart.restart(Instant::ZERO);
        hystart.end = 0;
        assert_eq!(round(&mut hystart, Instant::ZERO, 40, gap, delay), Some(9));
    }
}
