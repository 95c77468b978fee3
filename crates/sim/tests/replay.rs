//! A record replays without a difference, under every queue discipline, and a record that was tampered with
//! does not.

mod common;

use std::path::PathBuf;

use common::*;
use streamgauge_base::Duration;
use streamgauge_path::spec::*;
use streamgauge_plan::{Entry, TrialPlan};
use streamgauge_sim::{PathPlan, Summary, replay, simulate};

fn managed(queue: QueueSpec) -> PathSpec {
    let StageKind::Bottleneck(link) = bottleneck(2_000_000, Limit::Packets(60)).kind else { unreachable!() };
    let link = StageKind::Bottleneck(BottleneckSpec { queue, ..link });
    let link = StageSpec { name: "bottleneck".into(), kind: link, changes: vec![] };
    PathSpec { down: vec![loss(0.01), link, delay(10)], up: vec![delay(10)] }
}

/// Makes two TCP flows, one CBR flow that enters at the router, and a ping.
fn trial(path: PathSpec) -> TrialPlan {
    let mut cross = cbr("cross", 75.0, 500, &[]);
    cross.entry = Entry::Router;
    let flows = vec![bulk("a", "cubic", 1 << 20), bulk("b", "reno", 1 << 20), cross];
    plan(path, flows, 8, 5)
}

fn of(plan: &TrialPlan) -> PathPlan {
    PathPlan { path: plan.path.clone(), seed: plan.seed }
}

/// Runs `plan` in the folder and returns where its packets are.
fn recorded(plan: &TrialPlan, folder: &Folder) -> (Summary, PathBuf) {
    (simulate(plan, &folder.0).unwrap(), folder.0.join("packets.parquet"))
}

#[test]
fn a_trial_replays_under_every_discipline() {
    let limit = Limit::Packets(60);
    let queues = [
        QueueSpec::Droptail(limit),
        QueueSpec::Codel(CodelSpec { limit, ..CodelSpec::default() }),
        QueueSpec::FqCodel(FqCodelSpec { limit, flows: 2, ..FqCodelSpec::default() }),
        QueueSpec::Pie(PieSpec { limit, ..PieSpec::default() }),
        QueueSpec::Dualpi2(Dualpi2Spec { limit, ..Dualpi2Spec::default() }),
    ];
    let folder = Folder::new("replay-queues");
    for queue in queues {
        let plan = trial(managed(queue.clone()));
        let (summary, packets) = recorded(&plan, &folder);
        let found = replay(&of(&plan), &packets).unwrap();
        assert_eq!((found.different, &found.first), (0, &None), "{queue:?}");
        assert_eq!(Some(found.rows), summary.rows);
        assert!(found.rows > 2_000, "{}", found.rows);
        // Another seed loses other packets; another delay is another path.
        let other = PathPlan { seed: plan.seed + 1, ..of(&plan) };
        assert!(replay(&other, &packets).unwrap().different > 0);
        let mut other = of(&plan);
        other.path.down[2].kind = StageKind::Delay(DelaySpec::constant(Duration::from_nanos(10_000_001)));
        let found = replay(&other, &packets).unwrap();
        assert!(found.different > 500 && found.first.unwrap().contains("path.down.delay"));
    }
}

/// FQ-CoDel makes room in one nanosecond with the arrivals of a burst, which then find less than those before them.
#[test]
fn bursts_at_a_queue_that_makes_room_replay() {
    let limit = Limit::Packets(20);
    let mut path = managed(QueueSpec::FqCodel(FqCodelSpec { limit, ..FqCodelSpec::default() }));
    path.down.remove(0);
    let bursts = cbr_in_bursts("bursts", 400.0, 1000, 10);
    let plan = plan(path, vec![bulk("bulk", "cubic", 1 << 20), bursts], 3, 1);
    let folder = Folder::new("replay-bursts");
    let (summary, packets) = recorded(&plan, &folder);
    let found = replay(&of(&plan), &packets).unwrap();
    assert_eq!((found.different, &found.first), (0, &None));
    assert!(summary.rows.unwrap() > 1_000);
}

#[test]
fn copies_fragments_and_jitter_replay() {
    let stage = |name: &str, kind| StageSpec { name: name.into(), kind, changes: vec![] };
    let switches = Vec::new();
    let mut path = managed(QueueSpec::Droptail(Limit::Bytes(30_000)));
    path.down.insert(0, stage("mtu", StageKind::Mtu(MtuSpec { bytes: 1000, switches: switches.clone() })));
    let twice = DuplicateSpec { probability: 0.05, switches: switches.clone() };
    path.down.insert(1, stage("twice", StageKind::Duplicate(twice)));
    let late = ReorderSpec { probability: Some(0.05), every: None, extra: ms(5), switches: switches.clone() };
    path.down.push(stage("reorder", StageKind::Reorder(late)));
    path.up.insert(0, stage("corrupt", StageKind::Corrupt(CorruptSpec { probability: 0.02, switches })));
    let mut plan = trial(path);
    // TCP forbids fragmentation; this flow is cut up.
    plan.flows.push(cbr("long", 100.0, 1400, &[]));
    let folder = Folder::new("replay-copies");
    let (summary, packets) = recorded(&plan, &folder);
    let found = replay(&of(&plan), &packets).unwrap();
    assert_eq!((found.different, &found.first), (0, &None));
    assert_eq!(Some(found.rows), summary.rows);
}
