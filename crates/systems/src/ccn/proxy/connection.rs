//! A player's connection, and the request of it that is being answered.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{ByteRange, ContentRange, HttpItem, Ranges, Reader, Request, Response, Version};
use streamgauge_wire::ndn::{Metadata, Name, ObjectSize};

use super::{MOST_OUTGOING, MOST_WAITING, READ_BYTES};
use crate::app::{ChannelId, Io};
use crate::ccn::consumer::window::Window;
use crate::ccn::consumer::{Fetch, FetchReport};
use crate::ccn::spec::CcnSettings;
use crate::dash::content_type_of;
use crate::http::for_pages;
use crate::standalone::Answered;

/// Time from a request's first byte until it has to be whole; for the first one, from the connection on.
pub(super) const REQUEST_WITHIN: Duration = Duration::from_secs(30);

/// Time for which a connection is kept for the next one.
const IDLE: Duration = Duration::from_secs(75);

/// Time over which it has to receive its answer at [`LEAST_RATE`], bytes a second: the slowest modems of the
/// 1990s are faster.
pub(super) const WATCHED: Duration = Duration::from_secs(30);
pub(super) const LEAST_RATE: u64 = 100;

/// One player's connection.
pub(super) struct Connection {
    reader: Reader,
    asked: Option<Request>,
    pub waiting: VecDeque<Request>,
    pub transfer: Option<Transfer>,
    pub outgoing: VecDeque<Chunk>,
    outgoing_bytes: usize,
    pub window: Window,
    /// The connection ends with the answer that is being written, or has no more requests to read.
    pub is_last: bool,
    pub no_more: bool,
    /// A begun answer cannot be completed as its head promised.
    pub is_broken: bool,
    /// All is answered and this end has finished: until when it waits for the other to do so.
    pub lingers_until: Option<Instant>,
    /// A request is awaited since then, the rest of one since then, and none has been answered yet.
    awaited: Option<Instant>,
    begun: Option<Instant>,
    is_new: bool,
    /// Bytes of answers that it has accepted, and since when some wait for it, with the count at that time.
    taken: u64,
    watched: Option<(Instant, u64)>,
}

/// A request that is being answered.
pub(super) struct Transfer {
    pub request: Request,
    since: Instant,
    pub step: Step,
    pub fetch: Fetch,
    /// Bytes of the arriving data to skip, and bytes that the answer still lacks.
    pub name: Name,
    /// Status of the answer, once its head is written.
    status: Option<u16>,
    /// The object's size, from its metadata.
    size: Option<u64>,
    is_chunked: bool,
    /// Bytes of the arriving data to skip, and bytes that the answer still lacks.
    skip: u64,
    left: u64,
    /// Bytes of content that the answer has so far.
    sent: u64,
    /// The cost of fetching metadata.
    before: FetchReport,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Metadata,
    Segments,
    /// The answer is complete, as far as it could be.
    Answered,
}

impl Transfer {
    /// Returns the transfer of `request`, which asks for `name` first.
    pub fn new(now: Instant, request: Request, step: Step, name: Name, fetch: Fetch) -> Self {
        Transfer {
            request,
            since: now,
            step,
            fetch,
            name,
            status: None,
            size: None,
            is_chunked: false,
            skip: 0,
            left: u64::MAX,
            sent: 0,
            before: FetchReport::default(),
        }
    }

    /// Returns the cost so far.
    pub fn asked(&self) -> FetchReport {
        let (before, last) = (self.before, self.fetch.report());
        FetchReport {
            interests: before.interests + last.interests,
            expired: before.expired + last.expired,
            bytes: last.bytes,
        }
    }

    /// Returns how long it has taken by `now`.
    pub fn took(&self, now: Instant) -> Duration {
        now.saturating_since(self.since)
    }

    /// Returns its result by `now`; not `whole` where it was broken off.
    pub fn answered(&self, now: Instant, whole: bool) -> Answered {
        let asked = self.asked();
        Answered {
            method: self.request.method.clone(),
            path: self.request.path().into(),
            status: self.status,
            whole,
            bytes: self.sent,
            took: self.took(now),
            counts: vec![("interests", asked.interests), ("expired", asked.expired)],
        }
    }
}

impl Connection {
    /// Returns a new connection with this window.
    pub fn new(window: Window) -> Self {
        Connection {
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
            lingers_until: None,
            awaited: None,
            begun: None,
            is_new: true,
            taken: 0,
            watched: None,
        }
    }

    /// Returns when a connection is closed that receives its answer too slowly, or owes a request: a client
    /// that reads or sends a byte at a time, or nothing, keeps others out.
    pub fn patience_ends(&mut self, now: Instant) -> Option<Instant> {
        if !self.outgoing.is_empty() {
            return Some(self.has_to_take_by(now));
        }
        self.watched = None;
        if self.transfer.is_some() || !self.waiting.is_empty() {
            (self.awaited, self.begun, self.is_new) = (None, None, false);
            return None;
        }
        let awaited = *self.awaited.get_or_insert(now);
        if self.reader.is_between_messages() {
            self.begun = None;
            return Some(awaited + if self.is_new { REQUEST_WITHIN } else { IDLE });
        }
        Some(*self.begun.get_or_insert(if self.is_new { awaited } else { now }) + REQUEST_WITHIN)
    }

    fn has_to_take_by(&mut self, now: Instant) -> Instant {
        (self.awaited, self.begun, self.is_new) = (None, None, false);
        let (since, before) = *self.watched.get_or_insert((now, self.taken));
        let ends = since + WATCHED;
        if now < ends || self.taken - before < LEAST_RATE * (WATCHED.as_nanos() / 1_000_000_000) {
            return ends;
        }
        self.watched = Some((now, self.taken));
        now + WATCHED
    }

    fn push(&mut self, chunk: Chunk) {
        if !chunk.is_empty() {
            self.outgoing_bytes += chunk.len();
            self.outgoing.push_back(chunk);
        }
    }

    pub fn read(&mut self, channel: ChannelId, io: &mut dyn Io) {
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

    /// Skips the rest of the input.
    pub fn drain(&mut self, channel: ChannelId, io: &mut dyn Io) {
        while io.read(channel, READ_BYTES).is_some() {}
    }

    /// Writes a short answer with the fault.
    fn plain(&mut self, status: u16, why: &str) {
        let text = format!("{why}\n");
        let mut head =
            Response::new(status).with("Content-Type", "text/plain").with("Content-Length", text.len());
        if status == 405 {
            head.headers.add("Allow", "GET, HEAD, OPTIONS");
        }
        self.head(head);
        let is_head = self.transfer.as_ref().is_some_and(|one| one.request.method == "HEAD");
        if !is_head {
            self.push(Chunk::bytes(text.into_bytes()));
        }
    }

    /// Writes the head of an answer, which pages of any origin may read.
    fn head(&mut self, mut head: Response) {
        if self.is_last {
            head.headers.add("Connection", "close");
        }
        for_pages(&mut head);
        if let Some(transfer) = &mut self.transfer {
            transfer.status = Some(head.status);
        }
        self.push(Chunk::bytes(head.write()));
    }

    /// Answers the request with this status; where its answer has begun, it can only be broken off.
    pub fn refuse(&mut self, status: u16, why: &str) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.step = Step::Answered;
        if transfer.status.is_some() {
            self.is_broken = true;
        } else {
            self.plain(status, why);
        }
    }

    /// Answers the request by a head alone.
    pub fn only(&mut self, head: Response) {
        if let Some(transfer) = &mut self.transfer {
            transfer.step = Step::Answered;
        }
        self.head(head);
    }

    /// Passes on segments that arrived in order; returns true if any moved.
    pub fn forward(&mut self, settings: &CcnSettings) -> bool {
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
            if transfer.status.is_none() {
                self.begin_body(None);
            }
            self.body(content);
        }
        moved
    }

    /// Begins to fetch the object; metadata gave its name, and perhaps its size: without a size all of it is
    /// answered, for any requested range (RFC 9110 section 14.2).
    fn begin_object(&mut self, told: &Metadata, settings: &CcnSettings) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.before = transfer.fetch.report();
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
        let mut head = Response::new(if part.is_some() { 206 } else { 200 });
        if let Some(kind) = content_type_of(transfer.request.path()) {
            head.headers.add("Content-Type", kind);
        }
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
        self.head(head);
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
        transfer.sent += content.len() as u64;
        if is_chunked {
            self.push(Chunk::bytes(format!("{:x}\r\n", content.len()).into_bytes()));
        }
        self.push(content);
        if is_chunked {
            self.push(Chunk::bytes(*b"\r\n"));
        }
    }

    /// Completes the answer when the last segment has been passed on.
    fn complete(&mut self) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.step = Step::Answered;
        let (is_begun, is_head) = (transfer.status.is_some(), transfer.request.method == "HEAD");
        // Less arrived than its metadata declared.
        self.is_broken |= transfer.size.is_some() && !is_head && transfer.left > 0;
        if !is_begun {
            self.begin_body(None);
        }
        if !is_head && self.transfer.as_ref().is_some_and(|one| one.is_chunked) {
            self.push(Chunk::bytes(*b"0\r\n\r\n"));
        }
    }

    /// Writes pending data; returns true if any was written.
    pub fn write(&mut self, channel: ChannelId, io: &mut dyn Io) -> bool {
        let mut wrote = false;
        while let Some(mut chunk) = self.outgoing.pop_front() {
            let taken = io.write(channel, chunk.clone());
            self.outgoing_bytes -= taken;
            self.taken += taken as u64;
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
