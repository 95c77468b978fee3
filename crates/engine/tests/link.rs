//! The emulator between real namespaces, under real traffic.
#![cfg(target_os = "linux")]

mod bed;

use bed::{Bed, Way, run_inside, sh};
use serde_json::{Value, json};

/// 1 Mbit/s, 100 packets, 10 ms down; a plain wire up.
fn hessler() -> (Value, Value) {
    let down = json!([
        {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": 1_000_000}, "queue": {"droptail": {"packets": 100}}}}},
        {"name": "delay", "kind": {"delay": {"delay": 10_000_000}}},
    ]);
    (down, json!([{"name": "wire", "kind": {"delay": {"delay": 0}}}]))
}

#[test]
fn carries_tcp_root() {
    run_inside(Way::Root, "carries_tcp");
}

#[test]
fn carries_tcp_user() {
    run_inside(Way::User, "carries_tcp");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn carries_tcp() {
    let bed = Bed::new(1);
    let (down, up) = hessler();
    let plan = bed.plan(8.0, down, up, 1);
    let mut link = bed.link(&plan, json!({}));
    link.start_now();
    sh("ip netns exec client iperf3 -s -1 -D -B 10.2.0.1 -p 5201; sleep 0.3");
    let iperf =
        sh("timeout 6 ip netns exec server iperf3 -c 10.2.0.1 -B 10.1.0.1 -p 5201 -C reno -t 4 -J || true");
    let stats = link.stopped();
    println!("{stats:#}");
    let iperf: Value = serde_json::from_str(&iperf).unwrap();
    println!("{}", iperf["end"]["sum_received"]);
}
