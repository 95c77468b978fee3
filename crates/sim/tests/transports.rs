//! What crosses the path end to end, against numbers worked out by hand.

mod common;

use common::*;
use streamgauge_path::spec::Limit;
use streamgauge_sim::run;

/// Payload bytes per second that 1448 B segments leave of `bps` counted at Ethernet (1514 B a segment).
fn payload_rate(bps: u64) -> f64 {
    bps as f64 / 8.0 * 1448.0 / 1514.0
}

#[test]
fn one_greedy_flow_fills_the_link() {
    for control in ["reno", "cubic"] {
        for (bps, queue) in [(1_000_000, 75_000), (10_000_000, 50_000), (480_000, 10_000)] {
            let plan = plan(path(bps, Limit::Bytes(queue), 10), vec![bulk("ftp", control, 4 << 20)], 60, 1);
            let (summary, ()) = run(&plan, ()).unwrap();
            let share = summary.flows[0].player_received_bytes as f64 / (60.0 * payload_rate(bps));
            assert!((0.90..=1.0).contains(&share), "{control} at {bps} bit/s: {share}");
        }
    }
}
