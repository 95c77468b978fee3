//! Propagation delay: its length, its steps, its order.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{DelaySpec, StageKind, StageSpec};

fn stepped(first: u64, steps: &[(u64, u64)]) -> StageSpec {
    let steps = steps.iter().map(|&(from, delay)| (ns(from), ns(delay))).collect();
    stage("delay", StageKind::Delay(DelaySpec { steps, ..DelaySpec::constant(ns(first)) }))
}

fn path(stage: StageSpec) -> Path {
    Path::new(&[stage], StageId(0), 1, Direction::Down).unwrap()
}

/// Returns when packets that arrive at `arrivals` leave.
fn leave(stage: StageSpec, arrivals: &[u64]) -> Vec<u64> {
    let mut path = path(stage);
    let mut log = Log::default();
    let mut left = Vec::new();
    for (id, &now) in arrivals.iter().enumerate() {
        left.extend(follow(&mut path, at(now), &mut log));
        path.enqueue(at(now), item(id as u64, 1514), &mut log);
    }
    left.extend(follow(&mut path, at(1 << 62), &mut log));
    assert!(left.iter().map(|left| left.item.id.0).eq(0..arrivals.len() as u64), "in order, none missing");
    left.iter().map(|left| left.at.as_nanos()).collect()
}

#[test]
fn everything_takes_as_long() {
    assert_eq!(leave(stepped(20_000, &[]), &[0, 1, 1, 50_000]), [20_000, 20_001, 20_001, 70_000]);
}

#[test]
fn a_delay_of_zero_is_a_plain_wire() {
    let mut path = path(stepped(0, &[]));
    let mut log = Log::default();
    path.enqueue(at(7), item(0, 100), &mut log);
    assert_eq!(path.next_event(), Some(at(7)));
    assert_eq!(drain(&mut path, at(7), &mut log)[0].at, at(7));
}

#[test]
fn a_step_counts_from_its_very_nanosecond() {
    let up = stepped(10_000, &[(5_000, 30_000)]);
    assert_eq!(leave(up, &[0, 4_999, 5_000]), [10_000, 14_999, 35_000]);
    assert_eq!(leave(stepped(10_000, &[(0, 50)]), &[0]), [50], "a step at zero is the first value");
}

#[test]
fn a_shorter_delay_overtakes_nobody() {
    // The packet sent at 5,000 with 1,000 left would arrive at 6,000, but one is under way until 14,999.
    let down = stepped(10_000, &[(5_000, 1_000)]);
    assert_eq!(leave(down, &[0, 4_999, 5_000, 13_999, 14_500]), [10_000, 14_999, 14_999, 14_999, 15_500]);
}

#[test]
fn it_reports_its_values_and_what_it_still_holds() {
    let mut path = path(stepped(10_000, &[(5_000, 1_000)]));
    let mut log = Log::default();
    path.enqueue(at(4_000), item(0, 1514), &mut log);
    path.enqueue(at(4_500), item(1, 60), &mut log);
    path.finish(at(14_000), &mut log);
    assert_eq!(log.changes, [(StageId(0), at(0), "delay", 1e-5), (StageId(0), at(5_000), "delay", 1e-6)]);
    assert_eq!(log.fates[0].t_out(), Some(at(14_000)));
    assert_eq!(log.fates[1].outcome, Outcome::Held);
    assert_eq!((log.fates[1].queue.packets, log.fates[1].queue.bytes), (1, 1514));
    assert_eq!(drain(&mut path, at(14_000), &mut log).len(), 1, "what left by the end can still be taken");
}

proptest! {
    #[test]
    fn order_holds_whatever_the_delay_does(
        gaps in prop::collection::vec(0..20_000u64, 1..80),
        steps in prop::collection::vec((1..100_000u64, 0..200_000u64), 0..10),
        first in 0..200_000u64,
    ) {
        let sum = |total: &mut u64, gap| { *total += gap; Some(*total) };
        let arrivals: Vec<u64> = gaps.into_iter().scan(0, sum).collect();
        let mut from = 0;
        let steps: Vec<(u64, u64)> = steps.into_iter().map(|(gap, d)| { from += gap; (from, d) }).collect();
        let mut before = 0;
        for (&arrival, left) in arrivals.iter().zip(leave(stepped(first, &steps), &arrivals)) {
            let delay = steps.iter().rev().find(|step| step.0 <= arrival).map_or(first, |step| step.1);
            before = before.max(arrival + delay);
            prop_assert_eq!(left, before);
        }
    }
}
