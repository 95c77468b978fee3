//! Reordering: which packets wait, how many, how long.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{ReorderSpec, StageKind};

fn path(spec: ReorderSpec, seed: u64) -> Path {
    Path::new(&[stage("reorder", StageKind::Reorder(spec))], StageId(0), seed, Direction::Down).unwrap()
}

fn chance(probability: f64, extra: u64, switches: &[(u64, bool)]) -> ReorderSpec {
    let switches = switches.iter().map(|&(at, on)| (ns(at), on)).collect();
    ReorderSpec { probability: Some(probability), every: None, extra: ns(extra), switches }
}

fn every(n: u64, extra: u64, switches: &[(u64, bool)]) -> ReorderSpec {
    ReorderSpec { probability: None, every: Some(n), ..chance(0.0, extra, switches) }
}

/// Returns (number, departure) of packets that arrive one a microsecond, in order of departure.
fn run(spec: ReorderSpec, seed: u64, packets: u64) -> Vec<(u64, u64)> {
    let (mut path, mut log) = (path(spec, seed), Log::default());
    let mut left = Vec::new();
    for id in 0..packets {
        left.extend(follow(&mut path, at(id * 1_000), &mut log));
        path.enqueue(at(id * 1_000), item(id, 1514), &mut log);
    }
    left.extend(follow(&mut path, at(1 << 62), &mut log));
    left.iter().map(|left| (left.item.id.0, left.at.as_nanos())).collect()
}

#[test]
fn as_many_wait_as_asked_and_nobody_else() {
    let packets = 100_000;
    for (seed, probability) in [(1, 0.01), (2, 0.3), (3, 0.9)] {
        let left = run(chance(probability, 2_500, &[]), seed, packets);
        let waited = left.iter().filter(|&&(id, at)| at == id * 1_000 + 2_500).count() as f64;
        let passed = left.iter().filter(|&&(id, at)| at == id * 1_000).count() as f64;
        assert_eq!(waited + passed, packets as f64);
        let bound = 5.0 * (probability * (1.0 - probability) / packets as f64).sqrt();
        assert!((waited / packets as f64 - probability).abs() < bound, "{waited} for {probability}");
    }
}

#[test]
fn reorder_density_is_what_the_wait_makes_it() {
    // A packet that waits 2.5 packet times is displaced by the two that arrive meanwhile, less those that wait too: RFC
    // 5236's displacement. With rare waits nearly all of them by two.
    let left = run(chance(0.01, 2_500, &[]), 5, 100_000);
    let displaced: Vec<i64> = left
        .iter()
        .enumerate()
        .map(|(place, &(id, _))| place as i64 - id as i64)
        .filter(|&d| d > 0)
        .collect();
    let by_two = displaced.iter().filter(|&&d| d == 2).count() as f64 / displaced.len() as f64;
    // Neither of the two behind it waits: 0.99^2; one that waited just before it gives back a place (0.99^2 again).
    assert!(by_two > 0.9 && displaced.iter().all(|&d| d <= 2), "{by_two}");
    assert!((800..1_200).contains(&displaced.len()), "{}", displaced.len());
}

#[test]
fn every_nth_waits() {
    let left = run(every(4, 1_500, &[]), 1, 12);
    let ids: Vec<u64> = left.iter().map(|left| left.0).collect();
    assert_eq!(ids, [0, 1, 2, 4, 3, 5, 6, 8, 7, 9, 10, 11]);
    // Off for two packets, which are not counted.
    let left = run(every(4, 1_500, &[(2_000, false), (4_000, true)]), 1, 8);
    let ids: Vec<u64> = left.iter().map(|left| left.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 6, 5, 7]);
}

#[test]
fn switches_take_effect_at_their_exact_time_and_what_waits_goes_on_waiting() {
    let left = run(chance(1.0, 5_500, &[(2_000, false), (4_001, true)]), 1, 6);
    let expected = [(2, 2_000), (3, 3_000), (4, 4_000), (0, 5_500), (1, 6_500), (5, 10_500)];
    assert_eq!(left, expected);
    let mut log = Log::default();
    path(chance(0.25, 5, &[(2_000, false)]), 1).finish(at(3_000), &mut log);
    let changes: Vec<_> =
        log.changes.iter().map(|change| (change.1.as_nanos(), change.2, change.3)).collect();
    assert_eq!(changes, [(0, "reorder_ratio", 0.25), (2_000, "reorder_ratio", 0.0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nobody_is_lost_and_those_that_pass_keep_their_order(
        seed: u64, probability in 0.0..1.0f64, extra in 0..20_000u64,
    ) {
        let left = run(chance(probability, extra, &[]), seed, 200);
        let mut ids: Vec<u64> = left.iter().map(|left| left.0).collect();
        ids.sort_unstable();
        prop_assert!(ids.into_iter().eq(0..200));
        let passed = left.iter().filter(|&&(id, at)| at == id * 1_000);
        prop_assert!(passed.is_sorted());
        prop_assert_eq!(&left, &run(chance(probability, extra, &[]), seed, 200));
    }
}
