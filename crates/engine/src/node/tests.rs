//! A machine on sockets: the order of events, and connections of every kind over the loopback interface.

#[path = "../../../sim/tests/relay/datagrams.rs"]
mod datagrams;
#[path = "../../../systems/src/testing/opener.rs"]
mod opener;
#[path = "../../../sim/tests/relay/splice.rs"]
mod splice;

use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use datagrams::{Answering, Asking, Handed, Passing, begins, udp};
use opener::{Client, Ending, REQUEST, Seen, Server, Shared, listener};
use splice::Splice;
use streamgauge_base::{Chunk, Duration, Ecn};
use streamgauge_plan::TcpSpec;
use streamgauge_systems::{Carrier, Channel, CloseReason, Io, Peer};

use super::*;

/// No test lasts this long; one that would hang ends then.
const END_NS: u64 = 60_000_000_000;

/// Keeps its input.
struct Listener(Arc<Mutex<Vec<String>>>);

impl App for Listener {
    fn handle(&mut self, _: Instant, input: Input<'_>, _: &mut dyn Io) {
        self.0.lock().unwrap().push(format!("{input:?}"));
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

#[test]
fn a_stop_that_is_due_comes_before_what_the_other_ends_stop_did() {
    let (given, here) = (Arc::default(), Ipv4Addr::LOCALHOST);
    let channels = Channels::open(AddressPair { own: here, peer: here }, true, &[]).unwrap();
    let agenda = vec![(u64::MAX / 4, Scheduled::End), (0, Scheduled::Act(Action::Stop))];
    let app = Box::new(Listener(Arc::clone(&given)));
    let mut node = Node::of("video".into(), app, channels, agenda, Some(monotonic_ns())).unwrap();
    node.started = true;
    let failed = Input::Closed(ChannelId(0), CloseReason::Reset);
    assert!(!node.arrived(failed).unwrap());
    assert_eq!(*given.lock().unwrap(), [format!("{:?}", Input::Stop), format!("{failed:?}")]);
}

fn node(app: Box<dyn App + Send>, serves: bool, begins_with: &[Channel]) -> Node {
    let here = Ipv4Addr::LOCALHOST;
    let channels = Channels::open(AddressPair { own: here, peer: here }, serves, begins_with).unwrap();
    let agenda = vec![(END_NS, Scheduled::End), (0, Scheduled::Start)];
    Node::of("x".into(), app, channels, agenda, Some(monotonic_ns())).unwrap()
}

/// Lets both run until the client has as many outcomes as expected and the server has `served` ends. The
/// server listens before the client starts; each test has a port of its own, below those that the kernel
/// chooses.
fn run(port: u16, backlog: u32, client: Client, server: Server, served: usize) -> Seen {
    let (seen, count) = (client.seen.clone(), client.count as usize);
    let done = || {
        let seen = seen.lock().unwrap();
        seen.outcomes.len() == count && seen.served.values().sum::<usize>() == served
    };
    let carrier = Carrier::Listener { port, settings: TcpSpec::default(), backlog };
    let begins_with = [Channel { id: ChannelId(0), carrier }];
    let mut server = node(Box::new(Ticking(server, Instant::ZERO)), true, &begins_with);
    let mut client = node(Box::new(Ticking(client, Instant::ZERO)), false, &begins_with);
    std::thread::scope(|scope| {
        for node in [&mut server, &mut client] {
            scope.spawn(|| while !done() && !node.turn().unwrap() {});
        }
    });
    // Ended connections leave nothing behind.
    for node in [&mut server, &mut client] {
        node.channels.settle(&node.reactor, PLACE).unwrap();
        assert_eq!(node.channels.open_streams(), 0);
    }
    std::mem::take(&mut *seen.lock().unwrap())
}

/// Looks up now and then, to see whether the test is over.
struct Ticking<A>(A, Instant);

impl<A: App> App for Ticking<A> {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.1 = now + Duration::from_millis(10);
        self.0.handle(now, input, io);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.0.poll_timeout().map_or(self.1, |at| at.min(self.1)))
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
}

#[test]
fn each_connection_delivers_its_bytes_once_and_in_order() {
    let endings =
        [(Ending::After, Ending::First), (Ending::First, Ending::After), (Ending::First, Ending::First)];
    for (at_once, (client, server)) in [1, 8, 64].into_iter().zip(endings) {
        let seen = Shared::default();
        let client = Client::new(100, at_once, 28_900, client, &seen);
        let seen = run(28_900, 128, client, Server::new(None, 300_000, server, &seen), 100);
        assert_eq!((seen.outcomes.len(), seen.accepted, seen.most_open), (100, 100, at_once));
        assert!(seen.outcomes.iter().all(|one| one.bytes == 300_000 && one.end == "finished"), "{seen:?}");
        assert_eq!((seen.asked, seen.served.get("finished")), (100 * (REQUEST - 4), Some(&100)));
    }
}

#[test]
fn a_half_closed_connection_goes_on_the_other_way() {
    let seen = Shared::default();
    let client = Client::new(2, 2, 28_901, Ending::First, &seen);
    // More than its buffers hold, so that it writes on long after the client has finished.
    let seen = run(28_901, 8, client, Server::new(None, 30_000_000, Ending::After, &seen), 2);
    assert_eq!(seen.outcomes.len(), 2);
    assert!(seen.outcomes.iter().all(|one| one.end == "finished" && one.bytes == 30_000_000), "{seen:?}");
}

#[test]
fn refused_and_reset_connections_are_told_as_such() {
    let seen = Shared::default();
    let client = Client::new(3, 1, 28_903, Ending::After, &seen);
    let seen = run(28_902, 8, client, Server::new(None, 100, Ending::First, &seen), 0);
    assert_eq!((seen.outcomes.len(), seen.accepted), (3, 0));
    assert!(seen.outcomes.iter().all(|one| one.end.starts_with("no listener on port 28903")), "{seen:?}");

    let seen = Shared::default();
    let client = Client::new(3, 1, 28_902, Ending::After, &seen);
    let seen = run(28_902, 8, client, Server::new(None, 100, Ending::Reset, &seen), 3);
    assert!(seen.outcomes.iter().all(|one| one.end == "reset"), "{seen:?}");
    assert_eq!((seen.outcomes.len(), seen.served.get("aborted")), (3, Some(&3)));

    let seen = Shared::default();
    let client = Client::new(3, 3, 28_902, Ending::Reset, &seen);
    let seen = run(28_902, 8, client, Server::new(None, 30_000_000, Ending::First, &seen), 3);
    assert!(seen.outcomes.iter().all(|one| one.end == "aborted" && one.bytes > 0), "{seen:?}");
    assert_eq!((seen.outcomes.len(), seen.served.get("reset")), (3, Some(&3)));
}

#[test]
fn more_than_the_backlog_holds_are_served_all_the_same() {
    let seen = Shared::default();
    let client = Client::new(4, 4, 28_904, Ending::After, &seen);
    let seen = run(28_904, 1, client, Server::new(None, 1_000, Ending::First, &seen), 4);
    assert!(seen.outcomes.iter().all(|one| one.end == "finished" && one.bytes == 1_000), "{seen:?}");
}

#[test]
fn a_port_is_listened_on_once() {
    let seen = Shared::default();
    let client = Client::new(1, 1, 28_905, Ending::After, &seen);
    // It listens again for the flow's first channel.
    let server = Server::new(Some(listener(28_905, 4)), 1_000, Ending::First, &seen);
    let seen = run(28_905, 4, client, server, 2);
    assert!(seen.served.keys().any(|end| end.starts_with("port 28905 is in use at this end")), "{seen:?}");
    assert_eq!(seen.outcomes[0].bytes, 1_000);
}

#[test]
fn pairs_of_ports_for_rtp_are_opened_directed_and_given_back() {
    let here = Ipv4Addr::LOCALHOST;
    let mut channels = Channels::open(AddressPair { own: here, peer: here }, true, &[]).unwrap();
    let [first, second] = [channels.open(&Carrier::RtpPair), channels.open(&Carrier::RtpPair)];
    let of = |channels: &Channels, rtp: ChannelId| {
        [channels.port(rtp).unwrap(), channels.port(ChannelId(rtp.0 + 1)).unwrap()]
    };
    let ports = [of(&channels, first), of(&channels, second)];
    assert!(ports.iter().all(|[rtp, rtcp]| rtp % 2 == 0 && *rtcp == rtp + 1), "{ports:?}");
    assert_ne!(ports[0], ports[1]);
    // The destination is not set yet.
    channels.send(first, Chunk::bytes(*b"lost"));
    assert_eq!(channels.stats()["send_errors"], 1);
    channels.direct(first, ports[1][0]);
    channels.send(first, Chunk::bytes(*b"hello"));
    let mut room = Room::new();
    let hello = std::iter::repeat_with(|| channels.arrival(second, &mut room)).flatten().next();
    assert!(matches!(hello, Some(Arrival::Datagram(_, datagram)) if datagram.bytes.head() == b"hello"));
    for channel in [first.0, first.0 + 1] {
        channels.close(ChannelId(channel));
        assert_eq!(channels.port(ChannelId(channel)), None);
    }
}

/// A node for each pair of channels and machine, until `done`.
fn turn_all(nodes: &mut [Node], done: impl Fn() -> bool + Sync) {
    std::thread::scope(|scope| {
        for node in nodes {
            scope.spawn(|| while !done() && !node.turn().unwrap() {});
        }
    });
}

#[test]
fn a_relay_knows_whose_its_streams_are_and_reaches_each_flows_own_server() {
    let at = |last| Ipv4Addr::new(127, 0, 29, last);
    let users = [(2, 3), (4, 5)].map(|(server, player)| Ends { server: at(server), player: at(player) });
    let (relay, begins, port) = (at(1), Instant::ZERO, 28_906);
    let splice = Splice { port, ..Splice::default() };
    let passed = Arc::clone(&splice.passed);
    let agenda = || vec![(END_NS, Scheduled::End), (0, Scheduled::Start)];
    let of = |app, channels| Node::of("x".into(), app, channels, agenda(), Some(monotonic_ns())).unwrap();
    let listens = |port| {
        let carrier = Carrier::Listener { port, settings: TcpSpec::default(), backlog: 16 };
        [Channel { id: ChannelId(0), carrier }]
    };
    let channels = Channels::of_relay(relay, &users, &listens(28_907)).unwrap();
    let mut nodes = vec![of(Box::new(Ticking(splice, begins)), channels)];
    let seen = [Shared::default(), Shared::default()];
    for ((ends, seen), (count, answer)) in users.iter().zip(&seen).zip([(3, 1_000), (5, 200_000)]) {
        let pair = |own, peer| AddressPair { own, peer };
        let server = Server::new(None, answer, Ending::First, seen);
        let channels = Channels::open(pair(ends.server, relay), true, &listens(port)).unwrap();
        nodes.push(of(Box::new(Ticking(server, begins)), channels));
        let client = Client::new(count, 2, 28_907, Ending::After, seen);
        let channels = Channels::open(pair(ends.player, relay), false, &[]).unwrap();
        nodes.push(of(Box::new(Ticking(client, begins)), channels));
    }
    let ended = |seen: &Shared, count| seen.lock().unwrap().outcomes.len() == count;
    turn_all(&mut nodes, || ended(&seen[0], 3) && ended(&seen[1], 5));
    for (seen, bytes) in seen.iter().zip([1_000, 200_000]) {
        let seen = seen.lock().unwrap();
        assert!(seen.outcomes.iter().all(|one| one.bytes == bytes && one.end == "finished"), "{seen:?}");
    }
    assert_eq!(passed.lock().unwrap().accepted, [(Peer(0), 3), (Peer(1), 5)].into());
    // The bytes that it read from servers, among all that it read.
    let stats = nodes[0].channels.stats();
    let (answers, asked) = (3 * 1_000 + 5 * 200_000, 8 * REQUEST as u64);
    assert_eq!(stats["received_from_servers_bytes"], answers);
    assert_eq!(stats["received_bytes"], answers + asked);
}

#[test]
fn a_relay_takes_nobody_whose_address_is_none_of_its_flows() {
    let own = Ipv4Addr::new(127, 0, 29, 11);
    let carrier = Carrier::Listener { port: 28_908, settings: TcpSpec::default(), backlog: 4 };
    let listener = [Channel { id: ChannelId(0), carrier }];
    let ends = Ends { server: Ipv4Addr::new(127, 0, 29, 12), player: Ipv4Addr::new(127, 0, 29, 13) };
    let mut channels = Channels::of_relay(own, &[ends], &listener).unwrap();
    let mut stranger = std::net::TcpStream::connect((own, 28_908)).unwrap();
    assert!(channels.arrival(ChannelId(0), &mut Room::new()).is_none());
    assert_eq!(std::io::Read::read(&mut stranger, &mut [0]).unwrap(), 0, "it is closed");
    let nobodys = channels.open_to(Peer(1), &Carrier::Tcp { port: 80, settings: TcpSpec::default() });
    let (channel, why) = channels.take_refused().pop_front().unwrap();
    assert_eq!((channel, why.to_string()), (nobodys, "the relay has no flow number 1".into()));
}

#[test]
fn a_relay_passes_datagrams_between_each_player_and_its_server() {
    let at = |last| Ipv4Addr::new(127, 0, 29, last);
    let users = [(22, 23), (24, 25)].map(|(server, player)| Ends { server: at(server), player: at(player) });
    let (own, port) = (at(21), 28_909);
    let agenda = || vec![(END_NS, Scheduled::End), (0, Scheduled::Start)];
    let of = |app, channels| Node::of("x".into(), app, channels, agenda(), Some(monotonic_ns())).unwrap();
    let listener = begins(Carrier::UdpListener { port, ecn: Ecn::NotEct });
    let relay = Passing { tries: Some(81), ..Passing::at(port) };
    let handed = Arc::clone(&relay.handed);
    let channels = Channels::of_relay(own, &users, &listener).unwrap();
    // A stranger's are passed over.
    let stranger = std::net::UdpSocket::bind((at(26), 0)).unwrap();
    stranger.send_to(b"?", (own, port)).unwrap();
    let mut nodes = vec![of(Box::new(Ticking(relay, Instant::ZERO)), channels)];
    let mut came = Vec::new();
    for (number, ends) in (1..).zip(&users) {
        let pair = |own, peer| AddressPair { own, peer };
        let begins = begins(udp(port));
        let channels = Channels::open(pair(ends.server, own), true, &begins).unwrap();
        nodes.push(of(Box::new(Ticking(Answering(number), Instant::ZERO)), channels));
        let player = Asking::new(50);
        came.push(Arc::clone(&player.came));
        let channels = Channels::open(pair(ends.player, own), false, &begins).unwrap();
        nodes.push(of(Box::new(Ticking(player, Instant::ZERO)), channels));
    }
    turn_all(&mut nodes, || came.iter().all(|came| came.lock().unwrap().len() == 50));
    for (number, came) in (1..).zip(&came) {
        assert_eq!(*came.lock().unwrap(), (0..50).map(|nth| (number, nth)).collect::<Vec<_>>());
    }
    let Handed { mut accepted, refused } = std::mem::take(&mut *handed.lock().unwrap());
    accepted.sort();
    assert_eq!(accepted, [Peer(0), Peer(1)]);
    for begins in [
        "port 28909 is in use",
        "open a channel: a relay sends datagrams from a port",
        "the relay has no flow",
    ] {
        assert_eq!(refused.iter().filter(|why| why.contains(begins)).count(), 2, "{refused:?}");
    }
    let stats = nodes[0].channels.stats();
    assert_eq!(
        (&stats["received_from_servers_packets"], &stats["received_packets"]),
        (&json!(100), &json!(200))
    );
    assert_eq!(stats["received_from_servers_bytes"], 100 * 902);
    assert_eq!((&stats["sent_packets"], &stats["send_errors"]), (&json!(200), &json!(0)));
    // The port is released with its listener, and so is all that it has there.
    let channels = &mut nodes[0].channels;
    channels.close(ChannelId(0));
    assert!((0..10).all(|id| channels.port(ChannelId(id)).is_none()));
    std::net::UdpSocket::bind((own, port)).unwrap();
}

/// Reads 1000 bytes and leaves, though there are more.
struct Leaving {
    aborts: bool,
    is_gone: bool,
}

impl App for Leaving {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        if let (Input::Readable(channel), false) = (input, self.is_gone) {
            assert_eq!(io.read(channel, 1000).map(|chunk| chunk.len()), Some(1000));
            if self.aborts {
                io.abort(channel)
            } else {
                io.close(channel)
            }
            self.is_gone = true;
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        // Each turn ends at once: the test looks whether it has left.
        Some(Instant::ZERO)
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn is_gone(&self) -> bool {
        self.is_gone
    }
}

#[test]
fn a_machine_that_leaves_is_known_to_have_and_what_it_had_not_read() {
    for aborts in [false, true] {
        let there = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = there.local_addr().unwrap().port();
        let carrier = Carrier::Tcp { port, settings: TcpSpec::default() };
        let begins_with = [Channel { id: ChannelId(0), carrier }];
        let mut node = node(Box::new(Leaving { aborts, is_gone: false }), false, &begins_with);
        let before = monotonic_ns();
        while !node.started {
            node.keep_agenda().unwrap();
        }
        assert!(node.left.is_none(), "it has just come");
        let (mut peer, _) = there.accept().unwrap();
        peer.write_all(&[0; 5000]).unwrap();
        while node.left.is_none() {
            node.turn().unwrap();
        }
        let left = node.left.unwrap();
        assert_eq!(left.unread_bytes, 4000, "aborts: {aborts}");
        assert!((before..=monotonic_ns()).contains(&left.t_monotonic_ns));
        // Later inputs change nothing.
        node.give(Input::Timeout);
        assert_eq!(node.left.map(|left| left.t_monotonic_ns), Some(left.t_monotonic_ns));
    }
}
