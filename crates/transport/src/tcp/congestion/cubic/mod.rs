//! CUBIC (RFC 9438) as Linux has it (net/ipv4/tcp_cubic.c): the window as a cubic function of the time since the last
//! loss, in Linux's whole segments and jiffies.
//!
//! Differences from the RFC: the reduction starts from the window rather than from the bytes in flight (section 4.6
//! allows it); the curve is evaluated a least round trip ahead, not a smoothed one; Reno-friendly growth keeps its
//! slope past the old window; a timeout forgets the old maximum, after which growth is 5 % per round trip at least; and
//! slow start ends by HyStart, unless [`Hystart`] selects otherwise.

mod curve;
mod hystart;
mod hystart_plus_plus;

use streamgauge_base::{Duration, Instant};

use super::Hystart;
use super::window::Window;
use super::{Ack, Controller};
use curve::Curve;
use hystart_plus_plus::HystartPlusPlus;

/// The ways in which slow start may end before a loss.
#[derive(Clone, Debug)]
enum Exit {
    Linux(Box<hystart::Hystart>),
    PlusPlus(Box<HystartPlusPlus>),
    Loss,
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    curve: Curve,
    exit: Exit,
    /// Least round trip since the start or the last timeout; `MAX` before the first.
    base: Duration,
}

impl Cubic {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them.
    pub fn new(mss: u32, initial: u32, hystart: Hystart) -> Self {
        let exit = match hystart {
            Hystart::Linux => Exit::Linux(Box::new(hystart::Hystart::new())),
            Hystart::PlusPlus => Exit::PlusPlus(Box::new(HystartPlusPlus::new())),
            Hystart::Off => Exit::Loss,
        };
        Cubic { window: Window::new(mss, initial), curve: Curve::default(), exit, base: Duration::MAX }
    }

    /// Adds the round trip that `ack` measured; ends slow start if it is time.
    fn measure(&mut self, ack: &Ack, rtt: Duration) {
        if self.curve.fresh(ack.now) {
            return;
        }
        self.base = self.base.min(rtt);
        if let Exit::Linux(hystart) = &mut self.exit
            && self.window.in_slow_start()
            && hystart.ends(ack, rtt, self.base, self.window.segments(), self.window.mss())
        {
            self.window.cap_threshold();
        }
    }

    /// Runs slow start; returns the segments that are left for congestion avoidance.
    fn slow_start(&mut self, ack: &Ack, acked: u32) -> u32 {
        // RFC 9406 section 4.3: in the first slow start only.
        if let Exit::PlusPlus(hystart) = &mut self.exit
            && self.window.unbounded()
        {
            let ends = hystart.ends(ack.una, ack.next, ack.rtt);
            let left = self.window.slow_start(hystart.growth(acked));
            if ends {
                self.window.cap_threshold();
            }
            return left;
        }
        self.window.slow_start(acked)
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        let mut acked = self.window.acked(ack.delivered);
        if let Some(rtt) = ack.rtt {
            self.measure(ack, rtt);
        }
        if !ack.window_limited {
            return;
        }
        if self.window.in_slow_start() {
            acked = self.slow_start(ack, acked);
        }
        if acked > 0 {
            let base = if self.base == Duration::MAX { Duration::ZERO } else { self.base };
            let per = self.curve.per(ack.now, self.window.segments(), acked, base);
            self.window.avoid(per, acked);
        }
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        let threshold = self.curve.reduce(self.window.segments());
        self.window.reduce(threshold);
    }

    fn on_timeout(&mut self, now: Instant, repeated: bool) {
        if !repeated {
            let threshold = self.curve.reduce(self.window.segments());
            self.window.lower(threshold);
        }
        self.window.collapse();
        self.curve = Curve::default();
        self.base = Duration::MAX;
        if let Exit::Linux(hystart) = &mut self.exit {
            hystart.restart(now);
        }
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        self.window.idle(idle, rto);
    }
    fn on_start(&mut self, now: Instant, since: Duration, _next: u64, _app_limited: bool) {
        self.curve.pause(now, since);
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
mod tests;
