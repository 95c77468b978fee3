//! Stages and arrivals of every kind, for properties that hold of all of them.

use proptest::prelude::*;
use streamgauge_base::{Duration, FlowId, Fragment, Item, Ports, Protocol};
use streamgauge_path::spec::*;

use super::{bottleneck, bps, item_of, ns, stage};

/// Makes a packet of some flow and protocol, which may or may not be cut up.
pub fn packet(id: u64, bytes: u32) -> Item {
    let protocol = [Protocol::Tcp, Protocol::Udp, Protocol::Icmp, Protocol::Other][id as usize % 4];
    let fragment = if id.is_multiple_of(5) { Fragment::WHOLE_DF } else { Fragment::WHOLE };
    let ports = Ports { source: id as u16 % 7, destination: id as u16 % 5 };
    Item { protocol, ports, fragment, ..item_of(id, bytes, FlowId(id as u16 % 3)) }
}

fn ascending(gaps: Vec<u64>) -> Vec<Duration> {
    let sum = |total: &mut u64, gap| {
        *total += gap;
        Some(ns(*total))
    };
    gaps.into_iter().scan(0, sum).collect()
}

fn times() -> impl Strategy<Value = Vec<Duration>> {
    prop::collection::vec(1..40_000_000u64, 0..4).prop_map(ascending)
}

fn switches() -> impl Strategy<Value = Vec<(Duration, bool)>> {
    times().prop_map(|times| times.into_iter().enumerate().map(|(i, at)| (at, i % 2 == 1)).collect())
}

fn loss() -> impl Strategy<Value = StageKind> {
    let model = prop_oneof![
        (0.0..0.5f64).prop_map(|probability| LossModel::Bernoulli { probability }),
        (1.0..9.0f64, 1.0..4.0f64)
            .prop_map(|(good_packets, bad_packets)| LossModel::Gilbert { good_packets, bad_packets }),
        (1.0..9.0f64, 1.0..4.0f64, 0.0..0.2f64, 0.2..1.0f64).prop_map(
            |(good_packets, bad_packets, loss_good, loss_bad)| LossModel::GilbertElliott {
                good_packets,
                bad_packets,
                loss_good,
                loss_bad
            }
        ),
        prop::collection::btree_set(0..100u64, 0..20)
            .prop_map(|packets| LossModel::List { packets: packets.into_iter().collect() }),
    ];
    (model, switches()).prop_map(|(model, switches)| StageKind::Loss(LossSpec { model, switches }))
}

fn link() -> impl Strategy<Value = StageKind> {
    (50_000..50_000_000u64, 1..30u32, times()).prop_map(|(rate, packets, times)| {
        let later = times.into_iter().enumerate();
        let later = later.map(|(i, at)| (at, bps(if i % 2 == 0 { rate / 3 } else { 0 })));
        let steps = std::iter::once((ns(0), bps(rate))).chain(later).collect();
        bottleneck(RateSpec::Steps(steps), Limit::Packets(packets)).kind
    })
}

pub fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        (0..9_000_000u64).prop_map(|spread| Distribution::Uniform { spread: ns(spread) }),
        (0..9_000_000u64).prop_map(|deviation| Distribution::Normal { deviation: ns(deviation) }),
        (0..9_000_000u64, 1.01..4.0f64)
            .prop_map(|(scale, shape)| Distribution::Pareto { scale: ns(scale), shape }),
        (0..9_000_000u64, 0.1..4.0f64)
            .prop_map(|(scale, shape)| Distribution::Gamma { scale: ns(scale), shape }),
        prop::collection::vec(0..9_000_000u64, 2..9)
            .prop_map(|gaps| Distribution::Table { quantiles: ascending(gaps) }),
    ]
}

fn delay(keep_order: bool, flows: bool) -> impl Strategy<Value = StageKind> {
    let jitter = (distribution(), switches()).prop_map(move |(distribution, switches)| JitterSpec {
        distribution,
        keep_order,
        switches,
    });
    let extras = prop::collection::vec(0..20_000_000u64, if flows { 0..3 } else { 0..1 });
    (0..30_000_000u64, times(), prop::option::of(jitter), extras).prop_map(
        |(delay, times, jitter, extras)| {
            let steps = times.into_iter().enumerate();
            let steps = steps.map(|(i, at)| (at, ns(delay >> (i + 1)))).collect();
            let flows =
                extras.into_iter().enumerate().map(|(flow, extra)| (flow as u16, ns(extra))).collect();
            StageKind::Delay(DelaySpec { delay: ns(delay), steps, jitter, flows })
        },
    )
}

fn reorder() -> impl Strategy<Value = StageKind> {
    let choice = prop_oneof![
        (0.0..1.0f64).prop_map(|probability| (Some(probability), None)),
        (1..20u64).prop_map(|every| (None, Some(every)))
    ];
    (choice, 0..9_000_000u64, switches()).prop_map(|((probability, every), extra, switches)| {
        StageKind::Reorder(ReorderSpec { probability, every, extra: ns(extra), switches })
    })
}

/// Draws any stage that lets nothing overtake.
pub fn ordered_stage() -> impl Strategy<Value = StageKind> {
    let protocol =
        prop::sample::select(vec![BlockedProtocol::Tcp, BlockedProtocol::Udp, BlockedProtocol::Icmp]);
    let ports = prop::collection::btree_set(1u16..8, 0..3);
    prop_oneof![
        2 => loss(),
        2 => link(),
        2 => delay(true, false),
        1 => (0.0..0.5f64, switches()).prop_map(|(probability, switches)| {
            StageKind::Duplicate(DuplicateSpec { probability, switches })
        }),
        1 => (0.0..0.5f64, switches()).prop_map(|(probability, switches)| {
            StageKind::Corrupt(CorruptSpec { probability, switches })
        }),
        1 => (68..1500u32, switches()).prop_map(|(bytes, switches)| StageKind::Mtu(MtuSpec { bytes, switches })),
        1 => (protocol, ports, switches()).prop_map(|(protocol, mut ports, switches)| {
            if protocol == BlockedProtocol::Icmp {
                ports.clear();
            }
            StageKind::Block(BlockSpec { protocol, ports: ports.into_iter().collect(), switches })
        }),
    ]
}

/// Draws any stage.
pub fn any_stage() -> impl Strategy<Value = StageKind> {
    prop_oneof![4 => ordered_stage(), 1 => delay(true, true), 1 => delay(false, true), 1 => reorder()]
}

pub fn chain_of(kind: impl Strategy<Value = StageKind>) -> impl Strategy<Value = Vec<StageSpec>> {
    prop::collection::vec(kind, 1..6).prop_map(|kinds| {
        kinds.into_iter().enumerate().map(|(index, kind)| stage(&format!("s{index}"), kind)).collect()
    })
}

pub fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
    let gap = prop_oneof![Just(0u64), 0..3_000_000u64];
    prop::collection::vec((gap, 34..1515u32, prop::bool::weighted(0.2)), 0..100).prop_map(|gaps| {
        let mut now = 0;
        gaps.into_iter()
            .map(|(gap, bytes, router)| {
                now += gap;
                (now, bytes, router)
            })
            .collect()
    })
}
