//! The cost of HTTP. `requests`: heads read out of segments of a connection, beside `httparse` alone, which
//! handles neither segments nor bodies; throughput is in requests. `stream`: the cost of a segment of media
//! for server and player together: requested, sent, received, played; throughput is in segments of 1,448 B,
//! over a path without a rate that loses nothing, 10 ms each way; the other end acknowledges read data at
//! once.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_plan::{Entry, FlowSpec, Role};
use streamgauge_systems::http::{HttpPlayerSettings, HttpSpec, LISTENER};
use streamgauge_systems::media::{ClipSpec, Contents};
use streamgauge_systems::{App, Carrier, ChannelId, Envelope, Input, Io, MEDIA_END, System, machines};
use streamgauge_wire::http::{HttpItem, Reader, Request};

const DELAY: Duration = Duration::from_millis(10);
const END: Duration = Duration::from_secs(120);
/// A segment's bytes.
const SEGMENT: usize = 1448;
/// Bytes that one end has sent and the other has not read, at most.
const WINDOW: usize = 256 << 10;
/// The one connection, at both ends.
const STREAM: ChannelId = ChannelId(1);
/// Requests of a connection.
const REQUESTS: usize = 1000;
/// More headers than the requests have.
const MOST_HEADERS: usize = 16;

/// One end's side of the connection.
#[derive(Default)]
struct Side {
    outgoing: VecDeque<(Instant, Chunk)>,
    readable: VecDeque<Chunk>,
    /// Bytes that the other end has not read.
    unread: usize,
    /// Bytes that this end has read since the last check.
    read: usize,
    /// A write was not taken whole.
    waits: bool,
    opens: bool,
    segments: u64,
}

struct SideIo<'a> {
    now: Instant,
    side: &'a mut Side,
}

impl Io for SideIo<'_> {
    fn open(&mut self, _: &Carrier) -> ChannelId {
        assert!(!std::mem::replace(&mut self.side.opens, true), "one connection is enough");
        STREAM
    }
    fn send_as(&mut self, _: ChannelId, _: Chunk, _: Envelope) {}
    fn write(&mut self, _: ChannelId, mut chunk: Chunk) -> usize {
        let taken = chunk.len().min(WINDOW - self.side.unread);
        self.side.waits = taken < chunk.len();
        self.side.unread += taken;
        let _ = chunk.split_off(taken);
        while !chunk.is_empty() {
            let rest = chunk.split_off(SEGMENT);
            self.side.outgoing.push_back((self.now + DELAY, std::mem::replace(&mut chunk, rest)));
            self.side.segments += 1;
        }
        taken
    }
    fn read(&mut self, _: ChannelId, max: usize) -> Option<Chunk> {
        let mut chunk = self.side.readable.pop_front()?;
        let rest = chunk.split_off(max);
        if !rest.is_empty() {
            self.side.readable.push_front(rest);
        }
        self.side.read += chunk.len();
        Some(chunk)
    }
    fn close(&mut self, _: ChannelId) {}
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

/// Server and player, in that order, and the connection between them.
struct Ends {
    apps: [Box<dyn App + Send>; 2],
    sides: [Side; 2],
    has_ended: bool,
}

impl Ends {
    fn give(&mut self, end: usize, now: Instant, input: Input<'_>) {
        self.apps[end].handle(now, input, &mut SideIo { now, side: &mut self.sides[end] });
        while let Some(event) = self.apps[end].poll_event() {
            self.has_ended |= event.name == MEDIA_END;
        }
        let read = std::mem::take(&mut self.sides[end].read);
        let other = &mut self.sides[1 - end];
        other.unread -= read;
        if read > 0 && std::mem::take(&mut other.waits) {
            self.give(1 - end, now, Input::Writable(STREAM));
        }
    }

    /// When the next thing happens, and to which end: an arrival or a timer.
    fn next(&self, now: Instant) -> (Instant, usize, bool) {
        let arrival = |end: usize| {
            let first = self.sides[1 - end].outgoing.front();
            (first.map_or(Instant::FAR_FUTURE, |(at, _)| *at), end, true)
        };
        let timer = |end: usize| {
            let at = self.apps[end].poll_timeout().unwrap_or(Instant::FAR_FUTURE);
            (at.max(now), end, false)
        };
        let all = [arrival(0), arrival(1), timer(0), timer(1)];
        all.into_iter().min_by_key(|(at, ..)| *at).expect("there are four")
    }
}

/// Streams the clip; returns how many segments the server sent.
fn stream(flow: &FlowSpec) -> u64 {
    let made = machines(flow, 1, &Contents::NONE).expect("the settings are in order");
    let mut ends = Ends { apps: [made.server, made.player], sides: Default::default(), has_ended: false };
    for end in 0..2 {
        ends.give(end, Instant::ZERO, Input::Start);
    }
    ends.give(0, Instant::ZERO, Input::Accepted { channel: STREAM, on: LISTENER });
    ends.give(1, Instant::ZERO, Input::Opened(STREAM));
    let mut now = Instant::ZERO;
    while !ends.has_ended {
        let (at, end, is_arrival) = ends.next(now);
        assert!(at < Instant::ZERO + END, "the clip is played by then");
        now = at;
        if !is_arrival {
            ends.give(end, now, Input::Timeout);
        } else if let Some((_, chunk)) = ends.sides[1 - end].outgoing.pop_front() {
            ends.sides[end].readable.push_back(chunk);
            ends.give(end, now, Input::Readable(STREAM));
        }
    }
    ends.sides[0].segments
}

/// A connection's bytes: requests for pieces of a file, as a player sends them.
fn requests() -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..REQUESTS {
        let mut request = Request::new("GET", "/a1b2c3d4/clip.mp4", "server").expect("it can be written");
        let (first, last) = (number * 65_536, number * 65_536 + 65_535);
        request.headers.add("Range", format!("bytes={first}-{last}"));
        request.headers.add("If-Range", "\"10a8d4-0123456789abcdef\"");
        request.headers.add("User-Agent", "StreamGauge");
        bytes.extend(request.write());
    }
    bytes
}

/// How many requests our reader finds in these segments.
fn read(segments: &[Chunk]) -> usize {
    let mut reader = Reader::of_requests();
    let mut found = 0;
    for segment in segments {
        reader.push(segment.clone());
        for item in reader.by_ref() {
            found += usize::from(matches!(item.expect("they are in order"), HttpItem::Request(_)));
        }
    }
    found
}

/// How many `httparse` finds in all bytes at once, copying nothing.
fn parsed(mut bytes: &[u8]) -> usize {
    let mut found = 0;
    while !bytes.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let status = request.parse(bytes).expect("they are in order");
        bytes = &bytes[status.unwrap()..];
        black_box(&request);
        found += 1;
    }
    found
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("http");
    let bytes = requests();
    let segments: Vec<Chunk> = bytes.chunks(SEGMENT).map(Chunk::bytes).collect();
    assert_eq!((read(&segments), parsed(&bytes)), (REQUESTS, REQUESTS));
    group.throughput(Throughput::Elements(REQUESTS as u64));
    group.bench_function("requests/read", |bencher| bencher.iter(|| read(black_box(&segments))));
    group.bench_function("requests/httparse alone", |bencher| bencher.iter(|| parsed(black_box(&bytes))));

    group.sample_size(20);
    for (name, request) in [("whole file", None), ("pieces of 64 kB", Some(1 << 16))] {
        let clip = ClipSpec {
            name: "bench".into(),
            duration: Duration::from_secs(100),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![5000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000].into(),
            ..ClipSpec::default()
        };
        let usual = HttpSpec::usual();
        let player = HttpPlayerSettings { request, ..usual.player.clone() };
        let flow = FlowSpec {
            name: "video".into(),
            role: Role::Subject,
            entry: Entry::Server,
            direction: Default::default(),
            start: Duration::ZERO,
            actions: Vec::new(),
            app: HttpSpec { clip, player, ..usual }.app(),
            protocols: Default::default(),
            tcp: None,
            via: None,
            content: None,
        };
        group.throughput(Throughput::Elements(stream(&flow)));
        group.bench_with_input(BenchmarkId::new("stream", name), &flow, |bencher, flow| {
            bencher.iter(|| black_box(stream(flow)));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
