//! Settings that change while a path runs: planned, or on request.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Outcome, StageId};
use streamgauge_path::spec::{CodelSpec, Limit, QueueSpec, RateSpec, StageSpec};
use streamgauge_path::{Change, Path};

fn stages() -> Vec<StageSpec> {
    vec![bernoulli("loss", 0.0), constant(1_000_000, Limit::Bytes(20_000)), delay(ms(5))]
}

fn path(stages: &[StageSpec]) -> Path {
    Path::new(stages, StageId(0), 7, Direction::Down).unwrap()
}

/// Returns the stage that accepts it, and the change.
fn any_change() -> impl Strategy<Value = (usize, Change)> {
    prop_oneof![
        (0.0..0.5f64).prop_map(|share| (0, Change::Loss(share))),
        (0..3_000_000u64).prop_map(|rate| (1, Change::Rate(bps(rate)))),
        (2_000..40_000u64).prop_map(|bytes| (1, Change::Limit(Limit::Bytes(bytes)))),
        (0..20u64).prop_map(|delay| (2, Change::Delay(ms(delay)))),
        (0..20u64).prop_map(|spread| (2, Change::Jitter(ms(spread)))),
    ]
}

proptest! {
    /// A change requested while it ran is, as a plan of another run, the same to the nanosecond.
    #[test]
    fn a_change_that_is_asked_for_replays_as_a_planned_one(
        asked in prop::collection::vec((0..40_000_000u64, any_change()), 0..12),
        packets in prop::collection::vec((0..3_000_000u64, 60..1514u32), 1..120),
    ) {
        let mut asked = asked;
        asked.sort_by_key(|one| one.0);
        let mut varied = stages();
        // From the start a delay that may vary.
        varied[2].changes.push((ns(0), Change::Jitter(ns(0))));
        let (mut by_hand, mut log) = (path(&varied), Log::default());
        let mut planned = varied.clone();
        let mut pending = asked.iter().peekable();
        let mut now = 0;
        for (id, &(gap, bytes)) in packets.iter().enumerate() {
            now += gap;
            while let Some(&&(when, (index, change))) = pending.peek().filter(|one| one.0 <= now) {
                drain(&mut by_hand, at(when), &mut log);
                let took = by_hand.schedule(index, at(when), change);
                planned[index].changes.push((ns(took.as_nanos()), change));
                pending.next();
            }
            drain(&mut by_hand, at(now), &mut log);
            by_hand.enqueue(at(now), item(id as u64, bytes), &mut log);
        }
        by_hand.finish(at(200_000_000), &mut log);
        let (mut again, mut second) = (path(&planned), Log::default());
        now = 0;
        for (id, &(gap, bytes)) in packets.iter().enumerate() {
            now += gap;
            drain(&mut again, at(now), &mut second);
            again.enqueue(at(now), item(id as u64, bytes), &mut second);
        }
        again.finish(at(200_000_000), &mut second);
        prop_assert_eq!(log.fates, second.fates);
        prop_assert_eq!(log.changes, second.changes);
    }
}

#[test]
fn a_lower_limit_drops_arrivals_and_nothing_that_waits() {
    let mut path = path(&[constant(1_000_000, Limit::Packets(10))]);
    let mut log = Log::default();
    for id in 0..8 {
        path.enqueue(at(0), item(id, 1500), &mut log);
    }
    path.schedule(0, at(1), Change::Limit(Limit::Packets(2)));
    path.enqueue(at(2), item(8, 1500), &mut log);
    assert_eq!(log.count(0, Outcome::Dropped), 1);
    follow(&mut path, at(1_000_000_000), &mut log);
    assert_eq!(log.count(0, Outcome::Delivered), 8);
    assert_eq!(log.changes.last().map(|change| (change.2, change.3)), Some(("queue_limit", 2.0)));
}

#[test]
fn ecn_is_turned_on_where_the_queue_marks() {
    let queue = QueueSpec::Codel(CodelSpec::default());
    let mut path = path(&[aqm::managed(queue, 1_000_000)]);
    let mut log = Log::default();
    path.schedule(0, at(5), Change::Ecn(true));
    path.dequeue(at(10), &mut log);
    assert_eq!(log.changes.last().map(|change| (change.2, change.3)), Some(("ecn", 1.0)));
}

#[test]
fn planned_changes_of_another_stage_or_that_go_back_are_refused() {
    let refused = |place: usize, changes: Vec<_>| {
        let mut stages = stages();
        stages[place].changes = changes;
        Path::new(&stages, StageId(0), 1, Direction::Down).unwrap_err().to_string()
    };
    assert!(refused(0, vec![(ns(1), Change::Rate(bps(1)))]).contains("expected a bottleneck"));
    let back = vec![(ns(2), Change::Loss(0.1)), (ns(1), Change::Loss(0.2))];
    assert!(refused(0, back).contains("never go back"));
    let trace = StageSpec {
        changes: vec![(ns(1), Change::Ecn(true))],
        ..bottleneck(RateSpec::Constant(bps(9_000)), Limit::Packets(5))
    };
    assert!(
        Path::new(&[trace], StageId(0), 1, Direction::Down)
            .unwrap_err()
            .to_string()
            .contains("manages itself")
    );
}
