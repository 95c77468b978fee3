//! Connections that machines open and accept while a trial runs.

mod common;
#[path = "../../systems/src/testing/opener.rs"]
mod opener;

use std::sync::{Arc, Mutex};

use common::*;
use opener::{Client, Ending, REQUEST, Seen, Server, Shared, listener};
use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_path::spec::{Limit, LossModel, LossSpec, PathSpec, StageKind, StageSpec};
use streamgauge_plan::{TcpSpec, TrialPlan};
use streamgauge_sim::{Summary, run_machines};
use streamgauge_systems::{App, Carrier, Channel, ChannelId, CloseReason, Input, Io, Machines};

/// Makes a path of 10 Mbit/s, 20 ms there and back, with a flow of machines that the test makes.
fn wide(seconds: u64) -> TrialPlan {
    plan(path(10_000_000, Limit::Packets(200), 10), vec![bulk("x", "cubic", 1 << 20)], seconds, 1)
}

fn lossy(probability: f64, seconds: u64, seed: u64) -> TrialPlan {
    let down = vec![loss(probability), bottleneck(10_000_000, Limit::Packets(100)), delay(10)];
    let up = vec![loss(probability), delay(10)];
    let mut plan = plan(PathSpec { down, up }, vec![bulk("x", "reno", 1 << 20)], seconds, seed);
    plan.host_jitter = Duration::from_micros(200);
    plan
}

fn trial(plan: &TrialPlan, client: Client, server: Server) -> (Summary, Rows) {
    let mut made =
        Some(Machines { channels: Vec::new(), server: Box::new(server), player: Box::new(client) });
    run_machines(plan, |_| Ok(made.take().expect("one flow")), Rows::default()).unwrap()
}

/// Returns the outcomes of so many connections, over a path, and the record.
fn outcomes(
    plan: &TrialPlan,
    client: impl Fn(&Shared) -> Client,
    server: impl Fn(&Shared) -> Server,
) -> (Seen, Rows) {
    let seen = Shared::default();
    let (_, record) = trial(plan, client(&seen), server(&seen));
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, record)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Either end may close first, with any loss, one after another or at once: each delivers its bytes once and in
    /// order, and the same trial again is the same trial.
    #[test]
    fn each_connection_delivers_its_bytes_once_and_in_order(
        count in 1u32..40,
        at_once in 1usize..40,
        answer in 0usize..50_000,
        probability in prop::sample::select(vec![0.0, 0.01, 0.1]),
        endings in prop::sample::select(vec![
            (Ending::First, Ending::First), (Ending::First, Ending::After), (Ending::After, Ending::First),
        ]),
        seed in 0u64..1_000,
    ) {
        let plan = lossy(probability, 600, seed);
        let client = |seen: &Shared| Client::new(count, at_once, 80, endings.0, seen);
        let server = |seen: &Shared| Server::new(Some(listener(80, 64)), answer, endings.1, seen);
        let (seen, record) = outcomes(&plan, client, server);
        prop_assert_eq!(seen.outcomes.len(), count as usize);
        prop_assert!(seen.outcomes.iter().all(|one| one.bytes == answer && one.end == "finished"), "{:?}", seen);
        prop_assert_eq!((seen.accepted, seen.asked), (count as usize, count as usize * (REQUEST - 4)));
        prop_assert_eq!(seen.served.get("finished"), Some(&(count as usize)));
        prop_assert_eq!(seen.most_open, at_once.min(count as usize));
        let (_, again) = outcomes(&plan, client, server);
        prop_assert_eq!(record.rows, again.rows);
        prop_assert_eq!(record.events, again.events);
    }
}

#[test]
fn where_nobody_listens_a_connection_is_refused_within_a_round_trip() {
    let client = |seen: &Shared| Client::new(3, 1, 81, Ending::After, seen);
    let server = |seen: &Shared| Server::new(Some(listener(80, 1)), 100, Ending::First, seen);
    let (seen, record) = outcomes(&wide(10), client, server);
    assert_eq!(seen.outcomes.len(), 3);
    assert!(seen.outcomes.iter().all(|one| one.end.starts_with("no listener on port 81")), "{seen:?}");
    let refused = record.named("connection_refused");
    assert_eq!(refused.len(), 3);
    assert!(refused[0].at.as_nanos() < 21_000_000 && refused[0].reason == seen.outcomes[0].end);
    // A SYN and a reset each.
    assert_eq!((record.at(0, 2).count(), record.at(0, 0).count()), (3, 3));
}

#[test]
fn a_reset_by_either_end_is_told_to_the_other() {
    let client = |seen: &Shared| Client::new(5, 2, 80, Ending::After, seen);
    let server = |seen: &Shared| Server::new(Some(listener(80, 8)), 100_000, Ending::Reset, seen);
    let (seen, _) = outcomes(&wide(10), client, server);
    assert!(seen.outcomes.iter().all(|one| one.end == "reset" && one.bytes == 0), "{seen:?}");
    assert_eq!((seen.outcomes.len(), seen.served.get("aborted")), (5, Some(&5)));

    let client = |seen: &Shared| Client::new(5, 2, 80, Ending::Reset, seen);
    let server = |seen: &Shared| Server::new(Some(listener(80, 8)), 10_000_000, Ending::First, seen);
    let (seen, _) = outcomes(&wide(10), client, server);
    assert_eq!((seen.outcomes.len(), seen.served.get("reset")), (5, Some(&5)));
    assert!(seen.outcomes.iter().all(|one| one.end == "aborted" && one.bytes > 0), "{seen:?}");
}

/// The events of a machine, with their times.
type Told = Arc<Mutex<Vec<(Instant, &'static str)>>>;

/// An end of the flow's one stream, which the client opens: it writes something and finishes, and aborts the stream at
/// the event `quits`.
struct Quitter {
    is_client: bool,
    quits: &'static str,
    channel: Option<ChannelId>,
    told: Told,
}

impl Quitter {
    fn new(is_client: bool, quits: &'static str) -> (Box<Self>, Told) {
        let told = Told::default();
        (Box::new(Quitter { is_client, quits, channel: None, told: told.clone() }), told)
    }
}

impl App for Quitter {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        let name = match input {
            Input::Start => {
                let stream = Carrier::Tcp { port: 80, settings: TcpSpec::default() };
                let carrier = if self.is_client { stream } else { listener(80, 8) };
                let opened = io.open(&carrier);
                self.channel = self.is_client.then_some(opened);
                "start"
            }
            Input::Opened(channel) | Input::Accepted { channel, .. } => {
                self.channel = Some(channel);
                assert_eq!(io.write(channel, Chunk::filler(1000)), 1000);
                io.close(channel);
                "opened"
            }
            Input::Readable(channel) => {
                while io.read(channel, usize::MAX).is_some() {}
                "readable"
            }
            Input::Closed(_, CloseReason::Finished) => "finished",
            Input::Closed(_, CloseReason::Reset) => "reset",
            Input::Timeout => "timeout",
            other => panic!("{other:?}"),
        };
        self.told.lock().unwrap().push((now, name));
        if let Some(channel) = self.channel.filter(|_| self.quits == name) {
            io.abort(channel);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let waits = self.quits == "timeout" && self.told.lock().unwrap().len() == 1;
        waits.then(|| Instant::ZERO + ms(5))
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Returns the events of the server and of the client. The acknowledgement of the server's SYN is lost, so that the
/// client's bytes with its FIN open the connection there.
fn quitting(of_server: &'static str, of_client: &'static str) -> [Vec<(Instant, &'static str)>; 2] {
    let mut plan = wide(2);
    let lost = LossSpec { model: LossModel::List { packets: vec![1] }, switches: Vec::new() };
    plan.path.up.insert(0, StageSpec { name: "loss".into(), kind: StageKind::Loss(lost), changes: vec![] });
    let ((server, by_server), (player, by_client)) =
        (Quitter::new(false, of_server), Quitter::new(true, of_client));
    let mut made = Some(Machines { channels: Vec::new(), server, player });
    run_machines(&plan, |_| Ok(made.take().expect("one flow")), Rows::default()).unwrap();
    [by_server, by_client].map(|told| std::mem::take(&mut *told.lock().unwrap()))
}

/// Pending events of it are dropped too.
#[test]
fn who_aborts_a_stream_is_told_nothing_more_of_it() {
    let names = |told: &[(Instant, &'static str)]| told.iter().map(|(_, name)| *name).collect::<Vec<_>>();
    // A segment may be two events: that it is open, and that there are bytes. An end that closes after it has written
    // sends its FIN by itself.
    let whole = quitting("", "");
    for told in &whole {
        assert_eq!(names(told), ["start", "opened", "readable", "finished"]);
    }
    assert_eq!(whole[0][1].0, whole[0][2].0);
    assert!(whole[1][2].0 < whole[1][3].0);
    for (quits, heard) in [("opened", 2), ("readable", 3)] {
        assert_eq!(quitting(quits, "")[0], whole[0][..heard]);
        assert_eq!(quitting("", quits)[1], whole[1][..heard]);
    }
    // While its SYN is on its way, and before there is one, the other end never learns of it.
    for (quits, server, client) in
        [("timeout", &["start"][..], &["start", "timeout"][..]), ("start", &["start"], &["start"])]
    {
        let [by_server, by_client] = quitting("", quits);
        assert_eq!((names(&by_server), names(&by_client)), (server.to_vec(), client.to_vec()), "{quits}");
    }
}

/// Sends on its channels, a UDP one and then a TCP one, as soon as the second is open: the given bytes at once on each.
struct Sender(&'static [(u32, u32)]);

impl App for Sender {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        let Input::Opened(stream @ ChannelId(1)) = input else { return };
        for &(channel, bytes) in self.0 {
            match ChannelId(channel) {
                one if one == stream => assert_eq!(io.write(one, Chunk::filler(bytes)), bytes as usize),
                one => io.send(one, Chunk::filler(bytes)),
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// As with sockets: for example an RTSP answer that media follows at once.
#[test]
fn what_is_written_and_sent_leaves_in_that_order() {
    const SENT: &[(u32, u32)] = &[(0, 101), (1, 202), (0, 303), (0, 404), (1, 505), (0, 606), (1, 707)];
    let plan = wide(2);
    let udp = Carrier::Udp { port: 5000, ecn: Default::default() };
    let stream = Carrier::Tcp { port: 80, settings: TcpSpec::default() };
    let channels =
        vec![Channel { id: ChannelId(0), carrier: udp }, Channel { id: ChannelId(1), carrier: stream }];
    let mut made = Some(Machines { channels, server: Box::new(Sender(SENT)), player: Box::new(Sender(&[])) });
    let (_, record) = run_machines(&plan, |_| Ok(made.take().expect("one flow")), Rows::default()).unwrap();
    let left = record.at(0, 0).map(|(_, info, _)| info.payload_bytes).filter(|bytes| *bytes > 0);
    assert_eq!(left.collect::<Vec<_>>(), SENT.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>());
}

/// The client finishes with its request; the server, as intended, writes for seconds after.
#[test]
fn a_half_closed_connection_goes_on_the_other_way() {
    let client = |seen: &Shared| Client::new(2, 2, 80, Ending::First, seen);
    let server = |seen: &Shared| Server::new(Some(listener(80, 8)), 3_000_000, Ending::After, seen);
    let (seen, record) = outcomes(&wide(20), client, server);
    assert!(seen.outcomes.iter().all(|one| one.end == "finished" && one.bytes == 3_000_000), "{seen:?}");
    assert_eq!(seen.outcomes.len(), 2);
    let last = record.at(0, 0).filter(|(_, info, _)| info.payload_bytes > 0).last().unwrap();
    assert!(last.0.t_in.as_nanos() > 3_000_000_000, "after seconds: {:?}", last.0.t_in);
}

#[test]
fn a_listener_whose_backlog_overflows_drops_what_comes_and_all_are_served_later() {
    let client = |seen: &Shared| Client::new(10, 10, 80, Ending::After, seen);
    let server = |seen: &Shared| Server::new(Some(listener(80, 4)), 1_000, Ending::First, seen);
    let (seen, record) = outcomes(&wide(30), client, server);
    assert!(seen.outcomes.iter().all(|one| one.end == "finished" && one.bytes == 1_000), "{seen:?}");
    assert_eq!(seen.outcomes.len(), 10);
    let overflows = record.named("listen_overflow");
    // If ten open at once, four wait; the six others retry after 1 s (RFC 6298), when two find no room, and after 2 s
    // more.
    let at = |ms: u64| overflows.iter().filter(|one| one.at.as_nanos() / 1_000_000 / 100 == ms / 100).count();
    assert_eq!((at(10), at(1_010), overflows.len()), (6, 2, 8), "{overflows:?}");
    assert_eq!(overflows[0].reason, "port 80: 4 connections wait to be accepted");
}

/// Writes to every client: the given bytes each time, all in one instant.
struct Writer(&'static [u32]);

impl App for Writer {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => {
                io.open(&listener(80, 8));
            }
            Input::Accepted { channel, .. } => {
                for &bytes in self.0 {
                    assert_eq!(io.write(channel, Chunk::filler(bytes)), bytes as usize);
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// As from a socket with `TCP_NODELAY`, while the window of ten segments has room; data that has to wait is joined.
#[test]
fn each_write_leaves_by_itself() {
    let sizes = |writes| {
        let seen = Shared::default();
        let client = Client::new(1, 1, 80, Ending::After, &seen);
        let server = Box::new(Writer(writes));
        let mut made = Some(Machines { channels: Vec::new(), server, player: Box::new(client) });
        let (_, record) = run_machines(&wide(1), |_| Ok(made.take().unwrap()), Rows::default()).unwrap();
        let all = record.at(0, 0).map(|(_, info, _)| info.payload_bytes);
        all.filter(|&bytes| bytes > 0).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&[654, 654, 2_000, 100]), [654, 654, 1448, 552, 100]);
    assert_eq!(sizes(&[654; 13]), [&[654; 10][..], &[1448, 514]].concat());
}

#[test]
fn a_port_is_listened_on_once() {
    let seen = Shared::default();
    let server = Server::new(Some(listener(80, 4)), 1_000, Ending::First, &seen);
    let client = Client::new(1, 1, 80, Ending::After, &seen);
    let settings = TcpSpec::default();
    let channels =
        vec![Channel { id: ChannelId(0), carrier: Carrier::Listener { port: 80, settings, backlog: 4 } }];
    let mut made = Some(Machines { channels, server: Box::new(server), player: Box::new(client) });
    run_machines(&wide(5), |_| Ok(made.take().unwrap()), ()).unwrap();
    let seen = seen.lock().unwrap();
    let taken: Vec<_> = seen.served.keys().filter(|end| end.starts_with("port 80 is in use")).collect();
    assert_eq!((taken.len(), seen.outcomes[0].bytes), (1, 1_000), "the flow began with it: {seen:?}");
}

/// With a window of its own for each connection, and settings that are refused by their key.
#[test]
fn each_connection_has_its_own_settings() {
    let seen = Shared::default();
    let mut client = Client::new(2, 2, 80, Ending::After, &seen);
    let settings = TcpSpec { congestion_control: "westwood".into(), ..TcpSpec::default() };
    client.carrier = Carrier::Tcp { port: 80, settings };
    trial(&wide(5), client, Server::new(Some(listener(80, 4)), 10, Ending::First, &seen));
    let ends: Vec<String> = seen.lock().unwrap().outcomes.iter().map(|one| one.end.clone()).collect();
    assert!(ends.len() == 2 && ends[0].contains("tcp.congestion_control: \"westwood\""), "{ends:?}");

    let took = |receive_window| {
        let seen = Shared::default();
        let mut client = Client::new(1, 1, 80, Ending::After, &seen);
        client.carrier = Carrier::Tcp { port: 80, settings: tcp("cubic", receive_window) };
        let (_, record) =
            trial(&wide(60), client, Server::new(Some(listener(80, 4)), 1_000_000, Ending::First, &seen));
        assert_eq!(seen.lock().unwrap().outcomes[0].bytes, 1_000_000);
        record.at(0, 0).last().unwrap().0.t_in
    };
    // 16 kB a round trip of 20 ms at most: 1.2 s and more, against 0.9 s at the path's rate.
    assert!(took(16 << 10).as_nanos() > 1_200_000_000 && took(1 << 20).as_nanos() < 1_100_000_000);
}

#[test]
fn samples_name_every_connection_but_the_first() {
    let mut plan = wide(10);
    plan.tcp_sample = Some(ms(100));
    let client = |seen: &Shared| Client::new(3, 3, 80, Ending::After, seen);
    let server = |seen: &Shared| Server::new(Some(listener(80, 8)), 1_000_000, Ending::First, seen);
    let (_, record) = outcomes(&plan, client, server);
    let reasons: Vec<&str> = record.named("tcp_cwnd").iter().map(|event| event.reason.as_ref()).collect();
    let of = |name: &str| reasons.iter().filter(|reason| **reason == name).count();
    let counts = [of("cubic"), of("cubic 80:40001"), of("cubic 80:40002")];
    assert!(counts.iter().all(|&count| count > 5), "{counts:?}");
    assert_eq!(counts.iter().sum::<usize>(), reasons.len(), "{reasons:?}");
}

#[test]
fn a_trial_may_end_with_any_number_open() {
    let client = |seen: &Shared| Client::new(150, 150, 80, Ending::After, seen);
    let server = |seen: &Shared| Server::new(Some(listener(80, 500)), 1_000_000, Ending::First, seen);
    let (seen, record) = outcomes(&wide(2), client, server);
    assert_eq!((seen.accepted, seen.most_open, seen.outcomes.len()), (150, 150, 0));
    assert!(record.rows.len() > 1_000);
}

/// Ten thousand connections a trial, one after another and many at once, more than there are ports for in a minute.
#[test]
fn ten_thousand_connections_come_and_go() {
    let mut plan =
        plan(path(1_000_000_000, Limit::Packets(10_000), 1), vec![bulk("x", "cubic", 1 << 20)], 300, 1);
    plan.keep = streamgauge_plan::Keep::Metrics;
    for (at_once, endings) in [
        (1, (Ending::After, Ending::First)),
        (100, (Ending::First, Ending::After)),
        (500, (Ending::First, Ending::First)),
    ] {
        let seen = Shared::default();
        let client = Client::new(10_000, at_once, 80, endings.0, &seen);
        let server = Server::new(Some(listener(80, 4_096)), 2_000, endings.1, &seen);
        let mut made =
            Some(Machines { channels: Vec::new(), server: Box::new(server), player: Box::new(client) });
        let (summary, ()) = run_machines(&plan, |_| Ok(made.take().unwrap()), ()).unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!((seen.outcomes.len(), seen.accepted), (10_000, 10_000));
        assert!(seen.outcomes.iter().all(|one| one.end == "finished" && one.bytes == 2_000));
        assert_eq!(summary.flows[0].player_received_bytes, 20_000_000);
        // Two segments, and the FIN alone or with them.
        let tcp = summary.flows[0].tcp.clone().unwrap();
        let first_time = tcp.segments - tcp.retransmits;
        assert!((20_000..=30_000).contains(&first_time), "{tcp:?}");
    }
}

/// 28,232 ports in TIME-WAIT for a minute each.
#[test]
fn who_runs_out_of_ports_is_told_so_and_finds_them_again() {
    let mut plan =
        plan(path(10_000_000_000, Limit::Packets(10_000), 1), vec![bulk("x", "cubic", 1 << 20)], 200, 1);
    plan.keep = streamgauge_plan::Keep::Metrics;
    let seen = Shared::default();
    let client = Client::new(29_000, 100, 80, Ending::First, &seen);
    let server = Server::new(Some(listener(80, 4_096)), 100, Ending::After, &seen);
    let mut made =
        Some(Machines { channels: Vec::new(), server: Box::new(server), player: Box::new(client) });
    run_machines(&plan, |_| Ok(made.take().unwrap()), ()).unwrap();
    let seen = seen.lock().unwrap();
    let none_left = "no port is free from 32768 to 60999";
    let refused = seen.outcomes.iter().filter(|one| one.end.starts_with(none_left)).count();
    let finished = seen.outcomes.iter().filter(|one| one.end == "finished").count();
    assert_eq!((finished, refused), (28_232, 29_000 - 28_232), "{:?}", seen.outcomes.last());
}
