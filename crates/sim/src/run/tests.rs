//! The state kept of connections that are over.

#[path = "../../../systems/src/testing/opener.rs"]
mod opener;

use opener::{Client, Ending, Server, Shared, listener};
use streamgauge_base::BitRate;
use streamgauge_path::spec::{
    BottleneckSpec, DelaySpec, Layer, Limit, PathSpec, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec,
};
use streamgauge_plan::{Entry, Keep, Protocols, Role};
use streamgauge_systems::System;
use streamgauge_systems::bulk::BulkSpec;

use super::*;

fn plan() -> TrialPlan {
    let kind = StageKind::Bottleneck(BottleneckSpec {
        rate: RateSpec::Constant(BitRate::from_bps(1_000_000_000)),
        shaper: ShaperSpec::Serial,
        queue: QueueSpec::Droptail(Limit::Packets(10_000)),
        layer: Layer::Ethernet,
    });
    let down = vec![StageSpec { name: "bottleneck".into(), kind, changes: vec![] }];
    let kind = StageKind::Delay(DelaySpec::constant(Duration::from_millis(1)));
    let up = vec![StageSpec { name: "delay".into(), kind, changes: vec![] }];
    let app = BulkSpec::usual().app();
    let (start, role, entry) = (Duration::ZERO, Role::Subject, Entry::Server);
    TrialPlan {
        scenario: "test/plan".into(),
        seed: 1,
        duration: Duration::from_secs(300),
        until_media_end: None,
        until_idle: None,
        path: PathSpec { down, up },
        flows: vec![FlowSpec {
            name: "x".into(),
            role,
            entry,
            direction: Default::default(),
            start,
            actions: Vec::new(),
            protocols: Protocols::default(),
            tcp: None,
            via: None,
            content: None,
            app,
        }],
        relays: Vec::new(),
        host_jitter: Duration::ZERO,
        keep: Keep::Metrics,
        tcp_sample: None,
        limits: Default::default(),
        marks: vec![],
    }
}

/// Returns the state that server and player keep after two thousand connections; the last of them is later than
/// TIME-WAIT.
fn kept(client: Ending, server: Ending, port: u16) -> [[usize; 3]; 2] {
    let seen = Shared::default();
    let mut client = Client::new(2_000, 50, port, client, &seen);
    client.rest = Some((1_999, Duration::from_secs(61)));
    let server = Server::new(Some(listener(80, 4_096)), 2_000, server, &seen);
    let mut made =
        Some(Machines { channels: Vec::new(), server: Box::new(server), player: Box::new(client) });
    let machines = |_: &FlowSpec| Ok(made.take().expect("one flow"));
    let relays = |_: &RelaySpec| unreachable!("there is none");
    let plan = plan();
    let mut trial = Trial::new(&plan, machines, relays, ()).unwrap();
    trial.run(&plan).unwrap();
    assert_eq!(seen.lock().unwrap().outcomes.len(), 2_000);
    [trial.endpoints[0].kept(), trial.endpoints[1].kept()]
}

#[test]
fn nothing_is_kept_of_what_is_over_but_a_time_wait_and_its_port() {
    let listener = [1, 0, 0];
    // The end that finishes first waits: with its last connection alone, as the others' time is over.
    assert_eq!(kept(Ending::First, Ending::After, 80), [listener, [0, 1, 1]]);
    assert_eq!(kept(Ending::After, Ending::First, 80), [[1, 1, 0], [0, 0, 0]]);
    // Both, where neither waits for the other: their FINs cross.
    assert_eq!(kept(Ending::First, Ending::First, 80), [[1, 1, 0], [0, 1, 1]]);
    // An end that is reset, or that resets, keeps nothing; a refused one does not either.
    assert_eq!(kept(Ending::After, Ending::Reset, 80), [listener, [0, 0, 0]]);
    assert_eq!(kept(Ending::Reset, Ending::First, 80), [listener, [0, 0, 0]]);
    assert_eq!(kept(Ending::First, Ending::First, 81), [listener, [0, 0, 0]]);
}
