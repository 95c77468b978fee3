//! Specifications: the refused values and their messages, the JSON form, and the pre-flight's form.

mod common;

use common::*;
use streamgauge_base::{Direction, Outcome, StageId};
use streamgauge_path::spec::{
    BlockSpec, BlockedProtocol, CodelSpec, CorruptSpec, DelaySpec, Distribution, DualScheduler, Dualpi2Spec,
    DuplicateSpec, FqCodelSpec, JitterSpec, L4sMarking, Limit, LossModel, LossSpec, MtuSpec, PathSpec,
    PieSpec, QueueSpec, RateSpec, ReorderSpec, StageKind, StageSpec,
};
use streamgauge_path::{Path, SpecError, StageProblem, at_rest, measured_bottleneck};

fn refusal(stages: &[StageSpec]) -> SpecError {
    Path::new(stages, StageId(0), 1, Direction::Down).expect_err("this path cannot be built")
}

fn steps(steps: &[(u64, u64)]) -> RateSpec {
    RateSpec::Steps(steps.iter().map(|&(at, rate)| (ns(at), bps(rate))).collect())
}

fn square(first: u64, second: u64, period: u64) -> RateSpec {
    RateSpec::Square { first: bps(first), second: bps(second), period: ns(period) }
}

#[test]
fn each_mistake_is_named() {
    let link = |rate, limit| bottleneck(rate, limit);
    let ten = Limit::Packets(10);
    let mega = RateSpec::Constant(bps(1_000_000));
    let switched = LossSpec {
        model: LossModel::Bernoulli { probability: 0.1 },
        switches: vec![(ns(5), true), (ns(5), false)],
    };
    let stepped = DelaySpec { steps: vec![(ns(9), ns(1)), (ns(3), ns(1))], ..DelaySpec::constant(ns(1)) };
    let run = |which, mean| StageProblem::MeanRun { which, mean };
    let chance = |of, probability| StageProblem::Probability { of, probability };
    let loss = |model| stage("bottleneck", StageKind::Loss(LossSpec { model, switches: vec![] }));
    let elliott = |loss_good, loss_bad, bad_packets| {
        loss(LossModel::GilbertElliott { good_packets: 9.0, bad_packets, loss_good, loss_bad })
    };
    let jitter = |distribution| {
        let jitter = Some(JitterSpec { distribution, keep_order: true, switches: vec![] });
        stage("bottleneck", StageKind::Delay(DelaySpec { jitter, ..DelaySpec::constant(ms(1)) }))
    };
    let two_extras =
        DelaySpec { flows: vec![(3, ms(1)), (4, ms(1)), (3, ms(2))], ..DelaySpec::constant(ms(1)) };
    let reorder = |probability, every| {
        let spec = ReorderSpec { probability, every, extra: ms(1), switches: vec![] };
        stage("bottleneck", StageKind::Reorder(spec))
    };
    let mtu = |bytes| stage("bottleneck", StageKind::Mtu(MtuSpec { bytes, switches: vec![] }));
    let twice = vec![(ns(5), true), (ns(5), false)];
    let unsorted = |list, index, at| StageProblem::NotAscending { list, index, at: ns(at) };
    let cases = [
        (bernoulli("bottleneck", 1.5), chance("probability", 1.5)),
        (bernoulli("bottleneck", -0.1), chance("probability", -0.1)),
        (elliott(1.5, 0.5, 2.0), chance("loss_good", 1.5)),
        (elliott(0.5, -1.0, 2.0), chance("loss_bad", -1.0)),
        (elliott(0.5, 0.5, 0.9), run("bad_packets", 0.9)),
        (
            loss(LossModel::List { packets: vec![1, 4, 4] }),
            StageProblem::ListNotAscending { index: 2, packet: 4 },
        ),
        (jitter(Distribution::Pareto { scale: ms(1), shape: 1.0 }), StageProblem::ParetoShape(1.0)),
        (jitter(Distribution::Gamma { scale: ms(1), shape: 0.0 }), StageProblem::GammaShape(0.0)),
        (jitter(Distribution::Table { quantiles: vec![ms(1)] }), StageProblem::ShortTable(1)),
        (
            jitter(Distribution::Table { quantiles: vec![ms(1), ms(3), ms(2)] }),
            StageProblem::TableDescends { index: 2, value: ms(2) },
        ),
        (
            jitter(Distribution::Normal { deviation: ms(3_600_001) }),
            StageProblem::JitterTooLarge { which: "deviation", size: ms(3_600_001) },
        ),
        (stage("bottleneck", StageKind::Delay(two_extras)), StageProblem::FlowTwice { flow: 3 }),
        (reorder(None, None), StageProblem::ReorderChoice),
        (reorder(Some(0.1), Some(3)), StageProblem::ReorderChoice),
        (reorder(None, Some(0)), StageProblem::EveryZeroth),
        (reorder(Some(2.0), None), chance("probability", 2.0)),
        (
            stage("bottleneck", StageKind::Duplicate(DuplicateSpec { probability: 2.0, switches: vec![] })),
            chance("probability", 2.0),
        ),
        (
            stage("bottleneck", StageKind::Corrupt(CorruptSpec { probability: 2.0, switches: vec![] })),
            chance("probability", 2.0),
        ),
        (
            stage(
                "bottleneck",
                StageKind::Block(BlockSpec {
                    protocol: BlockedProtocol::Udp,
                    ports: Vec::new(),
                    switches: twice,
                }),
            ),
            unsorted("switches", 1, 5),
        ),
        (mtu(67), StageProblem::Mtu(67)),
        (mtu(65_536), StageProblem::Mtu(65_536)),
        (gilbert("bottleneck", 0.5, 2.0), run("good_packets", 0.5)),
        (gilbert("bottleneck", 5.0, 0.0), run("bad_packets", 0.0)),
        (gilbert("bottleneck", f64::INFINITY, 1.0), run("good_packets", f64::INFINITY)),
        (stage("bottleneck", StageKind::Loss(switched)), unsorted("switches", 1, 5)),
        (stage("bottleneck", StageKind::Delay(stepped)), unsorted("steps", 1, 3)),
        (link(steps(&[]), ten), StageProblem::NoSteps),
        (link(steps(&[(1, 8)]), ten), StageProblem::FirstStepLate(ns(1))),
        (link(steps(&[(0, 8), (7, 9), (7, 8)]), ten), unsorted("rate", 2, 7)),
        (link(square(1, 2, 1), ten), StageProblem::Period(ns(1))),
        (link(square(0, 0, 10), ten), StageProblem::NoRate),
        (link(steps(&[(0, 0), (5, 0)]), ten), StageProblem::NoRate),
        (link(RateSpec::Constant(bps(0)), ten), StageProblem::NoRate),
        (link(mega.clone(), Limit::Packets(0)), StageProblem::LimitPackets),
        (link(mega.clone(), Limit::Bytes(33)), StageProblem::LimitBytes { bytes: 33 }),
        (
            link(square(500_000, 1_000_000, 10), Limit::Time(ns(271_999))),
            StageProblem::LimitBytes { bytes: 33 },
        ),
        (StageSpec { name: String::new(), ..delay(ms(1)) }, StageProblem::EmptyName),
    ];
    for (stage, problem) in cases {
        let name = stage.name.clone();
        let expected = SpecError::Stage { direction: Direction::Down, stage: name, problem };
        assert_eq!(refusal(&[delay(ms(1)), stage]), expected);
    }
    let nan = refusal(&[bernoulli("loss", f64::NAN)]);
    assert!(matches!(nan, SpecError::Stage { problem: StageProblem::Probability { .. }, .. }));
}

#[test]
fn what_just_fits_is_accepted() {
    let mega = || RateSpec::Constant(bps(1_000_000));
    let good = [
        bernoulli("bottleneck", 1.0),
        gilbert("bottleneck", 1.0, 1.0),
        bottleneck(mega(), Limit::Packets(1)),
        bottleneck(mega(), Limit::Bytes(34)),
        bottleneck(mega(), Limit::Time(ns(272_000))),
        bottleneck(square(0, 1, 2), Limit::Packets(1)),
    ];
    for stage in good {
        assert!(Path::new(std::slice::from_ref(&stage), StageId(0), 1, Direction::Down).is_ok(), "{stage:?}");
    }
}

#[test]
fn messages_name_the_stage_and_what_is_wrong() {
    assert_eq!(
        refusal(&[gilbert("loss", 0.5, 2.0)]).to_string(),
        "path.down.loss: good_packets: a run has at least one packet, so its mean cannot be 0.5"
    );
    assert_eq!(
        refusal(&[delay(ms(1)), delay(ms(2))]).to_string(),
        "path.down: two stages are called \"delay\"; names are unique within it"
    );
    let none = Path::new(&[], StageId(0), 1, Direction::Up).unwrap_err();
    assert_eq!(none.to_string(), "path.up: no stages; give at least one (a delay of zero is the plain wire)");
    let copier = |n: u64| {
        let spec = DuplicateSpec { probability: 0.1, switches: vec![] };
        stage(&format!("d{n}"), StageKind::Duplicate(spec))
    };
    let nine: Vec<_> = (0..9).map(copier).collect();
    assert_eq!(
        refusal(&nine).to_string(),
        "path.down.d8: 9 duplicating stages in a direction are too many; there are at most 8"
    );
    let many =
        Path::new(&[delay(ms(1)), bernoulli("loss", 0.1)], StageId(255), 1, Direction::Up).unwrap_err();
    assert_eq!(many, SpecError::TooManyStages(Direction::Up, 257));
}

#[test]
fn json_as_a_scenario_is_lowered_to() {
    let json = r#"{
        "down": [
            {"name": "loss", "kind": {"loss": {"model": {"gilbert": {"good_packets": 99.0, "bad_packets": 2.0}},
                                               "switches": [[30000000000, false]]}}},
            {"name": "bottleneck", "kind": {"bottleneck": {
                "rate": {"square": {"first": 1000000, "second": 150000, "period": 20000000000}},
                "queue": {"droptail": {"time": 300000000}}, "layer": "ip"}}},
            {"name": "bursts", "kind": {"loss": {"model": {"gilbert_elliott": {
                "good_packets": 99.0, "bad_packets": 2.0, "loss_good": 0.0, "loss_bad": 0.5}}}}},
            {"name": "chosen", "kind": {"loss": {"model": {"list": {"packets": [3, 4, 9]}}}}},
            {"name": "delay", "kind": {"delay": {"delay": 10000000, "steps": [[5, 6]]}}},
            {"name": "wide", "kind": {"delay": {"delay": 10000000, "flows": [[0, 5000000], [2, 1000000]],
                "jitter": {"distribution": {"normal": {"deviation": 1000000}}, "switches": [[5, false]]}}}},
            {"name": "radio", "kind": {"delay": {"delay": 10000000, "jitter": {
                "distribution": {"table": {"quantiles": [0, 10, 500]}}, "keep_order": false}}}},
            {"name": "reorder", "kind": {"reorder": {"probability": 0.01, "extra": 4000000}}},
            {"name": "gap", "kind": {"reorder": {"every": 20, "extra": 4000000, "switches": [[0, false]]}}},
            {"name": "duplicate", "kind": {"duplicate": {"probability": 0.01}}},
            {"name": "corrupt", "kind": {"corrupt": {"probability": 0.01}}},
            {"name": "mtu", "kind": {"mtu": {"bytes": 1400}}},
            {"name": "block", "kind": {"block": {"protocol": "udp", "switches": [[0, false], [9, true]]}}}],
        "up": [{"name": "wire", "kind": {"delay": {"delay": 0}}}]}"#;
    let spec: PathSpec = serde_json::from_str(json).unwrap();
    assert!(Path::new(&spec.down, StageId(0), 1, Direction::Down).is_ok());
    assert_eq!(spec, serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap());
    let unknown = json.replace("\"layer\"", "\"layr\"");
    assert!(serde_json::from_str::<PathSpec>(&unknown).unwrap_err().to_string().contains("layr"));
}

#[test]
fn the_preflight_form_loses_nothing_and_never_changes() {
    let stages = [
        gilbert("loss", 3.0, 3.0),
        bottleneck(square(1_000_000, 1, 2_000), Limit::Packets(50)),
        stage(
            "delay",
            StageKind::Delay(DelaySpec {
                steps: vec![(ns(0), ms(20)), (ns(5), ms(1))],
                ..DelaySpec::constant(ms(9))
            }),
        ),
    ];
    let mut path = Path::new(&at_rest(&stages), StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..50 {
        path.enqueue(at(0), item(id, 1514), &mut log);
    }
    let left = follow(&mut path, at(1 << 62), &mut log);
    assert_eq!(left.len(), 50);
    assert!(left.iter().zip(1..).all(|(left, n)| left.at == at(n * 12_112_000 + 20_000_000)));
    assert_eq!(log.changes.len(), 3, "first values only");
    assert_eq!(log.count(0, Outcome::Delivered), 50, "the ids of the stages are those of the real path");

    let resting = [bottleneck(steps(&[(0, 0), (9, 300), (10, 500)]), Limit::Packets(50))];
    let StageKind::Bottleneck(frozen) = &at_rest(&resting)[0].kind else { panic!("a bottleneck") };
    assert_eq!(frozen.rate, RateSpec::Constant(bps(300)), "at rest there is nothing to measure");
}

#[test]
fn of_several_bottlenecks_the_preflight_leaves_the_slowest() {
    let named = |name: &str, rate| StageSpec { name: name.into(), ..bottleneck(rate, Limit::Packets(50)) };
    let fixed = |name: &str, rate| named(name, RateSpec::Constant(bps(rate)));
    let stages = [fixed("dsl", 700_000), fixed("radio", 35_000), fixed("far", 35_000)];
    assert_eq!(measured_bottleneck(&stages), Some(1));
    let mut path = Path::new(&at_rest(&stages), StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..60 {
        path.enqueue(at(0), item(id, 1514), &mut log);
    }
    let left = follow(&mut path, at(1 << 62), &mut log);
    assert_eq!(left.len(), 50, "what the first holds does not show");
    let transmission = bps(35_000).transmission_time(1514);
    let apart = |n: usize| left[n + 1].at.saturating_since(left[n].at);
    assert!((0..49).all(|n| apart(n).as_nanos().abs_diff(transmission.as_nanos()) <= 2));

    let dead_at_first = [fixed("dsl", 700_000), named("radio", steps(&[(0, 0), (9, 900_000)]))];
    assert_eq!(measured_bottleneck(&dead_at_first), Some(0), "by the rate at rest");
    assert_eq!(measured_bottleneck(&[gilbert("loss", 3.0, 3.0)]), None);
}

#[test]
fn a_queue_manager_by_its_name_alone_has_the_values_of_its_rfc() {
    let of = |json: &str| serde_json::from_str::<QueueSpec>(json).unwrap();
    assert_eq!(of(r#"{"codel": {}}"#), QueueSpec::Codel(CodelSpec::default()));
    assert_eq!(of(r#"{"fq_codel": {}}"#), QueueSpec::FqCodel(FqCodelSpec::default()));
    assert_eq!(of(r#"{"pie": {}}"#), QueueSpec::Pie(PieSpec::default()));
    let QueueSpec::Dualpi2(dual) = of(r#"{"dualpi2": {"l4s": {"step": 1000000}}}"#) else {
        panic!("DualPI2")
    };
    assert_eq!(dual, Dualpi2Spec { l4s: L4sMarking::Step(ms(1)), ..Dualpi2Spec::default() });
    assert!(
        serde_json::from_str::<QueueSpec>(r#"{"codel": {"taget": 1}}"#)
            .unwrap_err()
            .to_string()
            .contains("taget")
    );
    for queue in
        [QueueSpec::Codel(CodelSpec::default()), QueueSpec::Pie(PieSpec::default()), QueueSpec::Dualpi2(dual)]
    {
        assert_eq!(of(&serde_json::to_string(&queue).unwrap()), queue);
    }
}

#[test]
fn settings_of_queue_managers_that_contradict_each_other_are_refused() {
    let codel = |spec: CodelSpec| QueueSpec::Codel(spec);
    let none = Limit::Packets(0);
    let cases = [
        (
            codel(CodelSpec { target: ms(100), ..CodelSpec::default() }),
            "target is 100 ms; it must be shorter",
        ),
        (codel(CodelSpec { target: ms(0), ..CodelSpec::default() }), "target is 0 ms; it must be longer"),
        (codel(CodelSpec { limit: none, ..CodelSpec::default() }), "limit is 0 packets"),
        (QueueSpec::FqCodel(FqCodelSpec { limit: none, ..FqCodelSpec::default() }), "limit is 0 packets"),
        (
            QueueSpec::FqCodel(FqCodelSpec { flows: 0, ..FqCodelSpec::default() }),
            "flows is 0; it must be between 1",
        ),
        (QueueSpec::FqCodel(FqCodelSpec { quantum: 255, ..FqCodelSpec::default() }), "quantum is 255 bytes"),
        (QueueSpec::FqCodel(FqCodelSpec { interval: ms(5), ..FqCodelSpec::default() }), "target is 5 ms"),
        (QueueSpec::Pie(PieSpec { update: ms(0), ..PieSpec::default() }), "update is 0 ms"),
        (QueueSpec::Pie(PieSpec { alpha: f64::NAN, ..PieSpec::default() }), "alpha is NaN"),
        (QueueSpec::Pie(PieSpec { mark_below: 1.5, ..PieSpec::default() }), "mark_below is 1.5"),
        (QueueSpec::Pie(PieSpec { limit: Limit::Time(ms(15)), ..PieSpec::default() }), "target is 15 ms"),
        (QueueSpec::Dualpi2(Dualpi2Spec { update: ms(0), ..Dualpi2Spec::default() }), "update is 0 ms"),
        // A second of it would be a million updates, even without packets.
        (QueueSpec::Pie(PieSpec { update: ns(1_000), ..PieSpec::default() }), "it must be at least 0.01 ms"),
        (QueueSpec::Dualpi2(Dualpi2Spec { coupling: 0.0, ..Dualpi2Spec::default() }), "coupling is 0"),
        (QueueSpec::Dualpi2(Dualpi2Spec { limit: Limit::Bytes(33), ..Dualpi2Spec::default() }), "33 bytes"),
        (
            QueueSpec::Dualpi2(Dualpi2Spec {
                scheduler: DualScheduler::Weighted { classic_percent: 0 },
                ..Dualpi2Spec::default()
            }),
            "classic_percent is 0; it must be between 1 and 99",
        ),
    ];
    for (queue, words) in cases {
        let message = refusal(&[aqm::managed(queue, 1_000_000)]).to_string();
        assert!(message.starts_with("path.down.bottleneck: ") && message.contains(words), "{message}");
    }
}

#[test]
fn the_preflight_measures_any_queue_as_drop_tail_of_its_limit() {
    let limit = Limit::Packets(77);
    let managed = [
        QueueSpec::Codel(CodelSpec { limit, ..CodelSpec::default() }),
        QueueSpec::FqCodel(FqCodelSpec { limit, ..FqCodelSpec::default() }),
        QueueSpec::Pie(PieSpec { limit, ..PieSpec::default() }),
        QueueSpec::Dualpi2(Dualpi2Spec::default()).with_limit(limit),
    ];
    for queue in managed {
        let StageKind::Bottleneck(resting) = &at_rest(&[aqm::managed(queue, 1_000_000)])[0].kind else {
            panic!("a bottleneck")
        };
        assert_eq!(resting.queue, QueueSpec::Droptail(limit));
    }
}
