use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_wire::http::{HttpItem, Reader, Request, Response};

use super::answer::{Body, answer};
use super::*;
use crate::app::{App, CloseReason, Input, Io};
use crate::testing::{Pair, Pipe};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 25 frames a second.
fn clip(frame_bytes: Vec<u32>, duration: Duration) -> ClipSpec {
    let frame_interval = ms(40);
    let (name, frame_bytes) = ("clip".into(), frame_bytes.into());
    ClipSpec { name, duration, frame_interval, frame_bytes, ..ClipSpec::default() }
}

fn library(clip: &ClipSpec) -> Arc<OneFile> {
    let file = MadeFile::of_clip(clip).unwrap();
    Arc::new(OneFile { paths: vec![PATH.into()], resource: Arc::new(file) })
}

fn source() -> Source {
    let carrier = Carrier::Tcp { port: PORT, settings: TcpSpec::default() };
    Source { host: "server".into(), target: PATH.into(), carrier }
}

fn player(settings: &HttpPlayerSettings) -> Box<HttpPlayer> {
    Box::new(HttpPlayer::new(settings.clone(), source()))
}

fn usual() -> HttpPlayerSettings {
    HttpPlayerSettings::default()
}

/// Opens its own listener, as the driver does for a flow that begins with one, and resets all connections at times.
struct Listening {
    server: HttpServer,
    resets: Vec<Instant>,
    channels: Vec<ChannelId>,
}

impl Listening {
    fn new(clip: &ClipSpec) -> Self {
        let server = HttpServer::new(library(clip), HttpServerSettings::default());
        Listening { server, resets: Vec::new(), channels: Vec::new() }
    }
}

fn listener() -> Carrier {
    Carrier::Listener { port: PORT, settings: TcpSpec::default(), backlog: 10 }
}

impl App for Listening {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => drop(io.open(&listener())),
            Input::Accepted { channel, .. } => self.channels.push(channel),
            _ => {}
        }
        if self.resets.first().is_some_and(|at| *at <= now) {
            self.resets.remove(0);
            for channel in self.channels.drain(..) {
                io.abort(channel);
                self.server.handle(now, Input::Closed(channel, CloseReason::Reset), io);
            }
        }
        self.server.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.resets.first().copied().into_iter().chain(self.server.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.server.poll_event()
    }
}

fn pipe(bytes_per_s: u64) -> Pipe {
    Pipe { stream_bytes_per_s: Some(bytes_per_s), begins_with_stream: false, ..Pipe::default() }
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn named<'a>(events: &'a [Event], name: &str) -> Vec<&'a Event> {
    events.iter().filter(|event| event.name == name).collect()
}

/// The numbers of the frames shown are all there are, each once and in order.
fn shows_all(events: &[Event], frames: u64) {
    let shown: Vec<f64> = named(events, "frame_shown").iter().filter_map(|event| event.value).collect();
    assert_eq!(shown, (0..frames).map(|number| number as f64).collect::<Vec<_>>());
    let ends = named(events, crate::MEDIA_END);
    assert_eq!((ends.len(), ends[0].value), (1, Some(frames as f64)), "{ends:?}");
    assert_eq!(ends[0].reason, "all frames were shown or given up");
    assert!(named(events, "frame_late").is_empty() && named(events, "frame_incomplete").is_empty());
}

/// From the first picture on there is media and there are stalls, and nothing else.
fn adds_up(events: &[Event], frames: u64) {
    let start = named(events, "playout_start")[0].at;
    let stalled: Duration = Duration::from_nanos(
        named(events, "resume").iter().map(|event| (event.value.unwrap() * 1e9).round() as u64).sum(),
    );
    let last = named(events, "frame_shown").last().unwrap().at;
    let expected = ms(40) * (frames - 1) + stalled;
    let took = last.saturating_since(start);
    assert!(took.as_nanos().abs_diff(expected.as_nanos()) < 10_000, "{took:?}, {expected:?}");
}

fn run(clip: &ClipSpec, settings: &HttpPlayerSettings, pipe: Pipe, until: u64) -> Pair {
    let mut pair = Pair::new(Box::new(Listening::new(clip)), player(settings), pipe);
    pair.run(at(until));
    pair
}

#[test]
fn a_clip_is_played_while_it_comes() {
    // 50 kB/s of media at 100 kB/s.
    let pair = run(&clip(vec![2_000], ms(10_000)), &usual(), pipe(100_000), 30);
    shows_all(&pair.events, 250);
    adds_up(&pair.events, 250);
    assert!(named(&pair.events, "stall").is_empty());
    let startup = named(&pair.events, "playout_start")[0].value.unwrap();
    // Tables and 2 s of media.
    assert!((1.0..1.1).contains(&startup), "{startup}");
    let requests = named(&pair.events, "http_request");
    assert_eq!((requests.len(), requests[0].reason.as_ref()), (1, "/clip.mp4 the whole"));
    assert_eq!(named(&pair.events, "http_response")[0].value, Some(200.0));
}

#[test]
fn a_starving_player_stalls_and_plays_everything_in_the_end() {
    let clip = clip(vec![2_000], ms(10_000));
    let settings = HttpPlayerSettings { rebuffer: ms(1_000), ..usual() };
    let pair = run(&clip, &settings, pipe(25_000), 60);
    shows_all(&pair.events, 250);
    adds_up(&pair.events, 250);
    let stalls = named(&pair.events, "stall").len();
    assert!(stalls >= 3 && stalls == named(&pair.events, "resume").len(), "{stalls}");
    // A second of media takes two.
    let lasted = named(&pair.events, "resume")[0].value.unwrap();
    assert!((1.8..2.2).contains(&lasted), "{lasted}");
}

#[test]
fn pieces_come_on_one_connection_or_each_on_its_own() {
    let clip = clip(vec![2_000], ms(10_000));
    for persistent in [true, false] {
        let settings = HttpPlayerSettings { request: Some(50_000), persistent, ..usual() };
        let pair = run(&clip, &settings, pipe(100_000), 30);
        shows_all(&pair.events, 250);
        // 500 kB and the tables.
        let requests = named(&pair.events, "http_request");
        assert_eq!(requests.len(), 11);
        assert_eq!(requests[1].reason, "/clip.mp4 bytes=50000-99999");
        assert!(named(&pair.events, "http_response").iter().all(|event| event.value == Some(206.0)));
        assert!(named(&pair.events, "http_failure").is_empty());
    }
}

#[test]
fn who_holds_enough_reads_no_more() {
    let clip = clip(vec![2_000], ms(60_000));
    for request in [None, Some(20_000)] {
        let (most, again) = (ms(8_000), ms(5_000));
        let settings =
            HttpPlayerSettings { request, read_ahead: Some(most), read_again: Some(again), ..usual() };
        let pair = run(&clip, &settings, pipe(1_000_000), 90);
        shows_all(&pair.events, 1_500);
        adds_up(&pair.events, 1_500);
        let (offs, ons) = (named(&pair.events, "download_off"), named(&pair.events, "download_on"));
        // Each 3 s from when the buffer is full.
        assert!((16..=19).contains(&offs.len()) && ons.len().abs_diff(offs.len()) <= 1, "{}", offs.len());
        // What is read at once comes on top: 64 kB are 1.3 s.
        assert!(offs.iter().all(|event| (8.0..9.4).contains(&event.value.unwrap())));
        assert!(ons.iter().all(|event| (4.9..=5.0).contains(&event.value.unwrap())));
        assert!(named(&pair.events, "http_failure").is_empty());
    }
}

#[test]
fn after_a_reset_it_goes_on_where_it_was() {
    let clip = clip(vec![2_000], ms(10_000));
    for request in [None, Some(100_000)] {
        let mut server = Listening::new(&clip);
        server.resets = vec![at(1), at(4)];
        let settings = HttpPlayerSettings { request, ..usual() };
        let mut pair = Pair::new(Box::new(server), player(&settings), pipe(100_000));
        pair.run(at(40));
        shows_all(&pair.events, 250);
        let failures = named(&pair.events, "http_failure");
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures.iter().all(|event| event.value == Some(1.0)), "bytes came between them");
        assert!(failures[0].reason.starts_with("the connection was reset; "), "{failures:?}");
        let again = named(&pair.events, "http_request")[1].reason.clone();
        assert!(again.starts_with("/clip.mp4 bytes="), "{again}");
    }
}

#[test]
fn a_pause_and_a_stop_are_heeded() {
    let clip = clip(vec![2_000], ms(10_000));
    let make = || Pair::new(Box::new(Listening::new(&clip)), player(&usual()), pipe(100_000));
    let mut paused = make();
    paused.at(ms(3_000), Input::Pause);
    paused.at(ms(63_000), Input::Resume);
    paused.run(at(90));
    shows_all(&paused.events, 250);
    assert!(named(&paused.events, "http_failure").is_empty() && named(&paused.events, "stall").is_empty());
    let last = named(&paused.events, "frame_shown").last().unwrap().at;
    assert!(last > at(70) && last < at(72), "{last:?}");

    let mut stopped = make();
    stopped.at(ms(3_000), Input::Stop);
    stopped.run(at(30));
    let ends = named(&stopped.events, crate::MEDIA_END);
    assert_eq!((ends.len(), ends[0].reason.as_ref(), ends[0].at), (1, "stopped", at(3)));
    assert!(stopped.events.iter().all(|event| event.at <= at(3)), "{:?}", stopped.events.last());
}

#[test]
fn who_wants_the_bytes_gets_all_of_them() {
    struct Taking(Box<HttpPlayer>, Arc<Mutex<u64>>);
    impl App for Taking {
        fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
            self.0.handle(now, input, io);
            while let Some(bytes) = self.0.take_bytes() {
                *self.1.lock().unwrap() += bytes.len() as u64;
            }
        }
        fn poll_timeout(&self) -> Option<Instant> {
            self.0.poll_timeout()
        }
        fn poll_event(&mut self) -> Option<Event> {
            self.0.poll_event()
        }
    }
    let clip = clip(vec![2_000], ms(2_000));
    let (mut keeping, count) = (player(&usual()), Arc::new(Mutex::new(0)));
    keeping.keep_bytes();
    let taking = Taking(keeping, count.clone());
    let mut pair = Pair::new(Box::new(Listening::new(&clip)), Box::new(taking), pipe(100_000));
    pair.run(at(10));
    assert_eq!(*count.lock().unwrap(), MadeFile::of_clip(&clip).unwrap().length());
}

/// How a canned answer ends.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Close,
    Abort,
    Stay,
}

/// Answers each connection's first request with given bytes, the last of them again and again.
struct Canned {
    answers: Vec<(Vec<u8>, Ending)>,
    next: usize,
}

impl App for Canned {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => drop(io.open(&listener())),
            Input::Readable(channel) if io.read(channel, 4_096).is_some() => {
                let (bytes, ending) = &self.answers[self.next.min(self.answers.len() - 1)];
                self.next += 1;
                assert_eq!(io.write(channel, Chunk::bytes(&bytes[..])), bytes.len());
                match ending {
                    Ending::Close => io.close(channel),
                    Ending::Abort => io.abort(channel),
                    Ending::Stay => {}
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

/// Why it ended, and how many failures it told of.
fn against(answers: Vec<(Vec<u8>, Ending)>, settings: &HttpPlayerSettings) -> (String, usize, Option<f64>) {
    let mut pair = Pair::new(Box::new(Canned { answers, next: 0 }), player(settings), pipe(1_000_000));
    pair.run(at(600));
    let ends = named(&pair.events, crate::MEDIA_END);
    assert_eq!(ends.len(), 1, "{:?}", pair.events);
    (ends[0].reason.to_string(), named(&pair.events, "http_failure").len(), ends[0].value)
}

/// The clip's file, real to its last byte.
fn file(clip: &ClipSpec) -> Vec<u8> {
    let file = MadeFile::of_clip(clip).unwrap();
    let whole = file.read(0, file.length()).unwrap();
    let mut bytes = whole.head().to_vec();
    bytes.resize(whole.len(), 0);
    bytes
}

fn response(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = Response::new(status);
    for (name, value) in headers {
        head.headers.add(name, value);
    }
    [head.write(), body.to_vec()].concat()
}

#[test]
fn a_bad_answer_is_one_clear_end() {
    let html = b"<html><body>log in</body></html>";
    let length = html.len().to_string();
    let media = file(&clip(vec![100], ms(1_000)));
    let mut damaged = media.clone();
    damaged[40..44].copy_from_slice(b"mooo");
    let all = |bytes: &[u8]| response(200, &[("Content-Length", &bytes.len().to_string())], bytes);
    for (answer, said) in [
        (
            response(404, &[("Content-Length", "0")], b""),
            "the server answered 404 Not Found to GET /clip.mp4",
        ),
        (
            response(416, &[("Content-Range", "bytes */10"), ("Content-Length", "0")], b""),
            "416 Range Not Satisfiable",
        ),
        (response(301, &[("Location", "/b"), ("Content-Length", "0")], b""), "301 Moved Permanently"),
        (
            response(206, &[("Content-Length", "5")], b"abcde"),
            "206 Partial Content to GET /clip.mp4 with no Content-Range",
        ),
        (
            response(206, &[("Content-Range", "bytes 5-9/10")], b"abcde"),
            "with bytes 5-9/10, asked for from byte 0 on",
        ),
        (
            response(206, &[("Content-Range", "bytes 0-9/10"), ("Content-Length", "5")], b"abcde"),
            "a body that is not as long as its Content-Range",
        ),
        (
            response(200, &[("Content-Type", "text/html"), ("Content-Length", &length)], html),
            "the file cannot be played (the server calls it text/html): not an MP4",
        ),
        (html.to_vec(), "the server's answer cannot be read: no HTTP"),
        (response(200, &[("Content-Length", "0")], b""), "the file ends before its moov box"),
        (all(&media[..200]), "the file ends before its moov box"),
        (all(&media[..media.len() - 1]), "it is truncated"),
        (all(&[&media[..32], b"\0\0\0\x08mdat"].concat()), "its moov box is behind its media"),
        (all(&damaged), "cannot be played"),
    ] {
        let (why, failures, shown) = against(vec![(answer, Ending::Close)], &usual());
        assert!(why.contains(said), "{why}: {said}");
        assert_eq!((failures, shown), (0, Some(0.0)), "{why}");
    }
}

#[test]
fn a_failing_connection_is_tried_again_so_often_and_no_more() {
    let cut = response(200, &[("Content-Length", "100000"), ("ETag", "\"a\"")], b"");
    let busy = response(503, &[("Content-Length", "0")], b"");
    let settings = HttpPlayerSettings { give_up_after: ms(1_500), backoff: ms(100), ..usual() };
    for (answer, ending, said) in [
        (cut.clone(), Ending::Close, "the connection ended before the body did: 100000 B are missing"),
        (cut.clone(), Ending::Abort, "the connection was reset"),
        (cut, Ending::Stay, "nothing was heard for 1.5 s"),
        (Vec::new(), Ending::Close, "the server closed the connection without an answer"),
        (b"HTTP/1.1 20".to_vec(), Ending::Close, "the connection ended within a head"),
        (busy, Ending::Stay, "the server answered 503 Service Unavailable"),
    ] {
        let (why, failures, _) = against(vec![(answer, ending)], &settings);
        assert!(why.starts_with(said) && why.ends_with("5 connections failed one after another"), "{why}");
        assert_eq!(failures, 5);
    }
}

#[test]
fn interim_answers_come_before_the_answer() {
    let media = file(&clip(vec![100], ms(1_000)));
    let hints = response(103, &[("Link", "</a.css>; rel=preload")], b"");
    let whole = response(200, &[("Content-Length", &media.len().to_string())], &media);
    let answer = [response(100, &[], b""), hints, whole].concat();
    let (why, failures, shown) = against(vec![(answer, Ending::Stay)], &usual());
    assert_eq!((why.as_str(), failures, shown), ("all frames were shown or given up", 0, Some(25.0)));
}

#[test]
fn an_answer_that_ends_early_is_a_failure() {
    let media = file(&clip(vec![100], ms(1_000)));
    let chunked = |bytes: &[u8]| {
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat();
        if bytes.is_empty() { b"0\r\n\r\n".to_vec() } else { chunk }
    };
    let encoded = ("Transfer-Encoding", "chunked");
    let part = response(206, &[("Content-Range", "bytes 0-99/100"), encoded], &chunked(b""));
    let settings = HttpPlayerSettings { backoff: ms(100), ..usual() };
    let (why, failures, _) = against(
        vec![(part, Ending::Stay)],
        &HttpPlayerSettings { request: Some(100_000), ..settings.clone() },
    );
    assert!(why.starts_with("the answer ended before its bytes did; 5 connections"), "{why}");
    assert_eq!(failures, 5);
    // Of no said length, cut, and then shorter than what came before.
    let cut = [format!("{:x}\r\n", media.len()).as_bytes(), &media[..media.len() - 150]].concat();
    let cut = response(200, &[encoded], &cut);
    let shorter = response(200, &[encoded], &chunked(&media[..100]));
    let (why, failures, _) = against(vec![(cut, Ending::Close), (shorter, Ending::Stay)], &settings);
    assert!(why.starts_with("the answer ended before its bytes did"), "{why}");
    assert_eq!(failures, 5);
}

/// Each wait is twice the one before.
#[test]
fn nobody_who_listens_is_asked_again_more_and_more_seldom() {
    struct Nobody;
    impl App for Nobody {
        fn handle(&mut self, _: Instant, _: Input<'_>, _: &mut dyn Io) {}
        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }
    let mut pair = Pair::new(Box::new(Nobody), player(&usual()), pipe(1_000_000));
    pair.run(at(60));
    let seconds: Vec<u64> =
        named(&pair.events, "http_failure").iter().map(|event| event.at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15]);
    let end = named(&pair.events, crate::MEDIA_END)[0];
    assert!(end.reason.starts_with("nobody listens on port 80"), "{end:?}");
}

#[test]
fn a_file_that_changes_is_not_put_together() {
    let media = file(&clip(vec![100], ms(1_000)));
    let length = media.len().to_string();
    let first = response(200, &[("Content-Length", &length), ("ETag", "\"a\"")], &media[..1_000]);
    let other = response(200, &[("Content-Length", &length), ("ETag", "\"b\"")], &media);
    let (why, failures, shown) =
        against(vec![(first.clone(), Ending::Close), (other, Ending::Stay)], &usual());
    assert_eq!(failures, 1);
    assert!(
        why.starts_with("the file changed while it was fetched: its tag was \"a\" and is \"b\""),
        "{why}"
    );
    assert!(shown < Some(25.0), "{shown:?}");
    let weak = response(200, &[("Content-Length", &length), ("ETag", "W/\"a\"")], &media);
    let (why, ..) = against(vec![(first.clone(), Ending::Close), (weak, Ending::Stay)], &usual());
    assert!(why.starts_with("the file changed while it was fetched"), "{why}");
    // A server that knows no ranges sends all of it again.
    let again = response(200, &[("Content-Length", &length)], &media);
    let (why, _, shown) = against(vec![(first, Ending::Close), (again, Ending::Stay)], &usual());
    assert_eq!((why.as_str(), shown), ("all frames were shown or given up", Some(25.0)));
}

#[test]
fn a_file_of_no_said_length_is_played_to_its_end() {
    let media = file(&clip(vec![100], ms(1_000)));
    let chunk = [format!("{:x}\r\n", media.len()).as_bytes(), &media, b"\r\n0\r\n\r\n"].concat();
    let chunked = response(200, &[("Transfer-Encoding", "chunked")], &chunk);
    let old = [b"HTTP/1.0 200 OK\r\n\r\n".as_slice(), &media].concat();
    for answer in [(chunked, Ending::Stay), (old.clone(), Ending::Close)] {
        let (why, failures, shown) = against(vec![answer], &usual());
        assert_eq!((why.as_str(), failures, shown), ("all frames were shown or given up", 0, Some(25.0)));
    }
    let short = old[..old.len() - 150].to_vec();
    let (why, _, shown) = against(vec![(short, Ending::Close)], &usual());
    assert_eq!((why.as_str(), shown), ("the file ends before its last frame", Some(23.0)));
}

fn get(headers: &[(&str, &str)]) -> Request {
    asking("GET", PATH, headers)
}

fn asking(method: &str, target: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = Request::new(method, target, "server").unwrap();
    for (name, value) in headers {
        request.headers.add(name, value);
    }
    request
}

#[test]
fn a_server_answers_by_the_book() {
    let clip = clip(vec![1_000], ms(1_000));
    let library = library(&clip);
    let file = MadeFile::of_clip(&clip).unwrap();
    let (length, tag) = (file.length(), file.tag().to_string());
    let weak = format!("W/{tag}");
    let (last, open) = (format!("bytes {}-{}/{length}", length - 5, length - 1), format!("bytes={length}-"));
    let whole = (200, 0, length, "");
    for (request, (status, first, end, range)) in [
        (get(&[]), whole),
        (asking("HEAD", PATH, &[]), (200, 0, 0, "")),
        (asking("GET", "http://server/clip.mp4?x=1", &[]), whole),
        (get(&[("Range", "bytes=0-9")]), (206, 0, 10, &*format!("bytes 0-9/{length}"))),
        (get(&[("Range", "bytes=-5")]), (206, length - 5, length, &*last)),
        (get(&[("Range", &open)]), (416, 0, 0, &*format!("bytes */{length}"))),
        (get(&[("Range", "bytes=9-0")]), whole),
        (get(&[("Range", "bytes=0-1,5-9")]), whole),
        (asking("HEAD", PATH, &[("Range", "bytes=0-9")]), (200, 0, 0, "")),
        (get(&[("Range", "bytes=0-9"), ("If-Range", &tag)]), (206, 0, 10, &*format!("bytes 0-9/{length}"))),
        (get(&[("Range", "bytes=0-9"), ("If-Range", &weak)]), whole),
        (get(&[("Range", "bytes=0-9"), ("If-Range", "Sat, 01 Jan 2000 00:00:00 GMT")]), whole),
        (get(&[("Range", "bytes=0-9"), ("If-Range", "\"other\""), ("If-Range", &tag)]), whole),
        (get(&[("If-None-Match", &weak)]), (304, 0, 0, "")),
        (get(&[("If-None-Match", "\"other\"")]), whole),
        (get(&[("If-Match", "\"other\"")]), (412, 0, 0, "")),
        (asking("GET", "/other", &[]), (404, 0, 0, "")),
        (asking("POST", PATH, &[]), (405, 0, 0, "")),
    ] {
        let given = answer(&request, library.as_ref(), 60);
        let bytes = match given.body {
            Body::Of(_, first, end) => (first, end),
            Body::None | Body::Text(_) => (0, 0),
        };
        let given_range = given.head.headers.get("Content-Range").unwrap_or_default();
        assert_eq!((given.head.status, bytes, given_range), (status, (first, end), range), "{request:?}");
        if matches!(status, 200 | 206 | 304) {
            assert_eq!(given.head.headers.get("ETag"), Some(tag.as_str()));
            assert_eq!(given.head.headers.get("Cache-Control"), Some("public, max-age=60"));
        }
    }
    assert_eq!(
        answer(&asking("PUT", PATH, &[]), library.as_ref(), 60).head.headers.get("Allow"),
        Some("GET, HEAD")
    );
    for (method, has_body) in [("GET", true), ("HEAD", false)] {
        let mut nameless = asking(method, PATH, &[]);
        nameless.headers.remove("Host");
        let given = answer(&nameless, library.as_ref(), 60);
        assert_eq!((given.head.status, matches!(given.body, Body::Text(_))), (400, has_body));
    }
}

/// Bytes that came, and when and why the connection closed.
type Came = Arc<Mutex<(Vec<u8>, Option<(Instant, CloseReason)>)>>;

/// Writes these pieces, one each 10 ms, then finishes; keeps what comes.
struct Raw {
    pieces: Vec<Vec<u8>>,
    channel: Option<ChannelId>,
    next: Option<Instant>,
    came: Came,
}

impl App for Raw {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.channel = Some(io.open(&source().carrier)),
            Input::Opened(_) => self.next = Some(now),
            Input::Readable(channel) => {
                while let Some(chunk) = io.read(channel, 1 << 20) {
                    let mut came = self.came.lock().unwrap();
                    let length = came.0.len() + chunk.len();
                    came.0.extend(chunk.head());
                    came.0.resize(length, 0);
                }
            }
            Input::Closed(_, why) => self.came.lock().unwrap().1 = Some((now, why)),
            _ => {}
        }
        let Some(channel) = self.channel.filter(|_| self.next.is_some_and(|at| at <= now)) else { return };
        if self.pieces.is_empty() {
            self.next = None;
            io.close(channel);
        } else {
            self.next = Some(now + ms(10));
            io.write(channel, Chunk::bytes(self.pieces.remove(0)));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Statuses and lengths of bodies that a client gets for its bytes in these pieces.
fn answers(requests: &[Request], pieces: Vec<Vec<u8>>) -> (Vec<(u16, usize)>, Option<CloseReason>) {
    answers_of(Listening::new(&clip(vec![1_000], ms(1_000))), requests, pieces)
}

/// What comes from a server for a client's bytes in these pieces.
fn came(server: Listening, pieces: Vec<Vec<u8>>) -> (Vec<u8>, Option<(Instant, CloseReason)>) {
    let came = Arc::new(Mutex::new((Vec::new(), None)));
    let raw = Raw { pieces, channel: None, next: None, came: came.clone() };
    let mut pair = Pair::new(Box::new(server), Box::new(raw), pipe(10_000_000));
    pair.run(at(2));
    std::mem::take(&mut *came.lock().unwrap())
}

fn answers_of(
    server: Listening,
    requests: &[Request],
    pieces: Vec<Vec<u8>>,
) -> (Vec<(u16, usize)>, Option<CloseReason>) {
    let came = came(server, pieces);
    let mut reader = Reader::of_responses();
    for request in requests {
        reader.expect(request);
    }
    reader.push(Chunk::bytes(&came.0[..]));
    let mut got: Vec<(u16, usize)> = Vec::new();
    for item in reader {
        match item.unwrap() {
            HttpItem::Response(response) => got.push((response.status, 0)),
            HttpItem::Body(chunk) => got.last_mut().unwrap().1 += chunk.len(),
            HttpItem::Request(_) | HttpItem::End => {}
        }
    }
    (got, came.1.map(|(_, why)| why))
}

#[test]
fn requests_that_cannot_be_read_end_the_connection() {
    for (bytes, status) in [
        (b"<html>\r\n\r\n".as_slice(), 400),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (b"GET /clip.mp4 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (&[b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 20_000], b"\r\n\r\n"].concat(), 431),
    ] {
        let after = b"GET /clip.mp4 HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        let (got, end) = answers(&[], vec![bytes.to_vec(), after]);
        assert_eq!(got.len(), 1, "{got:?}");
        assert_eq!((got[0].0, end), (status, Some(CloseReason::Finished)));
    }
}

#[test]
fn a_client_that_finishes_after_its_request_still_gets_the_answer() {
    let whole = file(&clip(vec![1_000], ms(1_000))).len();
    let (got, end) = answers(&[], vec![get(&[]).write()]);
    assert_eq!((got, end), (vec![(200, whole)], Some(CloseReason::Finished)));
}

#[test]
fn requests_that_wait_hold_no_resource() {
    /// Has one resource open at a time, and says which requests came when another was.
    struct Counting(Arc<dyn Resource>);
    impl Library for Counting {
        fn find(&self, _: &str) -> Result<Option<Arc<dyn Resource>>, Busy> {
            if Arc::strong_count(&self.0) > 1 { Err(Busy) } else { Ok(Some(self.0.clone())) }
        }
    }
    let clip = clip(vec![1_000], ms(1_000));
    let file = Arc::new(MadeFile::of_clip(&clip).unwrap());
    let length = file.length() as usize;
    let library: Arc<dyn Library> = Arc::new(Counting(file.clone()));
    let mut server = Listening::new(&clip);
    drop(file);
    server.server = HttpServer::new(library, HttpServerSettings::default());
    // More than wait at a time.
    let requests = vec![get(&[]); 40];
    let written = requests.iter().flat_map(Request::write).collect();
    let (got, end) = answers_of(server, &requests, vec![written]);
    assert_eq!((got, end), (vec![(200, length); 40], Some(CloseReason::Finished)));
}

#[test]
fn what_cannot_be_opened_now_is_no_404() {
    struct Full;
    impl Library for Full {
        fn find(&self, _: &str) -> Result<Option<Arc<dyn Resource>>, Busy> {
            Err(Busy)
        }
    }
    assert_eq!(answer(&get(&[]), &Full, 60).head.status, 503);
}

#[test]
fn who_waits_to_be_asked_for_a_body_is_answered_at_once() {
    let mut post = asking("POST", PATH, &[("Content-Length", "5"), ("Expect", "100-continue")]);
    let (got, end) = answers(&[], vec![post.write(), b"hello".to_vec(), get(&[]).write()]);
    assert_eq!((got.len(), got[0].0, end), (1, 405, Some(CloseReason::Finished)));
    // Without a body there is nothing to wait for.
    post.headers.set("Content-Length", "0");
    let (got, _) = answers(&[], vec![post.write(), get(&[]).write()]);
    assert_eq!(got.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [405, 200]);
}

#[test]
fn an_old_client_is_told_that_its_connection_stays() {
    let written = b"GET /clip.mp4 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_vec();
    let came = came(Listening::new(&clip(vec![1_000], ms(1_000))), vec![written.clone(), written]).0;
    let said = b"Connection: keep-alive\r\n";
    assert_eq!(came.windows(said.len()).filter(|bytes| bytes == said).count(), 2);
}

#[test]
fn an_idle_connection_is_closed() {
    let came = Arc::new(Mutex::new((Vec::new(), None)));
    // It would close after 100 s.
    let pieces = std::iter::once(get(&[]).write()).chain(std::iter::repeat_n(Vec::new(), 10_000)).collect();
    let raw = Raw { pieces, channel: None, next: None, came: came.clone() };
    let clip = clip(vec![1_000], ms(1_000));
    let mut pair = Pair::new(Box::new(Listening::new(&clip)), Box::new(raw), pipe(10_000_000));
    pair.run(at(80));
    let (closed, why) = came.lock().unwrap().1.unwrap();
    assert_eq!(why, CloseReason::Finished);
    assert!(at(75) <= closed && closed < at(77), "{closed:?}");
}

#[test]
fn a_plan_that_cannot_be_played_is_refused_by_its_key() {
    let refused = |change: fn(&mut HttpSpec)| {
        let mut spec = HttpSpec { clip: clip(vec![1_000], ms(1_000)), ..HttpSpec::usual() };
        change(&mut spec);
        spec.machines("video", 1).err().map_or_else(String::new, |(key, _)| key.into_owned())
    };
    fn held(spec: &mut HttpSpec, ahead: u64, again: u64) {
        (spec.player.read_ahead, spec.player.read_again) = (Some(ms(ahead)), Some(ms(again)));
    }
    assert_eq!(refused(|_| {}), "");
    assert_eq!(refused(|spec| spec.player.request = Some(10)), "app.http.player.request");
    assert_eq!(refused(|spec| spec.player.tries = 0), "app.http.player.tries");
    assert_eq!(refused(|spec| spec.player.backoff = ms(1)), "app.http.player.backoff");
    assert_eq!(refused(|spec| spec.player.give_up_after = ms(1)), "app.http.player.give_up_after");
    assert_eq!(refused(|spec| spec.player.read_ahead = Some(ms(2_000))), "");
    assert_eq!(refused(|spec| spec.player.read_ahead = Some(ms(1_000))), "app.http.player.read_ahead");
    assert_eq!(refused(|spec| held(spec, 10_000, 10_000)), "");
    assert_eq!(refused(|spec| held(spec, 10_000, 10_001)), "app.http.player.read_again");
    assert_eq!(refused(|spec| held(spec, 1_000, 500)), "app.http.player.read_ahead");
    assert_eq!(refused(|spec| spec.server.backlog = 0), "app.http.server.backlog");
    assert_eq!(refused(|spec| spec.server.keep_alive = ms(1)), "app.http.server.keep_alive");
    assert_eq!(refused(|spec| spec.clip.frame_bytes = Vec::new().into()), "app.http.clip.frame_bytes");
    assert_eq!(refused(|spec| spec.clip.duration = Duration::MAX), "app.http.clip.duration");
    assert_eq!(refused(|spec| spec.clip.duration = Duration::ZERO), "app.http.clip");
}

#[test]
fn reading_goes_on_at_five_sixths_of_what_is_held_at_most() {
    let between =
        |read_ahead, read_again| HttpPlayerSettings { read_ahead, read_again, ..usual() }.read_between();
    assert_eq!(HttpPlayerSettings::default().read_between(), Some((ms(30_000), ms(25_000))));
    assert_eq!(between(Some(ms(12_000)), None), Some((ms(12_000), ms(10_000))));
    assert_eq!(between(Some(ms(12_000)), Some(ms(3_000))), Some((ms(12_000), ms(3_000))));
    assert_eq!(between(None, Some(ms(3_000))), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_frame_is_shown_once_whatever_becomes_of_the_connections(
        frames in prop::collection::vec(1u32..6_000, 1..60),
        seconds in 1u64..6,
        rate in 60_000u64..400_000,
        request in prop::option::of(600u64..200_000),
        persistent in any::<bool>(),
        resets in prop::collection::vec(1u64..10_000, 0..4),
        outage in (0u64..6_000, 0u64..5_000),
        prebuffer in 0u64..3_000, rebuffer in 0u64..3_000,
        ahead in prop::option::of(3_000u64..10_000),
    ) {
        let clip = clip(frames, ms(1_000 * seconds));
        let settings = HttpPlayerSettings {
            request, persistent,
            prebuffer: ms(prebuffer), rebuffer: ms(rebuffer),
            read_ahead: ahead.map(ms), read_again: ahead.map(|ahead| ms(ahead / 2)),
            tries: 50, backoff: ms(100),
            ..usual()
        };
        let mut server = Listening::new(&clip);
        server.resets = resets.into_iter().map(|at| Instant::ZERO + ms(at)).collect();
        server.resets.sort_unstable();
        let pipe = Pipe { outage: (ms(outage.0), ms(outage.0 + outage.1)), ..pipe(rate) };
        let mut pair = Pair::new(Box::new(server), player(&settings), pipe);
        pair.run(at(60));
        let count = 25 * seconds;
        shows_all(&pair.events, count);
        adds_up(&pair.events, count);
    }

    #[test]
    fn whatever_way_requests_are_cut_the_answers_are_the_same(
        cuts in prop::collection::vec(1usize..40, 0..12),
    ) {
        let requests = [
            get(&[("Range", "bytes=0-99")]),
            asking("HEAD", PATH, &[]),
            asking("GET", "/none", &[]),
            get(&[("Range", "bytes=100-"), ("Connection", "close")]),
        ];
        let written: Vec<u8> = requests.iter().flat_map(Request::write).collect();
        let whole = answers(&requests, vec![written.clone()]);
        let mut rest = &written[..];
        let mut pieces = Vec::new();
        for cut in cuts {
            let (piece, more) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece.to_vec());
            rest = more;
        }
        pieces.push(rest.to_vec());
        prop_assert_eq!(whole.0.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [206, 200, 404, 206]);
        prop_assert_eq!(answers(&requests, pieces), whole);
    }
}
