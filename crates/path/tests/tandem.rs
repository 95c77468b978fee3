//! Several bottlenecks in a row, and directions that are independent of each other.

mod common;

use common::link::{rate_at, work};
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, FlowId, Item, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{Limit, RateSpec, StageSpec};

fn named(name: &str, stage: StageSpec) -> StageSpec {
    StageSpec { name: name.into(), ..stage }
}

fn link(name: &str, steps: &[(u64, u64)], packets: u32) -> StageSpec {
    let steps = steps.iter().map(|&(at, rate)| (ns(at), bps(rate))).collect();
    named(name, bottleneck(RateSpec::Steps(steps), Limit::Packets(packets)))
}

fn path(stages: &[StageSpec]) -> Path {
    Path::new(stages, StageId(0), 1, Direction::Down).unwrap()
}

#[test]
fn the_slower_of_two_decides_whichever_comes_first() {
    for rates in [[2_000_000, 1_000_000], [1_000_000, 2_000_000]] {
        let stages =
            [link("first", &[(0, rates[0])], 99), delay(ms(7)), link("second", &[(0, rates[1])], 99)];
        let mut path = path(&stages);
        let mut log = Log::default();
        for id in 0..50 {
            path.enqueue(at(0), item(id, 1_000), &mut log);
        }
        let left = follow(&mut path, at(1 << 62), &mut log);
        // 4 ms on the fast link for the first or the last packet, and 8 ms for each on the slow one.
        assert_eq!(left.last().unwrap().at, at(4_000_000 + 50 * 8_000_000 + 7_000_000));
        assert!(left.windows(2).all(|pair| pair[1].at - pair[0].at == ms(8)));
    }
}

#[test]
fn cross_traffic_enters_at_the_first_bottleneck_and_meets_the_second() {
    let stages =
        [bernoulli("loss", 1.0), link("first", &[(0, 8_000_000)], 9), link("second", &[(0, 4_000_000)], 9)];
    let mut path = path(&stages);
    let mut log = Log::default();
    path.enqueue(at(0), item(0, 1_000), &mut log);
    path.enqueue_at_bottleneck(at(0), item_of(1, 1_000, FlowId(1)), &mut log);
    let left = follow(&mut path, at(1 << 62), &mut log);
    assert_eq!(left.iter().map(|left| (left.item.id.0, left.at)).collect::<Vec<_>>(), [(1, at(3_000_000))]);
    assert_eq!((log.count(0, Outcome::Dropped), log.count(1, Outcome::Delivered)), (1, 1));
}

#[test]
fn what_the_first_lets_through_the_second_may_drop() {
    let stages = [link("first", &[(0, 8_000_000)], 99), link("second", &[(0, 1_000_000)], 3)];
    let mut path = path(&stages);
    let mut log = Log::default();
    for id in 0..20 {
        path.enqueue(at(0), item(id, 1_000), &mut log);
    }
    let left = follow(&mut path, at(1 << 62), &mut log);
    assert_eq!((log.count(0, Outcome::Dropped), log.count(0, Outcome::Delivered)), (0, 20));
    // One arrives each millisecond, one leaves every 8: the first three, then those that arrive as a place falls free.
    let ids: Vec<u64> = left.iter().map(|left| left.item.id.0).collect();
    assert_eq!(ids, [0, 1, 2, 8, 16]);
    assert_eq!(log.count(1, Outcome::Dropped), 15);
}

fn rates() -> impl Strategy<Value = Vec<(u64, u64)>> {
    (100_000..9_000_000u64, prop::collection::vec((1..30_000_000u64, 50_000..9_000_000u64), 0..4)).prop_map(
        |(first, later)| {
            let mut from = 0;
            let later = later.into_iter().map(|(gap, rate)| {
                from += gap;
                (from, rate)
            });
            std::iter::once((0, first)).chain(later).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn departures_never_exceed_either_rate(
        first in rates(), second in rates(), limits in (1..20u32, 1..20u32),
        gaps in prop::collection::vec((0..3_000_000u64, 100..1515u32, any::<bool>()), 1..100),
    ) {
        let stages = [delay(ms(1)), link("first", &first, limits.0), link("second", &second, limits.1)];
        let mut path = path(&stages);
        let (mut log, mut now, mut entered) = (Log::default(), 0, Vec::<Item>::new());
        for (id, &(gap, bytes, router)) in gaps.iter().enumerate() {
            now += gap;
            follow(&mut path, at(now), &mut log);
            let item = item(id as u64, bytes);
            if router {
                path.enqueue_at_bottleneck(at(now), item, &mut log);
            } else {
                path.enqueue(at(now), item, &mut log);
            }
            entered.push(item);
        }
        follow(&mut path, at(1 << 62), &mut log);
        for (stage, steps) in [(1u8, &first), (2, &second)] {
            let left: Vec<(u64, u32)> = log.at_stage(stage)
                .filter(|fate| fate.outcome == Outcome::Delivered)
                .map(|fate| (fate.at.as_nanos(), fate.item.bytes))
                .collect();
            // Between any departure and a later one no more than the link can send, to a nanosecond's rounding.
            for (index, &(begin, _)) in left.iter().enumerate() {
                let mut sent = 0u128;
                for &(end, bytes) in &left[index + 1..] {
                    sent += u128::from(bytes) * 8_000_000_000;
                    let room = work(steps, end) - work(steps, begin) + u128::from(rate_at(steps, begin));
                    prop_assert!(sent <= room, "stage {stage}: {sent} in {begin}..{end}, room {room}");
                }
            }
        }
        // The items that leave the first are those that enter the second, at that very time.
        let from: Vec<_> = log.at_stage(1).filter(|f| f.outcome == Outcome::Delivered).map(|f| (f.item.id, f.at)).collect();
        let mut into: Vec<_> = log.at_stage(2).map(|f| (f.item.id, f.t_in)).collect();
        into.sort_by_key(|&(id, t_in)| (t_in, from.iter().position(|left| left.0 == id)));
        prop_assert_eq!(from, into);
        let all = log.at_stage(1).count();
        prop_assert_eq!(all, entered.len());
    }

    #[test]
    fn directions_know_nothing_of_each_other(seed: u64, down in 0.0..1.0f64, up in 0.0..1.0f64) {
        let fates = |probability, direction, first| {
            let stages = [bernoulli("loss", probability), constant(1_000_000, Limit::Packets(5))];
            let mut path = Path::new(&stages, StageId(first), seed, direction).unwrap();
            let mut log = Log::default();
            for id in 0..60 {
                path.enqueue(at(id * 5_000_000), item(id, 1_000), &mut log);
            }
            log.fates.iter().map(|fate| (fate.item.id, fate.outcome, fate.at)).collect::<Vec<_>>()
        };
        // A direction does the same with any other direction, of any number of stages.
        prop_assert_eq!(fates(down, Direction::Down, 0), fates(down, Direction::Down, 9));
        prop_assert_eq!(fates(up, Direction::Up, 2), fates(up, Direction::Up, 7));
    }
}
