//! Machines that flows share at one side of the path.

mod common;
#[path = "relay/datagrams.rs"]
mod datagrams;
#[path = "../../systems/src/testing/opener.rs"]
mod opener;
#[path = "relay/splice.rs"]
mod splice;

use common::*;
use datagrams::{Answering, Asking, Handed, Passing, begins, udp};
use opener::{Client, Ending, Seen, Server, Shared, listener};
use proptest::prelude::*;
use splice::{Passed, Splice};
use streamgauge_base::{Duration, Ecn, Fate, Instant, Outcome};
use streamgauge_path::spec::{Limit, PathSpec};
use streamgauge_plan::{AppSpec, Entry, RelaySide, RelaySpec, TcpSpec, TrialPlan};
use streamgauge_sim::{SimError, Summary, run, run_made};
use streamgauge_systems::media::Contents;
use streamgauge_systems::{Carrier, Channel, ChannelId, Machines, Peer, RelayMachine};

/// Makes flows that pass through one relay and, first of all, one that does not.
fn through(users: usize, at: RelaySide, probability: f64, seed: u64) -> TrialPlan {
    let down = vec![loss(probability), bottleneck(10_000_000, Limit::Packets(100)), delay(10)];
    let up = vec![loss(probability), delay(10)];
    let mut flows = vec![cbr("own", 50.0, 1_000, &[])];
    for nth in 0..users {
        let mut flow = bulk(&format!("user{nth}"), "cubic", 1 << 20);
        flow.via = Some("home".into());
        flow.start = ms(7 * nth as u64);
        flows.push(flow);
    }
    let mut plan = plan(PathSpec { down, up }, flows, 60, seed);
    plan.host_jitter = Duration::from_micros(200);
    plan.relays = vec![RelaySpec { name: "home".into(), at, app: AppSpec::external() }];
    plan
}

fn relay_machine(splice: Splice) -> RelayMachine {
    let carrier = Carrier::Listener { port: 80, settings: TcpSpec::default(), backlog: 128 };
    RelayMachine { channels: vec![Channel { id: ChannelId(0), carrier }], app: Box::new(splice) }
}

/// Runs a client and a server for each flow that passes through a relay which listens on port 80.
fn trial(plan: &TrialPlan, count: u32, answer: usize, port: u16) -> (Summary, Rows, Vec<Seen>, Passed) {
    let seen: Vec<Shared> = plan.flows.iter().map(|_| Shared::default()).collect();
    let relay = Splice { port, ..Splice::default() };
    let passed = relay.passed.clone();
    let mut relay = Some(relay);
    let mut of_flow = seen.iter();
    let machines = |spec: &streamgauge_plan::FlowSpec| {
        let seen = of_flow.next().expect("flows are made in their order");
        if spec.via.is_none() {
            return Ok(streamgauge_systems::machines(spec, plan.seed, &Contents::NONE)?);
        }
        let client = Client::new(count, 8, 80, Ending::After, seen);
        let server = Server::new(Some(listener(81, 128)), answer, Ending::First, seen);
        Ok(Machines { channels: Vec::new(), server: Box::new(server), player: Box::new(client) })
    };
    let relays = |_: &RelaySpec| Ok(relay_machine(relay.take().expect("one relay")));
    let (summary, rows) = run_made(plan, machines, relays, Rows::default()).unwrap();
    let seen = seen.iter().map(|seen| std::mem::take(&mut *seen.lock().unwrap())).collect();
    let passed = std::mem::take(&mut *passed.lock().unwrap());
    (summary, rows, seen, passed)
}

/// Returns the payload bytes of a flow that left the first stage of a direction.
fn payload(rows: &Rows, flow: usize, stage: u8) -> u64 {
    let left = rows.at(flow as u16, stage).filter(|(fate, ..)| fate.outcome == Outcome::Delivered);
    left.map(|(_, info, _)| u64::from(info.payload_bytes)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Every byte passes through the relay once and in order, each packet on the path is counted under one name, and
    /// the same trial again is the same trial.
    #[test]
    fn what_goes_through_a_relay_arrives_and_is_counted_once(
        users in 1usize..5,
        client_side in any::<bool>(),
        count in 1u32..12,
        answer in 1usize..40_000,
        probability in prop::sample::select(vec![0.0, 0.02]),
        seed in 0u64..1_000,
    ) {
        let at = if client_side { RelaySide::Client } else { RelaySide::Server };
        let plan = through(users, at, probability, seed);
        let (summary, rows, seen, passed) = trial(&plan, count, answer, 81);
        for (nth, seen) in seen.iter().skip(1).enumerate() {
            prop_assert_eq!(seen.outcomes.len(), count as usize, "{:?}", seen);
            prop_assert!(seen.outcomes.iter().all(|one| one.bytes == answer && one.end == "finished"), "{:?}", seen);
            prop_assert_eq!(passed.accepted.get(&Peer(nth as u16)), Some(&(count as usize)));
        }
        let wanted = users as u64 * u64::from(count) * answer as u64;
        let relay = users + 1;
        let shared: u64 = payload(&rows, relay, 0);
        let own: u64 = (1..relay).map(|flow| payload(&rows, flow, 0)).sum();
        // Across the path the relay's own name has the packets that it shares with the servers, and flows have those
        // that are theirs alone.
        let (counted, none) = if client_side { (shared, own) } else { (own, shared) };
        prop_assert!(counted >= wanted, "{} of {}", counted, wanted);
        prop_assert_eq!(none, 0);
        prop_assert!(payload(&rows, 0, 0) > 0);
        prop_assert_eq!(summary.relays.len(), 1);
        prop_assert!(summary.relays[0].sent_bytes >= wanted && summary.relays[0].received_bytes >= wanted);
        let (_, again, ..) = trial(&plan, count, answer, 81);
        prop_assert_eq!(rows.rows, again.rows);
        prop_assert_eq!(rows.events, again.events);
    }
}

#[test]
fn packets_of_relays_are_conserved() {
    for at in [RelaySide::Client, RelaySide::Server] {
        let plan = through(3, at, 0.02, 1);
        let legend = streamgauge_plan::Legend::of(&plan);
        let names: Vec<&str> = legend.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["own", "user0", "user1", "user2", "home"]);
        assert!(legend.flows[4].subject);
        let (_, rows, ..) = trial(&plan, 10, 30_000, 81);
        let mut ids = std::collections::BTreeMap::new();
        for (fate, ..) in &rows.rows {
            assert!(usize::from(fate.item.flow.0) < names.len());
            // Every packet leaves a stage once.
            assert!(ids.insert((fate.stage, fate.item.id), ()).is_none());
        }
    }
}

/// A hundred streams at once of each of two flows, most of them from ports that both players have.
#[test]
fn streams_of_several_players_are_told_apart() {
    let mut plan = through(2, RelaySide::Client, 0.0, 1);
    plan.flows[2].start = plan.flows[1].start;
    let (_, _, seen, passed) = trial(&plan, 100, 5_000, 81);
    for seen in &seen[1..] {
        assert!(seen.outcomes.len() == 100 && seen.outcomes.iter().all(|one| one.bytes == 5_000), "{seen:?}");
    }
    assert_eq!(passed.accepted.len(), 2);
}

#[test]
fn a_server_that_is_not_there_refuses_the_relay_within_a_round_trip() {
    let plan = through(1, RelaySide::Client, 0.0, 1);
    let (_, rows, seen, passed) = trial(&plan, 1, 100, 82);
    assert_eq!(passed.refused.len(), 1);
    assert!(passed.refused[0].starts_with("no listener on port 82"), "{passed:?}");
    assert_eq!(rows.named("connection_refused").len(), 1);
    assert_eq!(rows.named("connection_refused")[0].flow.map(|flow| flow.0), Some(2));
    assert_eq!(seen[1].outcomes.iter().map(|one| one.end.as_str()).collect::<Vec<_>>(), ["reset"]);
}

/// Returns each player's datagrams, and the observations of the relay, which listens at a port of UDP.
fn by_datagrams(plan: &TrialPlan, relay: Passing) -> (Rows, Vec<Vec<(u8, u8)>>, Handed) {
    let (mut got, mut number) = (Vec::new(), 0);
    let machines = |spec: &streamgauge_plan::FlowSpec| {
        if spec.via.is_none() {
            return Ok(streamgauge_systems::machines(spec, plan.seed, &Contents::NONE)?);
        }
        let player = Asking::new(100);
        got.push(player.came.clone());
        number += 1;
        let server = Box::new(Answering(number));
        Ok(Machines { channels: begins(udp(6363)), server, player: Box::new(player) })
    };
    let (handed, mut relay) = (relay.handed.clone(), Some(relay));
    let relays = |_: &RelaySpec| {
        let channels = begins(Carrier::UdpListener { port: 6363, ecn: Ecn::Ect0 });
        Ok(RelayMachine { channels, app: Box::new(relay.take().expect("one relay")) })
    };
    let (_, rows) = run_made(plan, machines, relays, Rows::default()).unwrap();
    let got = got.iter().map(|came| came.lock().unwrap().clone()).collect();
    let handed = std::mem::take(&mut *handed.lock().unwrap());
    (rows, got, handed)
}

#[test]
fn datagrams_reach_each_flows_own_server_and_its_answers_its_player() {
    for at in [RelaySide::Client, RelaySide::Server] {
        let plan = through(3, at, 0.0, 1);
        let (rows, got, handed) = by_datagrams(&plan, Passing::at(6363));
        for (nth, came) in (1..).zip(&got) {
            assert_eq!(*came, (0..100).map(|number| (nth, number)).collect::<Vec<_>>());
        }
        assert_eq!(handed.accepted, [Peer(0), Peer(1), Peer(2)]);
        assert!(handed.refused.is_empty(), "{handed:?}");
        // Counted as the relay's, or as the flows'.
        let flows = if at == RelaySide::Client { 4..5 } else { 1..4 };
        assert_eq!(flows.map(|flow| payload(&rows, flow, 0)).sum::<u64>(), 300 * 902);
        // The relay's packets across the path have the ECN field of the channel to the servers, or of its listener.
        let (stage, ecn) = if at == RelaySide::Client { (3, Ecn::NotEct) } else { (0, Ecn::Ect0) };
        let entered = |fate: &Fate| fate.item.flow.0 > 0 && fate.stage.0 == stage;
        let sent: Vec<Ecn> =
            rows.rows.iter().filter(|row| entered(&row.0)).map(|row| row.0.item.ecn).collect();
        assert_eq!(sent, [ecn; 300]);
        assert_eq!(rows.rows, by_datagrams(&plan, Passing::at(6363)).0.rows);
    }
}

#[test]
fn a_relay_sends_datagrams_to_its_servers_from_where_it_listens_and_loses_what_is_lost() {
    let relay = Passing { tries: Some(81), ..Passing::at(6363) };
    let (_, got, Handed { refused, .. }) = by_datagrams(&through(1, RelaySide::Client, 0.1, 1), relay);
    let reasons =
        ["a relay sends datagrams from a port at which it listens", "port 6363 is in use", "no flow of that"];
    assert!(
        refused.len() == 3 && refused.iter().zip(reasons).all(|(why, begins)| why.starts_with(begins)),
        "{refused:?}"
    );
    assert!((60..100).contains(&got[0].len()), "{}", got[0].len());
}

#[test]
fn with_its_listener_a_relay_gives_up_the_whole_port() {
    // 300 ms is after half of the numbers.
    let relay = Passing { until: Some(Instant::ZERO + ms(300)), ..Passing::at(6363) };
    let (_, got, handed) = by_datagrams(&through(2, RelaySide::Client, 0.0, 1), relay);
    assert!(got.iter().all(|came| (40..70).contains(&came.len())), "{got:?}");
    assert_eq!((handed.accepted.len(), handed.refused.len()), (2, 0));
}

#[test]
fn relays_that_do_not_fit_their_flows_are_refused() {
    let refused = |change: fn(&mut TrialPlan)| {
        let mut plan = through(1, RelaySide::Client, 0.0, 1);
        change(&mut plan);
        match run(&plan, ()) {
            Err(error @ (SimError::Plan { .. } | SimError::Machine(_))) => error.to_string(),
            other => panic!("{:?}", other.map(|_| ())),
        }
    };
    let unused = refused(|plan| plan.flows[1].via = None);
    assert!(unused.starts_with("relays.home: no flow passes it; add 'via: home'"), "{unused}");
    let unknown = refused(|plan| plan.flows[0].via = Some("house".into()));
    assert_eq!(unknown, "flows.own.via: there is no relay \"house\"");
    let same = refused(|plan| plan.relays[0].name = "own".into());
    assert!(same.contains("called \"own\""), "{same}");
    let router = refused(|plan| plan.flows[1].entry = Entry::Router);
    assert!(router.starts_with("flows.user0.via: a flow that enters at the router"), "{router}");
    let nobody = refused(|_| {});
    assert!(nobody.starts_with("relays.home.app: no relay is called \"external\""), "{nobody}");
}
