//! Servers that refuse, cut off, lie or hang. The player reports it, and continues or ends with a reason.

use std::sync::Mutex;

use streamgauge_base::Chunk;
use streamgauge_wire::http::EntityTag;

use super::*;
use crate::http::{Busy, Resource};

/// Answers of another library, some of them spoilt.
struct Spoilt {
    inner: Presentation,
    /// The outcome for a path and the number of earlier requests for it.
    fault: fn(&str, u32) -> Fault,
    asked: Mutex<std::collections::BTreeMap<String, u32>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Gone,
    Busy,
    /// This many bytes of it can be read, then the connection is reset.
    Cut(u64),
    Text(&'static str),
}

struct Part(Arc<dyn Resource>, u64);

impl Resource for Part {
    fn length(&self) -> u64 {
        self.0.length()
    }
    fn tag(&self) -> EntityTag {
        self.0.tag()
    }
    fn content_type(&self) -> &str {
        self.0.content_type()
    }
    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        match self.1.saturating_sub(first) {
            0 => Err("cut off".into()),
            left => self.0.read(first, most.min(left)),
        }
    }
}

impl Library for Spoilt {
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        let mut asked = self.asked.lock().unwrap();
        let times = asked.entry(path.to_owned()).or_default();
        let fault = (self.fault)(path, *times);
        *times += 1;
        Ok(match fault {
            Fault::Gone => None,
            Fault::Busy => return Err(Busy),
            Fault::None => self.inner.find(path, now)?,
            Fault::Cut(at) => {
                self.inner.find(path, now)?.map(|whole| Arc::new(Part(whole, at)) as Arc<dyn Resource>)
            }
            Fault::Text(text) => Some(Arc::new(Words(text.to_owned()))),
        })
    }
}

fn spoilt(fault: fn(&str, u32) -> Fault) -> Vec<Event> {
    let library = Spoilt { inner: presented(&ladder(&[400_000], 20)), fault, asked: Mutex::default() };
    play(library, fixed(0), MPD, pipe(2_000_000), 300)
}

#[test]
fn a_segment_that_is_refused_for_a_while_is_asked_for_again() {
    for fault in [Fault::Gone, Fault::Busy, Fault::Cut(30_000)] {
        let events =
            match fault {
                Fault::Gone => {
                    spoilt(
                        |path, times| {
                            if path.contains("/3.m4s") && times < 2 { Fault::Gone } else { Fault::None }
                        },
                    )
                }
                Fault::Busy => {
                    spoilt(
                        |path, times| {
                            if path.contains("/3.m4s") && times < 2 { Fault::Busy } else { Fault::None }
                        },
                    )
                }
                _ => spoilt(|path, times| {
                    if path.contains("/3.m4s") && times < 2 { Fault::Cut(30_000) } else { Fault::None }
                }),
            };
        assert_eq!(ended(&events), "played to the end");
        assert_eq!(values(&events, "frame_shown").len(), 500);
        assert_eq!(values(&events, "http_failure"), [1.0, 2.0]);
        assert!(named(&events, "segment_skipped").is_empty());
    }
}

#[test]
fn a_segment_that_never_comes_is_skipped_and_passed_over() {
    let events = spoilt(|path, _| if path.contains("/3.m4s") { Fault::Gone } else { Fault::None });
    assert_eq!(ended(&events), "played to the end");
    assert_eq!(values(&events, "segment_skipped"), [2.0]);
    assert_eq!(values(&events, "gap_jumped"), [2.0]);
    // All but the third segment's.
    let shown = values(&events, "frame_shown");
    assert_eq!(shown.len(), 450);
    assert!(shown.iter().all(|number| !(100.0..150.0).contains(number)));
}

#[test]
fn segments_that_all_stay_away_end_play_with_the_reason() {
    let events = spoilt(|path, _| if path.ends_with(".m4s") { Fault::Gone } else { Fault::None });
    assert!(
        ended(&events).starts_with("4 segments one after another did not come: the server answered 404"),
        "{}",
        ended(&events)
    );
}

#[test]
fn a_manifest_that_is_none_or_does_not_come_ends_it_with_the_reason() {
    let events = spoilt(|_, _| Fault::Text("<html>no such page</html>"));
    assert!(!ended(&events).is_empty() && named(&events, "frame_shown").is_empty(), "{}", ended(&events));
    let events = spoilt(|_, _| Fault::Gone);
    assert!(
        ended(&events).starts_with("the manifest did not come in 4 attempts: the server answered 404"),
        "{}",
        ended(&events)
    );
    let events = spoilt(|path, _| if path.ends_with("init.mp4") { Fault::Gone } else { Fault::None });
    assert!(ended(&events).contains("init.mp4 did not come in 4 attempts"), "{}", ended(&events));
}

/// Sends these bytes to each request, and then nothing.
struct Says {
    text: String,
    closes: bool,
}

impl App for Says {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => {
                let listener = Carrier::Listener { port: PORT, settings: TcpSpec::default(), backlog: 10 };
                let _ = io.open(&listener);
            }
            Input::Readable(channel) if io.read(channel, 65_536).is_some() => {
                io.write(channel, Chunk::bytes(self.text.as_bytes()));
                if self.closes {
                    io.close(channel);
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

/// When and why play ended that such a server was asked for.
fn ends_with(text: &str, closes: bool) -> (f64, String) {
    let server = Says { text: text.into(), closes };
    let player = DashPlayer::new(fixed(0), source(MPD), 1);
    let mut pair = Pair::new(Box::new(server), Box::new(player), pipe(2_000_000));
    pair.run(at(1_000));
    (
        named(&pair.events, MEDIA_END)[0].at.saturating_since(Instant::ZERO).as_secs_f64(),
        ended(&pair.events).into(),
    )
}

#[test]
fn nothing_hangs_longer_than_is_said() {
    // Four attempts of 20 s, and 1 + 2 + 4 s between them.
    for (text, closes, why) in [
        ("", false, "nothing was heard for 20 s"),
        ("HTTP/1.1 200 OK\r\nContent-Le", false, "nothing was heard for 20 s"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<MPD", false, "nothing was heard for 20 s"),
        ("", true, "without an answer"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<MPD", true, ""),
        ("nonsense\r\n\r\n", false, "cannot be read"),
        ("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", false, "answered 503"),
        ("HTTP/1.1 206 Partial\r\nContent-Length: 0\r\n\r\n", false, "answered 206"),
    ] {
        let (end, said) = ends_with(text, closes);
        assert!(said.contains(why) && end < 88.0, "{text:?}: after {end} s: {said}");
    }
}

#[test]
fn a_manifest_without_end_is_given_up_before_it_has_come() {
    let (end, said) = ends_with("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n<?xml ", false);
    assert!(end < 1.0 && said.contains("manifest.mpd"), "after {end} s: {said}");
}

#[test]
fn what_a_manifest_lacks_is_said() {
    let mpd = "<MPD type=\"static\" mediaPresentationDuration=\"PT8S\"><Period><AdaptationSet contentType=\"video\">\
        <SegmentTemplate media=\"$Time$.m4s\" timescale=\"1\"><SegmentTimeline><S t=\"0\" d=\"2\"/><S t=\"4\" d=\"2\" r=\"1\"/>\
        </SegmentTimeline></SegmentTemplate><Representation id=\"a\" bandwidth=\"1000\"/></AdaptationSet></Period></MPD>";
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{mpd}", mpd.len());
    let player = DashPlayer::new(fixed(0), source(MPD), 1);
    let mut pair = Pair::new(Box::new(Says { text, closes: false }), Box::new(player), pipe(2_000_000));
    pair.run(at(10));
    let flaws = named(&pair.events, "manifest_flaw");
    assert_eq!((flaws.len(), flaws[0].value), (1, Some(2.0)));
    assert_eq!(flaws[0].reason, "a: segments missing between 2.000 s and 4.000 s");
}

#[test]
fn a_line_that_is_not_read_is_read_again_when_its_connection_is_gone() {
    // Full after 6 s, held off, and all connections are reset then.
    let settings =
        DashPlayerSettings { buffer: ms(6_000), stops_reading: true, persistent: false, ..fixed(0) };
    let server =
        Resetting { inner: serving(presented(&ladder(&[400_000], 40))), at: at(5), channels: Vec::new() };
    let player = DashPlayer::new(settings, source(MPD), 1);
    let mut pair = Pair::new(Box::new(server), Box::new(player), pipe(2_000_000));
    pair.run(at(100));
    assert!(
        !named(&pair.events, "http_failure").is_empty() && !named(&pair.events, "download_off").is_empty()
    );
    assert_eq!(
        (ended(&pair.events), values(&pair.events, "frame_shown").len()),
        ("played to the end", 1_000)
    );
}

/// Resets all connections at a time.
struct Resetting {
    inner: Box<Listening>,
    at: Instant,
    channels: Vec<ChannelId>,
}

impl App for Resetting {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if let Input::Accepted { channel, .. } = input {
            self.channels.push(channel);
        }
        self.inner.handle(now, input, io);
        if now >= self.at {
            self.at = Instant::FAR_FUTURE;
            for channel in self.channels.drain(..) {
                io.abort(channel);
                self.inner.handle(now, Input::Closed(channel, CloseReason::Reset), io);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let at = Some(self.at).filter(|at| *at != Instant::FAR_FUTURE);
        at.into_iter().chain(self.inner.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
}

#[test]
fn another_server_is_not_asked() {
    let mpd = "<MPD type=\"static\" mediaPresentationDuration=\"PT4S\"><BaseURL>http://elsewhere/</BaseURL><Period>\
        <AdaptationSet contentType=\"video\"><SegmentTemplate media=\"$Number$.m4s\" duration=\"2\"/>\
        <Representation id=\"a\" bandwidth=\"1000\"/></AdaptationSet></Period></MPD>";
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{mpd}", mpd.len());
    let (_, said) = ends_with(&text, false);
    assert!(said.contains("another server"), "{said}");
}
