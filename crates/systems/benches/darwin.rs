//! What a media packet costs server and player together: made, sent, taken, acknowledged, played. Throughput is in
//! media packets, over a path without a rate that loses nothing, 10 ms each way.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_plan::{Entry, FlowSpec, Role, TcpSpec};
use streamgauge_systems::darwin::DarwinSpec;
use streamgauge_systems::darwin::{FIRST_RTP, PlayerKind, PlayerSettings, Preset, ServerSettings};
use streamgauge_systems::media::{ClipSpec, Contents};
use streamgauge_systems::{App, Carrier, ChannelId, Input, Io, System, machines};

const DELAY: Duration = Duration::from_millis(10);
const END: Duration = Duration::from_secs(120);

/// Something on its way to the other end: a datagram, or bytes of the stream.
enum Parcel {
    Datagram(ChannelId, Chunk),
    Bytes(Chunk),
}

/// One end's side of the path.
#[derive(Default)]
struct Side {
    outgoing: VecDeque<(Instant, Parcel)>,
    readable: VecDeque<Chunk>,
    media_packets: u64,
}

struct SideIo<'a> {
    now: Instant,
    side: &'a mut Side,
}

impl Io for SideIo<'_> {
    fn send(&mut self, channel: ChannelId, datagram: Chunk) {
        self.side.media_packets += u64::from(channel == FIRST_RTP);
        self.side.outgoing.push_back((self.now + DELAY, Parcel::Datagram(channel, datagram)));
    }
    fn write(&mut self, _: ChannelId, chunk: Chunk) -> usize {
        let bytes = chunk.len();
        self.side.outgoing.push_back((self.now + DELAY, Parcel::Bytes(chunk)));
        bytes
    }
    fn read(&mut self, _: ChannelId, max: usize) -> Option<Chunk> {
        let mut chunk = self.side.readable.pop_front()?;
        let rest = chunk.split_off(max);
        if !rest.is_empty() {
            self.side.readable.push_front(rest);
        }
        Some(chunk)
    }
    fn close(&mut self, _: ChannelId) {}
    fn open(&mut self, _: &Carrier) -> ChannelId {
        FIRST_RTP
    }
    fn port(&self, _: ChannelId) -> Option<u16> {
        Some(6970)
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

fn give(app: &mut dyn App, side: &mut Side, now: Instant, input: Input<'_>) {
    app.handle(now, input, &mut SideIo { now, side });
    while app.poll_event().is_some() {}
}

/// Streams the clip; returns how many media packets the server sent.
fn stream(flow: &FlowSpec) -> u64 {
    let made = machines(flow, 1, &Contents::NONE).expect("the presets are in order");
    let mut apps = [made.server, made.player];
    let mut sides = [Side::default(), Side::default()];
    for (app, side) in apps.iter_mut().zip(&mut sides) {
        give(&mut **app, side, Instant::ZERO, Input::Start);
        give(&mut **app, side, Instant::ZERO, Input::Opened(ChannelId(0)));
    }
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + END {
        let arrival = |side: &Side| side.outgoing.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        let timer = |app: &dyn App| app.poll_timeout().unwrap_or(Instant::FAR_FUTURE).max(now);
        let times = [arrival(&sides[0]), arrival(&sides[1]), timer(&*apps[0]), timer(&*apps[1])];
        let (next, at) = (0..).zip(times).min_by_key(|(_, at)| *at).expect("there are four");
        now = at;
        if next >= 2 {
            let end: usize = next - 2;
            give(&mut *apps[end], &mut sides[end], now, Input::Timeout);
            continue;
        }
        let to = 1 - next;
        match sides[next].outgoing.pop_front() {
            Some((_, Parcel::Datagram(channel, datagram))) => {
                give(&mut *apps[to], &mut sides[to], now, Input::Datagram(channel, &datagram));
            }
            Some((_, Parcel::Bytes(chunk))) => {
                sides[to].readable.push_back(chunk);
                give(&mut *apps[to], &mut sides[to], now, Input::Readable(ChannelId(0)));
            }
            None => {}
        }
    }
    sides[0].media_packets
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("darwin");
    group.sample_size(20);
    for (name, preset, kind) in [
        ("source", Preset::Source, PlayerKind::Quicktime),
        ("paper", Preset::Paper, PlayerKind::Quicktime),
        ("plain UDP", Preset::Source, PlayerKind::Vlc),
    ] {
        let clip = ClipSpec {
            name: "bench".into(),
            duration: Duration::from_secs(100),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![5000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000].into(),
            ..ClipSpec::default()
        };
        let (server, player) = (ServerSettings::of(preset), PlayerSettings::of(kind));
        let app = DarwinSpec { clip, server, player, tcp: TcpSpec::default() }.app();
        let (start, role, entry) = (Duration::ZERO, Role::Subject, Entry::Server);
        let flow = FlowSpec {
            name: "qt".into(),
            role,
            entry,
            direction: Default::default(),
            start,
            actions: Vec::new(),
            app,
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
