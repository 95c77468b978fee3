//! The load that measures the link from outside.
#![cfg(target_os = "linux")]

mod bed;

use std::process::Command;

use bed::judge::Judge;
use bed::{Bed, Way, engine, run_inside, write_json};
use serde_json::{Value, json};

fn gauge(bed: &Bed, load: Value) -> (Value, Option<i32>) {
    let end = |netns: &str, ip: &str| json!({"netns": netns, "interface": "eth0", "ip": ip});
    let config = json!({
        "sender": end("server", "10.1.0.1"), "receiver": end("client", "10.2.0.1"),
        "load": load, "linger_s": 0.3, "out": bed.out.join("gauge.csv"),
    });
    let file = write_json(&bed.out, "gauge.json", &config);
    let output = Command::new(engine()).arg("gauge").arg("--config").arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    (serde_json::from_str(said.trim()).unwrap_or_else(|e| panic!("{e}: {said}")), output.status.code())
}

#[test]
fn stamps_what_crosses_the_link_root() {
    run_inside(Way::Root, "stamps_what_crosses_the_link");
}

#[test]
fn stamps_what_crosses_the_link_user() {
    run_inside(Way::User, "stamps_what_crosses_the_link");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn stamps_what_crosses_the_link() {
    let bed = Bed::new(1);
    let down = json!([
        {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": 8_000_000}, "queue": {"droptail": {"packets": 20}}}}},
        {"name": "delay", "kind": {"delay": {"delay": 10_000_000}}},
    ]);
    let plan = bed.plan(60.0, down, json!([{"name": "wire", "kind": {"delay": {"delay": 0}}}]), 1);
    let mut link = bed.link(&plan, json!({}));
    let mut judge = Judge::begin();
    link.start_now();
    // 1 ms each at 8 Mbit/s: of a burst of 32 the queue holds 20, or more if the sender is interrupted.
    let (said, code) =
        gauge(&bed, json!({"packets_per_s": 160.0, "frame_bytes": 1000, "burst": 32, "packets": 96}));
    assert_eq!(code, Some(0));
    println!("{said}");
    let stats = link.ask(json!({"cmd": "stop"}))["stats"].clone();
    println!("{stats}");
    assert_eq!((&said["event"], &said["sent"], &said["again"]), (&json!("gauged"), &json!(96), &json!(0)));
    assert_eq!((&said["others"], &said["ring_drops"]), (&json!(0), &json!(0)));
    assert_eq!(said["received"], stats["left"][0]["packets"]);
    let received = said["received"].as_u64().unwrap();
    judge.expect((60..96).contains(&received), format_args!("{received} received"));
    assert!(stats["cpu"]["us_per_packet"].as_f64().unwrap() > 0.0);

    let text = std::fs::read_to_string(bed.out.join("gauge.csv")).unwrap();
    let rows: Vec<Vec<Option<i64>>> =
        text.lines().skip(1).map(|line| line.split(',').map(|cell| cell.parse().ok()).collect()).collect();
    assert_eq!(rows.len(), 96);
    // One a millisecond, after 10 ms of delay. The clock is read before the system call, so nothing is early.
    let mut free = 0;
    for (seq, row) in rows.iter().enumerate() {
        assert_eq!(row[0], Some(seq as i64));
        let sent = row[1].unwrap();
        // The first 20 of each burst at least, if the bursts come one after the other.
        judge.expect(row[2].is_some() || seq % 32 >= 20, format_args!("packet {seq} was refused"));
        if let Some(received) = row[2] {
            free = sent.max(free) + 1_000_000;
            let early = free + 10_000_000 - received;
            assert!(early <= 0, "{seq}: {early} ns early");
        }
    }
    judge.end();
}

#[test]
fn a_load_that_makes_no_sense_is_refused() {
    run_inside(Way::Root, "refuses_loads");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn refuses_loads() {
    let bed = Bed::new(1);
    for (load, key) in [
        (json!({"packets_per_s": 10.0, "frame_bytes": 20, "packets": 1}), "load.frame_bytes"),
        (json!({"packets_per_s": 0.0, "frame_bytes": 100, "packets": 1}), "load.packets_per_s"),
        (json!({"packets_per_s": 10.0, "frame_bytes": 100, "packets": 0}), "load.packets"),
        (json!({"packets_per_s": 10.0, "frame_bytes": 100, "burst": 0, "packets": 1}), "load.burst"),
    ] {
        let (said, code) = gauge(&bed, load);
        assert_eq!(code, Some(2), "{said}");
        assert!(said["message"].as_str().is_some_and(|why| why.contains(key)), "{said}");
    }
}
