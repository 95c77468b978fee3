//! The Gilbert-Elliott model, by its renewal and correlation statistics, and lists of packets, which are exact.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{LossModel, LossSpec, StageKind, StageSpec};

fn lossy(model: LossModel, switches: &[(u64, bool)]) -> StageSpec {
    let switches = switches.iter().map(|&(at, on)| (ns(at), on)).collect();
    stage("loss", StageKind::Loss(LossSpec { model, switches }))
}

fn elliott(good_packets: f64, bad_packets: f64, loss_good: f64, loss_bad: f64) -> StageSpec {
    lossy(LossModel::GilbertElliott { good_packets, bad_packets, loss_good, loss_bad }, &[])
}

/// Sends one packet a microsecond; returns true for each that was lost.
fn losses(stage: StageSpec, seed: u64, packets: u64) -> Vec<bool> {
    let mut path = Path::new(&[stage], StageId(0), seed, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..packets {
        path.enqueue(at(id * 1000), item(id, 1514), &mut log);
        drain(&mut path, at(id * 1000), &mut log);
    }
    path.finish(at(packets * 1000), &mut log);
    let mut lost = vec![false; packets as usize];
    for fate in log.fates.iter().filter(|fate| fate.outcome == Outcome::Dropped) {
        assert_eq!((fate.cause, fate.at), (Cause::RandomLoss, fate.t_in));
        lost[fate.item.id.0 as usize] = true;
    }
    lost
}

fn share(of: impl Iterator<Item = bool>) -> (f64, f64) {
    let (mut yes, mut all) = (0.0, 0.0);
    for one in of {
        yes += f64::from(u8::from(one));
        all += 1.0;
    }
    (yes / all, all)
}

#[test]
fn mean_loss_is_within_its_renewal_interval() {
    for (seed, good, bad, loss_good, loss_bad) in [
        (1, 90.0, 10.0, 0.0, 0.5),
        (2, 50.0, 50.0, 0.01, 0.2),
        (3, 400.0, 20.0, 0.001, 0.9),
        (4, 2.0, 1.0, 0.3, 0.6),
    ] {
        let (found, packets) =
            share(losses(elliott(good, bad, loss_good, loss_bad), seed, 400_000).into_iter());
        let in_bad: f64 = bad / (good + bad);
        let mean = in_bad * loss_bad + (1.0 - in_bad) * loss_good;
        // Losses are independent given the states; the state's autocorrelation is r^k with r = 1 - 1/good - 1/bad.
        let r: f64 = 1.0 - 1.0 / good - 1.0 / bad;
        let between = in_bad * (1.0 - in_bad) * (loss_bad - loss_good).powi(2);
        let variance = (mean * (1.0 - mean) + 2.0 * between * r / (1.0 - r)) / packets;
        assert!((found - mean).abs() < 5.0 * variance.sqrt(), "{found} for {mean}");
    }
}

#[test]
fn a_loss_makes_the_next_as_likely_as_the_chain_says() {
    let (good, bad, loss_good, loss_bad) = (30.0, 6.0f64, 0.02, 0.7);
    let lost = losses(elliott(good, bad, loss_good, loss_bad), 11, 400_000);
    let in_bad = bad / (good + bad);
    let mean = in_bad * loss_bad + (1.0 - in_bad) * loss_good;
    for lag in [1, 2, 5, 20] {
        // P(bad k later | bad) = in_bad + (1 - in_bad) r^k, and so on for the other three.
        let decay = (1.0 - 1.0 / good - 1.0 / bad).powi(lag as i32);
        let variance_of_state = in_bad * (1.0 - in_bad) * f64::powi(loss_bad - loss_good, 2);
        let expected = (mean * mean + variance_of_state * decay) / mean;
        let after = lost.windows(lag + 1).filter(|window| window[0]).map(|window| window[lag]);
        let (found, count) = share(after);
        // Losses occur in bursts: as many independent ones as there are stays in the bad state, at least.
        let bound = 5.0 * (expected * (1.0 - expected) / (count / bad)).sqrt();
        assert!((found - expected).abs() < bound, "lag {lag}: {found} for {expected}, bound {bound}");
    }
}

#[test]
fn with_loss_zero_and_one_it_is_gilberts_chain() {
    let lost = losses(elliott(20.0, 4.0, 0.0, 1.0), 9, 400_000);
    let chunks: Vec<&[bool]> = lost.chunk_by(|a, b| a == b).collect();
    for (state, asked) in [(false, 20.0f64), (true, 4.0)] {
        let whole = chunks[1..chunks.len() - 1].iter().filter(|run| run[0] == state);
        let runs: Vec<f64> = whole.map(|run| run.len() as f64).collect();
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        let bound = 5.0 * (asked * (asked - 1.0) / runs.len() as f64).sqrt();
        assert!((mean - asked).abs() < bound, "{state}: {mean} for {asked}");
        // Geometric: a run ends at each packet with the same probability, however long it has lasted.
        for length in 1..=6 {
            let reached = runs.iter().filter(|&&run| run >= f64::from(length));
            let (ended, count) = share(reached.map(|&run| run == f64::from(length)));
            let bound = 5.0 * (1.0 / asked * (1.0 - 1.0 / asked) / count).sqrt();
            assert!((ended - 1.0 / asked).abs() < bound, "{state}, length {length}: {ended}");
        }
    }
}

#[test]
fn it_starts_in_its_stationary_distribution() {
    let trials = 20_000;
    let first = (0..trials).map(|seed| losses(elliott(8.0, 2.0, 0.1, 0.9), seed, 1)[0]);
    let (found, _) = share(first);
    let mean = 0.2 * 0.9 + 0.8 * 0.1;
    assert!((found - mean).abs() < 5.0 * (mean * (1.0 - mean) / trials as f64).sqrt(), "{found} for {mean}");
}

#[test]
fn equal_loss_in_both_states_is_independent_loss() {
    let lost = losses(elliott(9.0, 9.0, 0.2, 0.2), 3, 200_000);
    let after = |state| share(lost.windows(2).filter(move |pair| pair[0] == state).map(|pair| pair[1]));
    for state in [false, true] {
        let (found, count) = after(state);
        assert!((found - 0.2).abs() < 5.0 * (0.16 / count).sqrt(), "{found}");
    }
}

#[test]
fn a_list_loses_exactly_its_packets() {
    let list = |packets: &[u64]| LossModel::List { packets: packets.to_vec() };
    let which = |stage, packets| -> Vec<u64> {
        let lost = losses(stage, 1, packets);
        (0..packets).filter(|&id| lost[id as usize]).collect()
    };
    assert_eq!(which(lossy(list(&[0, 3, 4, 99, 100]), &[]), 100), [0, 3, 4, 99]);
    assert!(which(lossy(list(&[]), &[]), 100).is_empty());
    // Off from packet 3 to packet 9: those are not counted, so number 5 is the eleventh to arrive.
    assert_eq!(which(lossy(list(&[1, 5]), &[(3_000, false), (9_000, true)]), 100), [1, 11]);
}

#[test]
fn a_list_reports_how_many_are_to_come() {
    let list = LossModel::List { packets: vec![1, 5, 6] };
    let stage = lossy(list, &[(3_000, false), (4_000, true)]);
    let mut path = Path::new(&[stage], StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..10 {
        path.enqueue(at(id * 1000), item(id, 100), &mut log);
    }
    let changes: Vec<_> = log.changes.iter().map(|change| (change.1, change.2, change.3)).collect();
    let expected = [(at(0), "loss_list", 3.0), (at(3_000), "loss_list", 0.0), (at(4_000), "loss_list", 2.0)];
    assert_eq!(changes, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_list_is_exact(packets in prop::collection::btree_set(0..300u64, 0..100)) {
        let list = LossModel::List { packets: packets.iter().copied().collect() };
        let lost = losses(lossy(list, &[]), 1, 200);
        for (id, lost) in lost.into_iter().enumerate() {
            prop_assert_eq!(lost, packets.contains(&(id as u64)));
        }
    }

    #[test]
    fn while_it_is_off_it_draws_nothing(seed: u64) {
        let model = LossModel::GilbertElliott { good_packets: 5.0, bad_packets: 3.0, loss_good: 0.1, loss_bad: 0.8 };
        let always = losses(lossy(model.clone(), &[]), seed, 300);
        let paused = losses(lossy(model, &[(100_000, false), (200_000, true)]), seed, 400);
        prop_assert_eq!(&paused[..100], &always[..100]);
        prop_assert!(!paused[100..200].contains(&true));
        prop_assert_eq!(&paused[200..], &always[100..]);
    }
}
