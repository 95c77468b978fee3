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
    let found = link.fly(&bed, &plan);
    println!("{found:#}");
    assert_eq!(found["errors"], json!([]), "{found}");
    assert!((found["rate_bps"].as_f64().unwrap() / 1e6 - 1.0).abs() < 0.002, "{found}");
    assert!((found["down_delay_s"].as_f64().unwrap() - 0.010).abs() < 0.0005, "{found}");
    assert!(found["up_delay_s"].as_f64().unwrap() < 0.0005, "{found}");

    sh("ip netns exec client iperf3 -s -1 -D -B 10.2.0.1 -p 5201; sleep 0.3");
    let iperf = sh("timeout 7 ip netns exec server iperf3 -c 10.2.0.1 -B 10.1.0.1 -p 5201 -C reno -t 4 -J");
    let iperf: Value = serde_json::from_str(&iperf).unwrap();
    let stats = link.stopped();
    println!("{stats:#}");
    assert_eq!(stats["conservation"], json!([]));
    for lost in ["ring_drops", "send_errors", "slab_drops", "truncated", "checksum_missing"] {
        assert_eq!(stats[lost], 0, "{lost}");
    }
    // What iperf3 says it received in 4 s, and what the link says it carried: payload against Ethernet bytes, and
    // what was still in the queue when iperf3 stopped counting.
    let received = iperf["end"]["sum_received"]["bytes"].as_f64().unwrap();
    let carried = stats["left"][0]["bytes"].as_f64().unwrap();
    assert!(carried > received * 1514.0 / 1448.0 && carried < received * 1.06 + 160e3, "{received} {carried}");
    let rate = iperf["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!(rate > 0.75e6 && rate < 1e6 * 1448.0 / 1514.0 * 1.01, "{rate}");
}
