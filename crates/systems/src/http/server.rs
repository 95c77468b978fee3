//! The end that has the file.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::http::{Cmcd, HttpItem, Reader, Request, Response, Version};

use super::LISTENER;
use super::answer::{Answer, Body, answer, refusal};
use super::resource::Library;
use super::spec::HttpServerSettings;
use crate::app::{App, ChannelId, CloseReason, Input, Io};
use crate::outbox::Outbox;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 16 << 10;

/// Requests of one connection that wait for their answers; behind them nothing is read.
const MOST_WAITING: usize = 16;

/// Bytes of a resource that are taken at once.
const PIECE_BYTES: u64 = 256 << 10;

/// Emits the event `cmcd` of a request in which a player reports about itself (CTA-5004). Its value is the
/// media that it holds; the reason has every key, in the alphabet's order.
pub(crate) fn say_client_data(events: &mut Outbox, now: Instant, request: &Request) {
    let (buffer_s, told) = match Cmcd::of_request(request) {
        None => return,
        Some(Ok(told)) => (told.buffer_s(), told.to_string()),
        Some(Err(wrong)) => (None, format!("it cannot be read: {wrong}")),
    };
    events.say(now, "cmcd", buffer_s, "s", told);
}

/// Answers GET and HEAD with resources of a [`Library`], on any number of connections; each may carry many
/// requests (RFC 9112 section 9.3). It listens on the flow's first channel, or on any listener that its
/// driver accepts from.
///
/// Events: `http_response` (value: its status; the reason names the request and the bytes that are sent), and
/// `http_broken` where a request cannot be read or a resource cannot be sent to its end; `cmcd` as in
/// [`say_client_data`].
pub struct HttpServer {
    library: Arc<dyn Library>,
    settings: HttpServerSettings,
    connections: BTreeMap<ChannelId, Connection>,
    /// When to look whether a connection is idle, in order of time: of each connection once.
    looks: VecDeque<(Instant, ChannelId)>,
    paused: bool,
    events: Outbox,
}

struct Connection {
    reader: Reader,
    /// A head with a body that is yet to be skipped.
    asked: Option<Request>,
    /// Unanswered requests, in order.
    waiting: VecDeque<Waiting>,
    /// Pending output: bytes that were read, and the rest of the body.
    outgoing: Chunk,
    body: Option<Body>,
    /// It ends with the pending output.
    is_last: bool,
    /// The last request has arrived, or unreadable bytes: nothing behind it counts.
    no_more: bool,
    /// The other end has finished.
    ended: bool,
    /// When something last moved.
    active: Instant,
}

impl Connection {
    fn new(now: Instant) -> Self {
        Connection {
            reader: Reader::of_requests(),
            asked: None,
            waiting: VecDeque::new(),
            outgoing: Chunk::default(),
            body: None,
            is_last: false,
            no_more: false,
            ended: false,
            active: now,
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.body.is_none() && self.outgoing.is_empty()
    }

    /// Appends the next part of the body to the pending output: a head then leaves in one write with the
    /// bytes behind it, as from nginx with `tcp_nopush`. Returns false if there is none.
    fn more(&mut self) -> Result<bool, String> {
        let next = match self.body.take() {
            Some(Body::Of(resource, first, end)) => {
                let piece = match resource.read(first, (end - first).min(PIECE_BYTES)) {
                    Ok(piece) if piece.is_empty() => Err("it has fewer bytes than announced".into()),
                    read => read,
                };
                let piece = piece.map_err(|why| format!("byte {first} cannot be sent: {why}"))?;
                let next = first + piece.len() as u64;
                self.body = (next < end).then_some(Body::Of(resource, next, end));
                piece
            }
            Some(Body::Text(text)) => Chunk::bytes(text.into_bytes()),
            Some(Body::None) | None => return Ok(false),
        };
        self.outgoing = if self.outgoing.is_empty() {
            next
        } else {
            let filler = (next.len() - next.head().len()) as u32;
            Chunk::with_filler([self.outgoing.head(), next.head()].concat(), filler)
        };
        Ok(true)
    }
}

/// A request that is answered in its turn: before, no resource is opened for it.
enum Waiting {
    /// A request.
    Asked(Request),
    /// A request behind which the connection ends regardless of its headers.
    Last(Request),
    /// A request that could not be read. The connection ends with it.
    Unread(Answer),
}

/// The end of a connection.
enum ExchangeEnd {
    Goes,
    Finished,
    Broken(String),
}

impl HttpServer {
    /// Serves the content of `library`.
    pub fn new(library: Arc<dyn Library>, settings: HttpServerSettings) -> Self {
        HttpServer {
            library,
            settings,
            connections: BTreeMap::new(),
            looks: VecDeque::new(),
            paused: false,
            events: Outbox::default(),
        }
    }

    /// Connections that are open.
    pub fn open_connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether some of a request has come, and the rest of it is awaited.
    pub fn awaits_rest(&self) -> bool {
        self.connections
            .values()
            .any(|connection| !connection.no_more && !connection.reader.is_between_messages())
    }

    /// Reads requests and writes answers, as far as both go.
    fn work(&mut self, now: Instant, channel: ChannelId, io: &mut dyn Io) {
        let Some(mut connection) = self.connections.remove(&channel) else { return };
        self.read(now, channel, &mut connection, io);
        match self.write(now, channel, &mut connection, io) {
            ExchangeEnd::Goes => {
                self.connections.insert(channel, connection);
            }
            ExchangeEnd::Finished => io.close(channel),
            ExchangeEnd::Broken(why) => {
                self.events.say(now, "http_broken", None, "", why);
                io.abort(channel);
            }
        }
    }

    fn read(&mut self, now: Instant, channel: ChannelId, connection: &mut Connection, io: &mut dyn Io) {
        while connection.waiting.len() < MOST_WAITING {
            if let Some(item) = connection.reader.next() {
                self.take(now, connection, item);
                continue;
            }
            let Some(chunk) = io.read(channel, READ_BYTES) else { return };
            connection.active = now;
            // Behind the last request nothing counts.
            if !connection.no_more {
                connection.reader.push(chunk);
            }
        }
    }

    fn take(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        item: Result<HttpItem, streamgauge_wire::http::Fault>,
    ) {
        if connection.no_more {
            return;
        }
        match item {
            Ok(HttpItem::Request(request)) if waits_for_us(&request, &connection.reader) => {
                connection.no_more = true;
                connection.waiting.push_back(Waiting::Last(request));
            }
            Ok(HttpItem::Request(request)) => connection.asked = Some(request),
            // Nothing that is sent with a request is of use here.
            Ok(HttpItem::Body(_) | HttpItem::Response(_)) => {}
            Ok(HttpItem::End) => {
                let Some(request) = connection.asked.take() else { return };
                connection.no_more = !request.keeps_alive();
                connection.waiting.push_back(Waiting::Asked(request));
            }
            Err(fault) => {
                let mut given = refusal(fault.status(), &fault.to_string());
                given.head.headers.add("Connection", "close");
                self.events.say(now, "http_broken", None, "", format!("a request cannot be read: {fault}"));
                connection.no_more = true;
                connection.waiting.push_back(Waiting::Unread(given));
            }
        }
    }

    /// Returns the next answer in turn, and whether the connection ends with it.
    fn answer(&mut self, now: Instant, waiting: Waiting) -> (Answer, bool) {
        let (request, is_last) = match waiting {
            Waiting::Unread(answer) => return (answer, true),
            Waiting::Asked(request) => {
                let is_last = !request.keeps_alive();
                (request, is_last)
            }
            Waiting::Last(request) => (request, true),
        };
        let max_age_s = self.settings.max_age.as_nanos() / 1_000_000_000;
        let mut given = answer(&request, self.library.as_ref(), max_age_s, now);
        if is_last {
            given.head.headers.add("Connection", "close");
        } else if request.version == Version::V1_0 {
            // Else such a client expects its end (RFC 9112 section 9.3).
            given.head.headers.add("Connection", "keep-alive");
        }
        self.say(now, &request, &given.head);
        (given, is_last)
    }

    pub(super) fn say(&mut self, now: Instant, request: &Request, head: &Response) {
        let range = head.headers.get("Content-Range").unwrap_or_default();
        let reason = format!("{} {} {range}", request.method, request.target);
        self.events.say(now, "http_response", f64::from(head.status), "1", reason.trim_end().to_owned());
        say_client_data(&mut self.events, now, request);
    }

    fn write(
        &mut self,
        now: Instant,
        channel: ChannelId,
        connection: &mut Connection,
        io: &mut dyn Io,
    ) -> ExchangeEnd {
        while !self.paused {
            if !connection.outgoing.is_empty() {
                let taken = io.write(channel, connection.outgoing.clone());
                if taken > 0 {
                    connection.active = now;
                    connection.outgoing = connection.outgoing.split_off(taken);
                }
                if !connection.outgoing.is_empty() {
                    return ExchangeEnd::Goes;
                }
            }
            match connection.more() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(why) => return ExchangeEnd::Broken(why),
            }
            if connection.is_last {
                return ExchangeEnd::Finished;
            }
            // The next answer makes room for another request.
            self.read(now, channel, connection, io);
            let Some(waiting) = connection.waiting.pop_front() else {
                let is_over = connection.no_more || connection.ended;
                return if is_over { ExchangeEnd::Finished } else { ExchangeEnd::Goes };
            };
            let (answer, is_last) = self.answer(now, waiting);
            connection.outgoing = Chunk::bytes(answer.head.write());
            (connection.body, connection.is_last) = (Some(answer.body), is_last);
            if let Err(why) = connection.more() {
                return ExchangeEnd::Broken(why);
            }
        }
        ExchangeEnd::Goes
    }

    /// Connections on which nothing moved are closed, those in the middle of an answer reset.
    fn end_idle(&mut self, now: Instant, io: &mut dyn Io) {
        while let Some(&(_, channel)) = self.looks.front().filter(|(at, _)| *at <= now) {
            self.looks.pop_front();
            let Some(connection) = self.connections.get(&channel) else { continue };
            let until = connection.active + self.settings.keep_alive;
            if until > now || self.paused {
                let next = until.max(now + Duration::from_secs(1));
                let place = self.looks.partition_point(|(at, _)| *at <= next);
                self.looks.insert(place, (next, channel));
                continue;
            }
            if connection.is_idle() && connection.reader.is_between_messages() {
                io.close(channel);
            } else {
                let why = "the other end neither completes its request nor reads the answer";
                self.events.say(now, "http_broken", None, "", why);
                io.abort(channel);
            }
            self.connections.remove(&channel);
        }
    }
}

/// Its sender has a body, and sends that only on request. Here no body is of use, and the answer can be given
/// at once (RFC 9110 section 10.1.1); later bytes may be that body, or not.
fn waits_for_us(request: &Request, reader: &Reader) -> bool {
    request.version == Version::V1_1
        && request.headers.has("Expect", "100-continue")
        && reader.body_left() != Some(0)
}

impl App for HttpServer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Accepted { channel, .. } => {
                self.connections.insert(channel, Connection::new(now));
                self.looks.push_back((now + self.settings.keep_alive, channel));
                self.work(now, channel, io);
            }
            Input::Readable(channel) | Input::Writable(channel) => self.work(now, channel, io),
            Input::Closed(channel, CloseReason::Finished) => {
                if let Some(connection) = self.connections.get_mut(&channel) {
                    // Its earlier requests are answered to their ends.
                    let cut = connection.reader.finish().is_some();
                    connection.ended = true;
                    if cut && connection.is_idle() {
                        self.events.say(now, "http_broken", None, "", "a connection ended within a request");
                    }
                }
                self.work(now, channel, io);
                if !self.connections.contains_key(&channel) {
                    io.close(channel);
                }
            }
            Input::Closed(channel, CloseReason::Reset | CloseReason::TimedOut) => {
                self.connections.remove(&channel);
            }
            Input::Pause => self.paused = true,
            Input::Resume => {
                self.paused = false;
                for channel in self.connections.keys().copied().collect::<Vec<_>>() {
                    self.work(now, channel, io);
                }
            }
            Input::Stop => {
                io.close(LISTENER);
                for channel in std::mem::take(&mut self.connections).into_keys() {
                    io.abort(channel);
                }
            }
            _ => {}
        }
        self.end_idle(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.looks.front().map(|(at, _)| *at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
