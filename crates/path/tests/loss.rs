//! Random loss: its statistics, its switches and the independence of its draws.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{Limit, LossModel, LossSpec, StageKind, StageSpec};

/// Sends one packet a microsecond through `stages`; returns true for each that the stage called "loss" dropped.
fn losses(stages: &[StageSpec], seed: u64, direction: Direction, packets: u64) -> Vec<bool> {
    let index = stages.iter().position(|stage| stage.name == "loss").unwrap() as u8;
    let mut path = Path::new(stages, StageId(0), seed, direction).unwrap();
    let mut log = Log::default();
    for id in 0..packets {
        path.enqueue(at(id * 1000), item(id, 1514), &mut log);
        drain(&mut path, at(id * 1000), &mut log);
    }
    path.finish(at(packets * 1000), &mut log);
    let mut lost = vec![false; packets as usize];
    for fate in log.at_stage(index).filter(|fate| fate.outcome == Outcome::Dropped) {
        assert_eq!(fate.cause, Cause::RandomLoss);
        lost[fate.item.id.0 as usize] = true;
    }
    lost
}

fn down(stage: StageSpec, seed: u64, packets: u64) -> Vec<bool> {
    losses(&[stage], seed, Direction::Down, packets)
}

fn ratio(lost: &[bool]) -> f64 {
    lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
}

/// Lengths of the whole runs of `state`: those cut off at either end are left out.
fn runs(lost: &[bool], state: bool) -> Vec<f64> {
    let chunks: Vec<&[bool]> = lost.chunk_by(|a, b| a == b).collect();
    let whole = &chunks[1..chunks.len() - 1];
    whole.iter().filter(|run| run[0] == state).map(|run| run.len() as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn bernoulli_loses_its_share_independently() {
    let packets = 200_000;
    for (seed, probability) in [(1, 0.001), (2, 0.01), (3, 0.1), (4, 0.5), (5, 0.97)] {
        let lost = down(bernoulli("loss", probability), seed, packets);
        let sigma = |p: f64| (p * (1.0 - p) / packets as f64).sqrt();
        let share = ratio(&lost);
        assert!((share - probability).abs() < 5.0 * sigma(probability), "{share} for {probability}");
        // Two in a row are lost as often as independence predicts. Neighbouring pairs overlap, which makes the count's
        // variance at most three times that of as many separate ones.
        let pairs: Vec<bool> = lost.windows(2).map(|pair| pair[0] && pair[1]).collect();
        let both = probability * probability;
        let bound = 5.0 * 3f64.sqrt() * sigma(both);
        assert!((ratio(&pairs) - both).abs() < bound, "{} for {both}", ratio(&pairs));
    }
}

#[test]
fn gilbert_has_the_mean_runs_asked_for() {
    for (seed, good, bad) in [(1, 99.0, 1.0), (2, 50.0, 3.0), (3, 8.0, 2.5), (4, 1.5, 12.0), (5, 300.0, 20.0)]
    {
        let lost = down(gilbert("loss", good, bad), seed, 400_000);
        for (state, asked) in [(false, good), (true, bad)] {
            let runs = runs(&lost, state);
            // A geometric run of mean m has variance m (m - 1).
            let bound = 5.0 * (asked * (asked - 1.0) / runs.len() as f64).sqrt();
            let found = mean(&runs);
            assert!((found - asked).abs() <= bound, "{state}: {found} for {asked}, bound {bound}");
        }
    }
}

#[test]
fn gilbert_runs_are_geometric() {
    // A run of mean 4 ends at each packet with probability 1/4, however long it has lasted.
    let lengths = runs(&down(gilbert("loss", 20.0, 4.0), 9, 400_000), true);
    for length in 1..=8 {
        let reached: Vec<&f64> = lengths.iter().filter(|&&run| run >= f64::from(length)).collect();
        let ended = reached.iter().filter(|&&&run| run == f64::from(length)).count() as f64;
        let share = ended / reached.len() as f64;
        let bound = 5.0 * (0.25 * 0.75 / reached.len() as f64).sqrt();
        assert!((share - 0.25).abs() < bound, "length {length}: {share}");
    }
}

#[test]
fn gilbert_starts_as_it_goes_on() {
    // The first packet of many trials is lost as often as any other: 1 in 5.
    let trials = 20_000;
    let first = (0..trials).filter(|&seed| down(gilbert("loss", 8.0, 2.0), seed, 1)[0]).count() as f64;
    let bound = 5.0 * (0.2 * 0.8 * trials as f64).sqrt();
    assert!((first - 0.2 * trials as f64).abs() < bound, "{first}");
}

#[test]
fn the_ends_of_the_scale_are_exact() {
    assert_eq!(ratio(&down(bernoulli("loss", 0.0), 1, 10_000)), 0.0);
    assert_eq!(ratio(&down(bernoulli("loss", 1.0), 1, 10_000)), 1.0);
    // Runs of exactly one: never two losses in a row, and with both means one, strict alternation.
    let single = down(gilbert("loss", 3.0, 1.0), 1, 10_000);
    assert!(single.windows(2).all(|pair| !(pair[0] && pair[1])));
    let alternating = down(gilbert("loss", 1.0, 1.0), 1, 10_000);
    assert!(alternating.windows(2).all(|pair| pair[0] != pair[1]));
}

fn switched(switches: &[(u64, bool)], model: LossModel) -> StageSpec {
    let switches = switches.iter().map(|&(at, on)| (ns(at), on)).collect();
    stage("loss", StageKind::Loss(LossSpec { model, switches }))
}

#[test]
fn switches_take_effect_at_their_exact_time() {
    let all = LossModel::Bernoulli { probability: 1.0 };
    // A packet every 1000 ns; the one that arrives as a switch turns meets the new setting.
    let off = down(switched(&[(5_000, false), (8_001, true)], all.clone()), 1, 12);
    assert_eq!(off, [true, true, true, true, true, false, false, false, false, true, true, true]);
    let late = down(switched(&[(0, false), (3_000, true)], all.clone()), 1, 5);
    assert_eq!(late, [false, false, false, true, true]);

    let mut path =
        Path::new(&[switched(&[(0, false), (3_000, true)], all)], StageId(4), 1, Direction::Up).unwrap();
    let mut log = Log::default();
    path.finish(at(3_000), &mut log);
    let changes = [(StageId(4), at(0), "loss_ratio", 0.0), (StageId(4), at(3_000), "loss_ratio", 1.0)];
    assert_eq!(log.changes, changes);
}

#[test]
fn while_it_is_off_it_draws_nothing() {
    let model = LossModel::Gilbert { good_packets: 10.0, bad_packets: 3.0 };
    let always = down(switched(&[], model.clone()), 6, 5_000);
    let paused = down(switched(&[(1_000_000, false), (2_000_000, true)], model), 6, 6_000);
    assert_eq!(paused[..1000], always[..1000]);
    assert!(!paused[1000..2000].contains(&true));
    assert_eq!(paused[2000..], always[1000..]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_seed_decides(seed: u64) {
        let run = |seed| down(bernoulli("loss", 0.3), seed, 200);
        prop_assert_eq!(run(seed), run(seed));
        // By chance alike: 0.58^200, or 10^-47.
        prop_assert_ne!(run(seed), run(seed ^ 1));
    }

    #[test]
    fn another_stage_changes_no_draw(seed: u64) {
        let alone = down(bernoulli("loss", 0.3), seed, 200);
        let wide = constant(1_000_000_000_000, Limit::Packets(10));
        let more = [wide.clone(), bernoulli("loss", 0.3), delay(ms(1))];
        prop_assert_eq!(&alone, &losses(&more, seed, Direction::Down, 200));
        // A second loss stage before it thins out its input: the n-th packet to arrive has the n-th fate.
        let two = [bernoulli("first", 0.2), bernoulli("loss", 0.3)];
        let first = down(bernoulli("loss", 0.3), seed, 200);
        let mut path = Path::new(&two, StageId(0), seed, Direction::Down).unwrap();
        let mut log = Log::default();
        for id in 0..200 {
            path.enqueue(at(id), item(id, 1514), &mut log);
        }
        let second: Vec<bool> = log.at_stage(1).map(|fate| fate.outcome == Outcome::Dropped).collect();
        prop_assert!(second.len() < 200);
        prop_assert_eq!(&second[..], &first[..second.len()]);
    }

    #[test]
    fn names_and_directions_have_draws_of_their_own(seed: u64) {
        let two = [bernoulli("other", 0.3), bernoulli("loss", 0.0)];
        let mut path = Path::new(&two, StageId(0), seed, Direction::Down).unwrap();
        let mut log = Log::default();
        for id in 0..200 {
            path.enqueue(at(id), item(id, 1514), &mut log);
        }
        let other: Vec<bool> = log.at_stage(0).map(|fate| fate.outcome == Outcome::Dropped).collect();
        let loss = [bernoulli("loss", 0.3)];
        prop_assert_ne!(other, losses(&loss, seed, Direction::Down, 200));
        prop_assert_ne!(losses(&loss, seed, Direction::Up, 200), losses(&loss, seed, Direction::Down, 200));
    }
}
