//! Delay that varies: its distributions, its order, its flows.

mod common;

use common::any::distribution;
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, FlowId, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{DelaySpec, Distribution, JitterSpec, StageKind, StageSpec};

const BASE: u64 = 50_000_000;

fn jittered(distribution: Distribution, keep_order: bool) -> DelaySpec {
    let jitter = Some(JitterSpec { distribution, keep_order, switches: vec![] });
    DelaySpec { jitter, ..DelaySpec::constant(ns(BASE)) }
}

fn path(spec: DelaySpec, seed: u64) -> Path {
    let stages: [StageSpec; 1] = [stage("delay", StageKind::Delay(spec))];
    Path::new(&stages, StageId(0), seed, Direction::Down).unwrap()
}

/// Returns the stay of each packet, one every `gap` ns, of flows 0 to 2 in turn, in order of arrival; and the order and
/// times of departure.
fn stays(spec: DelaySpec, seed: u64, packets: u64, gap: u64) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (mut path, mut log) = (path(spec, seed), Log::default());
    let mut left = Vec::new();
    for id in 0..packets {
        left.extend(follow(&mut path, at(id * gap), &mut log));
        path.enqueue(at(id * gap), item_of(id, 1514, FlowId(id as u16 % 3)), &mut log);
    }
    left.extend(follow(&mut path, at(1 << 62), &mut log));
    assert_eq!(left.len() as u64, packets);
    let mut stays = vec![0; packets as usize];
    for departure in &left {
        let id = departure.item.id.0;
        stays[id as usize] = departure.at.as_nanos() - id * gap;
    }
    (stays, left.iter().map(|departure| (departure.item.id.0, departure.at.as_nanos())).collect())
}

/// Checks Kolmogorov's distance between the draws and a distribution function; at 1.95 / sqrt(n) it is exceeded by
/// chance once in a thousand, and these seeds are fixed.
fn assert_drawn_from(name: &str, distribution: Distribution, cumulative: impl Fn(f64) -> f64) {
    let packets = 40_000;
    let (mut stays, _) = stays(jittered(distribution, false), 7, packets, 1_000);
    stays.sort_unstable();
    let n = packets as f64;
    let distance = stays.iter().enumerate().map(|(rank, &stay)| {
        let p = cumulative(stay as f64 - BASE as f64);
        (p - rank as f64 / n).abs().max((p - (rank + 1) as f64 / n).abs())
    });
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < 1.95 / n.sqrt(), "{name}: {distance}");
}

/// Returns the normal distribution function by its series about zero, good to 1e-9 where |z| < 6.
fn phi(z: f64) -> f64 {
    let (mut term, mut sum, mut k) = (z, z, 1.0);
    while k < 200.0 {
        term *= -z * z / (2.0 * k);
        sum += term / (2.0 * k + 1.0);
        k += 1.0;
    }
    0.5 + sum / (2.0 * std::f64::consts::PI).sqrt()
}

#[test]
fn each_distribution_is_the_one_asked_for() {
    let scale = 2_000_000.0;
    let width = ns(2_000_000);
    assert_drawn_from("uniform", Distribution::Uniform { spread: width }, |x| {
        ((x + scale) / (2.0 * scale)).clamp(0.0, 1.0)
    });
    assert_drawn_from("normal", Distribution::Normal { deviation: width }, |x| phi(x / scale));
    for shape in [1.2, 3.0] {
        assert_drawn_from("pareto", Distribution::Pareto { scale: width, shape }, |x| {
            1.0 - (1.0 + x.max(0.0) / scale).powf(-shape)
        });
    }
    // For whole shape k: 1 - sum over i < k of e^-x x^i / i! (Erlang). For shape 1/2: the square of a normal.
    assert_drawn_from("gamma 1", Distribution::Gamma { shape: 1.0, scale: width }, |x| {
        1.0 - (-x.max(0.0) / scale).exp()
    });
    assert_drawn_from("gamma 3", Distribution::Gamma { shape: 3.0, scale: width }, |x| {
        let x = x.max(0.0) / scale;
        1.0 - (-x).exp() * (1.0 + x + x * x / 2.0)
    });
    assert_drawn_from("gamma 1/2", Distribution::Gamma { shape: 0.5, scale: width }, |x| {
        2.0 * phi((2.0 * x.max(0.0) / scale).sqrt().min(6.0)) - 1.0
    });
    let quantiles = vec![ns(0), ns(1_000_000), ns(1_500_000), ns(6_000_000)];
    assert_drawn_from("table", Distribution::Table { quantiles }, |x| match x {
        ..=0.0 => 0.0,
        ..=1e6 => x / 3e6,
        ..=1.5e6 => (1.0 + (x - 1e6) / 0.5e6) / 3.0,
        ..=6e6 => (2.0 + (x - 1.5e6) / 4.5e6) / 3.0,
        _ => 1.0,
    });
}

#[test]
fn the_draws_are_the_same_on_every_machine() {
    // Fixed for ever: another number here is another record for the same seed.
    let first = |distribution| stays(jittered(distribution, false), 1, 3, 1_000_000_000).0;
    let width = ns(2_000_000);
    let drawn = [
        first(Distribution::Uniform { spread: width }),
        first(Distribution::Normal { deviation: width }),
        first(Distribution::Pareto { scale: width, shape: 2.5 }),
        first(Distribution::Gamma { shape: 2.5, scale: width }),
        first(Distribution::Gamma { shape: 0.4, scale: width }),
    ];
    assert_eq!(drawn, DRAWN);
}

const DRAWN: [[u64; 3]; 5] = [
    [51_942_332, 50_707_279, 48_900_819],
    [49_848_742, 50_962_973, 49_302_102],
    [50_011_651, 50_337_980, 51_630_772],
    [54_114_478, 56_449_864, 51_970_397],
    [52_342_626, 50_487_185, 51_676_558],
];

#[test]
fn order_is_kept_by_default_and_makes_the_mean_longer() {
    let normal = || Distribution::Normal { deviation: ns(2_000_000) };
    let (free, free_order) = stays(jittered(normal(), false), 3, 20_000, 1_000_000);
    let (kept, kept_order) = stays(jittered(normal(), true), 3, 20_000, 1_000_000);
    let ascends = |order: &[(u64, u64)]| order.is_sorted_by_key(|&(id, _)| id);
    assert!(!ascends(&free_order) && ascends(&kept_order));
    // Each has the longest of its own delay and the remaining delays of those before it.
    let mut last = 0;
    for (index, (&own, &stay)) in free.iter().zip(&kept).enumerate() {
        last = last.max(index as u64 * 1_000_000 + own);
        assert_eq!(index as u64 * 1_000_000 + stay, last);
    }
    let mean = |stays: &[u64]| stays.iter().sum::<u64>() as f64 / stays.len() as f64 - BASE as f64;
    assert!(mean(&free).abs() < 5.0 * 2e6 / 20_000f64.sqrt(), "{}", mean(&free));
    // In the long run it stays at most x with the product over j of P(draw <= x + j gaps); the mean is the integral of
    // the complement to 1. Neighbours are alike over some five packets, so n / 10 count as independent.
    let at_most = |x: f64| (0..40).map(|j| phi(((x + f64::from(j)) / 2.0).clamp(-6.0, 6.0))).product::<f64>();
    let expected =
        -12.0 + (0..2_400).map(|step| 0.01 * (1.0 - at_most(-12.0 + 0.01 * f64::from(step)))).sum::<f64>();
    let found = mean(&kept) / 1e6;
    assert!((found - expected).abs() < 5.0 * 2.0 / 2_000f64.sqrt(), "{found} ms for {expected} ms");
}

#[test]
fn the_delay_is_never_below_zero() {
    let spec = DelaySpec { delay: ns(1_000), ..jittered(Distribution::Normal { deviation: ms(1) }, false) };
    let (stays, _) = stays(spec, 3, 1_000, 10_000_000);
    let at_once = stays.iter().filter(|&&stay| stay == 0).count();
    assert!((420..580).contains(&at_once), "{at_once}: about half would be negative, 5 standard deviations");
}

#[test]
fn a_flow_with_an_extra_delay_has_a_pipe_of_its_own() {
    let spec = DelaySpec { flows: vec![(2, ms(30)), (1, ms(10))], ..DelaySpec::constant(ms(5)) };
    let (stays, order) = stays(spec, 1, 9, 1_000_000);
    assert_eq!(stays, [5, 15, 35, 5, 15, 35, 5, 15, 35].map(|ms| ms * 1_000_000));
    assert!(!order.is_sorted_by_key(|&(id, _)| id), "flows overtake each other");
}

#[test]
fn steps_and_switches_count_from_their_very_nanosecond() {
    let jitter = JitterSpec {
        distribution: Distribution::Table { quantiles: vec![ns(7), ns(7)] },
        keep_order: true,
        switches: vec![(ns(2_000), false), (ns(4_000), true)],
    };
    let steps = vec![(ns(3_000), ns(500)), (ns(4_000), ns(600))];
    let spec = DelaySpec { steps, jitter: Some(jitter), flows: vec![(2, ns(50))], delay: ns(100) };
    let (stays, _) = stays(spec.clone(), 1, 6, 1_000);
    assert_eq!(stays, [107, 107, 150, 500, 607, 657]);
    let (mut path, mut log) = (path(spec, 1), Log::default());
    path.finish(at(9_000), &mut log);
    let changes: Vec<_> =
        log.changes.iter().map(|change| (change.1.as_nanos(), change.2, change.3)).collect();
    assert_eq!(
        changes,
        [
            (0, "delay", 1e-7),
            (0, "jitter", 0.0),
            (2_000, "jitter", 0.0),
            (3_000, "delay", 5e-7),
            (4_000, "delay", 6e-7),
            (4_000, "jitter", 0.0)
        ],
        "a table's range is its measure, and this one has none"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn order_holds_within_each_flow(
        distribution in distribution(), extras in prop::collection::vec(0..20_000_000u64, 0..3), seed: u64,
    ) {
        let flows = extras.iter().enumerate().map(|(flow, &extra)| (flow as u16, ns(extra))).collect();
        let spec = DelaySpec { flows, ..jittered(distribution, true) };
        let (stays, order) = stays(spec, seed, 150, 500_000);
        for flow in 0..3 {
            prop_assert!(order.iter().filter(|(id, _)| id % 3 == flow).map(|&(id, _)| id).is_sorted());
        }
        let rest = extras.len() as u64;
        prop_assert!(order.iter().filter(|(id, _)| id % 3 >= rest).map(|&(id, _)| id).is_sorted());
        prop_assert!(order.is_sorted_by_key(|&(_, at)| at));
        prop_assert_eq!(stays.len(), 150);
    }

    #[test]
    fn the_seed_decides_and_other_stages_change_no_draw(distribution in distribution(), seed: u64) {
        let spec = jittered(distribution, false);
        let alone = stays(spec.clone(), seed, 50, 1_000_000).0;
        prop_assert_eq!(&alone, &stays(spec.clone(), seed, 50, 1_000_000).0);
        let second = StageSpec { name: "second".into(), ..stage("x", StageKind::Delay(spec.clone())) };
        let mut both = Path::new(
            &[stage("delay", StageKind::Delay(spec)), second, bernoulli("loss", 0.5)],
            StageId(0), seed, Direction::Down,
        ).unwrap();
        let mut log = Log::default();
        for id in 0..50 {
            follow(&mut both, at(id * 1_000_000), &mut log);
            both.enqueue(at(id * 1_000_000), item_of(id, 1514, FlowId(id as u16 % 3)), &mut log);
        }
        follow(&mut both, at(1 << 62), &mut log);
        for fate in log.at_stage(0) {
            prop_assert_eq!((fate.at - fate.t_in).as_nanos(), alone[fate.item.id.0 as usize]);
        }
    }
}
