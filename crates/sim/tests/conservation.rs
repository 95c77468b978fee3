//! Any plan ends, and every packet in it is accounted for.

mod common;

use std::collections::BTreeMap;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Duration, Outcome};
use streamgauge_path::spec::{Limit, PathSpec};
use streamgauge_plan::{Action, Entry, FlowSpec, TrialPlan};
use streamgauge_systems::System;
use streamgauge_systems::http::{HttpPlayerSettings, HttpSpec};

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (3_000u64..200_000).prop_map(Limit::Bytes),
        (2u32..200).prop_map(Limit::Packets),
        (50u64..1_000).prop_map(|t| Limit::Time(ms(t))),
    ]
}

fn any_path() -> impl Strategy<Value = PathSpec> {
    (300_000u64..20_000_000, any_limit(), 0u64..100, 0.0..0.1f64, any::<bool>()).prop_map(
        |(bps, limit, one_way_ms, probability, narrow_up)| {
            let up = if narrow_up {
                vec![bottleneck(bps, limit), delay(one_way_ms)]
            } else {
                vec![loss(probability), delay(one_way_ms)]
            };
            PathSpec { down: vec![loss(probability), bottleneck(bps, limit), delay(one_way_ms)], up }
        },
    )
}

/// Makes a player that asks for `request` bytes at a time, or for the whole; on one connection or each time on another.
fn by_http(request: Option<u64>, persistent: bool) -> HttpPlayerSettings {
    HttpPlayerSettings { request, persistent, ..HttpSpec::usual().player }
}

fn any_flow() -> impl Strategy<Value = FlowSpec> {
    let app = prop_oneof![
        (any::<bool>(), 1_500u64..1 << 20).prop_map(|(cubic, window)| bulk(
            "",
            if cubic { "cubic" } else { "reno" },
            window
        )),
        (1.0..2_000.0f64, 0u32..1_472, any::<bool>()).prop_map(|(rate, payload, router)| {
            let mut flow = cbr("", rate, payload, &[]);
            flow.entry = if router { Entry::Router } else { Entry::Server };
            flow
        }),
        (5u64..1_000, 0u32..1_400).prop_map(|(interval, payload)| ping("", interval, payload)),
        (1u64..6, any::<bool>()).prop_map(|(s, over_tcp)| rtp("", s, over_tcp.then(|| tcp("reno", 65_536)))),
        (1u64..6, prop::option::of(600u64..100_000), any::<bool>())
            .prop_map(|(s, request, persistent)| http("", s, by_http(request, persistent))),
    ];
    let actions = prop::collection::vec(0usize..3, 0..3);
    (app, 0u64..4_000, actions).prop_map(|(mut flow, start_ms, actions)| {
        flow.start = ms(start_ms);
        let kinds = [Action::Pause, Action::Resume, Action::Stop];
        flow.actions = (1..).zip(actions).map(|(n, kind)| (ms(start_ms + 700 * n), kinds[kind])).collect();
        flow
    })
}

fn any_plan() -> impl Strategy<Value = TrialPlan> {
    let flows = prop::collection::vec(any_flow(), 1..5);
    (any_path(), flows, any::<u64>(), 0u64..2_000).prop_map(|(path, mut flows, seed, jitter_us)| {
        for (index, flow) in flows.iter_mut().enumerate() {
            flow.name = format!("flow{index}");
        }
        let mut plan = plan(path, flows, 6, seed);
        plan.host_jitter = Duration::from_micros(jitter_us);
        plan
    })
}

/// Checks that in + duplicated = out + dropped + held, per stage and flow, counted here and not by the record.
fn check(plan: &TrialPlan) -> Result<(), TestCaseError> {
    let (summary, record) = Rows::of(plan);
    prop_assert!(summary.duration_ns <= plan.duration.as_nanos());
    let down = plan.path.down.len() as u8;
    let stages = down + plan.path.up.len() as u8;
    let mut entered = BTreeMap::<(u8, u16), u64>::new();
    let mut delivered = BTreeMap::<(u8, u16), u64>::new();
    for (fate, _, direction) in &record.rows {
        let key = (fate.stage.0, fate.item.flow.0);
        prop_assert_eq!(*direction, if fate.stage.0 < down { Direction::Down } else { Direction::Up });
        prop_assert!(fate.at >= fate.t_in);
        prop_assert!(fate.t_in.as_nanos() <= plan.duration.as_nanos());
        *entered.entry(key).or_default() += u64::from(fate.item.bytes);
        if fate.outcome == Outcome::Delivered {
            *delivered.entry(key).or_default() += u64::from(fate.item.bytes);
        }
    }
    for stage in (0..stages).filter(|stage| *stage != 0 && *stage != down) {
        for flow in 0..plan.flows.len() as u16 {
            let at_router = plan.flows[usize::from(flow)].entry == Entry::Router && stage == 1;
            let from_before = delivered.get(&(stage - 1, flow)).copied().unwrap_or(0);
            let in_here = entered.get(&(stage, flow)).copied().unwrap_or(0);
            prop_assert!(
                at_router && from_before == 0 || in_here == from_before,
                "flow {} into stage {}: {} B of {} B",
                flow,
                stage,
                in_here,
                from_before
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_plan_ends_and_balances(plan in any_plan()) {
        check(&plan)?;
        let directory = std::env::temp_dir().join(format!("streamgauge-balance-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let summary = streamgauge_sim::simulate(&plan, &directory).unwrap();
        prop_assert_eq!(summary.imbalance, Vec::<String>::new());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn what_a_player_reads_is_what_left_the_path() {
    let flows = vec![bulk("ftp", "cubic", 256 << 10), cbr("mgen", 50.0, 1000, &[(0, 8_000)])];
    let (summary, record) = Rows::of(&plan(path(2_000_000, Limit::Bytes(20_000), 10), flows, 10, 1));
    let arrived = |flow: u16| {
        let rows = record.at(flow, 1).filter(|(fate, ..)| fate.outcome == Outcome::Delivered);
        rows.map(|(_, info, _)| u64::from(info.payload_bytes)).sum::<u64>()
    };
    assert_eq!(summary.flows[1].player_received_bytes, arrived(1));
    let (read, arrived) = (summary.flows[0].player_received_bytes, arrived(0));
    let tcp = summary.flows[0].tcp.as_ref().unwrap();
    assert!(tcp.retransmits > 0, "the queue is small enough to lose");
    // Bytes that arrive twice, or that wait behind a gap at the end, are not read.
    assert!(read <= arrived && arrived - read <= (tcp.retransmits + 200) * 1448, "{read} of {arrived}");
}

/// With several connections as with one: all that either end of HTTP wrote the other has read, once, though the path
/// lost some of it, and the packets carried beyond that were retransmissions.
#[test]
fn what_either_end_of_http_reads_is_what_the_other_wrote() {
    let path = PathSpec {
        down: vec![loss(0.03), bottleneck(3_000_000, Limit::Packets(30)), delay(10)],
        up: vec![loss(0.03), delay(10)],
    };
    let players = [by_http(None, true), by_http(Some(20_000), true), by_http(Some(20_000), false)];
    let flows = ["whole", "kept", "anew"].into_iter().zip(players);
    let flows = flows.map(|(name, player)| http(name, 10, player)).collect();
    let (summary, record) = Rows::of(&plan(path, flows, 120, 1));
    for (number, flow) in (0..).zip(&summary.flows) {
        assert_eq!(flow.player_received_bytes, flow.server_sent_bytes, "flow {number}, down");
        assert_eq!(flow.server_received_bytes, flow.player_sent_bytes, "flow {number}, up");
        // The clip's frames, beside tables and heads.
        assert!(flow.player_received_bytes > 250 / 12 * 28_000, "flow {number}: {flow:?}");
        let payload = |stage: u8, outcome: Option<Outcome>| -> u64 {
            let rows =
                record.at(number, stage).filter(|(fate, ..)| outcome.is_none_or(|o| fate.outcome == o));
            rows.map(|(_, info, _)| u64::from(info.payload_bytes)).sum()
        };
        let tcp = flow.tcp.as_ref().unwrap();
        let (sent, lost) = (payload(0, None), payload(0, Some(Outcome::Dropped)));
        assert!(tcp.retransmits > 0 && lost > 0, "flow {number}: {tcp:?}");
        let again = sent - flow.server_sent_bytes;
        assert!(
            lost <= again && again <= tcp.retransmits * 1448,
            "flow {number}: {again} B again, {lost} B lost"
        );
        assert!(payload(2, Some(Outcome::Delivered)) >= flow.player_received_bytes);
    }
    assert_eq!(record.named("media_end").len(), 3);
    assert!(record.named("http_failure").is_empty());
}
