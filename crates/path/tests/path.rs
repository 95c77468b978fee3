//! The whole path: order of time, conservation, and its answers to a driver with any behaviour.

mod common;

use common::any::{any_stage, arrivals, chain_of, ordered_stage, packet};
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Fate, Instant, Item, Outcome, StageId};
use streamgauge_path::spec::{Limit, StageSpec};
use streamgauge_path::{Departure, Path};

fn path(stages: &[StageSpec]) -> Path {
    Path::new(stages, StageId(0), 1, Direction::Down).unwrap()
}

/// How a driver behaves: calls whenever asked, only before arrivals, or only at the very end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Driver {
    Prompt,
    BeforeArrivals,
    AtTheEnd,
}

/// Sends `arrivals` in (ns, bytes, enters at the bottleneck) and ends the trial at `end`.
fn drive(
    stages: &[StageSpec],
    driver: Driver,
    arrivals: &[(u64, u32, bool)],
    end: u64,
) -> (Vec<Departure>, Log) {
    let mut path = path(stages);
    let (mut departures, mut log) = (Vec::new(), Log::default());
    for (id, &(now, bytes, router)) in arrivals.iter().enumerate() {
        match driver {
            Driver::Prompt => departures.extend(follow(&mut path, at(now), &mut log)),
            Driver::BeforeArrivals => departures.extend(drain(&mut path, at(now), &mut log)),
            Driver::AtTheEnd => {}
        }
        let item = packet(id as u64, bytes);
        if router {
            path.enqueue_at_bottleneck(at(now), item, &mut log);
        } else {
            path.enqueue(at(now), item, &mut log);
        }
    }
    if driver == Driver::Prompt {
        departures.extend(follow(&mut path, at(end), &mut log));
    }
    path.finish(at(end), &mut log);
    departures.extend(drain(&mut path, at(end), &mut log));
    assert_eq!(path.clamped(), 0);
    (departures, log)
}

/// Returns when a fate was decided; held items have none.
fn decided(fate: &Fate) -> Option<Instant> {
    fate.t_out().or(fate.t_drop())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_packet_has_one_fate_in_every_stage_it_enters(
        stages in chain_of(any_stage()), arrivals in arrivals(), more in 0..100_000_000u64,
    ) {
        let all: Vec<_> = arrivals.iter().map(|&(now, bytes, _)| (now, bytes, false)).collect();
        let end = arrivals.last().map_or(0, |last| last.0) + more;
        let (departures, log) = drive(&stages, Driver::Prompt, &all, end);
        let entered: Vec<Item> =
            all.iter().enumerate().map(|(id, &(_, bytes, _))| packet(id as u64, bytes)).collect();
        log.assert_conserved(&entered, stages.len() as u8);
        let last: Vec<Item> = log.at_stage(stages.len() as u8 - 1)
            .filter(|fate| fate.outcome == Outcome::Delivered)
            .map(|fate| fate.item)
            .collect();
        prop_assert_eq!(departures.iter().map(|left| left.item).collect::<Vec<_>>(), last);
    }

    #[test]
    fn a_late_driver_changes_nothing(
        stages in chain_of(any_stage()), arrivals in arrivals(), more in 0..100_000_000u64,
    ) {
        let end = arrivals.last().map_or(0, |last| last.0) + more;
        let (prompt, prompt_log) = drive(&stages, Driver::Prompt, &arrivals, end);
        for driver in [Driver::BeforeArrivals, Driver::AtTheEnd] {
            let (late, log) = drive(&stages, driver, &arrivals, end);
            prop_assert_eq!(&late, &prompt);
            prop_assert_eq!(&log.fates, &prompt_log.fates);
            prop_assert_eq!(&log.changes, &prompt_log.changes);
        }
    }

    #[test]
    fn fates_come_in_order_of_time_and_packets_in_order_of_arrival(
        stages in chain_of(ordered_stage()), arrivals in arrivals(), more in 0..100_000_000u64,
    ) {
        let end = arrivals.last().map_or(0, |last| last.0) + more;
        let (departures, log) = drive(&stages, Driver::AtTheEnd, &arrivals, end);
        let times: Vec<Instant> = log.fates.iter().filter_map(decided).collect();
        prop_assert!(times.is_sorted());
        prop_assert!(departures.is_sorted_by_key(|left| left.at));
        let settled = log.fates.iter().position(|fate| fate.outcome == Outcome::Held).unwrap_or(log.fates.len());
        prop_assert!(log.fates[settled..].iter().all(|fate| fate.outcome == Outcome::Held));
        // Those that entered by the same door leave in the order of arrival.
        for door in [false, true] {
            let same = departures.iter().map(|left| left.item.id.0).filter(|&id| arrivals[id as usize].2 == door);
            prop_assert!(same.collect::<Vec<_>>().is_sorted());
        }
    }

    #[test]
    fn nothing_leaves_before_the_path_asks_to_be_called(stages in chain_of(any_stage()), arrivals in arrivals()) {
        let mut path = path(&stages);
        let mut log = Log::default();
        for (id, &(now, bytes, _)) in arrivals.iter().enumerate() {
            follow(&mut path, at(now), &mut log);
            path.enqueue(at(now), packet(id as u64, bytes), &mut log);
            let next = path.next_event();
            let mut twin = path.clone();
            if let Some(before) = next.filter(|&next| next > at(now)) {
                let seen = log.changes.len();
                prop_assert_eq!(twin.dequeue(at(before.as_nanos() - 1), &mut log), None);
                prop_assert_eq!(log.changes.len(), seen);
            } else if next.is_none() {
                prop_assert_eq!(twin.dequeue(at(1 << 62), &mut log), None);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(stages in chain_of(any_stage()), arrivals in arrivals()) {
        let (_, first) = drive(&stages, Driver::Prompt, &arrivals, 1 << 40);
        let (_, second) = drive(&stages, Driver::Prompt, &arrivals, 1 << 40);
        prop_assert_eq!(first.fates, second.fates);
    }
}

#[test]
fn a_full_frame_on_one_megabit_and_twenty_milliseconds() {
    let mut path = path(&[bernoulli("loss", 0.0), constant(1_000_000, Limit::Packets(2)), delay(ms(20))]);
    let mut log = Log::default();
    for id in 0..3 {
        path.enqueue(at(5_000), item(id, 1514), &mut log);
    }
    // The first is not out before its transmission and the delay after it: one call, not two.
    drain(&mut path, at(5_000), &mut log);
    assert_eq!(path.next_event(), Some(at(32_117_000)));
    let times: Vec<Instant> = follow(&mut path, at(1 << 62), &mut log).iter().map(|left| left.at).collect();
    assert_eq!(times, [at(32_117_000), at(44_229_000)]);
    assert_eq!(log.count(1, Outcome::Dropped), 1);
    assert_eq!(path.next_event(), None);
}

#[test]
fn first_values_are_reported_once_and_first() {
    let stages = [bernoulli("loss", 0.25), constant(1_000_000, Limit::Packets(2)), delay(ms(20))];
    let mut path = Path::new(&stages, StageId(3), 1, Direction::Up).unwrap();
    assert_eq!(path.next_event(), Some(at(0)), "a driver that asks is told to have them reported");
    let mut log = Log::default();
    path.enqueue(at(5_000), item(0, 1514), &mut log);
    path.finish(at(1_000_000_000), &mut log);
    assert_eq!(
        log.changes,
        [
            (StageId(3), at(0), "loss_ratio", 0.25),
            (StageId(4), at(0), "rate", 1e6),
            (StageId(5), at(0), "delay", 0.02),
        ]
    );
}

#[test]
fn the_router_entry_passes_by_the_stages_before_the_bottleneck() {
    let stages = [delay(ms(5)), bernoulli("loss", 1.0), constant(1_000_000, Limit::Packets(9))];
    let mut path = path(&stages);
    let mut log = Log::default();
    path.enqueue_at_bottleneck(at(1_000), item(0, 1514), &mut log);
    assert_eq!(follow(&mut path, at(1 << 62), &mut log)[0].at, at(12_113_000));
    assert!(log.fates.iter().all(|fate| fate.stage == StageId(2)));
}

#[test]
fn without_a_bottleneck_the_router_entry_is_the_first_stage() {
    let mut path = path(&[bernoulli("loss", 0.0), delay(ms(5))]);
    let mut log = Log::default();
    path.enqueue_at_bottleneck(at(0), item(0, 1514), &mut log);
    assert_eq!(log.count(0, Outcome::Delivered), 1);
}

#[test]
fn time_never_goes_back() {
    let mut path = path(&[constant(1_000_000, Limit::Packets(9))]);
    let mut log = Log::default();
    path.enqueue(at(1_000), item(0, 1514), &mut log);
    assert_eq!(drain(&mut path, at(20_000_000), &mut log).len(), 1);
    // Nothing has happened since the departure at 12,113,000, so an arrival after that is not late ...
    path.enqueue(at(12_113_001), item(1, 1514), &mut log);
    assert_eq!((path.clamped(), path.now()), (0, at(12_113_001)));
    // ... and one before it is.
    path.enqueue(at(12_000_000), item(2, 1514), &mut log);
    assert_eq!((path.clamped(), path.now()), (1, at(12_113_001)));
    path.finish(at(30_000_000), &mut log);
    assert!(log.at_stage(0).skip(1).all(|fate| fate.t_in == at(12_113_001)));
}

#[test]
fn two_bottlenecks_in_a_row() {
    let second = StageSpec { name: "second".into(), ..constant(500_000, Limit::Packets(9)) };
    let mut path = path(&[constant(1_000_000, Limit::Packets(9)), second]);
    let mut log = Log::default();
    for id in 0..3 {
        path.enqueue(at(0), item(id, 1000), &mut log);
    }
    // 8 ms each on the first, 16 ms each on the second, which starts when the first has finished.
    let times: Vec<_> = follow(&mut path, at(1 << 62), &mut log).iter().map(|left| left.at).collect();
    assert_eq!(times, [at(24_000_000), at(40_000_000), at(56_000_000)]);
}

#[test]
fn at_the_same_time_what_is_ahead_moves_first() {
    // Equal rates: each packet leaves the first link just as the one before it leaves the second, which holds
    // one packet and is free again by then.
    let second = StageSpec { name: "second".into(), ..constant(1_000_000, Limit::Packets(1)) };
    let mut path = path(&[constant(1_000_000, Limit::Packets(9)), second]);
    let mut log = Log::default();
    for id in 0..5 {
        path.enqueue(at(0), item(id, 1514), &mut log);
    }
    assert_eq!(follow(&mut path, at(1 << 62), &mut log).len(), 5);
    assert_eq!(log.count(1, Outcome::Dropped), 0);
}
