//! The player against our origin over a simple pipe, and against servers with faults.

mod faults;
mod live;
mod page;
mod parts;
mod playing;
mod switching;

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_wire::http::EntityTag;

use super::*;
use crate::carrier::Carrier;
use crate::dash::origin::{MPD, OriginSettings, Presentation};
use crate::http::{HttpServer, HttpServerSettings, Library, PORT, Resource};
use crate::media::{ClipSpec, LadderSpec, LevelSpec};
use crate::testing::{Pair, Pipe};

/// A text as a resource: a manifest, or none.
struct Words(String);

impl Resource for Words {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }
    fn tag(&self) -> EntityTag {
        EntityTag { weak: false, tag: "words".into() }
    }
    fn content_type(&self) -> &str {
        "text/plain"
    }
    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        let bytes = &self.0.as_bytes()[first as usize..];
        Ok(Chunk::bytes(&bytes[..bytes.len().min(most as usize)]))
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// 25 frames a second of equal size, a key frame each `segment` seconds.
fn level(bit_rate_bps: u64, seconds: u64, segment: u64) -> LevelSpec {
    let clip = ClipSpec {
        name: format!("{bit_rate_bps}"),
        duration: Duration::from_secs(seconds),
        frame_interval: ms(40),
        frame_bytes: vec![(bit_rate_bps / 200) as u32; 25 * segment as usize].into(),
        key_frames: vec![0].into(),
        ..ClipSpec::default()
    };
    LevelSpec { bit_rate_bps, size: (320, 180), clip }
}

/// In segments of 2 s.
fn ladder(rates: &[u64], seconds: u64) -> LadderSpec {
    ladder_of(rates, seconds, 2)
}

fn ladder_of(rates: &[u64], seconds: u64, segment: u64) -> LadderSpec {
    let video = rates.iter().map(|rate| level(*rate, seconds, segment)).collect();
    LadderSpec { name: "ladder".into(), segment: Duration::from_secs(segment), video, audio: None }
}

fn with_sound(mut ladder: LadderSpec, seconds: u64) -> LadderSpec {
    let clip = ClipSpec {
        name: "sound".into(),
        duration: Duration::from_secs(seconds),
        frame_interval: Duration::from_micros(21_333),
        frame_bytes: vec![171].into(),
        ..ClipSpec::default()
    };
    ladder.audio = Some(LevelSpec { bit_rate_bps: 64_000, size: (0, 0), clip });
    ladder
}

/// Opens its own listener, as the driver does for a flow that begins with one.
struct Listening(HttpServer);

impl App for Listening {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if input == Input::Start {
            io.open(&Carrier::Listener { port: PORT, settings: TcpSpec::default(), backlog: 10 });
        }
        self.0.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
}

fn serving(library: impl Library + 'static) -> Box<Listening> {
    Box::new(Listening(HttpServer::new(Arc::new(library), HttpServerSettings::default())))
}

fn source(target: &str) -> Source {
    let carrier = Carrier::Tcp { port: PORT, settings: TcpSpec::default() };
    Source { host: "server".into(), target: target.into(), carrier, asks_identity: false }
}

/// At one level, for any throughput.
fn fixed(level: u32) -> DashPlayerSettings {
    DashPlayerSettings { rule: "fixed".into(), level, ..DashPlayerSettings::default() }
}

fn pipe(bits_per_s: u64) -> Pipe {
    Pipe { stream_bytes_per_s: Some(bits_per_s / 8), begins_with_stream: false, ..Pipe::default() }
}

fn presented(ladder: &LadderSpec) -> Presentation {
    Presentation::of_ladder(ladder, &OriginSettings::default()).unwrap()
}

/// The reports of both ends of a session.
fn play(
    library: impl Library + 'static,
    settings: DashPlayerSettings,
    target: &str,
    pipe: Pipe,
    until: u64,
) -> Vec<Event> {
    let player = DashPlayer::new(settings, source(target), 1);
    let mut pair = Pair::new(serving(library), Box::new(player), pipe);
    pair.run(at(until));
    pair.events
}

fn named<'a>(events: &'a [Event], name: &str) -> Vec<&'a Event> {
    events.iter().filter(|event| event.name == name).collect()
}

fn values(events: &[Event], name: &str) -> Vec<f64> {
    named(events, name).iter().filter_map(|event| event.value).collect()
}

/// Why play ended; there is one end.
fn ended(events: &[Event]) -> &str {
    let ends = named(events, MEDIA_END);
    assert_eq!(ends.len(), 1, "{ends:?}");
    &ends[0].reason
}
