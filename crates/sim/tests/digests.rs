//! The same plan and seed give the same record: in debug and release, on one thread and on many, on every machine.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;

use common::*;
use streamgauge_base::{BitRate, Duration};
use streamgauge_path::spec::{Limit, LossModel, LossSpec, PathSpec, RateSpec, StageKind, StageSpec};
use streamgauge_plan::{Entry, TrialPlan};
use streamgauge_sim::{MODEL_VERSION, simulate, simulate_many};

/// Plans that between them use every model.
fn plans() -> Vec<(&'static str, TrialPlan)> {
    let mut mgen = cbr("mgen", 90.0, 1000, &[(3_000, 9_000)]);
    mgen.entry = Entry::Router;
    let ftp = plan(
        path(1_000_000, Limit::Packets(100), 10),
        vec![bulk("ftp", "reno", 16 << 10), mgen.clone()],
        20,
        7,
    );

    let lossy = PathSpec {
        down: vec![loss(0.01), bottleneck(5_000_000, Limit::Bytes(30_000)), delay(15)],
        up: vec![loss(0.005), delay(15)],
    };
    let shared = vec![bulk("reno", "reno", 1 << 20), bulk("cubic", "cubic", 1 << 20), ping("ping", 200, 56)];
    let shared = plan(lossy, shared, 20, 7);

    let gilbert = LossSpec {
        model: LossModel::Gilbert { good_packets: 11.63, bad_packets: 1.78 },
        switches: vec![(ms(0), false), (ms(4_000), true), (ms(8_000), false)],
    };
    let mut square = bottleneck(1, Limit::Time(ms(300)));
    if let StageKind::Bottleneck(spec) = &mut square.kind {
        let (first, second) = (BitRate::from_bps(400_000), BitRate::from_bps(1_600_000));
        spec.rate = RateSpec::Square { first, second, period: Duration::from_secs(4) };
    }
    let varying = PathSpec {
        down: vec![
            StageSpec { name: "loss".into(), kind: StageKind::Loss(gilbert), changes: vec![] },
            square,
            delay(10),
        ],
        up: vec![delay(10)],
    };
    let video = plan(varying.clone(), vec![rtp("video", 15, None), mgen.clone()], 20, 7);
    let stream = plan(varying, vec![rtp("video", 15, Some(tcp("cubic", 128 << 10))), mgen], 20, 7);

    let mut plans = vec![("ftp", ftp), ("shared", shared), ("video", video), ("stream", stream)];
    for (_, plan) in &mut plans {
        plan.host_jitter = Duration::from_micros(200);
    }
    plans
}

fn digests(plan: &TrialPlan, directory: &Path) -> [String; 2] {
    let summary = simulate(plan, directory).unwrap();
    assert_eq!(summary.imbalance, Vec::<String>::new());
    [summary.packets_digest.unwrap(), summary.events_digest.unwrap()]
}

/// A run of this in debug and in release shows that both give the agreed record.
#[test]
fn records_are_those_agreed_on() {
    let folder = Folder::new("agreed");
    let mut found = format!("model {MODEL_VERSION}\n");
    for (name, plan) in plans() {
        let [packets, events] = digests(&plan, &folder.0);
        writeln!(found, "{name} packets {packets}\n{name} events {events}").unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/digests.txt");
    if std::env::var_os("STREAMGAUGE_AGREE").is_some() {
        std::fs::write(&file, &found).unwrap();
    }
    let agreed = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        found, agreed,
        "the records differ from tests/digests.txt. If a model was changed on purpose, raise MODEL_VERSION and run \
         this test once with STREAMGAUGE_AGREE=1"
    );
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes half a minute in debug")]
fn one_thread_gives_what_many_give() {
    let folder = Folder::new("threads");
    let mut records = Vec::new();
    for threads in [1, 4] {
        let trials: Vec<_> = (0..3)
            .flat_map(|seed| plans().into_iter().map(move |(name, plan)| (name, TrialPlan { seed, ..plan })))
            .map(|(name, plan)| {
                let directory = folder.sub(&format!("{name}-{}-{threads}", plan.seed));
                (plan, directory)
            })
            .collect();
        let done = simulate_many(&trials, NonZeroUsize::new(threads));
        records.push(done.into_iter().map(|r| r.unwrap()).collect::<Vec<_>>());
        assert!(trials.iter().all(|(_, directory)| directory.join("packets.parquet").is_file()));
    }
    assert_eq!(records[0].len(), 12);
    assert_eq!(records[0], records[1]);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes half a minute in debug")]
fn another_seed_gives_another_record() {
    let folder = Folder::new("seeds");
    for (name, plan) in plans() {
        let seen: BTreeSet<_> =
            (0..4).map(|seed| digests(&TrialPlan { seed, ..plan.clone() }, &folder.0)[0].clone()).collect();
        assert_eq!(seen.len(), 4, "{name}");
    }
}

#[test]
fn a_flow_that_never_sends_changes_nothing_for_the_others() {
    for (name, plan) in plans() {
        let mut more = plan.clone();
        more.flows.push(cbr("silent", 100.0, 1000, &[(100_000, 101_000)]));
        let (before, after) = (Rows::of(&plan).1, Rows::of(&more).1);
        assert_eq!(before.rows, after.rows, "{name}");
        assert_eq!(before.events, after.events, "{name}");
    }
}

#[test]
fn recording_changes_nothing_in_the_trial() {
    for (name, plan) in plans() {
        let (without, ()) = streamgauge_sim::run(&plan, ()).unwrap();
        assert_eq!(without, Rows::of(&plan).0, "{name}");
    }
}
