//! Registers a congestion control of this crate and simulates a bulk transfer with it, and one with CUBIC.
//!
//! ```text
//! cargo run --manifest-path examples/controller-crate/Cargo.toml
//! ```

use std::sync::Arc;

use serde_json::json;
use streamgauge_base::{Duration, Instant};
use streamgauge_plan::TrialPlan;
use streamgauge_sim::simulate_in_memory;
use streamgauge_systems::media::Contents;
use streamgauge_transport::tcp::congestion::{Ack, Controller, Factory, Start, register};

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
struct GentleFactory;

impl Factory for GentleFactory {
    fn name(&self) -> &str {
        "gentle"
    }
    fn make(&self, start: &Start) -> Box<dyn Controller> {
        let mss = u64::from(start.mss);
        Box::new(Gentle { mss, window: u64::from(start.segments) * mss, round_end: 0 })
    }
}

/// A bulk transfer for 20 s over 10 Mbit/s and 20 ms each way, in front of which 100 packets may wait.
fn plan(control: &str) -> Result<TrialPlan, serde_json::Error> {
    let delay = json!({"name": "delay", "kind": {"delay": {"delay": 20_000_000}}});
    serde_json::from_value(json!({
        "scenario": "mine/gentle",
        "seed": 1,
        "duration": 20_000_000_000u64,
        "path": {
            "down": [
                {"name": "bottleneck", "kind": {"bottleneck": {
                    "rate": {"constant": 10_000_000},
                    "queue": {"droptail": {"packets": 100}},
                }}},
                delay,
            ],
            "up": [delay],
        },
        "flows": [{
            "name": "transfer",
            "role": "subject",
            "start": 0,
            "app": {"bulk": {"tcp": {"congestion_control": control}}},
        }],
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    register(Arc::new(GentleFactory))?;
    for control in ["gentle", "cubic"] {
        let (summary, _) = simulate_in_memory(&plan(control)?, &Contents::NONE)?;
        let flow = &summary.flows[0];
        let tcp = flow.tcp.as_ref().ok_or("the transfer has no connection")?;
        println!(
            "{control}: {:.2} Mbit/s, round trip {:.0} ms, {} segments sent again",
            flow.player_received_bytes as f64 * 8.0 / 20e6,
            tcp.srtt_s.unwrap_or_default() * 1e3,
            tcp.retransmits,
        );
    }
    Ok(())
}
