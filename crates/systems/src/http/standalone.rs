//! Server and player among strangers of a real network.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_wire::http::{EntityTag, HttpItem, Reader};
use streamgauge_wire::rtsp::Url;

use super::answer::{Body, refusal};
use super::resource::{self, Busy, Resource};
use super::{HttpPlayer, HttpPlayerSettings, HttpServer, HttpServerSettings, PORT, Source};
use crate::app::{App, ChannelId, Input, Io};
use crate::carrier::Carrier;
use crate::media::{self, OpenError, StoredFile};
use crate::rtsp::decoded;
use crate::standalone::{Clients, ContentFault, Playable, Playing, Seen, Served, Service};

/// The client's connection, and a listener that nobody has: each client has a machine of its own.
const FIRST: ChannelId = ChannelId(0);
const NO_LISTENER: ChannelId = ChannelId(u32::MAX);

/// What is read of a request at a time, bytes.
const READ_BYTES: usize = 4096;

/// A file of a folder.
struct Shelved(Arc<dyn StoredFile>);

impl Resource for Shelved {
    fn length(&self) -> u64 {
        self.0.length()
    }

    fn tag(&self) -> EntityTag {
        EntityTag { weak: false, tag: self.0.version().to_owned() }
    }

    fn content_type(&self) -> &str {
        "video/mp4"
    }

    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        self.0.read(first, most).map(Chunk::bytes)
    }
}

/// The files that a client is shown.
struct Shelf(Arc<dyn media::Library>);

impl resource::Library for Shelf {
    fn find(&self, path: &str) -> Result<Option<Arc<dyn Resource>>, Busy> {
        match self.0.file(&decoded(path)) {
            Ok(file) => Ok(Some(Arc::new(Shelved(file)))),
            Err(OpenError::Failed(_)) => Err(Busy),
            Err(OpenError::NotFound | OpenError::Unsupported(_)) => Ok(None),
        }
    }
}

/// The server of one client.
struct Host {
    server: HttpServer,
    answers: u64,
    /// One of them was of a file.
    has_sent: bool,
}

impl App for Host {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        let input = match input {
            Input::Opened(FIRST) => Input::Accepted { channel: FIRST, on: NO_LISTENER },
            input => input,
        };
        self.server.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.server.poll_event()?;
        if event.name == "http_response" {
            self.answers += 1;
            self.has_sent |= event.value.is_some_and(|status| status < 300.0);
        }
        Some(event)
    }
}

impl Served for Host {
    fn plays_over(&self) -> Option<&'static str> {
        self.has_sent.then_some("tcp")
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("responses_sent", self.answers)]
    }

    fn in_words(&self) -> String {
        format!("{} answers", self.answers)
    }

    /// One that is silent is closed as HTTP has it.
    fn has_lost_its_client(&self) -> bool {
        false
    }

    fn still_answers(&self) -> bool {
        self.server.open_connections() > 0
    }
}

/// Answers the first request with 503 (RFC 9110 section 15.6.4) and closes.
struct TurnAway {
    reader: Reader,
    answered: bool,
}

impl App for TurnAway {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        if input != Input::Readable(FIRST) {
            return;
        }
        while let Some(chunk) = io.read(FIRST, READ_BYTES) {
            if !self.answered {
                self.reader.push(chunk);
            }
        }
        if self.answered || matches!(self.reader.next(), None | Some(Ok(HttpItem::Body(_)))) {
            return;
        }
        let is_head = match self.reader.next() {
            None | Some(Ok(HttpItem::Body(_))) => return,
            Some(Ok(HttpItem::Request(request))) => request.method == "HEAD",
            Some(_) => false,
        };
        self.answered = true;
        let mut answer = refusal(503, "as many clients are here as may be; try again later");
        answer.head.headers.add("Connection", "close");
        let mut bytes = answer.head.write();
        if let Body::Text(text) = answer.body
            && !is_head
        {
            bytes.extend(text.into_bytes());
        }
        io.write(FIRST, Chunk::bytes(bytes));
        io.close(FIRST);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl Clients for HttpServerSettings {
    fn machine(&self, library: Arc<dyn media::Library>, _: &str, _: u64) -> Box<dyn Served> {
        let server = HttpServer::new(Arc::new(Shelf(library)), self.clone());
        Box::new(Host { server, answers: 0, has_sent: false })
    }

    fn turn_away(&self) -> Box<dyn App> {
        Box::new(TurnAway { reader: Reader::of_requests(), answered: false })
    }
}

impl Service for HttpServerSettings {
    const SCHEME: &'static str = "http";
    const PORTS: [u16; 2] = [PORT, 8080];
    const PRESETS: &'static [&'static str] = &[];

    fn preset(_: &str) -> Option<Self> {
        Some(HttpServerSettings::default())
    }

    fn check(&self) -> Result<(), ContentFault> {
        HttpServerSettings::check(self)
    }

    fn give_up_after(&mut self, silence: Duration) {
        self.keep_alive = silence;
    }
}

/// The player, with what it did.
struct Viewed {
    player: HttpPlayer,
    requests: u64,
    failures: u64,
}

impl App for Viewed {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.player.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.player.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.player.poll_event()?;
        self.requests += u64::from(event.name == "http_request");
        self.failures += u64::from(event.name == "http_failure");
        Some(event)
    }
}

impl Playing for Viewed {
    fn seen(&mut self, now: Instant) -> Seen {
        Seen {
            bytes: self.player.bytes(),
            lost: None,
            frames: self.player.fates(),
            startup: self.player.startup(),
            buffer: self.player.buffer(now),
            position: self.player.position(now),
            duration: self.player.asset().map(|asset| asset.duration),
        }
    }

    fn figures(&mut self, _: Instant) -> Map<String, Value> {
        let figures = json!({
            "file_bytes": self.player.length(), "requests": self.requests, "connections_failed": self.failures,
        });
        if let Value::Object(figures) = figures { figures } else { Map::new() }
    }

    fn carried_by(&self) -> &'static str {
        "HTTP"
    }

    fn in_words(&mut self, _: Instant, rate: &str) -> String {
        let of = self.player.length().map_or(String::new(), |length| format!(" of {length}"));
        let (requests, failures) = (self.requests, self.failures);
        format!(
            "file: {}{of} bytes came ({rate}), {requests} requests, {failures} connections failed",
            self.player.bytes()
        )
    }

    fn is_gone(&self) -> bool {
        self.player.is_gone()
    }

    fn refused(&self) -> Option<u16> {
        self.player.refused()
    }

    fn is_unplayable(&self) -> bool {
        self.player.asset().is_none() && self.player.bytes() > 0
    }

    /// The file's bytes, from its first on.
    fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.player.take_bytes().map(|chunk| chunk.head().to_vec())
    }
}

impl Playable for HttpPlayerSettings {
    const SCHEME: &'static str = "http";
    const PORT: u16 = PORT;
    const PLAYERS: &'static [&'static str] = &["progressive"];
    const TRANSPORTS: &'static [&'static str] = &["tcp"];
    const ASKS: &'static str = "GET";
    const IS_CONNECTED: bool = false;

    fn preset(_: &str, _: &str) -> Option<Self> {
        Some(HttpPlayerSettings::default())
    }

    fn check(&self) -> Result<(), ContentFault> {
        HttpPlayerSettings::check(self)
    }

    fn machine(self, url: &str, keep: bool, _: u64) -> Box<dyn Playing> {
        let mut player = HttpPlayer::new(self, source(url));
        if keep {
            player.keep_bytes();
        }
        Box::new(Viewed { player, requests: 0, failures: 0 })
    }
}

/// What a URL names; one that cannot be read names nothing that any server has.
fn source(url: &str) -> Source {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let port = url.as_ref().and_then(Url::port);
    let query = url.as_ref().and_then(Url::query).map_or(String::new(), |query| format!("?{query}"));
    let path = url.as_ref().map_or("/", Url::path);
    Source {
        host: port.map_or(host.to_owned(), |port| format!("{host}:{port}")),
        target: format!("{path}{query}"),
        carrier: Carrier::Tcp { port: port.unwrap_or(PORT), settings: TcpSpec::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_whom_to_ask_for_what() {
        let of = |url: &str| {
            let Source { host, target, carrier } = source(url);
            let Carrier::Tcp { port, .. } = carrier else { panic!("{carrier:?}") };
            (host, target, port)
        };
        assert_eq!(of("http://h/a%20b.mp4?x=1"), ("h".into(), "/a%20b.mp4?x=1".into(), 80));
        assert_eq!(of("http://[::1]:8080/a.mp4#t=3"), ("[::1]:8080".into(), "/a.mp4".into(), 8080));
        assert_eq!(of("http://h"), ("h".into(), "/".into(), 80));
    }
}
