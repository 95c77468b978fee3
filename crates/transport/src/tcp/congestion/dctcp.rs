//! DCTCP (RFC 8257): Reno, except that the share of marks sets the window's reduction.
//!
//! The feedback is that of RFC 9768 in place of the receiver of section 3.2: both count each mark.

use streamgauge_base::{Duration, Instant};

use super::mark_share::MarkShare;
use super::window::Window;
use super::{Ack, Controller, Repair};

/// Reno's growth and answer to losses, with a reduction in proportion to the share of marks.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: Window,
    share: MarkShare,
    /// The round of the average ends when this byte is acknowledged (`DCTCP.WindowEnd`).
    round_end: u64,
    /// The window is not reduced again for marks before this one is.
    reduced_end: u64,
}

impl Dctcp {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them.
    pub fn new(mss: u32, initial: u32) -> Self {
        Dctcp { window: Window::new(mss, initial), share: MarkShare::new(), round_end: 0, reduced_end: 0 }
    }
}

impl Controller for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.share.count(ack.segments, ack.marked);
        if ack.una > self.round_end {
            self.share.end_round();
            self.round_end = ack.next;
        }
        if ack.marked > 0 && ack.una > self.reduced_end {
            // Section 3.3, once a window; in whole segments, as Linux rounds it.
            let segments = self.window.segments();
            let taken = f64::from(segments) * self.share.alpha() / 2.0;
            self.window.reduce(segments - taken as u32);
            self.reduced_end = ack.next;
        }
        let acked = self.window.acked(ack.delivered);
        if ack.window_limited && ack.repair != Repair::Recovery && ack.marked == 0 {
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
    fn governs_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    const MSS: u64 = 1000;

    /// Acknowledges a window, `marked` of its segments with a mark.
    fn round(dctcp: &mut Dctcp, at: &mut u64, marked: u32) {
        let segments = (dctcp.window() / MSS) as u32;
        let next = *at + u64::from(segments) * MSS;
        for number in 0..segments {
            *at += MSS;
            let mut ack = test_ack(Instant::ZERO, MSS, Duration::from_millis(10));
            (ack.una, ack.next, ack.marked) =
                (*at, next + u64::from(number) * MSS, u32::from(number < marked));
            dctcp.on_ack(&ack);
        }
    }

    #[test]
    fn a_window_that_is_all_marked_halves_and_one_mark_of_many_costs_little() {
        let mut all = Dctcp::new(MSS as u32, 100);
        round(&mut all, &mut 1, 100);
        assert_eq!(all.window(), 50 * MSS);

        let mut few = Dctcp::new(MSS as u32, 100);
        few.window.reduce(100);
        // A long time without marks.
        for _ in 0..200 {
            few.share.count(10, 0);
            few.share.end_round();
        }
        let mut at = 1;
        for _ in 0..50 {
            round(&mut few, &mut at, 1);
        }
        assert!(few.window() > 85 * MSS, "{few:?}");
    }

    #[test]
    fn a_loss_halves_whatever_the_share() {
        let mut dctcp = Dctcp::new(MSS as u32, 40);
        dctcp.on_congestion_event(Instant::ZERO);
        assert_eq!(dctcp.window(), 20 * MSS);
    }
}
