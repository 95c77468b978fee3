//! Corruption: how many, and that nothing else happens to them.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Item, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{CorruptSpec, StageKind, StageSpec};

fn corrupt(name: &str, probability: f64, switches: &[(u64, bool)]) -> StageSpec {
    let switches = switches.iter().map(|&(at, on)| (ns(at), on)).collect();
    stage(name, StageKind::Corrupt(CorruptSpec { probability, switches }))
}

/// Returns the departures of packets that arrive one a microsecond.
fn run(stages: &[StageSpec], seed: u64, packets: u64) -> (Vec<Item>, Log) {
    let mut path = Path::new(stages, StageId(0), seed, Direction::Down).unwrap();
    let (mut log, mut left) = (Log::default(), Vec::new());
    for id in 0..packets {
        path.enqueue(at(id * 1_000), item(id, 1514), &mut log);
        left.extend(drain(&mut path, at(id * 1_000), &mut log));
    }
    assert!(left.iter().enumerate().all(|(id, left)| left.at == at(id as u64 * 1_000)));
    (left.iter().map(|left| left.item).collect(), log)
}

#[test]
fn as_many_are_damaged_as_asked_and_only_that() {
    let packets = 100_000;
    for (seed, probability) in [(1, 0.001), (2, 0.01), (3, 0.5), (4, 1.0)] {
        let (left, log) = run(&[corrupt("corrupt", probability, &[])], seed, packets);
        let damaged = left.iter().filter(|item| item.corrupted).count() as f64;
        let bound = 5.0 * (probability * (1.0 - probability) * packets as f64).sqrt();
        assert!((damaged - probability * packets as f64).abs() <= bound, "{damaged}");
        let repaired = left.iter().map(|&left| Item { corrupted: false, ..left });
        assert!(repaired.eq((0..packets).map(|id| item(id, 1514))));
        assert_eq!(log.count(0, Outcome::Delivered) as u64, packets);
        assert!(log.fates.iter().zip(&left).all(|(fate, left)| fate.item == *left), "rows say it too");
    }
}

#[test]
fn switches_take_effect_at_their_exact_time() {
    let (left, log) = run(&[corrupt("corrupt", 1.0, &[(1_000, false), (3_000, true)])], 1, 4);
    let damaged: Vec<bool> = left.iter().map(|item| item.corrupted).collect();
    assert_eq!(damaged, [true, false, false, true]);
    let changes: Vec<_> =
        log.changes.iter().map(|change| (change.1.as_nanos(), change.2, change.3)).collect();
    assert_eq!(
        changes,
        [(0, "corrupt_ratio", 1.0), (1_000, "corrupt_ratio", 0.0), (3_000, "corrupt_ratio", 1.0)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_second_stage_repairs_nothing_and_changes_no_draw(seed: u64) {
        let damaged = |left: &[Item]| left.iter().map(|item| item.corrupted).collect::<Vec<_>>();
        let first = damaged(&run(&[corrupt("first", 0.3, &[])], seed, 100).0);
        let second = damaged(&run(&[corrupt("second", 0.3, &[])], seed, 100).0);
        let both = damaged(&run(&[corrupt("first", 0.3, &[]), corrupt("second", 0.3, &[])], seed, 100).0);
        prop_assert_ne!(&first, &second);
        for id in 0..100 {
            prop_assert_eq!(both[id], first[id] | second[id]);
        }
    }
}
