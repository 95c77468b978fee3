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
use crate::standalone::{
    Clients, ContentFault, Playable, Playing, Seen, Served, Service, Shows, TurnAway, by_name, counted,
};

/// The client's connection, and a listener without clients: each client has a machine of its own.
const FIRST: ChannelId = ChannelId(0);
const NO_LISTENER: ChannelId = ChannelId(u32::MAX);

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
    fn find(&self, path: &str, _: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
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
        counted(self.answers, "answer")
    }

    /// Returns false: HTTP closes a silent connection itself.
    fn has_lost_its_client(&self) -> bool {
        false
    }

    fn awaits_rest(&self) -> bool {
        self.server.awaits_rest()
    }

    fn may_be_quiet(&self) -> bool {
        true
    }

    fn still_answers(&self) -> bool {
        self.server.open_connections() > 0
    }
}

/// Returns the server of one client, with the content of `library`.
pub(crate) fn host(library: Arc<dyn resource::Library>, settings: &HttpServerSettings) -> Box<dyn Served> {
    let server = HttpServer::new(library, settings.clone());
    Box::new(Host { server, answers: 0, has_sent: false })
}

/// Returns the machine that informs a client of a full server.
pub(crate) fn full() -> Box<dyn App> {
    Box::new(TurnAway::on(FIRST, no_room()))
}

/// Answers the first request with 503 (RFC 9110 section 15.6.4).
fn no_room() -> impl FnMut(Chunk) -> Option<Vec<u8>> {
    let mut reader = Reader::of_requests();
    move |came| {
        reader.push(came);
        // Unreadable bytes get the same answer.
        let is_head = matches!(reader.next()?, Ok(HttpItem::Request(request)) if request.method == "HEAD");
        let mut answer = refusal(503, "too many clients; try again later");
        answer.head.headers.add("Connection", "close");
        let mut bytes = answer.head.write();
        if let Body::Text(text) = answer.body
            && !is_head
        {
            bytes.extend(text.into_bytes());
        }
        Some(bytes)
    }
}

impl Clients for HttpServerSettings {
    fn machine(&self, library: Arc<dyn media::Library>, _: &str, _: u64) -> Box<dyn Served> {
        host(Arc::new(Shelf(library)), self)
    }

    fn turn_away(&self) -> Box<dyn App> {
        full()
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

/// The player, with its counts.
struct Viewed {
    player: HttpPlayer,
    requests: u64,
    failures: u64,
    redirects: u64,
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
        self.redirects += u64::from(event.name == "http_redirect");
        Some(event)
    }

    fn is_gone(&self) -> bool {
        self.player.is_gone()
    }
}

impl Playing for Viewed {
    fn seen(&mut self, now: Instant) -> Seen {
        Seen {
            shows: Shows::of(&self.player.fates()),
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
        by_name(json!({
            "file_bytes": self.player.length(), "requests": self.requests, "connections_failed": self.failures,
            "redirects": self.redirects,
        }))
    }

    fn carried_by(&self) -> &'static str {
        "HTTP"
    }

    fn in_words(&mut self, _: Instant, rate: &str) -> String {
        let of = self.player.length().map_or(String::new(), |length| format!(" of {length}"));
        let (requests, failures) = (self.requests, self.failures);
        let redirects = if self.redirects > 0 {
            format!(", {}", counted(self.redirects, "redirection"))
        } else {
            String::new()
        };
        format!(
            "file: {}{of} bytes came ({rate}), {}, {} failed{redirects}",
            self.player.bytes(),
            counted(requests, "request"),
            counted(failures, "connection"),
        )
    }

    fn left_out(&self) -> Vec<String> {
        self.player.asset().map_or(Vec::new(), |asset| asset.left_out.clone())
    }

    fn allow_hosts(&mut self, hosts: &[String]) {
        self.player.allow_hosts(hosts);
    }

    fn refused(&self) -> Option<u16> {
        self.player.refused()
    }

    fn is_unplayable(&self) -> bool {
        self.player.is_unplayable()
    }

    /// Returns the file's bytes, from its first on.
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
        let mut player = HttpPlayer::new(self, source_of(url));
        if keep {
            player.keep_bytes();
        }
        Box::new(Viewed { player, requests: 0, failures: 0, redirects: 0 })
    }
}

/// Returns the source of a URL; an unreadable one names nothing that any server has.
pub(crate) fn source_of(url: &str) -> Source {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let port = url.as_ref().and_then(Url::port);
    let query = url.as_ref().and_then(Url::query).map_or(String::new(), |query| format!("?{query}"));
    let path = url.as_ref().map_or("/", Url::path);
    Source {
        host: port.map_or(host.to_owned(), |port| format!("{host}:{port}")),
        target: format!("{path}{query}"),
        carrier: Carrier::Tcp { port: port.unwrap_or(PORT), settings: TcpSpec::default() },
        asks_identity: true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use streamgauge_wire::http::Request;

    use super::*;
    use crate::app::Envelope;
    use crate::http::answer::answer;

    #[test]
    fn a_url_says_whom_to_ask_for_what() {
        let of = |url: &str| {
            let Source { host, target, carrier, .. } = source_of(url);
            let Carrier::Tcp { port, .. } = carrier else { panic!("{carrier:?}") };
            (host, target, port)
        };
        assert_eq!(of("http://h/a%20b.mp4?x=1"), ("h".into(), "/a%20b.mp4?x=1".into(), 80));
        assert_eq!(of("http://[::1]:8080/a.mp4#t=3"), ("[::1]:8080".into(), "/a.mp4".into(), 8080));
        assert_eq!(of("http://h"), ("h".into(), "/".into(), 80));
    }

    /// A client's connection.
    #[derive(Default)]
    struct Client {
        sent: VecDeque<Chunk>,
        got: Vec<u8>,
        closed: bool,
    }

    impl Io for Client {
        fn open(&mut self, _: &Carrier) -> ChannelId {
            panic!("who is turned away is asked for nothing")
        }
        fn send_as(&mut self, _: ChannelId, _: Chunk, _: Envelope) {}
        fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
            assert!(channel == FIRST && !self.closed);
            self.got.extend(chunk.head());
            chunk.len()
        }
        fn read(&mut self, _: ChannelId, _: usize) -> Option<Chunk> {
            self.sent.pop_front()
        }
        fn close(&mut self, channel: ChannelId) {
            assert!(channel == FIRST && !std::mem::replace(&mut self.closed, true));
        }
        fn port(&self, _: ChannelId) -> Option<u16> {
            None
        }
        fn direct(&mut self, _: ChannelId, _: u16) {}
    }

    /// Returns the answer of a full server to a client that sends these bytes.
    fn turned_away(pieces: &[&[u8]]) -> Client {
        let mut client = Client::default();
        let mut app = HttpServerSettings::default().turn_away();
        for piece in pieces {
            client.sent.push_back(Chunk::bytes(*piece));
            app.handle(Instant::ZERO, Input::Readable(FIRST), &mut client);
        }
        client
    }

    #[test]
    fn who_is_turned_away_gets_503_and_to_head_no_body() {
        for (method, has_body) in [("GET", true), ("HEAD", false), ("POST", true)] {
            let request = Request::new(method, "/clip.mp4", "server").unwrap();
            let bytes = request.write();
            let (half, rest) = bytes.split_at(bytes.len() / 2);
            assert!(turned_away(&[half]).got.is_empty());
            // A second request does not get a second answer.
            let client = turned_away(&[half, rest, &bytes]);
            assert!(client.closed);
            let mut reader = Reader::of_responses();
            reader.expect(&request);
            reader.push(Chunk::bytes(client.got));
            let Some(Ok(HttpItem::Response(head))) = reader.next() else { panic!("no answer to {method}") };
            let length: usize = head.headers.get("Content-Length").unwrap().parse().unwrap();
            assert_eq!((head.status, head.headers.get("Connection")), (503, Some("close")));
            let body: usize = reader
                .map(|item| match item.unwrap() {
                    HttpItem::Body(body) => body.len(),
                    HttpItem::End => 0,
                    item => panic!("{item:?} to {method}"),
                })
                .sum();
            assert_eq!((body, length > 0), (if has_body { length } else { 0 }, true), "{method}");
        }
        // Bytes that are no HTTP get the same answer.
        assert!(turned_away(&[b"<html>\r\n\r\n"]).got.starts_with(b"HTTP/1.1 503 "));
    }

    /// A folder with this error for every file.
    struct Says(OpenError);

    impl media::Library for Says {
        fn open(&self, _: &str) -> Result<Arc<media::Asset>, OpenError> {
            Err(self.0.clone())
        }
        fn file(&self, _: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
            Err(self.0.clone())
        }
    }

    #[test]
    fn a_file_that_cannot_be_opened_now_is_503_and_one_that_is_none_404() {
        for (error, status) in [
            (OpenError::Failed("Too many open files".into()), 503),
            (OpenError::NotFound, 404),
            (OpenError::Unsupported("notes.txt is not .mp4, .m4v or .mov".into()), 404),
        ] {
            let shelf = Shelf(Arc::new(Says(error)));
            for (method, has_body) in [("GET", true), ("HEAD", false)] {
                let given =
                    answer(&Request::new(method, "/a.mp4", "server").unwrap(), &shelf, 60, Instant::ZERO);
                assert_eq!((given.head.status, matches!(given.body, Body::Text(_))), (status, has_body));
            }
        }
    }
}
