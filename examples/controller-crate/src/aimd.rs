//! Additive increase, multiplicative decrease, and nothing else: Reno without slow start.

use streamgauge_base::{Duration, Instant};
use streamgauge_transport::tcp::congestion::{Ack, Controller, Factory, Start};

/// Adds a segment a round trip, halves at a loss.
#[derive(Debug)]
struct Aimd {
    mss: u64,
    window: u64,
    /// Bytes that arrived since the window last grew by a segment.
    counted: u64,
}

impl Controller for Aimd {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.window_limited {
            return;
        }
        self.counted += ack.delivered;
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.mss;
        }
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
        0
    }
}

#[derive(Debug)]
pub struct AimdFactory;

impl Factory for AimdFactory {
    fn name(&self) -> &str {
        "aimd"
    }
    fn make(&self, start: &Start) -> Box<dyn Controller> {
        let mss = u64::from(start.mss);
        Box::new(Aimd { mss, window: u64::from(start.segments) * mss, counted: 0 })
    }
}
