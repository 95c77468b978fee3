//! A control that keeps the queue short.

use streamgauge_base::{Duration, Instant};
use streamgauge_transport::tcp::congestion::{Ack, Controller, Factory, Start};

/// Holds the round trip near its least: a segment more in each round trip while the queue is short, an eighth less when it
/// is not.
#[derive(Debug)]
struct Gentle {
    mss: u64,
    window: u64,
    round_end: u64,
}

/// The longest queue that it takes, as a time.
const QUEUE: Duration = Duration::from_millis(10);

impl Controller for Gentle {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.una <= self.round_end {
            return;
        }
        self.round_end = ack.next;
        if ack.srtt > ack.min_rtt + QUEUE {
            self.window -= self.window / 8;
        } else if ack.window_limited {
            self.window += self.mss;
        }
        self.window = self.window.max(2 * self.mss);
    }
    fn on_congestion_event(&mut self, _now: Instant) {
        self.window = (self.window / 2).max(2 * self.mss);
    }
    fn on_timeout(&mut self, _now: Instant, _repeated: bool) {
        self.window = self.mss;
    }
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

#[derive(Debug)]
pub struct GentleFactory;

impl Factory for GentleFactory {
    fn name(&self) -> &str {
        "gentle"
    }
    fn make(&self, start: &Start) -> Box<dyn Controller> {
        let mss = u64::from(start.mss);
        Box::new(Gentle { mss, window: u64::from(start.segments) * mss, round_end: 0 })
    }
}
