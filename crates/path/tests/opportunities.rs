//! Delivery opportunities against mahimahi's rule, played out opportunity by opportunity.

mod common;

use std::collections::VecDeque;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{
    Limit, OpportunitiesSpec, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec, TokenBucketSpec,
};

const NO_LIMIT: Limit = Limit::Packets(u32::MAX);

fn trace(times: &[u64], bytes: u32, period: u64) -> OpportunitiesSpec {
    OpportunitiesSpec { times: times.iter().copied().map(ns).collect(), bytes, period: ns(period) }
}

fn link(trace: OpportunitiesSpec, limit: Limit) -> StageSpec {
    shaped(RateSpec::Opportunities(trace), ShaperSpec::Serial, limit)
}

/// Runs every opportunity in turn, used or not; returns the departures as (id, time).
fn play(trace: &OpportunitiesSpec, arrivals: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let (mut queue, mut coming) = (VecDeque::new(), arrivals.iter().enumerate().peekable());
    let (mut left, mut in_transit) = (Vec::new(), None::<(u64, u32)>);
    for round in 0.. {
        for time in &trace.times {
            let now = round * trace.period.as_nanos() + time.as_nanos();
            while let Some((id, &(_, bytes))) = coming.next_if(|(_, arrival)| arrival.0 < now) {
                queue.push_back((id as u64, bytes));
            }
            let mut capacity = trace.bytes;
            while capacity > 0 {
                let Some((id, missing)) = in_transit.take().or_else(|| queue.pop_front()) else { break };
                let used = missing.min(capacity);
                capacity -= used;
                if used == missing { left.push((id, now)) } else { in_transit = Some((id, missing - used)) }
            }
            if left.len() == arrivals.len() {
                return left;
            }
        }
    }
    unreachable!()
}

fn traces() -> impl Strategy<Value = OpportunitiesSpec> {
    let gaps = prop::collection::vec(prop_oneof![1 => Just(0u64), 3 => 0..5_000_000u64], 1..30);
    let bytes = prop_oneof![Just(1504u32), 100..4000u32];
    (gaps, bytes, prop_oneof![Just(0u64), 0..10_000_000u64]).prop_map(|(gaps, bytes, rest)| {
        let mut now = 0;
        let times: Vec<u64> = gaps
            .iter()
            .map(|gap| {
                now += gap;
                now
            })
            .collect();
        trace(&times, bytes, (now + rest).max(1_000_000))
    })
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0..2_000_000u64, 1 => 0..100_000_000u64];
    prop::collection::vec((gap, 34..=1514u32), 1..60).prop_map(|gaps| {
        let mut now = 0;
        gaps.into_iter()
            .map(|(gap, bytes)| {
                now += gap;
                (now, bytes)
            })
            .collect()
    })
}

/// Returns the bytes that the trace can carry at times in [from, to].
fn capacity(trace: &OpportunitiesSpec, from: u64, to: u64) -> u64 {
    let period = trace.period.as_nanos();
    let rounds = (from / period).saturating_sub(1)..=to / period;
    let times = rounds.flat_map(|round| trace.times.iter().map(move |time| round * period + time.as_nanos()));
    times.filter(|time| (from..=to).contains(time)).count() as u64 * u64::from(trace.bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn leaves_as_in_mahimahi(trace in traces(), arrivals in arrivals()) {
        let log = offer(&link(trace.clone(), NO_LIMIT), &arrivals);
        let left: Vec<_> = sent(&log).iter().map(|sent| (sent.0, sent.1)).collect();
        prop_assert_eq!(left, play(&trace, &arrivals));
    }

    #[test]
    fn no_window_carries_more_than_its_opportunities(
        trace in traces(), packets in 1..20u32, arrivals in arrivals(),
    ) {
        let log = offer(&link(trace.clone(), Limit::Packets(packets)), &arrivals);
        let sent = sent(&log);
        prop_assert!(sent.is_sorted_by_key(|sent| (sent.1, sent.0)), "order is kept");
        for index in 0..sent.len() {
            let mut bytes = 0;
            for &(_, end, packet) in &sent[index..] {
                bytes += u64::from(packet);
                // The first may have begun on opportunities before the window: all its bytes but one.
                let begun = u64::from(sent[index].2) - 1;
                prop_assert!(bytes <= begun + capacity(&trace, sent[index].1, end));
            }
        }
        for fate in &log.fates {
            prop_assert_eq!(fate.outcome == Outcome::Dropped, fate.queue.packets >= packets, "the limit, exactly");
        }
    }
}

#[test]
fn an_opportunity_carries_what_fits_and_the_rest_goes_with_the_next() {
    // 1504 B at 10, 20, 20 and 40 ms. Two of 752 B share the first; 1514 B need the two at 20; the last waits.
    let trace = trace(&[10_000_000, 20_000_000, 20_000_000, 40_000_000], 1504, 40_000_000);
    let log = offer(&link(trace, NO_LIMIT), &[(0, 752), (0, 752), (0, 1514), (0, 1495)]);
    let times: Vec<_> = sent(&log).iter().map(|sent| sent.1).collect();
    assert_eq!(times, [10_000_000, 10_000_000, 20_000_000, 40_000_000]);
    assert_eq!(log.changes.len(), 1, "the mean at the start, and no event for each opportunity");
    assert_eq!(log.changes[0].3, f64::from(4 * 1504 * 8) / 0.04);
}

#[test]
fn an_opportunity_that_finds_nothing_is_lost() {
    // An arrival at 10 ms is just after that opportunity, and the one at 3 h finds the trace in its round.
    let trace = trace(&[10_000_000, 30_000_000], 1504, 50_000_000);
    let hours = 3 * 3_600_000_000_000;
    let log = offer(&link(trace, NO_LIMIT), &[(10_000_000, 100), (hours + 10_000_001, 100)]);
    let times: Vec<_> = sent(&log).iter().map(|sent| sent.1).collect();
    assert_eq!(times, [30_000_000, hours + 30_000_000]);
}

#[test]
fn a_trace_that_cannot_be_is_refused() {
    let error =
        |trace| Path::new(&[link(trace, NO_LIMIT)], StageId(0), 1, Direction::Down).unwrap_err().to_string();
    for (spec, says) in [
        (trace(&[], 1504, 5), "rate.opportunities.times: none; expected at least one time"),
        (
            trace(&[3, 2], 1504, 5),
            "rate.opportunities.times: entry 1: 0.000000002s; expected times that never go back",
        ),
        (trace(&[1, 2], 0, 5), "rate.opportunities.bytes: 0;"),
        (
            trace(&[1, 6], 1504, 5),
            "rate.opportunities.period: 0.000000005s where the last time is 0.000000006s;",
        ),
        (trace(&[0], 1504, 0), "rate.opportunities.period: 0.000000000s"),
    ] {
        let message = error(spec);
        assert!(message.starts_with(&format!("path.down.bottleneck: {says}")), "{message}");
    }
}

#[test]
fn a_trace_and_another_shaper_are_refused_and_json_has_mahimahis_bytes() {
    let mut stage = link(trace(&[1], 1504, 5), NO_LIMIT);
    let StageKind::Bottleneck(spec) = &mut stage.kind else { unreachable!() };
    spec.shaper = ShaperSpec::TokenBucket(TokenBucketSpec { burst: 1600, initial: None });
    assert!(Path::new(&[stage], StageId(0), 1, Direction::Down).is_err());
    let rate: RateSpec =
        serde_json::from_str(r#"{"opportunities": {"times": [1, 2], "period": 5}}"#).unwrap();
    assert_eq!(rate, RateSpec::Opportunities(trace(&[1, 2], 1504, 5)));
    assert_eq!(rate.initial(), bps(2 * 1504 * 8 * 1_000_000_000 / 5));
    let queue: QueueSpec = serde_json::from_str(r#"{"droptail": {"packets": 3}}"#).unwrap();
    assert_eq!(queue, QueueSpec::Droptail(Limit::Packets(3)));
}
