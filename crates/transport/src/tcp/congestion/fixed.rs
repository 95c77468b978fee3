//! A window that never changes, as FTP had before congestion control (RFC 793; Jacobson, "Congestion Avoidance and
//! Control", SIGCOMM 1988, describes the consequences).
//!
//! Losses are still repaired, without any reduction.

use streamgauge_base::{Duration, Instant};

use super::{Ack, Controller};

/// A fixed window.
#[derive(Clone, Debug)]
pub struct Fixed {
    window: u64,
}

impl Fixed {
    /// Makes a window of `window` bytes, or one segment of `mss` bytes if that is more.
    pub fn new(mss: u32, window: u64) -> Self {
        Fixed { window: window.max(u64::from(mss)) }
    }
}

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_congestion_event(&mut self, _now: Instant) {}
    fn on_timeout(&mut self, _now: Instant, _repeated: bool) {}
    fn on_idle(&mut self, _now: Instant, _idle: Duration, _rto: Duration) {}
    fn window(&self) -> u64 {
        self.window
    }
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }
    fn governs_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    #[test]
    fn nothing_moves_it() {
        let mut fixed = Fixed::new(1000, 16_384);
        fixed.on_ack(&test_ack(Instant::ZERO, 1000, Duration::from_millis(20)));
        fixed.on_congestion_event(Instant::ZERO);
        fixed.on_timeout(Instant::ZERO, false);
        fixed.on_idle(Instant::ZERO, Duration::from_secs(9), Duration::from_millis(200));
        assert_eq!((fixed.window(), fixed.ssthresh()), (16_384, u64::MAX));
    }

    #[test]
    fn one_segment_always_fits() {
        assert_eq!(Fixed::new(1448, 1).window(), 1448);
    }
}
