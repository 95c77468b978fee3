//! The emulator between real namespaces, under real traffic.
#![cfg(target_os = "linux")]

mod bed;

use bed::judge::Judge;
use bed::{Bed, EngineProcess, Way, eventually, run_inside, sh, with_apps};
use serde_json::{Value, json};

/// By how much a delay that the pre-flight finds may be off, s: as a trial's verdict allows it (docs/emu.md).
const DELAY_OFF_S: f64 = 0.0005;

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
    // Longer than iperf3 needs on the busiest machine.
    let plan = bed.plan(120.0, down, up, 1);
    let mut link = bed.link(&plan, json!({}));
    let mut judge = Judge::begin();
    judge.real_time = link.real_time;
    let found = link.fly(&bed, &plan);
    println!("{found:#}");
    judge.expect(found["errors"] == json!([]), &found["errors"]);
    judge.near(&found, "rate_bps", 1e6, 1e4);
    judge.delay(&found, "down_delay_s", 0.010, 0.0005);
    judge.delay(&found, "up_delay_s", 0.0, 0.0005);

    sh("ip netns exec client iperf3 -s -1 -D -B 10.2.0.1 -p 5201");
    eventually("iperf3's server", || sh("ip netns exec client ss -Hltn").contains(":5201"));
    let iperf = sh("timeout 60 ip netns exec server iperf3 -c 10.2.0.1 -B 10.1.0.1 -p 5201 -C reno -t 4 -J");
    let iperf: Value = serde_json::from_str(&iperf).unwrap();
    let stats = link.stop();
    println!("{stats:#}");
    assert_eq!(stats["conservation"], json!([]));
    for lost in ["ring_drops", "send_errors", "slab_drops", "truncated", "checksum_missing"] {
        assert_eq!(stats[lost], 0, "{lost}");
    }
    // The bytes that iperf3 reports as received in 4 s, and the bytes that the link reports as carried:
    // payload against Ethernet bytes, retransmissions, the queue's content when iperf3 stopped counting, and
    // its own control connection.
    let received = iperf["end"]["sum_received"]["bytes"].as_f64().unwrap();
    let again = iperf["end"]["sum_sent"]["retransmits"].as_f64().unwrap();
    let carried = stats["left"][0]["bytes"].as_f64().unwrap();
    let least = received * 1514.0 / 1448.0;
    assert!(carried >= least, "{received} {carried}");
    assert!(carried * 8.0 <= 1e6 * stats["duration_s"].as_f64().unwrap() + 2.0 * 1514.0 * 8.0, "{stats}");
    // A receiver that is kept from reading leaves more behind.
    let most = least + (again + 100.0) * 1514.0 + 20e3;
    judge.expect(carried <= most, format_args!("{received} received of {carried} carried, {again} again"));
    let rate = iperf["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    judge.expect(rate > 0.75e6 && rate < 1e6 * 1448.0 / 1514.0 * 1.01, format_args!("{rate} bit/s"));
    judge.end();
}

#[test]
fn preflight_measures_both_directions_root() {
    run_inside(Way::Root, "preflight_measures_both_directions");
}

#[test]
fn preflight_measures_both_directions_user() {
    run_inside(Way::User, "preflight_measures_both_directions");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn preflight_measures_both_directions() {
    let bed = Bed::new(1);
    let bottleneck = |rate: Value, limit: Value, layer: &str| json!({"name": "bottleneck", "kind": {"bottleneck": {"rate": rate, "queue": {"droptail": limit}, "layer": layer}}});
    let delay = |ns: u64| json!({"name": "delay", "kind": {"delay": {"delay": ns}}});
    let loss = json!({"name": "loss", "kind": {"loss": {"model": {"bernoulli": {"probability": 0.5}}}}});
    // Loss is left out, a rate that changes is measured as it starts.
    let steps = json!({"steps": [[0, 8_000_000], [500_000_000, 1_000_000]]});
    let down = json!([loss, bottleneck(steps, json!({"bytes": 30_000}), "ethernet"), delay(5_000_000)]);
    let up = json!([
        delay(15_000_000),
        bottleneck(json!({"constant": 500_000}), json!({"time": 200_000_000}), "ip")
    ]);
    let plan = bed.plan(1.0, down, up, 1);
    let mut link = bed.link(&plan, json!({}));
    let mut judge = Judge::begin();
    judge.real_time = link.real_time;
    let found = link.fly(&bed, &plan);
    println!("{found:#}");
    judge.expect(found["errors"] == json!([]), &found["errors"]);
    judge.near(&found, "rate_bps", 8e6, 8e4);
    judge.near(&found, "up_rate_bps", 5e5, 5e3);
    judge.delay(&found, "down_delay_s", 0.005, DELAY_OFF_S);
    judge.delay(&found, "up_delay_s", 0.015, DELAY_OFF_S);
    judge.near(&found, "limit_bytes", 30_000.0 - 757.0, 757.0 + 1514.0);
    judge.near(&found, "up_limit_bytes", 12_500.0 - 750.0, 750.0 + 1500.0);
    if found["expected"].is_null() {
        return judge.end();
    }
    assert_eq!(found["expected"]["limit_bytes"], 30_000);
    assert_eq!(found["expected"]["up_limit_bytes"], 12_500);
    let stats = link.stopped();
    let events = std::fs::read_to_string(bed.out.join("link-events.json")).unwrap();
    let change = json!({
        "t_ns": 500_000_000, "flow": null, "name": "rate", "value": 1e6, "unit": "bit/s", "reason": "path.down.bottleneck",
    });
    let events: Vec<Value> = serde_json::from_str(&events).unwrap();
    // The settings at the start, five of them, and the one change.
    assert_eq!((events.len(), events.last().unwrap()), (6, &change), "{events:?}");
    // The pre-flight's packets are in no count of the trial, unless it gave up before they had arrived.
    let counted = (&stats["before_start"]["packets"], &stats["rows"]);
    judge.expect(counted == (&json!(0), &json!(0)), format_args!("{counted:?} packets and rows counted"));
    judge.end();
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
    let mut nodes: Vec<EngineProcess> = [(0, "server"), (0, "player"), (1, "server"), (1, "player")]
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
    let mut judge = Judge::begin();
    let (stats, witness, nodes) = cbr_trial(2.0, json!([]));
    println!("{stats:#}\n{witness:#}\n{nodes:#?}");
    assert_eq!(stats["conservation"], json!([]));
    let rows = stats["entered"].as_array().unwrap();
    for (index, offered) in [(0, 80), (1, 120)] {
        let entered = rows.iter().find(|r| r["flow"] == index && r["dir"] == "down").unwrap();
        let packets = entered["packets"].as_u64().unwrap();
        assert!(packets <= offered, "flow {index}: {packets}");
        judge.expect(packets >= offered - 2, format_args!("flow {index}: {packets} of {offered} packets"));
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
    judge.end();
}

#[test]
fn streams_cross_the_link_root() {
    run_inside(Way::Root, "streams_cross_the_link");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn streams_cross_the_link() {
    let bed = Bed::new(2);
    let (_, up) = hessler();
    let down = json!([
        {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": 4_000_000}, "queue": {"droptail": {"bytes": 30_000}}}}},
        {"name": "delay", "kind": {"delay": {"delay": 10_000_000}}},
    ]);
    let tcp =
        json!({"congestion_control": "reno", "receive_window": 65_536, "send_buffer": 65_536, "mss": 1448});
    let frames = vec![2_500; 50];
    let clip = json!({"name": "test", "duration": 2_000_000_000u64, "frame_interval": 40_000_000, "frame_bytes": frames});
    let rtp = json!({"rtp": {"clip": clip, "max_payload": 1400, "tcp": tcp, "rtcp_interval": 500_000_000, "playout_delay": 500_000_000}});
    let bulk = json!({"bulk": {"tcp": tcp, "bytes": 500_000}});
    let plan = with_apps(bed.plan(4.0, down, up, 2), &[rtp, bulk]);
    let mut judge = Judge::begin();
    let mut link = bed.link(&plan, json!({}));
    let mut nodes: Vec<EngineProcess> = [(0, "server"), (0, "player"), (1, "server"), (1, "player")]
        .map(|(i, side)| bed.node(&plan, i, side))
        .into();
    let t0 = link.start_now();
    for node in &mut nodes {
        node.start_at(t0 + 10_000_000);
    }
    let stats = link.stopped();
    assert_eq!(stats["conservation"], json!([]));
    let mut ends = nodes.into_iter().map(|node| node.events());
    let (_, video) = ends.next().unwrap();
    let (shown, player) = ends.next().unwrap();
    let (_, file) = ends.next().unwrap();
    let (_, sink) = ends.next().unwrap();
    println!("{video}\n{player}\n{file}\n{sink}");
    // All of the file and all of the clip arrive, at a rate that needs the link's larger part.
    let (sent, received) = (file["sent_bytes"].as_u64().unwrap(), sink["received_bytes"].as_u64().unwrap());
    assert!(received <= sent && sent <= 500_000, "{received} of {sent}");
    judge.expect(received == 500_000, format_args!("{received} B of the file came"));
    judge.expect(player["received_bytes"].as_u64().unwrap() > 125_000, &player);
    judge.expect(shown.iter().any(|e| e["name"] == "media_end"), "the clip did not come to its end");
    // Linux reports twice the requested size, which it uses for its own overhead too.
    assert_eq!(
        (&file["send_buffer_bytes"], &sink["receive_buffer_bytes"]),
        (&json!(131_072), &json!(131_072))
    );
    assert_eq!(file["congestion_control"], "reno");
    // The largest segments carry 1,448 bytes: 1,514 with all headers.
    let rows = stats["entered"].as_array().unwrap();
    let row = rows.iter().find(|r| r["flow"] == 1 && r["dir"] == "down").unwrap();
    let mean = row["bytes"].as_f64().unwrap() / row["packets"].as_f64().unwrap();
    assert!(mean <= 1514.0, "{mean}");
    judge.expect(mean >= 1450.0, format_args!("{mean} B a packet"));
    judge.end();
}

#[test]
fn enters_at_the_router_root() {
    run_inside(Way::Root, "enters_at_the_router");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn enters_at_the_router() {
    let bed = Bed::new(1);
    bed.add_cross(1);
    // Everything that passes the first stage is lost; packets that enter at the router do not pass it.
    let (down, up) = hessler();
    let loss = json!({"name": "loss", "kind": {"loss": {"model": {"bernoulli": {"probability": 1.0}}}}});
    let down = [vec![loss], down.as_array().unwrap().clone()].concat();
    let ping = json!({"ping": {"interval": 100_000_000, "payload_bytes": 56}});
    let mut plan = with_apps(bed.plan(1.5, json!(down), up, 2), &[cbr(40, 1000), ping]);
    plan["flows"][1]["entry"] = json!("router");
    let interfaces = json!({"server": "to-server", "client": "to-client", "cross": "to-cross"});
    let addresses = json!([
        {"name": "f0", "server_ip": "10.1.0.1", "player_ip": "10.2.0.1"},
        {"name": "f1", "server_ip": "10.3.1.1", "player_ip": "10.2.1.1"},
    ]);
    let mut judge = Judge::begin();
    let mut link = bed.link(&plan, json!({"interfaces": interfaces, "flows": addresses}));
    let mut server = bed.node(&plan, 0, "server");
    let mut cross = bed.cross_node(&plan, 1);
    let t0 = link.start_now();
    server.start_at(t0);
    cross.start_at(t0 + 10_000_000);
    let stats = link.stopped();
    let (events, _) = cross.events();
    drop(server.events());
    assert_eq!(stats["conservation"], json!([]));
    let mut rtts: Vec<f64> =
        events.iter().filter(|e| e["name"] == "rtt").map(|e| e["value"].as_f64().unwrap()).collect();
    rtts.sort_by(f64::total_cmp);
    let [least, median] = [0, rtts.len() / 2].map(|at| rtts.get(at).copied());
    // 98 bytes at 1 Mbit/s and 10 ms; the way back costs nothing. Never less, and more only where a busy machine
    // wakes one of the programs late.
    assert!(least.is_none_or(|least| least >= 0.0107), "{rtts:?}");
    judge.expect(rtts.len() >= 13, format_args!("{events:?}"));
    judge.expect(median.is_some_and(|median| median < 0.014), format_args!("{rtts:?}"));
    let passed =
        |flow: u64| stats["left"].as_array().unwrap().iter().any(|r| r["flow"] == flow && r["dir"] == "down");
    assert!(!passed(0), "{}", stats["left"]);
    judge.expect(passed(1), &stats["left"]);
    judge.end();
}

/// Each fault must turn its own check red.
#[test]
fn every_fault_shows() {
    run_inside(Way::Root, "faults");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn faults() {
    let trial = |fault: &str| {
        // A bed a fault, in namespaces that go with it.
        let found = cbr_trial(3.0, json!([fault]));
        sh("ip netns del server; ip netns del client; sleep 0.1");
        found
    };
    // A fault of one packet in many shows where there are enough packets.
    let mut judge = Judge::begin();
    let (stats, ..) = trial("drop_row");
    judge.expect(stats["conservation"] != json!([]), "drop_row");

    let (stats, ..) = trial("overflow_ring");
    judge.expect(stats["ring_drops"] != 0, "overflow_ring");

    let (stats, ..) = trial("fail_send");
    judge.expect(stats["send_errors"] != 0 && stats["conservation"] != json!([]), "fail_send");

    let (stats, ..) = trial("skew_clock");
    let drift_ns = stats["clock"]["drift_ns"].as_i64().unwrap();
    judge.expect(drift_ns > 1_000_000, format_args!("skew_clock: {}", stats["clock"]));

    let (stats, witness, _) = trial("swap_flows");
    let left =
        stats["left"].as_array().unwrap().iter().find(|r| r["flow"] == 0 && r["dir"] == "down").unwrap();
    judge.expect(witness["flows"][0]["rx_packets"] != left["packets"], "swap_flows");

    // A busy processor makes a path neither faster nor shorter, and its queue no smaller.
    for (fault, word) in
        [("half_rate", "rate is"), ("ignore_limit", "refused none"), ("wrong_delay", "delay is")]
    {
        let bed = Bed::new(1);
        let (down, up) = hessler();
        let plan = bed.plan(1.0, down, up, 1);
        let mut link = bed.link(&plan, json!({"sabotage": [fault]}));
        let found = link.fly(&bed, &plan);
        assert!(found["errors"].to_string().contains(word), "{fault}: {}", found["errors"]);
        link.stopped();
        sh("ip netns del server; ip netns del client; sleep 0.1");
    }
    judge.end();
}

#[test]
fn a_full_disk_is_an_error_root() {
    run_inside(Way::Root, "a_full_disk_is_an_error");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn a_full_disk_is_an_error() {
    let bed = Bed::new(1);
    sh(&format!("mount -t tmpfs -o size=16k tmpfs {}", bed.out.display()));
    let (down, up) = hessler();
    let plan = with_apps(bed.plan(1.0, down, up, 1), &[cbr(100, 100)]);
    let mut link = bed.link(&plan, json!({}));
    let mut server = bed.node(&plan, 0, "server");
    // The rest of the disk is filled by another file.
    sh(&format!("head -c 1M /dev/zero > {}/full || true", bed.out.display()));
    let t0 = link.start_now();
    server.start_at(t0);
    let (error, code) = link.failed();
    assert_eq!(
        (error["event"].as_str(), error["errno"].as_i64(), code),
        (Some("error"), Some(28), Some(1)),
        "{error}"
    );
    assert!(error["path"].as_str().unwrap().ends_with(".parquet"), "{error}");
    drop(server.events());
}

#[test]
fn a_mistake_in_the_plan_is_said_before_anything_runs() {
    run_inside(Way::Root, "mistakes");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn mistakes() {
    let bed = Bed::new(1);
    let (down, up) = hessler();
    let plan = bed.plan(1.0, down, up, 1);
    let cases = [
        ("an unknown key", json!({"speed": 1}), "speed"),
        (
            "an unknown interface",
            json!({"interfaces": {"server": "nowhere", "client": "to-client"}}),
            "nowhere",
        ),
        (
            "a flow that is not there",
            json!({"flows": [{"name": "x", "server_ip": "1.1.1.1", "player_ip": "1.1.1.2"}]}),
            "flows[0]",
        ),
        ("no directory", json!({"out": "/run/none"}), "/run/none"),
        ("an unknown fault", json!({"sabotage": ["fire"]}), "fire"),
    ];
    for (what, wrong, word) in cases {
        let (error, code) = bed.broken_link(&plan, wrong);
        assert_eq!(code, Some(2), "{what}: {error}");
        assert!(error["event"] == "error" && error.to_string().contains(word), "{what}: {error}");
    }
}
