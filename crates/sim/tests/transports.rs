//! Packets that cross the path end to end, against numbers computed by hand.

mod common;

use common::*;
use streamgauge_base::{Direction, Duration, Instant, Outcome, PacketKind};
use streamgauge_path::spec::Limit;
use streamgauge_plan::{Entry, Role};
use streamgauge_sim::run;

/// Returns the payload bytes per second that 1448 B segments leave of `bps` counted at Ethernet (1514 B a segment).
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

/// Makes Hessler and Welzl's set-up: 1 Mbit/s, a queue of 100 packets, FTP with a window of 16 kB.
fn hessler(cross: &[(f64, u64)]) -> streamgauge_plan::TrialPlan {
    let mut flows = vec![bulk("ftp", "reno", 16 << 10)];
    for &(packets_per_s, length_ms) in cross {
        let mut mgen = cbr("mgen", packets_per_s, 1000, &[(30_000, 30_000 + length_ms)]);
        mgen.entry = Entry::Router;
        mgen.role = Role::Rival;
        flows.push(mgen);
    }
    let mut plan = plan(path(1_000_000, Limit::Packets(100), 1), flows, 120, 1);
    plan.host_jitter = Duration::from_micros(200);
    plan
}

#[test]
fn a_window_below_the_queue_loses_nothing() {
    let (summary, record) = Rows::of(&hessler(&[]));
    assert!(record.rows.iter().all(|(fate, ..)| fate.outcome != Outcome::Dropped));
    let tcp = summary.flows[0].tcp.as_ref().unwrap();
    assert_eq!((tcp.retransmits, tcp.timeouts), (0, 0));
    let share = summary.flows[0].player_received_bytes as f64 / (120.0 * payload_rate(1_000_000));
    assert!((0.98..=1.0).contains(&share), "{share}");
}

#[test]
fn a_burst_from_the_router_takes_its_bytes_from_ftp() {
    let without = run(&hessler(&[]), ()).unwrap().0.flows[0].player_received_bytes;
    let (summary, record) = Rows::of(&hessler(&[(200.0, 720)]));
    assert_eq!(record.at(1, 0).count(), 144, "0.72 s at 200 packets/s");
    // 144 frames of 1042 B replaced FTP's 1514 B for 1448.
    let taken = 144.0 * 1042.0 * 1448.0 / 1514.0;
    let less = without as f64 - summary.flows[0].player_received_bytes as f64;
    assert!((less - taken).abs() < 0.05 * taken, "{less} B less, {taken} B expected");
}

#[test]
fn headers_are_exact() {
    let flows = vec![
        bulk("ftp", "reno", 64 << 10),
        cbr("mgen", 10.0, 1000, &[]),
        ping("ping", 1_000, 56),
        rtp("video", 5, None),
    ];
    let (_, record) = Rows::of(&plan(path(10_000_000, Limit::Packets(100), 5), flows, 6, 1));
    let sizes = |flow: u16, direction: Direction, kind: PacketKind| {
        let rows = record
            .rows
            .iter()
            .filter(move |(fate, info, d)| fate.item.flow.0 == flow && *d == direction && info.kind == kind);
        let mut sizes: Vec<_> =
            rows.map(|(fate, info, _)| (fate.item.ip_bytes, info.payload_bytes)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    assert!(record.rows.iter().all(|(fate, ..)| fate.item.bytes == fate.item.ip_bytes + 14));
    assert_eq!(sizes(0, Direction::Down, PacketKind::Media).last(), Some(&(1500, 1448)));
    assert_eq!(sizes(0, Direction::Up, PacketKind::Ack), [(52, 0)], "timestamps, no SACK without loss");
    assert_eq!(sizes(0, Direction::Down, PacketKind::Signalling), [(60, 0)], "the SYN's answer");
    assert_eq!(sizes(1, Direction::Down, PacketKind::Media), [(1028, 1000)]);
    assert_eq!(sizes(2, Direction::Down, PacketKind::Probe), [(84, 56)]);
    assert_eq!(sizes(2, Direction::Up, PacketKind::Probe), [(84, 56)]);
    // A frame of 2,000 B in two packets: 1,400 and 603 B of payload under 12 B of RTP header.
    assert!(sizes(3, Direction::Down, PacketKind::Media).contains(&(28 + 12 + 1400, 12 + 1400)));
    assert!(sizes(3, Direction::Down, PacketKind::Media).contains(&(28 + 12 + 603, 12 + 603)));
    assert!(!sizes(3, Direction::Down, PacketKind::Rtcp).is_empty(), "sender reports");
    assert!(!sizes(3, Direction::Up, PacketKind::Rtcp).is_empty(), "receiver reports");
}

#[test]
fn ping_on_an_empty_path_measures_the_delays_and_its_own_serialisation() {
    let (_, record) =
        Rows::of(&plan(path(1_000_000, Limit::Packets(100), 10), vec![ping("ping", 500, 56)], 10, 1));
    let rtts = record.named("rtt");
    assert_eq!(rtts.len(), 20);
    // 98 B at 1 Mbit/s one way, 10 ms both ways.
    assert!(rtts.iter().all(|e| e.value == Some(0.020_784)), "{:?}", rtts[0]);
}

#[test]
fn cbr_keeps_its_rate_to_the_packet() {
    for (rate, expected) in [(90.0, 5400), (150.0, 9000), (33.3, 1998), (7.0, 420)] {
        let flows = vec![cbr("mgen", rate, 1000, &[(10_000, 70_000)])];
        let (_, record) = Rows::of(&plan(path(10_000_000, Limit::Packets(100), 10), flows, 90, 1));
        assert_eq!(record.at(0, 0).count(), expected, "{rate} packets/s for 60 s");
    }
}

#[test]
fn the_host_is_late_but_never_out_of_order_and_departures_keep_their_times() {
    let jitter = Duration::from_millis(5);
    let run = |host_jitter| {
        let flows = vec![cbr("mgen", 200.0, 1000, &[]), bulk("ftp", "reno", 16 << 10)];
        let mut plan = plan(path(2_000_000, Limit::Packets(100), 10), flows, 20, 1);
        plan.host_jitter = host_jitter;
        Rows::of(&plan)
    };
    let (_, record) = run(jitter);
    let mut lates = Vec::new();
    for (n, (fate, ..)) in (0u64..).zip(record.at(0, 0)) {
        let tick = Instant::ZERO + Duration::from_millis(5 * n);
        lates.push((fate.t_in - tick).as_nanos());
    }
    assert!(lates.iter().all(|late| *late <= jitter.as_nanos()));
    let mean = lates.iter().sum::<u64>() as f64 / lates.len() as f64;
    assert!((mean / jitter.as_nanos() as f64 - 0.5).abs() < 0.05, "uniform: mean {mean} ns");
    // The delay stage holds each packet for exactly its delay, however late the host looks.
    let stays = record.at(0, 1).filter_map(|(fate, ..)| Some(fate.t_out()? - fate.t_in));
    assert!(stays.into_iter().all(|stay| stay == Duration::from_millis(10)));
    assert_eq!(run(Duration::ZERO).1.at(0, 0).count(), lates.len());

    // Far longer than the time between packets: reordering would show as spurious retransmissions.
    let (summary, _) = run(Duration::from_millis(40));
    assert_eq!(summary.flows[1].tcp.as_ref().unwrap().retransmits, 0);
}
