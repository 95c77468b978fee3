//! A line that a client sends to a running trial: nothing panics, and what is taken is of stages that there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_live::{Asked, Steering};
use streamgauge_path::most_packets;
use streamgauge_path::spec::PathSpec;

const PATH: &str = r#"{
    "down": [{"name": "loss", "kind": {"loss": {"model": {"bernoulli": {"probability": 0.0}}}}},
             {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": 1000000}, "queue": {"codel": {}}}}},
             {"name": "delay", "kind": {"delay": {"delay": 0, "steps": []}}}],
    "up": [{"name": "delay", "kind": {"delay": {"delay": 0, "steps": []}}}]}"#;

fuzz_target!(|text: &str| {
    let path: PathSpec = serde_json::from_str(PATH).expect("a path");
    let counts = [path.down.len(), path.up.len()];
    let mut steering = Steering::new(path, Some(Box::new(|path| Ok(most_packets(&path.down, 1000)))));
    for line in text.lines() {
        let Ok(asked) = serde_json::from_str::<Asked>(line) else { continue };
        let Ok(taken) = steering.take(asked, std::time::Instant::now()) else { continue };
        assert!(taken.changes.iter().all(|&(way, place, _)| place < counts[way]));
    }
});
