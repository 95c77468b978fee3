//! HTTP on one side, names on the other: any player plays over content-centric networking.
//!
//! `GET /path` becomes Interests for the segments of `/prefix/path`, and what they bring in order becomes the answer's body.
//! Requests of one connection are answered one after another, those of several at once.

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Chunk, Duration, Instant, RandomStream};
use streamgauge_wire::http::{ByteRange, ContentRange, HttpItem, Ranges, Reader, Request, Response, Version};
use streamgauge_wire::ndn::{Component, Data, Interest, Metadata, NackReason, Name, ObjectSize};

use super::consumer::window::Window;
use super::consumer::{Fetch, FetchReport};
use super::names::{metadata_of, object_of, segment_of};
use super::spec::CcnSettings;
use crate::app::{ChannelId, CloseReason, Io};
use crate::http::say_client_data;
use crate::outbox::Outbox;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 16 << 10;

/// Requests of one connection that wait for their answers; behind them nothing is read.
const MOST_WAITING: usize = 16;

/// Bytes of a body that wait to be written; with more no further segment is taken, so that the window stands still.
const MOST_OUTGOING: usize = 64 << 10;

/// What the proxy tells of a window at most so often.
const WINDOW_EVENTS: Duration = Duration::from_millis(100);

/// Answers HTTP out of what its forwarder fetches.
pub struct Proxy {
    prefix: Name,
    settings: CcnSettings,
    seed: u64,
    connections: BTreeMap<ChannelId, Connection>,
    /// Interests that are to go out.
    interests: VecDeque<Interest>,
    nonces: RandomStream,
    last_window: Option<Instant>,
    /// Of all that was answered.
    asked: FetchReport,
}

struct Connection {
    reader: Reader,
    asked: Option<Request>,
    waiting: VecDeque<Request>,
    transfer: Option<Transfer>,
    outgoing: VecDeque<Chunk>,
    outgoing_bytes: usize,
    window: Window,
    /// The connection ends with the answer that is being written, or has no more requests to read.
    is_last: bool,
    no_more: bool,
    /// What has begun cannot be ended as its head promised.
    is_broken: bool,
}

/// A request that is being answered.
struct Transfer {
    request: Request,
    since: Instant,
    step: Step,
    fetch: Fetch,
    /// What its Interests name: its metadata, or the object.
    name: Name,
    /// Its size, and that of a segment, where metadata told them.
    size: Option<u64>,
    head_written: bool,
    is_chunked: bool,
    /// Bytes to pass over of what comes, and bytes that the answer still has.
    skip: u64,
    left: u64,
    total: FetchReport,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Metadata,
    Segments,
    /// The answer is complete, as far as it goes.
    Answered,
}

impl Connection {
    fn push(&mut self, chunk: Chunk) {
        if !chunk.is_empty() {
            self.outgoing_bytes += chunk.len();
            self.outgoing.push_back(chunk);
        }
    }
}

impl Proxy {
    /// Of the objects under `prefix`. Nonces are drawn from `seed` and the flow `owner`.
    pub fn new(prefix: Name, settings: CcnSettings, owner: &str, seed: u64) -> Self {
        Proxy {
            prefix,
            settings,
            seed,
            connections: BTreeMap::new(),
            interests: VecDeque::new(),
            nonces: RandomStream::named(seed, owner, "nonces"),
            last_window: None,
            asked: FetchReport::default(),
        }
    }

    /// What all objects took so far.
    pub fn asked(&self) -> FetchReport {
        self.asked
    }

    /// The next Interest for the forwarder.
    pub fn next_interest(&mut self) -> Option<Interest> {
        self.interests.pop_front()
    }

    /// Whether a stream is one of its connections.
    pub fn has(&self, channel: ChannelId) -> bool {
        self.connections.contains_key(&channel)
    }

    /// A player has connected.
    pub fn accepted(&mut self, channel: ChannelId) {
        let window = Window::new(&self.settings.window(), self.seed);
        let connection = Connection {
            reader: Reader::of_requests(),
            asked: None,
            waiting: VecDeque::new(),
            transfer: None,
            outgoing: VecDeque::new(),
            outgoing_bytes: 0,
            window,
            is_last: false,
            no_more: false,
            is_broken: false,
        };
        self.connections.insert(channel, connection);
    }

    /// A player's stream has closed.
    pub fn closed(&mut self, channel: ChannelId, why: CloseReason) {
        match why {
            CloseReason::Finished => {
                if let Some(connection) = self.connections.get_mut(&channel) {
                    connection.no_more = true;
                }
            }
            CloseReason::Reset | CloseReason::TimedOut => {
                self.connections.remove(&channel);
            }
        }
    }

    /// Ends all connections.
    pub fn stop(&mut self, io: &mut dyn Io) {
        for channel in std::mem::take(&mut self.connections).into_keys() {
            io.abort(channel);
        }
    }

    /// When something expires, or an Interest may go.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let of = |one: &Connection| one.transfer.as_ref()?.fetch.deadline(now, &one.window);
        self.connections.values().filter_map(of).min()
    }

    /// Data came from the forwarder: what its content tells, to everybody who asked for it.
    pub fn data(&mut self, now: Instant, data: &Data) {
        for connection in self.connections.values_mut() {
            let Some(transfer) = &mut connection.transfer else { continue };
            if !data.name.starts_with(&transfer.name) || transfer.step == Step::Answered {
                continue;
            }
            if data.is_no() {
                // Of an object whose length nobody told more is asked for than there is.
                let asked = segment_of(&transfer.name, &data.name).zip(transfer.fetch.last());
                if asked.is_none_or(|(segment, last)| segment <= last) {
                    connection.refuse(404, "nothing has this name");
                }
                continue;
            }
            match transfer.step {
                Step::Metadata => {
                    transfer.fetch.came(now, &mut connection.window, 0, data.content.clone(), Some(0))
                }
                Step::Segments => {
                    let Some(segment) = segment_of(&transfer.name, &data.name) else { continue };
                    let last = data.final_block_id.as_ref().and_then(|last| last.as_segment());
                    transfer.fetch.came(now, &mut connection.window, segment, data.content.clone(), last);
                }
                Step::Answered => {}
            }
        }
    }

    /// The network refused an Interest. Of congestion and of copies the consumer's own timer is the remedy.
    pub fn nack(&mut self, reason: NackReason, name: &Name) {
        if reason != NackReason::NoRoute {
            return;
        }
        for connection in self.connections.values_mut() {
            let Some(transfer) = &mut connection.transfer else { continue };
            if name.starts_with(&transfer.name) && transfer.step != Step::Answered {
                connection.refuse(502, "no route leads to this name");
            }
        }
    }

    /// Does for each connection what can be done now.
    pub(super) fn work(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        for channel in self.connections.keys().copied().collect::<Vec<_>>() {
            let Some(mut connection) = self.connections.remove(&channel) else { continue };
            if self.go_on(now, channel, &mut connection, io, events) {
                self.connections.insert(channel, connection);
            }
        }
    }

    /// False where the connection is over.
    fn go_on(
        &mut self,
        now: Instant,
        channel: ChannelId,
        connection: &mut Connection,
        io: &mut dyn Io,
        events: &mut Outbox,
    ) -> bool {
        loop {
            connection.read(channel, io);
            if connection.transfer.is_none()
                && !connection.is_last
                && let Some(request) = connection.waiting.pop_front()
            {
                say_client_data(events, now, &request);
                self.begin(now, connection, request);
            }
            self.expire(now, connection, events);
            self.ask(now, connection, events);
            let moved = connection.forward(&self.settings);
            if connection.is_broken {
                io.abort(channel);
                return false;
            }
            let written = connection.write(channel, io);
            let ended = self.end(now, connection, events);
            if !moved && !written && !ended {
                break;
            }
        }
        let is_over =
            connection.transfer.is_none() && connection.waiting.is_empty() && connection.outgoing.is_empty();
        if is_over && (connection.is_last || connection.no_more) {
            io.close(channel);
            return false;
        }
        true
    }

    fn begin(&mut self, now: Instant, connection: &mut Connection, request: Request) {
        connection.is_last = !request.keeps_alive();
        let object = object_of(&self.prefix, request.path());
        let told = object.as_ref().filter(|_| self.settings.metadata).and_then(metadata_of);
        let (step, name) = match (&object, told) {
            (Some(_), Some(metadata)) => (Step::Metadata, metadata),
            (Some(object), None) => (Step::Segments, object.clone()),
            (None, _) => (Step::Answered, self.prefix.clone()),
        };
        let until = (step == Step::Metadata || request.method == "HEAD").then_some(0);
        let is_known = matches!(request.method.as_str(), "GET" | "HEAD");
        connection.transfer = Some(Transfer {
            fetch: Fetch::new(0, until, self.settings.interest_tries),
            request,
            since: now,
            step,
            name,
            size: None,
            head_written: false,
            is_chunked: false,
            skip: 0,
            left: u64::MAX,
            total: FetchReport::default(),
        });
        if !is_known {
            connection.refuse(405, "only GET and HEAD are understood here");
        } else if object.is_none() {
            connection.refuse(400, "this path is no name");
        }
    }

    fn expire(&mut self, now: Instant, connection: &mut Connection, events: &mut Outbox) {
        let Some(transfer) = connection.transfer.as_mut().filter(|one| one.step != Step::Answered) else {
            return;
        };
        let waited = connection.window.timeout();
        match transfer.fetch.expire(now, &mut connection.window) {
            Ok(expired) => {
                for segment in expired {
                    self.asked.expired += 1;
                    let reason = format!("{} after {:.3} s", transfer.name, waited.as_secs_f64());
                    events.say(now, "interest_timeout", segment as f64, "1", reason);
                }
            }
            Err(given_up) => {
                self.asked.expired += 1;
                let reason = format!("{}: {given_up}", transfer.name);
                events.say(now, "object_failed", f64::from(given_up.tries), "1", reason);
                connection.refuse(504, &given_up.to_string());
            }
        }
    }

    fn ask(&mut self, now: Instant, connection: &mut Connection, events: &mut Outbox) {
        let Some(transfer) = connection.transfer.as_mut().filter(|one| one.step != Step::Answered) else {
            return;
        };
        while let Some(segment) = transfer.fetch.ask(now, &mut connection.window) {
            let is_metadata = transfer.step == Step::Metadata;
            // A name that has no room for the number is too long for every segment: it will expire.
            let segmented = transfer.name.child(Component::segment(segment)).ok();
            let name = segmented.filter(|_| !is_metadata).unwrap_or_else(|| transfer.name.clone());
            let mut interest = Interest::of(name);
            (interest.can_be_prefix, interest.must_be_fresh) = (is_metadata, is_metadata);
            interest.nonce = Some(self.nonces.bits() as u32);
            interest.lifetime_ms = Some(self.settings.interest_lifetime.as_nanos() / 1_000_000);
            self.asked.interests += 1;
            self.interests.push_back(interest);
        }
        if self.last_window.is_none_or(|last| now.saturating_since(last) >= WINDOW_EVENTS) {
            self.last_window = Some(now);
            let rtt =
                connection.window.srtt().map_or(String::new(), |rtt| format!("{:.4} s", rtt.as_secs_f64()));
            events.say(now, "interest_window", connection.window.interests() as f64, "1", rtt);
        }
    }

    /// Where an answer is complete, the connection is free for the next.
    fn end(&mut self, now: Instant, connection: &mut Connection, events: &mut Outbox) -> bool {
        let is_done = connection.transfer.as_ref().is_some_and(|one| one.step == Step::Answered);
        if !is_done || !connection.outgoing.is_empty() {
            return false;
        }
        let Some(transfer) = connection.transfer.take() else { return false };
        let (total, last) = (transfer.total, transfer.fetch.report());
        let (interests, expired) = (total.interests + last.interests, total.expired + last.expired);
        let reason = format!(
            "{} {}: {interests} Interests, {expired} expired, {:.3} s",
            transfer.request.method,
            transfer.name,
            now.saturating_since(transfer.since).as_secs_f64()
        );
        self.asked.bytes += last.bytes;
        events.say(now, "object_fetched", last.bytes as f64, "B", reason);
        true
    }
}

impl Connection {
    fn read(&mut self, channel: ChannelId, io: &mut dyn Io) {
        while self.waiting.len() < MOST_WAITING && !self.no_more {
            match self.reader.next() {
                Some(Ok(HttpItem::Request(request))) => self.asked = Some(request),
                Some(Ok(HttpItem::End)) => self.waiting.extend(self.asked.take()),
                Some(Ok(HttpItem::Body(_) | HttpItem::Response(_))) => {}
                Some(Err(fault)) => {
                    self.no_more = true;
                    if self.transfer.is_none() {
                        self.is_last = true;
                        self.plain(fault.status(), &fault.to_string());
                    }
                }
                None => match io.read(channel, READ_BYTES) {
                    Some(chunk) => self.reader.push(chunk),
                    None => return,
                },
            }
        }
    }

    /// A short answer that says what is wrong.
    fn plain(&mut self, status: u16, why: &str) {
        let text = format!("{why}\n");
        let mut head =
            Response::new(status).with("Content-Type", "text/plain").with("Content-Length", text.len());
        if self.is_last {
            head.headers.add("Connection", "close");
        }
        self.push(Chunk::bytes(head.write()));
        let is_head = self.transfer.as_ref().is_some_and(|one| one.request.method == "HEAD");
        if !is_head {
            self.push(Chunk::bytes(text.into_bytes()));
        }
    }

    /// The request is answered so; where its answer has begun, nothing is left but to break it off.
    fn refuse(&mut self, status: u16, why: &str) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.step = Step::Answered;
        if std::mem::replace(&mut transfer.head_written, true) {
            self.is_broken = true;
        } else {
            self.plain(status, why);
        }
    }

    /// Passes on what came in order; true if anything moved.
    fn forward(&mut self, settings: &CcnSettings) -> bool {
        let mut moved = false;
        while self.outgoing_bytes < MOST_OUTGOING {
            let Some(transfer) = self.transfer.as_mut().filter(|one| one.step != Step::Answered) else {
                break;
            };
            let Some(content) = transfer.fetch.take() else {
                if transfer.fetch.is_done() {
                    moved = true;
                    self.complete();
                }
                break;
            };
            moved = true;
            if transfer.step == Step::Metadata {
                match Metadata::read(&content) {
                    Some(told) => self.begin_object(&told, settings),
                    None => self.refuse(502, "the metadata of this name cannot be read"),
                }
                continue;
            }
            if !transfer.head_written {
                self.begin_body(None);
            }
            self.body(content);
        }
        moved
    }

    /// Metadata told where the object is, and perhaps how large: else all of it is answered, whatever range was asked for
    /// (RFC 9110 section 14.2).
    fn begin_object(&mut self, told: &Metadata, settings: &CcnSettings) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.total = transfer.fetch.report();
        transfer.name = told.name.clone();
        let Some(ObjectSize { segment_bytes, bytes }) = told.size else {
            let until = (transfer.request.method == "HEAD").then_some(0);
            transfer.fetch = Fetch::new(0, until, settings.interest_tries);
            transfer.step = Step::Segments;
            return;
        };
        transfer.size = Some(bytes);
        let asked = transfer.request.headers.list("Range").and_then(|value| value.parse::<Ranges>().ok());
        let range = asked.and_then(|Ranges(ranges)| <[ByteRange; 1]>::try_from(ranges).ok()).map(|[one]| one);
        let (first, end) = match range.map(|range| range.within(bytes)) {
            None => (0, bytes),
            Some(Some((first, last))) => (first, last + 1),
            Some(None) => {
                self.refuse(416, "none of the bytes asked for are in the object");
                return;
            }
        };
        let part = range.map(|_| ContentRange::Part { first, last: end.saturating_sub(1), of: Some(bytes) });
        let unit = segment_bytes.max(1);
        let (from, until) = (first / unit, (end.max(1) - 1) / unit);
        transfer.fetch = Fetch::new(from, Some(until), settings.interest_tries);
        (transfer.skip, transfer.left) = (first - from * unit, end - first);
        transfer.step = Step::Segments;
        self.begin_body(part);
        if self.transfer.as_ref().is_some_and(|one| one.request.method == "HEAD" || one.left == 0) {
            self.complete();
        }
    }

    /// Writes the answer's head.
    fn begin_body(&mut self, part: Option<ContentRange>) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.head_written = true;
        let mut head = Response::new(if part.is_some() { 206 } else { 200 });
        match transfer.size {
            Some(_) => {
                head.headers.add("Content-Length", transfer.left);
                head.headers.add("Accept-Ranges", "bytes");
            }
            None if transfer.request.version == Version::V1_1 => {
                transfer.is_chunked = true;
                head.headers.add("Transfer-Encoding", "chunked");
            }
            // Its end is the connection's (RFC 9112 section 6.3).
            None => self.is_last = true,
        }
        if let Some(part) = part {
            head.headers.add("Content-Range", part);
        }
        if self.is_last {
            head.headers.add("Connection", "close");
        }
        self.push(Chunk::bytes(head.write()));
    }

    fn body(&mut self, mut content: Chunk) {
        let Some(transfer) = &mut self.transfer else { return };
        if transfer.skip > 0 {
            let skip = transfer.skip.min(content.len() as u64);
            transfer.skip -= skip;
            content = content.split_off(skip as usize);
        }
        let wanted = (content.len() as u64).min(transfer.left);
        content.split_off(wanted as usize);
        transfer.left -= wanted;
        let (is_head, is_chunked) = (transfer.request.method == "HEAD", transfer.is_chunked);
        if is_head || content.is_empty() {
            return;
        }
        if is_chunked {
            self.push(Chunk::bytes(format!("{:x}\r\n", content.len()).into_bytes()));
        }
        self.push(content);
        if is_chunked {
            self.push(Chunk::bytes(*b"\r\n"));
        }
    }

    /// The last segment has been passed on.
    fn complete(&mut self) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.step = Step::Answered;
        let (head_written, is_head) = (transfer.head_written, transfer.request.method == "HEAD");
        // Less came than its metadata said.
        self.is_broken |= transfer.size.is_some() && !is_head && transfer.left > 0;
        if !head_written {
            self.begin_body(None);
        }
        if !is_head && self.transfer.as_ref().is_some_and(|one| one.is_chunked) {
            self.push(Chunk::bytes(*b"0\r\n\r\n"));
        }
    }

    /// Writes what waits; true if anything went.
    fn write(&mut self, channel: ChannelId, io: &mut dyn Io) -> bool {
        let mut wrote = false;
        while let Some(mut chunk) = self.outgoing.pop_front() {
            let taken = io.write(channel, chunk.clone());
            self.outgoing_bytes -= taken;
            wrote |= taken > 0;
            let rest = chunk.split_off(taken);
            if !rest.is_empty() {
                self.outgoing.push_front(rest);
                break;
            }
        }
        wrote
    }
}
