//! Server and player over a simple pipe.

mod answers;
mod other_servers;
mod playing;

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_wire::http::{Request, Response};

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
    Source { host: "server".into(), target: PATH.into(), carrier, asks_identity: false }
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

/// The clip's file, real to its last byte.
fn file(clip: &ClipSpec) -> Vec<u8> {
    let file = MadeFile::of_clip(clip).unwrap();
    let whole = file.read(0, file.length()).unwrap();
    let mut bytes = whole.head().to_vec();
    bytes.resize(whole.len(), 0);
    bytes
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
