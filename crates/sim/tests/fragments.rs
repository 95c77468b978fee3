//! Copies, fragments and corruption from end to end: hosts cut and reassemble, paths do as they like.

mod common;

use common::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use streamgauge_base::{Cause, Direction, Duration, Outcome, PacketId};
use streamgauge_path::spec::{
    CorruptSpec, DuplicateSpec, Limit, MtuSpec, PathSpec, ReorderSpec, StageKind, StageSpec,
};
use streamgauge_plan::{TcpSpec, TrialPlan};
use streamgauge_sim::Summary;
use streamgauge_systems::System;
use streamgauge_systems::bulk::BulkSpec;

fn stage(name: &str, kind: StageKind) -> StageSpec {
    StageSpec { name: name.into(), kind, changes: vec![] }
}
fn duplicate(probability: f64) -> StageKind {
    StageKind::Duplicate(DuplicateSpec { probability, switches: Vec::new() })
}
fn corrupt(probability: f64) -> StageKind {
    StageKind::Corrupt(CorruptSpec { probability, switches: Vec::new() })
}
fn mtu(bytes: u32) -> StageKind {
    StageKind::Mtu(MtuSpec { bytes, switches: Vec::new() })
}

fn down(stages: Vec<StageSpec>) -> PathSpec {
    PathSpec { down: stages, up: vec![delay(5)] }
}

#[test]
fn a_large_datagram_is_sent_in_fragments_and_read_whole() {
    let path = path(10_000_000, Limit::Packets(100), 5);
    let (summary, record) = Rows::of(&plan(path, vec![cbr("udp", 50.0, 4000, &[])], 2, 1));
    let first: Vec<_> = record.at(0, 0).filter(|(fate, ..)| fate.item.id == PacketId(0)).collect();
    let shape: Vec<_> = first.iter().map(|(fate, ..)| (fate.item.fragment, fate.item.ip_bytes)).collect();
    // 4,008 bytes of UDP: 1480, 1480 and 1048.
    let part = streamgauge_base::Fragment::part;
    assert_eq!(shape, [(part(0, true), 1500), (part(185, true), 1500), (part(370, false), 1068)]);
    let payload: u32 = first.iter().map(|(fate, info, _)| info.payload_bytes_in(&fate.item)).sum();
    assert_eq!(payload, 4000);
    assert_eq!(summary.flows[0].player_received_bytes, summary.flows[0].server_sent_bytes);
    assert_eq!((summary.host.player.reassembled, summary.host.player.reassembly_failed), (100, 0));
}

#[test]
fn a_datagram_is_lost_with_any_fragment_of_it() {
    let path = down(vec![loss(0.1), delay(5)]);
    let (summary, record) = Rows::of(&plan(path, vec![cbr("udp", 100.0, 4000, &[(0, 8_000)])], 60, 1));
    let harmed: BTreeSet<_> = record
        .at(0, 0)
        .filter(|(fate, ..)| fate.outcome == Outcome::Dropped)
        .map(|(fate, ..)| fate.item.id)
        .collect();
    assert!((150..270).contains(&harmed.len()), "1 - 0.9^3 of 800: {}", harmed.len());
    assert_eq!(summary.flows[0].player_received_bytes, (800 - harmed.len() as u64) * 4000);
    // Datagrams with all three fragments lost are not waited for.
    let begun = record.at(0, 1).filter(|(fate, ..)| harmed.contains(&fate.item.id));
    let begun: BTreeSet<_> = begun.map(|(fate, ..)| fate.item.id).collect();
    let host = summary.host.player;
    assert_eq!((host.reassembled, host.reassembly_failed), (800 - harmed.len() as u64, begun.len() as u64));
}

#[test]
fn a_duplicate_reaches_the_machine_twice_and_a_corrupted_packet_never() {
    let flows = || vec![cbr("udp", 100.0, 500, &[])];
    let twice = down(vec![stage("duplicate", duplicate(1.0)), delay(5)]);
    let (summary, record) = Rows::of(&plan(twice, flows(), 4, 1));
    let arrived = record.at(0, 1).filter(|(fate, ..)| fate.outcome == Outcome::Delivered).count() as u64;
    assert_eq!(summary.flows[0].player_received_bytes, 500 * arrived);
    assert_eq!(record.made.len(), record.at(0, 0).count() / 2);
    let never = down(vec![stage("corrupt", corrupt(1.0)), delay(5)]);
    let (summary, record) = Rows::of(&plan(never, flows(), 4, 1));
    let arrived = record.at(0, 1).filter(|(fate, ..)| fate.outcome == Outcome::Delivered).count() as u64;
    assert!(arrived > 390);
    assert_eq!((summary.flows[0].player_received_bytes, summary.host.player.checksum_errors), (0, arrived));
}

/// Runs a bulk transfer in segments of `mss` bytes, through a path of MTU 576 that also does all the rest.
fn over_a_narrow_mtu(mss: u32) -> (Summary, Rows) {
    let reorder = ReorderSpec { probability: Some(0.02), every: None, extra: ms(3), switches: Vec::new() };
    let path = PathSpec {
        down: vec![
            stage("corrupt", corrupt(0.005)),
            stage("duplicate", duplicate(0.02)),
            bottleneck(5_000_000, Limit::Bytes(60_000)),
            stage("mtu", mtu(576)),
            stage("reorder", StageKind::Reorder(reorder)),
            delay(10),
        ],
        up: vec![stage("duplicate", duplicate(0.02)), delay(10)],
    };
    let tcp = TcpSpec { mss, ..tcp("cubic", 1 << 20) };
    let bulk = flow("ftp", BulkSpec { tcp, ..BulkSpec::usual() }.app());
    Rows::of(&plan(path, vec![bulk, cbr("udp", 100.0, 1_400, &[])], 20, 1))
}

#[test]
fn tcp_crosses_a_path_that_cuts_copies_reorders_and_corrupts() {
    // 524 bytes, 20 of TCP's header, 12 of its timestamps and 20 of IP's are the MTU.
    let (summary, _) = over_a_narrow_mtu(524);
    let received = summary.flows[0].player_received_bytes;
    assert!(received > 2_000_000, "{received} B of 20 s");
    // The datagrams beside it are cut up, and put together again.
    assert!(summary.flows[1].player_received_bytes > 2_000_000);
    assert!(summary.host.player.checksum_errors > 20 && summary.host.player.reassembled > 1_000);
}

/// TCP forbids fragmentation, as Linux's does, and no stage sends the ICMP that would report an MTU: a black hole (RFC
/// 2923 section 2.1).
#[test]
fn tcp_in_longer_segments_falls_into_a_black_hole() {
    let (summary, record) = over_a_narrow_mtu(525);
    assert_eq!(summary.flows[0].player_received_bytes, 0);
    assert!(summary.flows[1].player_received_bytes > 2_000_000);
    let too_big: Vec<_> = record.at(0, 3).filter(|(fate, ..)| fate.cause == Cause::TooBig).collect();
    assert!(!too_big.is_empty());
    assert!(too_big.iter().all(|(fate, ..)| fate.item.ip_bytes == 577 && fate.item.fragment.dont_fragment()));
}

fn any_element() -> impl Strategy<Value = StageKind> {
    prop_oneof![
        (0.0..0.3f64).prop_map(duplicate),
        (0.0..0.1f64).prop_map(corrupt),
        (68u32..1_500).prop_map(mtu),
        (0.0..0.1f64).prop_map(|probability| loss(probability).kind),
        (0.0..0.2f64, 1u64..20).prop_map(|(probability, extra)| {
            let probability = Some(probability);
            StageKind::Reorder(ReorderSpec { probability, every: None, extra: ms(extra), switches: vec![] })
        }),
        (300_000u64..5_000_000, 5u32..100)
            .prop_map(|(bps, limit)| bottleneck(bps, Limit::Packets(limit)).kind),
        (0u64..30).prop_map(|ms| delay(ms).kind),
    ]
}

fn any_stages() -> impl Strategy<Value = Vec<StageSpec>> {
    prop::collection::vec(any_element(), 1..6).prop_map(|kinds| {
        // One bottleneck, so that an entry at the router means one place.
        let name = |(index, kind)| stage(&format!("stage{index}"), kind);
        kinds.into_iter().enumerate().map(name).collect()
    })
}

fn any_plan() -> impl Strategy<Value = TrialPlan> {
    (any_stages(), any_stages(), 1u32..9_000, any::<u64>()).prop_map(|(down, up, payload, seed)| {
        let flows = vec![
            cbr("udp", 40.0, payload, &[]),
            bulk("tcp", "reno", 64 << 10),
            ping("ping", 100, 56),
            rtp("video", 2, None),
        ];
        let mut plan = plan(PathSpec { down, up }, flows, 3, seed);
        plan.host_jitter = Duration::from_micros(100);
        plan
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// In + made = out + dropped + held in every stage, in packets and in bytes, counted here; every packet, copy and
    /// fragment has one row a stage; and the same plan gives the same again. That no body is left over is asserted
    /// by the simulator itself at the end of each trial.
    #[test]
    fn any_path_conserves_and_repeats(plan in any_plan()) {
        let (summary, record) = Rows::of(&plan);
        let (again, repeated) = Rows::of(&plan);
        prop_assert_eq!(&record.rows, &repeated.rows);
        prop_assert_eq!(&summary, &again);
        let down = plan.path.down.len() as u8;
        let stages = down + plan.path.up.len() as u8;
        let mut settled = BTreeMap::<u8, (u64, u64)>::new();
        let mut delivered = BTreeMap::<u8, (u64, u64)>::new();
        let mut seen = BTreeSet::new();
        for (fate, info, direction) in &record.rows {
            let item = &fate.item;
            prop_assert_eq!(*direction, if fate.stage.0 < down { Direction::Down } else { Direction::Up });
            let key = (fate.stage, item.id, item.copy, item.fragment.offset());
            prop_assert!(seen.insert(key), "{:?} twice", key);
            prop_assert!(fate.at >= fate.t_in);
            prop_assert!(info.payload_bytes_in(item) <= item.ip_bytes);
            let counts = |map: &mut BTreeMap<u8, (u64, u64)>| {
                let count = map.entry(fate.stage.0).or_default();
                *count = (count.0 + 1, count.1 + u64::from(item.bytes));
            };
            counts(&mut settled);
            if fate.outcome == Outcome::Delivered {
                counts(&mut delivered);
            }
        }
        for stage in (0..stages).filter(|stage| *stage != 0 && *stage != down) {
            let made = record.made.iter().filter(|made| made.0.0 == stage);
            let (mut packets, mut bytes) = delivered.get(&(stage - 1)).copied().unwrap_or_default();
            for (_, from, made) in made {
                packets += 1;
                bytes += u64::from(from.bytes_added_by(made));
            }
            prop_assert_eq!(settled.get(&stage).copied().unwrap_or_default(), (packets, bytes), "stage {}", stage);
        }
        // The record's own account, with the packets that the driver put in and took out.
        let directory = std::env::temp_dir().join(format!("streamgauge-fragments-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let written = streamgauge_sim::simulate(&plan, &directory).unwrap();
        prop_assert_eq!(written.imbalance, Vec::<String>::new());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
