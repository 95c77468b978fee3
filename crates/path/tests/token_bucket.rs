//! The token bucket against the definition by windows: over any window, no more than the burst and the tokens of the
//! rate in it; and each packet as early as that allows.

mod common;

use common::link::{Steps, work};
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Outcome, StageId};
use streamgauge_path::spec::{Limit, RateSpec, ShaperSpec, StageSpec, TokenBucketSpec};
use streamgauge_path::{Path, SpecError};

const NO_LIMIT: Limit = Limit::Packets(u32::MAX);
const NANOBITS: u128 = 8_000_000_000;

fn tbf(steps: &Steps, burst: u32, limit: Limit) -> StageSpec {
    let steps = steps.iter().map(|&(from, rate)| (ns(from), bps(rate))).collect();
    shaped(RateSpec::Steps(steps), ShaperSpec::TokenBucket(TokenBucketSpec { burst, initial: None }), limit)
}

/// Returns the first whole nanosecond from `from` on by which `enough` holds.
fn earliest(from: u64, enough: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut step) = (from, 1);
    if enough(low) {
        return low;
    }
    while !enough(low + step) {
        low += step;
        step *= 2;
    }
    let mut high = low + step;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// Returns departures by the definition, which has no bucket.
fn by_windows(steps: &Steps, burst: u32, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let mut left: Vec<(u64, u32)> = Vec::new();
    for &(arrival, bytes) in arrivals {
        let from = left.last().map_or(0, |last| last.0).max(arrival);
        let conforms = |t: u64| {
            let mut window = u128::from(bytes);
            left.iter().rev().all(|&(start, bytes)| {
                window += u128::from(bytes);
                window * NANOBITS <= u128::from(burst) * NANOBITS + work(steps, t) - work(steps, start)
            })
        };
        left.push((earliest(from, conforms), bytes));
    }
    left.into_iter().map(|left| left.0).collect()
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0..2_000_000u64, 1 => 0..200_000_000u64];
    let bytes = prop_oneof![Just(54u32), Just(1514), 34..=1514u32];
    prop::collection::vec((gap, bytes), 1..60).prop_map(|gaps| {
        let mut now = 0;
        let arrive = |(gap, bytes)| {
            now += gap;
            (now, bytes)
        };
        gaps.into_iter().map(arrive).collect()
    })
}

fn steps() -> impl Strategy<Value = Steps> {
    let rate = || prop_oneof![3 => 10_000..20_000_000u64, 1 => 1_000_000_000..10_000_000_000u64];
    let later = prop::collection::vec((1..50_000_000u64, prop_oneof![4 => rate(), 1 => Just(0)]), 0..6);
    (rate(), later, 1_000_000..20_000_000u64).prop_map(|(first, later, last)| {
        let mut steps = vec![(0, first)];
        let mut from = 0;
        for (gap, rate) in later {
            from += gap;
            steps.push((from, rate));
        }
        steps.push((from + 1, last)); // so that everything leaves
        steps
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn leaves_as_early_as_the_windows_allow(steps in steps(), burst in 1514..20_000u32, arrivals in arrivals()) {
        let log = offer(&tbf(&steps, burst, NO_LIMIT), &arrivals);
        let left: Vec<_> = sent(&log).iter().map(|sent| sent.1).collect();
        prop_assert_eq!(left, by_windows(&steps, burst, &arrivals));
        prop_assert!(sent(&log).is_sorted_by_key(|sent| sent.0), "order is kept");
    }

    #[test]
    fn no_window_carries_more_than_the_burst_and_the_rate(
        steps in steps(), burst in 1514..20_000u32, packets in 1..20u32, arrivals in arrivals(),
    ) {
        let log = offer(&tbf(&steps, burst, Limit::Packets(packets)), &arrivals);
        let sent = sent(&log);
        for (index, &(_, start, _)) in sent.iter().enumerate() {
            let mut bits = 0;
            for &(_, end, bytes) in &sent[index..] {
                bits += u128::from(bytes) * NANOBITS;
                prop_assert!(bits <= u128::from(burst) * NANOBITS + work(&steps, end) - work(&steps, start));
            }
        }
        for fate in &log.fates {
            prop_assert_eq!(fate.outcome == Outcome::Dropped, fate.queue.packets >= packets, "the limit, exactly");
        }
    }
}

#[test]
fn a_full_bucket_goes_at_once_and_then_the_rate_holds() {
    // RealVideo's router: 600 kbit/s, burst 1600 B. A frame of 1514 B leaves at once, and 86 B of tokens stay: the
    // next waits for 1428 B, 19.04 ms, and every later one for its own 1514 B, 20.186 ms.
    let log = offer(&tbf(&vec![(0, 600_000)], 1600, NO_LIMIT), &[(5_000_000, 1514); 4]);
    let times: Vec<_> = sent(&log).iter().map(|sent| sent.1 - 5_000_000).collect();
    assert_eq!(times, [0, 19_040_000, 39_226_667, 59_413_334]);
}

#[test]
fn a_bucket_that_begins_less_than_full_lacks_just_that() {
    // 1514 B wait for 914 B at 1 Mbit/s where 600 B are there, and for all of themselves in an empty bucket.
    for (initial, first) in [(1514, 0), (600, 7_312_000), (0, 12_112_000)] {
        let shaper = ShaperSpec::TokenBucket(TokenBucketSpec { burst: 1600, initial: Some(initial) });
        let spec = shaped(RateSpec::Steps(vec![(ns(0), bps(1_000_000))]), shaper, NO_LIMIT);
        let times: Vec<_> = sent(&offer(&spec, &[(0, 1514); 2])).iter().map(|sent| sent.1).collect();
        assert_eq!(times, [first, first + 12_112_000], "{initial}");
    }
    let shaper = ShaperSpec::TokenBucket(TokenBucketSpec { burst: 1600, initial: Some(1601) });
    let spec = shaped(RateSpec::Steps(vec![(ns(0), bps(1_000_000))]), shaper, NO_LIMIT);
    assert_eq!(
        Path::new(&[spec], StageId(0), 1, Direction::Down).err().unwrap().to_string(),
        "path.down.bottleneck: shaper.token_bucket.initial: 1601; expected at most the burst, 1600 bytes"
    );
}

#[test]
fn idle_time_fills_the_bucket_to_its_brim_and_no_further() {
    // 3028 B are two frames; after ten seconds of rest still two leave at once.
    let spec = tbf(&vec![(0, 1_000_000)], 3028, NO_LIMIT);
    let log = offer(
        &spec,
        &[(0, 1514), (0, 1514), (10_000_000_000, 1514), (10_000_000_000, 1514), (10_000_000_000, 1514)],
    );
    let times: Vec<_> = sent(&log).iter().map(|sent| sent.1).collect();
    assert_eq!(times, [0, 0, 10_000_000_000, 10_000_000_000, 10_012_112_000]);
}

#[test]
fn a_rate_change_counts_from_its_instant() {
    // Empty at 0; 1514 B need 12,112 bits: 6,056 by 6.056 ms at 1 Mbit/s, nothing for 10 ms, the rest at 2 Mbit/s.
    let steps = vec![(0, 1_000_000), (6_056_000, 0), (16_056_000, 2_000_000)];
    let log = offer(&tbf(&steps, 1514, NO_LIMIT), &[(0, 1514), (0, 1514)]);
    assert_eq!(sent(&log)[1].1, 16_056_000 + 3_028_000);
    assert_eq!(log.changes.len(), 3, "each change is reported");
}

#[test]
fn a_packet_longer_than_the_bucket_is_dropped_as_too_big() {
    let log = offer(&tbf(&vec![(0, 1_000_000)], 2000, NO_LIMIT), &[(0, 2001), (0, 2000)]);
    assert_eq!((log.fates[0].cause, log.fates[0].outcome), (Cause::TooBig, Outcome::Dropped));
    assert_eq!(log.fates[1].outcome, Outcome::Delivered);
}

#[test]
fn a_burst_less_than_a_packet_is_refused() {
    let error = |burst| {
        Path::new(&[tbf(&vec![(0, 1_000_000)], burst, NO_LIMIT)], StageId(0), 1, Direction::Down).err()
    };
    assert_eq!(error(1514), None::<SpecError>);
    assert_eq!(
        error(1513).unwrap().to_string(),
        "path.down.bottleneck: shaper.token_bucket.burst: 1513; expected 1514 (a full packet, which else could never \
         leave) to 1000000000 bytes"
    );
    assert!(error(1_000_000_001).is_some());
}
