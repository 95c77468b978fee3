//! Players of named content behind one forwarder.

mod common;

use common::*;
use streamgauge_base::{Duration, Outcome, PacketKind, Protocol};
use streamgauge_path::spec::Limit;
use streamgauge_plan::{RelaySide, RelaySpec, TcpSpec, TrialPlan};
use streamgauge_sim::simulate;
use streamgauge_systems::ccn::consumer::window::Retransmission;
use streamgauge_systems::ccn::spec::Fragmentation;
use streamgauge_systems::ccn::{CcnForwarderSpec, CcnSettings, CcnSpec};
use streamgauge_systems::media::{ClipSpec, LadderSpec, LevelSpec};
use streamgauge_systems::{Relay, System};

/// Makes a ladder of 10 s at 400 kbit/s.
fn ladder() -> LadderSpec {
    let clip = ClipSpec {
        name: "test".into(),
        duration: Duration::from_secs(10),
        frame_interval: ms(40),
        frame_bytes: vec![2000; 50].into(),
        key_frames: vec![0].into(),
        ..ClipSpec::default()
    };
    let level = LevelSpec { bit_rate_bps: 400_000, size: (320, 180), clip };
    LadderSpec { name: "test".into(), segment: Duration::from_secs(2), video: vec![level], audio: None }
}

/// Makes two viewings, at 0 s and `after` seconds later, over 1 Mbit/s and faces over TCP.
fn viewings(store_bytes: u64, at: RelaySide, after: u64) -> TrialPlan {
    let spec = CcnSpec { ladder: ladder(), tcp: Some(TcpSpec::default()), ..CcnSpec::usual() };
    viewings_of(spec, store_bytes, at, after)
}

/// Makes the same over UDP, where the path loses packets of both directions with `probability`.
fn by_udp(at: RelaySide, after: u64, probability: f64, fragmentation: Fragmentation) -> TrialPlan {
    let usual = CcnSpec::usual();
    // A measured timer stalls less, and asks again for packets that are only late.
    let lossy = probability > 0.0;
    let retransmission = if lossy { Retransmission::Rto } else { Retransmission::Lifetime };
    let network = CcnSettings { retransmission, interest_tries: 20, fragmentation, ..usual.network.clone() };
    let mut plan = viewings_of(CcnSpec { ladder: ladder(), network, ..usual }, STORE, at, after);
    // A segment is 13 Data of six datagrams, all asked for at once.
    plan.path.down = vec![loss(probability), bottleneck(1_000_000, Limit::Packets(200)), delay(25)];
    plan.path.up.insert(0, loss(probability));
    plan
}

fn viewings_of(spec: CcnSpec, store_bytes: u64, at: RelaySide, after: u64) -> TrialPlan {
    let app = spec.app();
    let mut first = flow("first", app.clone());
    let mut second = starting(flow("second", app), Duration::from_secs(after));
    (first.via, second.via) = (Some("home".into()), Some("home".into()));
    let mut plan = plan(path(1_000_000, Limit::Packets(50), 25), vec![first, second], 60, 1);
    let (fragmentation, tcp) = (spec.network.fragmentation, spec.tcp);
    let forwarder = CcnForwarderSpec { store_bytes, fragmentation, tcp, ..CcnForwarderSpec::usual() };
    plan.relays = vec![RelaySpec { name: "home".into(), at, app: forwarder.app() }];
    plan
}

/// Returns the bytes of payload by flow that crossed the bottleneck.
fn crossed(rows: &Rows, flow: u16) -> u64 {
    let delivered = rows.at(flow, 0).filter(|(fate, ..)| fate.outcome == Outcome::Delivered);
    delivered.map(|(_, info, _)| u64::from(info.payload_bytes)).sum()
}

fn shown(rows: &Rows, flow: u16) -> usize {
    rows.named("frame_shown").iter().filter(|event| event.flow.unwrap().0 == flow).count()
}

const STORE: u64 = 10_000_000;

#[test]
fn the_second_viewing_is_served_out_of_the_store() {
    let (_, rows) = Rows::of(&viewings(STORE, RelaySide::Client, 30));
    let once = crossed(&rows, 2);
    assert!((500_000..600_000).contains(&once), "{once}");
    assert_eq!((crossed(&rows, 0), crossed(&rows, 1)), (0, 0));
    assert_eq!((shown(&rows, 0), shown(&rows, 1)), (250, 250));
    assert!(rows.named("stall").is_empty() && rows.named("face_down").is_empty());
    let told = rows.named("forwarder");
    assert!(told.iter().any(|event| event.flow.unwrap().0 == 2 && !event.reason.starts_with("0 out of")));
}

#[test]
fn over_udp_the_second_viewing_is_served_out_of_the_store_too() {
    let (_, rows) = Rows::of(&by_udp(RelaySide::Client, 30, 0.0, Fragmentation::Ndnlp));
    let once = crossed(&rows, 2);
    assert!((500_000..600_000).contains(&once), "{once}");
    assert_eq!((crossed(&rows, 0), crossed(&rows, 1)), (0, 0));
    assert_eq!((shown(&rows, 0), shown(&rows, 1)), (250, 250));
    for none in ["stall", "face_down", "interest_timeout", "object_failed", "connection_refused"] {
        assert!(rows.named(none).is_empty(), "{none}");
    }
    // Data are cut by the forwarders, not by the hosts, and there is no TCP.
    let is_whole_udp =
        |item: &streamgauge_base::Item| item.protocol == Protocol::Udp && item.fragment.is_whole();
    assert!(rows.rows.iter().all(|(fate, ..)| is_whole_udp(&fate.item)));
    let kinds = |stage| rows.at(2, stage).map(|(_, info, _)| info.kind).collect::<Vec<_>>();
    assert!(kinds(0).contains(&PacketKind::Media) && !kinds(3).contains(&PacketKind::Media));
}

#[test]
fn what_is_lost_over_udp_the_consumers_ask_for_again() {
    for at in [RelaySide::Client, RelaySide::Server] {
        let (_, rows) = Rows::of(&by_udp(at, 5, 0.01, Fragmentation::Ndnlp));
        assert!(!rows.named("interest_timeout").is_empty());
        assert!(rows.named("object_failed").is_empty() && rows.named("face_down").is_empty());
        assert_eq!((shown(&rows, 0), shown(&rows, 1)), (250, 250), "{at:?}");
    }
}

#[test]
fn over_udp_a_forwarder_at_the_server_answers_each_player_under_its_flows_name() {
    for fragmentation in [Fragmentation::Ndnlp, Fragmentation::Ip] {
        let (_, rows) = Rows::of(&by_udp(RelaySide::Server, 30, 0.0, fragmentation));
        assert!(crossed(&rows, 0) > 500_000 && crossed(&rows, 1) > 500_000);
        assert_eq!((crossed(&rows, 2), shown(&rows, 0), shown(&rows, 1)), (0, 250, 250));
        // The relay, which sends them across the path, decides how they are cut.
        let cut = rows.rows.iter().any(|(fate, ..)| !fate.item.fragment.is_whole());
        assert_eq!(cut, fragmentation == Fragmentation::Ip);
    }
}

#[test]
fn without_a_store_a_later_viewing_crosses_again_and_a_simultaneous_one_does_not() {
    let (_, rows) = Rows::of(&viewings(0, RelaySide::Client, 30));
    let twice = crossed(&rows, 2);
    assert!(twice > 1_000_000, "{twice}");
    // Both ask at the same time: the second waits with the first.
    let (_, rows) = Rows::of(&viewings(0, RelaySide::Client, 0));
    let once = crossed(&rows, 2);
    assert!((500_000..700_000).contains(&once), "{once}");
    assert_eq!((shown(&rows, 0), shown(&rows, 1)), (250, 250));
}

#[test]
fn a_forwarder_at_the_server_saves_the_path_nothing() {
    let (_, rows) = Rows::of(&viewings(STORE, RelaySide::Server, 30));
    assert!(crossed(&rows, 0) > 500_000 && crossed(&rows, 1) > 500_000);
    assert_eq!(crossed(&rows, 2), 0);
}

#[test]
fn a_store_at_its_limit_lets_go_and_serves_on() {
    let (_, rows) = Rows::of(&viewings(100_000, RelaySide::Client, 30));
    assert!(crossed(&rows, 2) > 900_000, "most of the first viewing is gone when the second comes");
    assert_eq!((shown(&rows, 0), shown(&rows, 1)), (250, 250));
}

#[test]
fn a_record_with_a_forwarder_balances_and_is_the_same_again() {
    let plans = [RelaySide::Client, RelaySide::Server]
        .map(|at| [viewings(STORE, at, 5), by_udp(at, 5, 0.01, Fragmentation::Ndnlp)]);
    for (nth, plan) in plans.into_iter().flatten().enumerate() {
        let folder =
            std::env::temp_dir().join(format!("streamgauge-ccn-forwarder-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [one, again] = [(); 2].map(|()| simulate(&plan, &folder).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(one.imbalance.is_empty(), "{:?}", one.imbalance);
        assert_eq!((one.packets_digest, one.events_digest), (again.packets_digest, again.events_digest));
    }
}
