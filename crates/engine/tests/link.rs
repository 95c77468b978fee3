//! The emulator between real namespaces, under real traffic.
#![cfg(target_os = "linux")]

mod bed;

use bed::{Bed, Link, Way, run_inside, sh, with_apps};
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
    assert!(
        carried > received * 1514.0 / 1448.0 && carried < received * 1.06 + 160e3,
        "{received} {carried}"
    );
    let rate = iperf["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!(rate > 0.75e6 && rate < 1e6 * 1448.0 / 1514.0 * 1.01, "{rate}");
}

fn cbr(packets_per_s: u32, payload_bytes: u32) -> Value {
    json!({"cbr": {"packets_per_s": packets_per_s, "payload_bytes": payload_bytes, "burst": 1}})
}

/// A trial of `seconds` with two CBR flows of our own: link's, witness's and both players' statistics.
fn cbr_trial(seconds: f64, faults: Value) -> (Value, Value, Vec<Value>) {
    let bed = Bed::new(2);
    let (down, up) = hessler();
    let plan = with_apps(bed.plan(seconds, down, up, 2), &[cbr(40, 1000), cbr(60, 1000)]);
    let mut link = bed.link(&plan, json!({"sabotage": faults, "capture": true}));
    let mut nodes: Vec<Link> = [(0, "server"), (0, "player"), (1, "server"), (1, "player")]
        .map(|(i, side)| bed.node(&plan, i, side))
        .into();
    let mut witness = bed.witness(2);
    let t0 = link.start_now();
    for node in &mut nodes {
        node.start_at(t0 + 10_000_000);
    }
    let stats = link.stopped();
    let seen = witness.ask(json!({"cmd": "stop"}));
    let nodes = nodes.into_iter().map(|node| node.events().1).collect();
    (stats, seen, nodes)
}

#[test]
fn machines_cross_the_link_root() {
    run_inside(Way::Root, "machines_cross_the_link");
}

#[test]
fn machines_cross_the_link_user() {
    run_inside(Way::User, "machines_cross_the_link");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn machines_cross_the_link() {
    let (stats, witness, nodes) = cbr_trial(2.0, json!([]));
    println!("{stats:#}\n{witness:#}\n{nodes:#?}");
    assert_eq!(stats["conservation"], json!([]));
    let rows = stats["entered"].as_array().unwrap();
    for (index, offered) in [(0, 80), (1, 120)] {
        let entered = rows.iter().find(|r| r["flow"] == index && r["dir"] == "down").unwrap();
        let packets = entered["packets"].as_u64().unwrap();
        assert!((offered - 2..=offered).contains(&packets), "flow {index}: {packets}");
        let left = stats["left"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["flow"] == index && r["dir"] == "down")
            .unwrap();
        // Another process in another namespace counts the same.
        assert_eq!(witness["flows"][index]["rx_packets"], left["packets"]);
        assert_eq!(witness["flows"][index]["rx_bytes"], left["bytes"]);
    }
    let dump = sh(&format!("ls -l /run/out-{}/", std::process::id()));
    for file in ["packets.parquet", "link-events.json", "capture.pcapng"] {
        assert!(dump.contains(file), "{dump}");
    }
}

#[test]
fn every_fault_shows() {
    run_inside(Way::Root, "faults");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn faults() {
    let (stats, _, _) = cbr_trial(2.0, json!(["drop_row"]));
    println!("{}", stats["conservation"]);
    assert_ne!(stats["conservation"], json!([]));
}
