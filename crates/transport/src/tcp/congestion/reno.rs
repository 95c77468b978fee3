//! Reno (RFC 5681) with appropriate byte counting (RFC 3465), as Linux has it (tcp_reno_cong_avoid in
//! net/ipv4/tcp_cong.c).
//!
//! The threshold after a loss is half the *window*, where RFC 5681 equation 4 uses half of the bytes in flight. The two
//! differ only while something other than the window holds the sender back.

use streamgauge_base::{Duration, Instant};

use super::window::Window;
use super::{Ack, Controller};

/// Additive increase of one segment per round trip, multiplicative decrease to one half.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
}

impl Reno {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them.
    pub fn new(mss: u32, initial: u32) -> Self {
        Reno { window: Window::new(mss, initial) }
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        let acked = self.window.acked(ack.delivered);
        if ack.window_limited {
            self.window.grow_as_reno(acked);
        }
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        self.window.reduce(self.window.segments() / 2);
    }

    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            self.window.lower(self.window.segments() / 2);
        }
        self.window.collapse();
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        self.window.idle(idle, rto);
    }
    fn on_undo(&mut self, _now: Instant) {
        self.window.undo();
    }
    fn window(&self) -> u64 {
        self.window.bytes()
    }
    fn ssthresh(&self) -> u64 {
        self.window.threshold_bytes()
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

    /// Runs one round trip: a window's worth of acknowledgements, one for every second segment.
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
    fn a_stretch_ack_counts_in_full_in_slow_start() {
        let mut reno = Reno::new(MSS as u32, 10);
        reno.on_ack(&ack(9 * MSS));
        assert_eq!(reno.window(), 19 * MSS);
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
    fn what_exceeds_the_threshold_counts_towards_avoidance() {
        let mut reno = Reno::new(MSS as u32, 40);
        reno.on_timeout(Instant::ZERO, false);
        reno.on_ack(&ack(19 * MSS + 15 * MSS));
        assert_eq!(reno.window(), 20 * MSS);
        reno.on_ack(&ack(5 * MSS));
        assert_eq!(reno.window(), 21 * MSS);
    }

    #[test]
    fn never_falls_below_two_segments_on_fast_recovery() {
        let mut reno = Reno::new(MSS as u32, 2);
        reno.on_congestion_event(Instant::ZERO);
        assert_eq!(reno.window(), 2 * MSS);
    }

    #[test]
    fn an_undone_timeout_restores_the_window() {
        let mut reno = Reno::new(MSS as u32, 40);
        reno.on_timeout(Instant::ZERO, false);
        reno.on_timeout(Instant::ZERO, true);
        reno.on_undo(Instant::ZERO);
        assert_eq!((reno.window(), reno.ssthresh()), (40 * MSS, u64::MAX));
    }

    #[test]
    fn does_not_grow_unless_the_window_limits() {
        let mut reno = Reno::new(MSS as u32, 10);
        reno.on_ack(&Ack { window_limited: false, ..ack(2 * MSS) });
        assert_eq!(reno.window(), 10 * MSS);
    }
}
