//! The cache between players and servers that the tests play.

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_plan::{AppSpec, RelaySide, RelaySpec};

use super::*;
use crate::app::{App, ChannelError, CloseReason, Envelope, Input, Io, Peer};

/// Both sides of the cache.
#[derive(Default)]
struct World {
    next: u32,
    peers: BTreeMap<ChannelId, Peer>,
    /// Connections to servers, in order.
    opened: Vec<ChannelId>,
    incoming: BTreeMap<ChannelId, VecDeque<Chunk>>,
    written: BTreeMap<ChannelId, Vec<u8>>,
    /// How much a connection still takes; all if it is not here.
    room: BTreeMap<ChannelId, usize>,
    ended: BTreeMap<ChannelId, &'static str>,
}

impl Io for World {
    fn open(&mut self, _: &Carrier) -> ChannelId {
        panic!("a relay says to whom")
    }
    fn open_to(&mut self, peer: Peer, carrier: &Carrier) -> ChannelId {
        assert!(matches!(carrier, Carrier::Tcp { port: 80, .. }));
        let channel = self.connection(peer);
        self.opened.push(channel);
        channel
    }
    fn peer(&self, channel: ChannelId) -> Option<Peer> {
        self.peers.get(&channel).copied()
    }
    fn send_as(&mut self, _: ChannelId, _: Chunk, _: Envelope) {}
    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        assert!(!self.ended.contains_key(&channel), "{channel:?} has ended");
        let taken = self.room.get(&channel).map_or(chunk.len(), |room| chunk.len().min(*room));
        self.room.entry(channel).and_modify(|room| *room -= taken);
        let mut bytes = chunk.head().to_vec();
        bytes.resize(chunk.len(), b'.');
        self.written.entry(channel).or_default().extend(&bytes[..taken]);
        taken
    }
    fn read(&mut self, channel: ChannelId, _: usize) -> Option<Chunk> {
        self.incoming.get_mut(&channel)?.pop_front()
    }
    fn close(&mut self, channel: ChannelId) {
        self.ended.entry(channel).or_insert("closed");
    }
    fn abort(&mut self, channel: ChannelId) {
        self.ended.insert(channel, "aborted");
    }
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

impl World {
    fn connection(&mut self, peer: Peer) -> ChannelId {
        self.next += 1;
        self.peers.insert(ChannelId(self.next), peer);
        ChannelId(self.next)
    }
}

struct Bench {
    app: Box<dyn App + Send>,
    world: World,
    now: Instant,
    events: Vec<Event>,
}

impl Bench {
    fn new(capacity_bytes: u64) -> Self {
        let spec = HttpCacheSpec { capacity_bytes, ..HttpCacheSpec::usual() };
        let relay = RelaySpec { name: "home".into(), at: RelaySide::Client, app: AppSpec::external() };
        let app = spec.machine(&relay, 1).unwrap().app;
        Bench { app, world: World::default(), now: Instant::ZERO, events: Vec::new() }
    }

    fn give(&mut self, input: Input<'_>) {
        self.app.handle(self.now, input, &mut self.world);
        while let Some(event) = self.app.poll_event() {
            self.events.push(event);
        }
    }

    fn player(&mut self, peer: u16) -> ChannelId {
        let channel = self.world.connection(Peer(peer));
        self.give(Input::Accepted { channel, on: LISTENER });
        channel
    }

    /// A player's connection that has asked so.
    fn asks(&mut self, peer: u16, target: &str, headers: &str) -> ChannelId {
        let channel = self.player(peer);
        self.says(channel, &format!("GET {target} HTTP/1.1\r\nHost: h\r\n{headers}\r\n"));
        channel
    }

    fn says(&mut self, channel: ChannelId, text: &str) {
        self.world.incoming.entry(channel).or_default().push_back(Chunk::bytes(text.as_bytes()));
        self.give(Input::Readable(channel));
    }

    /// The server takes the nth connection.
    fn opens(&mut self, nth: usize) -> ChannelId {
        let channel = self.world.opened[nth];
        self.give(Input::Opened(channel));
        channel
    }

    /// Returns the data written since the last call.
    fn got(&mut self, channel: ChannelId) -> String {
        String::from_utf8(self.world.written.remove(&channel).unwrap_or_default()).unwrap()
    }

    fn body(&mut self, channel: ChannelId) -> String {
        let text = self.got(channel);
        text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}")).1.into()
    }

    fn told(&self) -> Vec<(&str, f64)> {
        self.events.iter().map(|event| (event.name.as_ref(), event.value.unwrap_or(-1.0))).collect()
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.app.poll_timeout().is_some_and(|at| at <= self.now) {
            self.give(Input::Timeout);
        }
    }
}

fn ok(body: &str, headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

#[test]
fn what_one_has_fetched_the_next_gets_without_the_server_while_it_is_fresh() {
    let mut bench = Bench::new(1_000);
    let first = bench.asks(0, "/a", "");
    let server = bench.opens(0);
    let asked = bench.got(server);
    assert!(
        asked.starts_with("GET /a HTTP/1.1\r\nHost: h\r\n") && asked.contains("Via: 1.1 home\r\n"),
        "{asked}"
    );
    bench.says(server, &ok("0123456789", "Cache-Control: max-age=60\r\nAge: 10\r\nETag: \"x\"\r\n"));
    let answer = bench.got(first);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n0123456789"), "{answer}");
    assert!(answer.contains("Content-Length: 10\r\n") && answer.contains("Age: 10\r\n"), "{answer}");
    bench.pass(Duration::from_secs(49));
    let second = bench.asks(1, "/a", "");
    let answer = bench.got(second);
    assert!(answer.contains("Age: 59\r\n") && answer.ends_with("0123456789"), "{answer}");
    assert_eq!((bench.world.opened.len(), bench.got(server)), (1, String::new()));
    assert_eq!(bench.told(), [("cache_miss", 10.0), ("cache_hit", 10.0)]);
}

#[test]
fn what_is_stale_is_asked_for_again_by_its_tag() {
    let mut bench = Bench::new(1_000);
    let first = bench.asks(0, "/a", "");
    let server = bench.opens(0);
    bench.says(server, &ok("abc", "Cache-Control: max-age=5\r\nETag: \"x\"\r\n"));
    assert_eq!(bench.body(first), "abc");
    bench.got(server);
    bench.pass(Duration::from_secs(5));
    let (second, third) = (bench.asks(0, "/a", ""), bench.asks(0, "/a", "Range: bytes=1-\r\n"));
    assert_eq!(bench.world.opened.len(), 1, "the connection is kept");
    assert!(bench.got(server).contains("If-None-Match: \"x\"\r\n"));
    bench.says(server, "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=5\r\nETag: \"x\"\r\n\r\n");
    assert_eq!((bench.body(second), bench.body(third)), ("abc".into(), "bc".into()));
    // A changed resource replaces the stored one.
    bench.pass(Duration::from_secs(6));
    let fourth = bench.asks(0, "/a", "");
    bench.says(server, &ok("new!", "Cache-Control: max-age=5\r\nETag: \"y\"\r\n"));
    assert_eq!(bench.body(fourth), "new!");
    let fifth = bench.asks(0, "/a", "If-None-Match: \"y\"\r\n");
    assert!(bench.got(fifth).starts_with("HTTP/1.1 304 Not Modified\r\n"));
}

#[test]
fn a_hundred_who_ask_at_once_cost_one_request_and_get_every_byte() {
    let mut bench = Bench::new(1_000_000);
    let players: Vec<ChannelId> = (0..100).map(|peer| bench.asks(peer, "/a", "")).collect();
    assert_eq!(bench.world.opened.len(), 1);
    let server = bench.opens(0);
    let body: String = (0..5_000u32).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    bench.says(server, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nCache-Control: max-age=9\r\n\r\n");
    for piece in 0..5 {
        bench.says(server, &body[1_000 * piece..1_000 * (piece + 1)]);
    }
    for player in players {
        assert_eq!(bench.body(player), body);
    }
    assert_eq!(bench.told().iter().filter(|(name, _)| *name == "cache_joined").count(), 99);
    assert_eq!(bench.world.opened.len(), 1);
}

#[test]
fn of_a_part_that_is_stored_only_the_rest_is_fetched() {
    let mut bench = Bench::new(1_000);
    let first = bench.asks(0, "/a", "Range: bytes=2-4\r\n");
    let server = bench.opens(0);
    assert!(bench.got(server).contains("Range: bytes=2-4\r\n"));
    let part = |first: u64, last: u64, body: &str| {
        format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/10\r\nContent-Length: {}\r\n\
             Cache-Control: max-age=60\r\nETag: \"x\"\r\n\r\n{body}",
            body.len()
        )
    };
    bench.says(server, &part(2, 4, "234"));
    assert!(bench.got(first).ends_with("234"));
    // Ranges of the whole: before it, and behind it.
    let whole = bench.asks(1, "/a", "");
    let other = bench.opens(1);
    let asked = bench.got(other);
    assert!(asked.contains("Range: bytes=0-1\r\n") && asked.contains("If-Range: \"x\"\r\n"), "{asked}");
    bench.says(other, &part(0, 1, "01"));
    let asked = bench.got(other);
    assert!(asked.contains("Range: bytes=5-9\r\n"), "{asked}");
    bench.says(other, &part(5, 9, "56789"));
    assert_eq!(bench.body(whole), "0123456789");
    let tail = bench.asks(0, "/a", "Range: bytes=-3\r\n");
    let answer = bench.got(tail);
    assert!(
        answer.starts_with("HTTP/1.1 206") && answer.contains("Content-Range: bytes 7-9/10\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\n789"), "{answer}");
    let outside = bench.asks(0, "/a", "Range: bytes=10-\r\n");
    assert!(bench.got(outside).starts_with("HTTP/1.1 416 "));
    assert_eq!(bench.told().last(), Some(&("cache_hit", 0.0)));
}

#[test]
fn a_resource_that_changes_between_its_parts_is_not_patched_together() {
    let mut bench = Bench::new(1_000);
    let first = bench.asks(0, "/a", "Range: bytes=0-1\r\n");
    let server = bench.opens(0);
    bench.says(
        server,
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/4\r\nContent-Length: 2\r\nETag: \"x\"\r\n\
         Cache-Control: max-age=60\r\n\r\nab",
    );
    assert_eq!(bench.body(first), "ab");
    let whole = bench.asks(0, "/a", "");
    assert!(bench.body(whole).starts_with("ab"), "what is stored goes out at once");
    bench.says(server, &ok("ABCDEF", "ETag: \"y\"\r\nCache-Control: max-age=60\r\n"));
    assert_eq!(bench.world.ended.get(&whole), Some(&"aborted"));
    let again = bench.asks(0, "/a", "");
    let all: Vec<ChannelId> = bench.world.opened.clone();
    for (nth, channel) in all.into_iter().enumerate().skip(1) {
        bench.opens(nth);
        bench.says(channel, &ok("ABCDEF", "ETag: \"y\"\r\nCache-Control: max-age=60\r\n"));
    }
    assert_eq!(bench.body(again), "ABCDEF");
}

#[test]
fn who_cannot_be_reached_is_told_to_the_player_by_a_status() {
    let mut bench = Bench::new(1_000);
    let (first, second) = (bench.asks(0, "/a", ""), bench.asks(0, "/a", ""));
    let refused = ChannelError::NoListener { port: 80 };
    bench.give(Input::Refused(bench.world.opened[0], &refused));
    for player in [first, second] {
        assert!(bench.got(player).starts_with("HTTP/1.1 502 Bad Gateway\r\n"));
    }
    // The connection stays open, and the failure is not remembered.
    bench.says(first, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    bench.give(Input::Refused(bench.world.opened[1], &ChannelError::TimedOut { port: 80 }));
    assert!(bench.got(first).starts_with("HTTP/1.1 504 Gateway Timeout\r\n"));
    // One that takes the request and is silent.
    bench.says(first, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    bench.opens(2);
    bench.pass(Duration::from_secs(59));
    assert_eq!(bench.got(first), "");
    bench.pass(Duration::from_secs(1));
    assert!(bench.got(first).starts_with("HTTP/1.1 504 Gateway Timeout\r\n"));
    assert_eq!(bench.told(), [("cache_error", -1.0); 4]);
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_the_player() {
    let mut bench = Bench::new(1_000);
    let player = bench.asks(0, "/a", "");
    let server = bench.opens(0);
    bench.says(server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    bench.give(Input::Closed(server, CloseReason::Reset));
    assert_eq!(bench.body(player), "abc");
    assert_eq!(bench.world.ended.get(&player), Some(&"aborted"));
}

#[test]
fn what_is_not_to_be_shared_is_fetched_for_each() {
    for headers in ["Cache-Control: private, max-age=60\r\n", "Cache-Control: no-store\r\n"] {
        let mut bench = Bench::new(1_000);
        let (first, second) = (bench.asks(0, "/a", ""), bench.asks(1, "/a", ""));
        let server = bench.opens(0);
        bench.says(server, &ok("mine", headers));
        assert_eq!((bench.body(first).as_str(), bench.got(second).as_str()), ("mine", ""));
        let other = bench.opens(1);
        assert_eq!(bench.world.peers[&other], Peer(1));
        bench.says(other, &ok("yours", headers));
        assert_eq!(bench.body(second), "yours");
    }
}

#[test]
fn switched_off_it_forwards_every_request() {
    let mut bench = Bench::new(0);
    for nth in 0..3 {
        let player = bench.asks(nth, "/a", "");
        let server = bench.opens(usize::from(nth));
        bench.says(server, &ok("abc", "Cache-Control: max-age=60\r\nConnection: close\r\n"));
        assert_eq!(bench.body(player), "abc");
    }
    assert_eq!(bench.told(), [("cache_miss", 3.0); 3]);
}

#[test]
fn the_least_recently_used_goes_first_when_there_is_no_room() {
    let mut bench = Bench::new(25);
    let fresh = "Cache-Control: max-age=60\r\n";
    for (nth, target) in ["/a", "/b"].into_iter().enumerate() {
        bench.asks(nth as u16, target, "");
        let server = bench.opens(nth);
        bench.says(server, &ok("0123456789", fresh));
    }
    bench.asks(0, "/a", "");
    bench.asks(2, "/c", "");
    let server = bench.opens(2);
    bench.says(server, &ok("0123456789", fresh));
    assert_eq!(bench.told()[2..], [("cache_hit", 10.0), ("cache_miss", 10.0), ("cache_evicted", 10.0)]);
    assert_eq!(bench.events.last().unwrap().reason, "h /b");
    bench.asks(0, "/a", "");
    assert_eq!(bench.told().last(), Some(&("cache_hit", 10.0)));
}

#[test]
fn a_player_that_takes_little_gets_all_of_it_in_time() {
    let mut bench = Bench::new(1_000_000);
    let player = bench.player(0);
    bench.world.room.insert(player, 50);
    bench.says(player, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    let server = bench.opens(0);
    bench.says(server, &ok(&"x".repeat(1_000), ""));
    for _ in 0..100 {
        bench.world.room.insert(player, 50);
        bench.give(Input::Writable(player));
    }
    assert_eq!(bench.body(player), "x".repeat(1_000));
}

#[test]
fn requests_on_one_connection_are_answered_in_their_order() {
    let mut bench = Bench::new(1_000);
    let player = bench.player(0);
    bench
        .says(player, "GET /a HTTP/1.1\r\nHost: h\r\n\r\nPUT /b HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n");
    let server = bench.opens(0);
    bench.says(server, &ok("abc", ""));
    let answers = bench.got(player);
    let at = |what: &str| answers.find(what).unwrap_or_else(|| panic!("{what}: {answers}"));
    assert!(at("200 OK") < at("501 Not Implemented") && at("501 ") < at("400 Bad Request"), "{answers}");
    assert_eq!(bench.world.ended.get(&player), Some(&"closed"));
}

#[test]
fn a_kept_connection_that_the_server_has_closed_is_replaced() {
    let mut bench = Bench::new(1_000);
    let player = bench.asks(0, "/a", "");
    let server = bench.opens(0);
    bench.says(server, &ok("abc", ""));
    bench.got(player);
    bench.says(player, "GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
    bench.give(Input::Closed(server, CloseReason::Finished));
    let server = bench.opens(1);
    bench.says(server, &ok("b", ""));
    assert_eq!(bench.body(player), "b");
}

#[test]
fn a_fetch_that_nobody_waits_for_any_more_ends_and_its_part_is_kept() {
    let mut bench = Bench::new(1_000);
    let player = bench.asks(0, "/a", "");
    let server = bench.opens(0);
    bench.says(server, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nCache-Control: max-age=60\r\n\r\nabc");
    bench.give(Input::Closed(player, CloseReason::Reset));
    assert_eq!(bench.world.ended.get(&server), Some(&"aborted"));
    let next = bench.asks(0, "/a", "");
    let server = bench.opens(1);
    assert!(bench.got(server).contains("Range: bytes=3-5\r\n"));
    bench.says(
        server,
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 3-5/6\r\nContent-Length: 3\r\n\r\ndef",
    );
    assert_eq!(bench.body(next), "abcdef");
}
