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
    /// What has begun cannot be ended as its head promised.
    pub is_broken: bool,
    /// All is answered and this end has finished: until when it waits for the other to do so.
    pub lingers_until: Option<Instant>,
}

/// A request that is being answered.
pub(super) struct Transfer {
    pub request: Request,
    since: Instant,
    pub step: Step,
    pub fetch: Fetch,
    /// What its Interests name: its metadata, or the object.
    pub name: Name,
    /// Of the answer, once its head is written.
    status: Option<u16>,
    /// The object's size, where metadata told it.
    size: Option<u64>,
    is_chunked: bool,
    /// Bytes to pass over of what comes, and bytes that the answer still has.
    skip: u64,
    left: u64,
    /// Bytes of content that the answer has so far.
    sent: u64,
    /// What asking for metadata took.
    before: FetchReport,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Metadata,
    Segments,
    /// The answer is complete, as far as it goes.
    Answered,
}

impl Transfer {
    /// Of `request`, which asks for `name` first.
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

    /// What it took so far.
    pub fn asked(&self) -> FetchReport {
        let (before, last) = (self.before, self.fetch.report());
        FetchReport {
            interests: before.interests + last.interests,
            expired: before.expired + last.expired,
            bytes: last.bytes,
        }
    }

    /// How long it has taken by `now`.
    pub fn took(&self, now: Instant) -> Duration {
        now.saturating_since(self.since)
    }

    /// What became of it by `now`; not `whole` where it was broken off.
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
    /// New, with this window.
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
        }
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

    /// Passes over what still comes.
    pub fn drain(&mut self, channel: ChannelId, io: &mut dyn Io) {
        while io.read(channel, READ_BYTES).is_some() {}
    }

    /// A short answer that says what is wrong.
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

    /// The request is answered so; where its answer has begun, nothing is left but to break it off.
    pub fn refuse(&mut self, status: u16, why: &str) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.step = Step::Answered;
        if transfer.status.is_some() {
            self.is_broken = true;
        } else {
            self.plain(status, why);
        }
    }

    /// The request is answered by a head alone.
    pub fn only(&mut self, head: Response) {
        if let Some(transfer) = &mut self.transfer {
            transfer.step = Step::Answered;
        }
        self.head(head);
    }

    /// Passes on what came in order; true if anything moved.
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

    /// Metadata told where the object is, and perhaps how large: else all of it is answered, whatever range was asked for
    /// (RFC 9110 section 14.2).
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

    /// The last segment has been passed on.
    fn complete(&mut self) {
        let Some(transfer) = &mut self.transfer else { return };
        transfer.step = Step::Answered;
        let (is_begun, is_head) = (transfer.status.is_some(), transfer.request.method == "HEAD");
        // Less came than its metadata said.
        self.is_broken |= transfer.size.is_some() && !is_head && transfer.left > 0;
        if !is_begun {
            self.begin_body(None);
        }
        if !is_head && self.transfer.as_ref().is_some_and(|one| one.is_chunked) {
            self.push(Chunk::bytes(*b"0\r\n\r\n"));
        }
    }

    /// Writes what waits; true if anything went.
    pub fn write(&mut self, channel: ChannelId, io: &mut dyn Io) -> bool {
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
