//! A system's server and player, joined by a path without a rate that loses nothing, 10 ms each way.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_plan::{AppSpec, Entry, FlowSpec, Role};
use streamgauge_systems::media::Contents;
use streamgauge_systems::{App, Carrier, ChannelId, Envelope, Input, Io, machines};

const DELAY: Duration = Duration::from_millis(10);
const END: Duration = Duration::from_secs(120);

/// The first byte of a packet that is interleaved on the connection (RFC 2326 section 10.12).
const INTERLEAVED: u8 = b'$';

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
    pairs: u32,
    media_packets: u64,
}

struct SideIo<'a> {
    now: Instant,
    side: &'a mut Side,
}

impl Io for SideIo<'_> {
    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, _: Envelope) {
        // The first of a pair is the media's.
        self.side.media_packets += u64::from(channel.0 % 2 == 1);
        self.side.outgoing.push_back((self.now + DELAY, Parcel::Datagram(channel, datagram)));
    }
    fn write(&mut self, _: ChannelId, chunk: Chunk) -> usize {
        let bytes = chunk.len();
        self.side.media_packets += u64::from(chunk.head().first() == Some(&INTERLEAVED));
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
        self.side.pairs += 1;
        ChannelId(2 * self.side.pairs - 1)
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

/// A flow of `app`.
pub fn flow(app: AppSpec) -> FlowSpec {
    let (start, role, entry) = (Duration::ZERO, Role::Subject, Entry::Server);
    FlowSpec {
        name: "flow".into(),
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
    }
}

/// Streams the flow's media; returns the number of media packets that the server sent.
pub fn stream(flow: &FlowSpec) -> u64 {
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
                give(&mut *apps[to], &mut sides[to], now, Input::datagram(channel, &datagram, now));
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
