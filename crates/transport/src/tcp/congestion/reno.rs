//! Reno (RFC 5681) with appropriate byte counting (RFC 3465).
//!
//! The threshold after a loss is half the *window*, as in Linux, where RFC 5681 equation 4 takes half of the
//! bytes in flight. The two differ only while something other than the window holds the sender back.

use streamgauge_base::{Duration, Instant};

use super::{Ack, Controller, MIN_SEGMENTS, SLOW_START_LIMIT_SEGMENTS, window_after_idle};

/// Additive increase of one segment per round trip, multiplicative decrease to one half.
#[derive(Clone, Debug)]
pub struct Reno {
    mss: u64,
    initial: u64,
    window: u64,
    ssthresh: u64,
    /// Bytes delivered towards the next segment of additive increase.
    counted: u64,
}

impl Reno {
    /// For segments of `mss` bytes, starting with `initial` of them.
    pub fn new(mss: u32, initial: u32) -> Self {
        let mss = u64::from(mss);
        let window = mss * u64::from(initial);
        Reno { mss, initial: window, window, ssthresh: u64::MAX, counted: 0 }
    }

    fn reduced(&self) -> u64 {
        (self.window / 2).max(MIN_SEGMENTS * self.mss)
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.window_limited {
            return;
        }
        let mut delivered = ack.delivered;
        if self.window < self.ssthresh {
            let growth = delivered.min(SLOW_START_LIMIT_SEGMENTS * self.mss).min(self.ssthresh - self.window);
            self.window += growth;
            if self.window < self.ssthresh {
                return;
            }
            delivered -= growth;
        }
        self.counted += delivered;
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.mss;
        }
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        self.ssthresh = self.reduced();
        self.window = self.ssthresh;
        self.counted = 0;
    }

    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            self.ssthresh = self.reduced();
        }
        self.window = self.mss;
        self.counted = 0;
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        // Three quarters of what the path carried last (RFC 2861 section 3.1).
        self.ssthresh = self.ssthresh.max(self.window / 4 * 3);
        self.window = window_after_idle(self.window, self.initial, idle, rto);
        self.counted = 0;
    }

    fn window(&self) -> u64 {
        self.window
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    const MSS: u64 = 1000;

    fn ack(delivered: u64) -> Ack {
        test_ack(Instant::ZERO, delivered, Duration::from_millis(20))
    }

    /// One round trip: a window's worth of acknowledgements, one for every second segment.
    fn round_trip(reno: &mut Reno) {
        for _ in 0..reno.window() / (2 * MSS) {
            reno.on_ack(&ack(2 * MSS));
        }
    }

    #[test]
    fn slow_start_doubles_per_round_trip() {
        let mut reno = Reno::new(MSS as u32, 10);
        for windows in [20, 40, 80, 160] {
            round_trip(&mut reno);
            assert_eq!(reno.window(), windows * MSS);
        }
    }

    #[test]
    fn a_stretch_ack_counts_for_two_segments_in_slow_start() {
        let mut reno = Reno::new(MSS as u32, 10);
        reno.on_ack(&ack(9 * MSS));
        assert_eq!(reno.window(), 12 * MSS);
    }

    #[test]
    fn loss_halves_and_avoidance_adds_one_segment_per_round_trip() {
        let mut reno = Reno::new(MSS as u32, 40);
        reno.on_congestion_event(Instant::ZERO);
        assert_eq!((reno.window(), reno.ssthresh()), (20 * MSS, 20 * MSS));
        for n in 1..=10 {
            let before = reno.window();
            let mut acked = 0;
            while acked < before {
                reno.on_ack(&ack(MSS));
                acked += MSS;
            }
            assert_eq!(reno.window(), (20 + n) * MSS);
        }
    }

    #[test]
    fn a_timeout_restarts_from_one_segment_and_a_repeated_one_keeps_the_threshold() {
        let mut reno = Reno::new(MSS as u32, 40);
        reno.on_timeout(Instant::ZERO, false);
        assert_eq!((reno.window(), reno.ssthresh()), (MSS, 20 * MSS));
        reno.on_timeout(Instant::ZERO, true);
        assert_eq!((reno.window(), reno.ssthresh()), (MSS, 20 * MSS));
        while reno.window() < 20 * MSS {
            reno.on_ack(&ack(MSS));
        }
        // Past the threshold a single acknowledgement no longer adds a segment.
        reno.on_ack(&ack(MSS));
        assert_eq!(reno.window(), 20 * MSS);
    }

    #[test]
    fn never_falls_below_two_segments_on_fast_recovery() {
        let mut reno = Reno::new(MSS as u32, 2);
        reno.on_congestion_event(Instant::ZERO);
        assert_eq!(reno.window(), 2 * MSS);
    }

    #[test]
    fn does_not_grow_unless_the_window_limits() {
        let mut reno = Reno::new(MSS as u32, 10);
        reno.on_ack(&Ack { window_limited: false, ..ack(2 * MSS) });
        assert_eq!(reno.window(), 10 * MSS);
    }
}
