//! The bottleneck against a reference, and the properties a link is trusted for.

mod common;

use common::link::{Steps, rate_at, reference, work};
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Fate, Outcome, StageId};
use streamgauge_path::spec::{
    BottleneckSpec, Layer, Limit, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec,
};
use streamgauge_path::{Bottleneck, Droptail, Path, Stage};

/// Far later than anything these tests do.
const END: u64 = 1 << 62;

fn path(stage: StageSpec) -> Path {
    Path::new(&[stage], StageId(0), 1, Direction::Down).unwrap()
}

fn spec(steps: &Steps, limit: Limit) -> StageSpec {
    let steps = steps.iter().map(|&(from, rate)| (ns(from), bps(rate))).collect();
    bottleneck(RateSpec::Steps(steps), limit)
}

/// Offers `arrivals` to a bottleneck alone, as a driver does that wakes when asked, and lets it drain.
fn offer(steps: &Steps, limit: Limit, arrivals: &[(u64, u32)]) -> Log {
    let mut path = path(spec(steps, limit));
    let mut log = Log::default();
    let mut entered = Vec::new();
    for (id, &(now, bytes)) in arrivals.iter().enumerate() {
        follow(&mut path, at(now), &mut log);
        entered.push(item(id as u64, bytes));
        path.enqueue(at(now), entered[id], &mut log);
    }
    follow(&mut path, at(END), &mut log);
    path.finish(at(END), &mut log);
    log.assert_conserved(&entered, 1);
    log
}

/// Returns the log's fates by packet.
fn by_packet(log: &Log) -> Vec<Fate> {
    let mut fates = log.fates.clone();
    fates.sort_by_key(|fate| fate.item.id);
    fates
}

fn sizes() -> impl Strategy<Value = u32> {
    prop_oneof![Just(54u32), Just(1514), 34..=1514u32]
}

/// Arrivals in bursts and pauses, some of them at one and the same time.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0..2_000_000u64, 1 => 0..200_000_000u64];
    prop::collection::vec((gap, sizes()), 1..120).prop_map(|gaps| {
        gaps.into_iter()
            .scan(0, |now, (gap, bytes)| {
                *now += gap;
                Some((*now, bytes))
            })
            .collect()
    })
}

fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 10_000..20_000_000u64, 1 => 1..10_000u64, 1 => 1_000_000_000..10_000_000_000_000u64]
}

fn steps() -> impl Strategy<Value = Steps> {
    let step = (1..50_000_000u64, prop_oneof![4 => rates(), 1 => Just(0)]);
    (rates(), prop::collection::vec(step, 0..8)).prop_map(|(first, later)| {
        let mut from = 0;
        let mut steps = vec![(0, first)];
        for (gap, rate) in later {
            from += gap;
            steps.push((from, rate));
        }
        steps
    })
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1514..40_000u64).prop_map(Limit::Bytes),
        (1..40u32).prop_map(Limit::Packets),
        (2_000_000..500_000_000u64).prop_map(|time| Limit::Time(ns(time))),
    ]
}

/// A queue that accepts everything these tests offer.
const NO_LIMIT: Limit = Limit::Packets(u32::MAX);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_the_reference(steps in steps(), limit in limits(), arrivals in arrivals()) {
        // A limit in time that holds no packet even at the highest rate is refused.
        let highest = steps.iter().map(|step| step.1).max().unwrap();
        prop_assume!(!matches!(limit, Limit::Time(time) if bps(highest).nanobits_in(time) < 34 * 8_000_000_000));
        let log = offer(&steps, limit, &arrivals);
        let expected = reference(&steps, limit, &arrivals);
        for (fate, expected) in by_packet(&log).iter().zip(&expected) {
            prop_assert_eq!(fate.queue, expected.depth);
            prop_assert_eq!(fate.t_out(), expected.ends);
            prop_assert_eq!(fate.outcome == Outcome::Dropped, !expected.accepted);
            prop_assert_eq!(fate.cause == Cause::QueueFull, !expected.accepted);
        }
    }

    #[test]
    fn the_limit_is_respected_and_nothing_that_fits_is_dropped(
        rate in 10_000..20_000_000u64, limit in limits(), arrivals in arrivals(),
    ) {
        prop_assume!(!matches!(limit, Limit::Time(time) if bps(rate).nanobits_in(time) < 34 * 8_000_000_000));
        for fate in offer(&vec![(0, rate)], limit, &arrivals).fates {
            let bytes = u64::from(fate.queue.bytes + fate.item.bytes);
            let fits = match limit {
                Limit::Bytes(limit) => bytes <= limit,
                Limit::Packets(limit) => fate.queue.packets < limit,
                Limit::Time(limit) => u128::from(bytes) * 8_000_000_000 <= bps(rate).nanobits_in(limit),
            };
            prop_assert_eq!(fits, fate.outcome != Outcome::Dropped, "{:?}", fate);
        }
    }

    #[test]
    fn order_is_kept_and_the_rate_never_exceeded_over_any_window(
        steps in steps(), limit in limits(), arrivals in arrivals(),
    ) {
        let highest = steps.iter().map(|step| step.1).max().unwrap();
        prop_assume!(!matches!(limit, Limit::Time(time) if bps(highest).nanobits_in(time) < 34 * 8_000_000_000));
        let log = offer(&steps, limit, &arrivals);
        let sent: Vec<(u64, u32)> = log.fates.iter()
            .filter_map(|fate| Some((fate.t_out()?.as_nanos(), fate.item.bytes)))
            .collect();
        let ids: Vec<_> = log.fates.iter().filter(|fate| fate.t_out().is_some()).map(|fate| fate.item.id).collect();
        prop_assert!(ids.is_sorted() && sent.is_sorted_by_key(|sent| sent.0));
        for first in 0..sent.len() {
            let mut bits = 0;
            for &(end, bytes) in &sent[first + 1..] {
                bits += u128::from(bytes) * 8_000_000_000;
                // Rounding the window's start up to a whole nanosecond hides less than that nanosecond.
                let start = sent[first].0;
                prop_assert!(bits <= work(&steps, end) - work(&steps, start.saturating_sub(1)));
            }
        }
    }

    #[test]
    fn the_link_is_never_idle_while_a_packet_waits(steps in steps(), arrivals in arrivals()) {
        let mut before = 0;
        for fate in by_packet(&offer(&steps, NO_LIMIT, &arrivals)) {
            let Some(end) = fate.t_out() else { break };
            let start = fate.t_in.as_nanos().max(before);
            let needed = u128::from(fate.item.bytes) * 8_000_000_000;
            // Not a whole nanosecond later than sending it alone from the first possible time.
            prop_assert!(work(&steps, end.as_nanos() - 1) < work(&steps, start) + needed);
            before = end.as_nanos();
        }
    }

    #[test]
    fn a_saturated_link_never_drifts(rate in rates(), sizes in prop::collection::vec(sizes(), 1..300)) {
        let arrivals: Vec<_> = sizes.iter().map(|&bytes| (0, bytes)).collect();
        let mut bits = 0;
        for fate in offer(&vec![(0, rate)], NO_LIMIT, &arrivals).fates {
            bits += u128::from(fate.item.bytes) * 8_000_000_000;
            prop_assert_eq!(u128::from(fate.t_out().unwrap().as_nanos()), bits.div_ceil(u128::from(rate)));
        }
    }
}

#[test]
fn transmission_times_that_can_be_looked_up() {
    // 1514 bytes are 12,112 bits: 12.112 ms at 1 Mbit/s (Hessler and Welzl's link), 25.233 ms at 480 kbit/s
    // (De Cicco et al.'s), 1.2112 ms at 10 Mbit/s; 54 bytes, an acknowledgement, 0.432 ms at 1 Mbit/s.
    for (bytes, rate, expected) in [
        (1514, 1_000_000, 12_112_000),
        (1514, 480_000, 25_233_334),
        (1514, 10_000_000, 1_211_200),
        (54, 1_000_000, 432_000),
    ] {
        let log = offer(&vec![(0, rate)], NO_LIMIT, &[(1_000, bytes)]);
        assert_eq!(log.fates[0].t_out(), Some(at(1_000 + expected)));
    }
}

#[test]
fn eighty_packets_fill_a_queue_of_eighty_and_take_eighty_times_as_long() {
    let log = offer(&vec![(0, 1_000_000)], Limit::Packets(80), &[(0, 1514); 81]);
    assert_eq!(log.count(0, Outcome::Dropped), 1);
    assert_eq!(log.fates.last().unwrap().t_out(), Some(at(968_960_000)));
}

#[test]
fn ten_kilobytes_hold_six_full_frames_and_then_a_small_one() {
    let mut arrivals = vec![(0, 1514); 7];
    arrivals.push((0, 900));
    let log = offer(&vec![(0, 480_000)], Limit::Bytes(10_000), &arrivals);
    let outcomes: Vec<_> = by_packet(&log).iter().map(|fate| fate.outcome == Outcome::Delivered).collect();
    assert_eq!(outcomes, [true, true, true, true, true, true, false, true]);
}

#[test]
fn a_packet_occupies_the_queue_until_its_transmission_ends() {
    // The second arrives a nanosecond before the first has left, the third just as it leaves.
    let link = vec![(0, 1_000_000)];
    let log = offer(&link, Limit::Packets(1), &[(0, 1514), (12_111_999, 1514), (12_112_000, 1514)]);
    let fates = by_packet(&log);
    assert_eq!(fates[1].outcome, Outcome::Dropped);
    assert_eq!((fates[1].queue.packets, fates[1].queue.bytes), (1, 1514));
    assert_eq!(fates[2].t_out(), Some(at(24_224_000)));
    assert_eq!((fates[2].queue.packets, fates[2].queue.bytes), (0, 0));
}

#[test]
fn the_rate_changes_in_the_middle_of_a_packet() {
    // A quarter leaves at 1 Mbit/s; the other three at half the rate need six quarters' time.
    let log = offer(&vec![(0, 1_000_000), (3_028_000, 500_000)], NO_LIMIT, &[(0, 1514)]);
    assert_eq!(log.fates[0].t_out(), Some(at(3_028_000 + 18_168_000)));
}

#[test]
fn a_rate_of_zero_holds_and_what_was_sent_is_not_lost() {
    let steps = vec![(0, 1_000_000), (6_056_000, 0), (50_000_000, 1_000_000)];
    let mut path = path(spec(&steps, NO_LIMIT));
    let mut log = Log::default();
    path.enqueue(at(0), item(0, 1514), &mut log);
    assert_eq!(drain(&mut path, at(49_999_999), &mut log), []);
    assert_eq!(path.next_event(), Some(at(50_000_000)), "the change is what it waits for");
    let left = follow(&mut path, at(END), &mut log);
    assert_eq!(left[0].at, at(56_056_000));
}

#[test]
fn a_limit_in_time_is_evaluated_at_the_rate_in_force() {
    // 30 ms are 3,750 bytes at 1 Mbit/s and 1,875 at half of it; accepted packets stay.
    let steps = vec![(0, 1_000_000), (1_000_000, 500_000)];
    let arrivals = [(0, 1000), (0, 1000), (0, 1000), (0, 1000), (1_000_000, 100), (30_000_000, 1000)];
    let fates = by_packet(&offer(&steps, Limit::Time(ms(30)), &arrivals));
    let taken: Vec<_> = fates.iter().map(|fate| fate.outcome == Outcome::Delivered).collect();
    // At 30 ms the second packet is on the line: 2,000 bytes are held and one more does not fit.
    assert_eq!(taken, [true, true, true, false, false, false]);
    assert_eq!(fates[5].queue.bytes, 2000);
}

#[test]
fn a_limit_in_time_is_exact() {
    for (time, fits) in [(12_112_000, true), (12_111_999, false)] {
        let log = offer(&vec![(0, 1_000_000)], Limit::Time(ns(time)), &[(0, 1514)]);
        assert_eq!(log.count(0, Outcome::Delivered) == 1, fits);
    }
}

#[test]
fn the_stage_itself_may_be_asked_late() {
    let queue = Droptail::new(NO_LIMIT);
    let mut stage = Bottleneck::new(StageId(0), Layer::Ethernet, bps(1_000_000), queue);
    for id in 0..3 {
        stage.enqueue(at(0), item(id, 1514), &mut ());
    }
    let times: Vec<_> =
        std::iter::from_fn(|| stage.dequeue(at(1_000_000_000), &mut ())).map(|left| left.at).collect();
    assert_eq!(times, [at(12_112_000), at(24_224_000), at(36_336_000)]);
}

#[test]
fn a_square_wave_turns_at_its_exact_edges() {
    // An odd period: halves of 3 and 4 ns, and no edge drifts.
    let square = RateSpec::Square { first: bps(8_000_000_000), second: bps(16_000_000_000), period: ns(7) };
    let mut path = path(bottleneck(square, NO_LIMIT));
    let mut log = Log::default();
    path.finish(at(7_000_005), &mut log);
    assert_eq!(log.changes.len(), 2_000_002);
    for (index, &(_, when, what, value)) in log.changes.iter().enumerate() {
        let half = index as u64 % 2;
        assert_eq!((when, what), (at(index as u64 / 2 * 7 + half * 3), "rate"));
        assert_eq!(value, if half == 0 { 8e9 } else { 16e9 });
    }
}

#[test]
fn a_square_wave_sends_what_its_steps_would() {
    let (high, low, half) = (1_000_000, 150_000, 50_000_000);
    let square = RateSpec::Square { first: bps(high), second: bps(low), period: ns(2 * half) };
    let mut path = path(bottleneck(square, NO_LIMIT));
    let mut log = Log::default();
    for id in 0..60 {
        path.enqueue(at(0), item(id, 1514), &mut log);
    }
    let left = follow(&mut path, at(2_000_000_000), &mut log);
    let steps: Steps = (0..40).map(|edge| (edge * half, if edge % 2 == 0 { high } else { low })).collect();
    assert_eq!(rate_at(&steps, half), low);
    let expected = reference(&steps, NO_LIMIT, &[(0, 1514); 60]);
    assert_eq!(left.len(), 60);
    for (left, expected) in left.iter().zip(&expected) {
        assert_eq!(Some(left.at), expected.ends);
    }
}

#[test]
fn the_ip_layer_counts_fourteen_bytes_less() {
    let queue = QueueSpec::Droptail(Limit::Bytes(3000));
    let spec = BottleneckSpec {
        rate: RateSpec::Constant(bps(1_000_000)),
        shaper: ShaperSpec::Serial,
        queue,
        layer: Layer::Ip,
    };
    let mut path = path(stage("bottleneck", StageKind::Bottleneck(spec)));
    let mut log = Log::default();
    for id in 0..2 {
        path.enqueue(at(0), item(id, 1514), &mut log);
    }
    let times: Vec<_> = follow(&mut path, at(END), &mut log).iter().map(|left| left.at).collect();
    assert_eq!(times, [at(12_000_000), at(24_000_000)], "two packets of 1500 bytes fit into 3000");
    assert_eq!(log.fates[1].queue.bytes, 1500);
}
