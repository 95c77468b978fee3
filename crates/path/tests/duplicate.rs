//! Duplication: rows, numbers, order.

mod common;

use std::collections::HashSet;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Item, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{DuplicateSpec, StageKind, StageSpec};

fn twice(name: &str, probability: f64, switches: &[(u64, bool)]) -> StageSpec {
    let switches = switches.iter().map(|&(at, on)| (ns(at), on)).collect();
    stage(name, StageKind::Duplicate(DuplicateSpec { probability, switches }))
}

/// Returns (number, copy) of the departures, of packets that arrive one a microsecond.
fn run(stages: &[StageSpec], seed: u64, packets: u64) -> (Vec<(u64, u8)>, Log) {
    let mut path = Path::new(stages, StageId(0), seed, Direction::Down).unwrap();
    let (mut log, mut left) = (Log::default(), Vec::new());
    for id in 0..packets {
        path.enqueue(at(id * 1_000), item(id, 1514), &mut log);
        left.extend(drain(&mut path, at(id * 1_000), &mut log));
    }
    left.extend(follow(&mut path, at(1 << 62), &mut log));
    (left.iter().map(|left| (left.item.id.0, left.item.copy)).collect(), log)
}

#[test]
fn as_many_are_doubled_as_asked() {
    let packets = 100_000;
    for (seed, probability) in [(1, 0.01), (2, 0.5)] {
        let (left, log) = run(&[twice("duplicate", probability, &[])], seed, packets);
        let made = log.made.len() as f64;
        assert_eq!(left.len() as f64, packets as f64 + made);
        let bound = 5.0 * (probability * (1.0 - probability) * packets as f64).sqrt();
        assert!((made - probability * packets as f64).abs() < bound, "{made}");
    }
}

#[test]
fn a_copy_is_told_of_before_anything_happens_to_it_and_leaves_behind_the_original() {
    let (left, log) = run(&[twice("duplicate", 1.0, &[])], 1, 2);
    assert_eq!(left, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let (stage, from, made) = log.made[0];
    assert_eq!((stage, from), (StageId(0), item(0, 1514)));
    assert_eq!(made, Item { copy: 1, ..from });
    assert_eq!(from.bytes_added_by(&made), 1514);
    assert_eq!(log.count(0, Outcome::Delivered), 4, "a row for each");
}

#[test]
fn copies_of_copies_have_numbers_of_their_own() {
    let stages: Vec<_> = (0..8).map(|n| twice(&format!("d{n}"), 1.0, &[])).collect();
    let (left, log) = run(&stages, 1, 1);
    assert_eq!(left.len(), 256);
    assert_eq!(left.iter().collect::<HashSet<_>>().len(), 256);
    log.assert_conserved(&[item(0, 1514)], 8);
}

#[test]
fn switches_take_effect_at_their_exact_time() {
    let (left, log) = run(&[twice("duplicate", 1.0, &[(1_000, false), (3_000, true)])], 1, 4);
    assert_eq!(left, [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (3, 1)]);
    let changes: Vec<_> =
        log.changes.iter().map(|change| (change.1.as_nanos(), change.2, change.3)).collect();
    assert_eq!(
        changes,
        [(0, "duplicate_ratio", 1.0), (1_000, "duplicate_ratio", 0.0), (3_000, "duplicate_ratio", 1.0)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_rows_add_up(seed: u64, probabilities in prop::collection::vec(0.0..1.0f64, 1..5)) {
        let stages: Vec<_> =
            probabilities.iter().enumerate().map(|(n, &p)| twice(&format!("d{n}"), p, &[])).collect();
        let (left, log) = run(&stages, seed, 40);
        let entered: Vec<Item> = (0..40).map(|id| item(id, 1514)).collect();
        log.assert_conserved(&entered, stages.len() as u8);
        prop_assert_eq!(left.len(), 40 + log.made.len());
        prop_assert_eq!(left.iter().collect::<HashSet<_>>().len(), left.len());
        prop_assert!(left.is_sorted_by_key(|&(id, _)| id));
        // The first stage's draws do not depend on those behind it.
        let first = |log: &Log| log.made.iter().filter(|made| made.0 == StageId(0)).count();
        prop_assert_eq!(first(&log), first(&run(&stages[..1], seed, 40).1));
    }
}
