//! One connection to the server with its requests, in order, and a new connection when it is gone.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{
    ByteRange, ContentRange, Decoder, HttpItem, Ranges, Reader, Request, Response, Unwritable,
};

use super::settings::DashPlayerSettings;
use crate::app::{ChannelId, CloseReason, Io};
use crate::http::{Destination, Hosts, Source};

/// Bytes read from a connection at once.
const READ_BYTES: usize = 64 << 10;

/// The address of a request, and the bytes: a range, or all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asking {
    /// The server and the request's target.
    pub there: Destination,
    /// First and last byte.
    pub range: Option<(u64, u64)>,
    /// Header fields beside those of every request.
    pub headers: Vec<(&'static str, String)>,
}

/// An event of the request at the front.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// Its head arrived.
    Head {
        /// The length of the body, if stated.
        length: Option<u64>,
        /// The time at which the server made it, s since the Unix epoch, if stated.
        date: Option<u64>,
        /// The resource's address after all redirections.
        at: String,
    },
    /// It is somewhere else, where it is asked for next.
    Redirected {
        /// The status.
        status: u16,
        /// Where.
        to: String,
    },
    /// Bytes of its body, and their number as they arrived, with or without a coding.
    Body(Chunk, u64),
    /// The body is complete. The request is at the front no more.
    Done,
    /// Nothing more of it will arrive. It and the requests behind it are dropped.
    Failed(Failure),
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// In words.
    pub why: String,
    /// The server's status, if that was the reason.
    pub status: Option<u16>,
    /// To ask again would bring the same.
    pub is_final: bool,
    /// How long the server asks to wait before the next attempt.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// One that may not happen again.
    pub fn for_now(why: impl Into<String>) -> Self {
        Failure { why: why.into(), status: None, is_final: false, retry_after: None }
    }
}

/// A connection, made when there is something to ask for.
pub struct Requester {
    hosts: Hosts,
    asks_identity: bool,
    persistent: bool,
    patience: Duration,
    longest: Duration,
    connection: Option<Connection>,
    asked: VecDeque<Asked>,
}

struct Connection {
    channel: ChannelId,
    there: Destination,
    is_open: bool,
    reader: Reader,
    outgoing: Chunk,
    finished: bool,
    answered: u32,
    /// The time of the last received data or request.
    heard: Instant,
}

struct Asked {
    asking: Asking,
    request: Request,
    /// The URLs that led here.
    before: Vec<String>,
    /// Where its answer leads.
    redirected: Option<Destination>,
    /// Undoes its body's coding.
    decoder: Option<Decoder>,
    range: Option<(u64, u64)>,
    /// When it was written on a connection.
    written: Option<Instant>,
    /// The head of its answer has come.
    begun: bool,
    is_last: bool,
}

impl Requester {
    /// To the server of `source`.
    pub fn new(source: &Source, settings: &DashPlayerSettings) -> Self {
        Requester {
            hosts: Hosts::of(source),
            asks_identity: source.asks_identity,
            persistent: settings.persistent,
            patience: settings.give_up_after,
            longest: settings.longest_request,
            connection: None,
            asked: VecDeque::new(),
        }
    }

    /// Allows further hosts.
    pub fn allow(&mut self, hosts: &[String]) {
        self.hosts.allow(hosts);
    }

    /// Returns the server for the resource at `url`.
    ///
    /// # Errors
    ///
    /// The reason for which the player does not request it.
    pub fn find(&self, url: &str) -> Result<Destination, String> {
        self.hosts.find(url)
    }

    /// Queues a request behind the earlier ones.
    ///
    /// # Errors
    ///
    /// The part of it that no request can have.
    pub fn ask(&mut self, now: Instant, asking: Asking, io: &mut dyn Io) -> Result<(), Unwritable> {
        let asked = self.asked(asking, Vec::new())?;
        self.asked.push_back(asked);
        self.write(now, io);
        Ok(())
    }

    fn asked(&self, asking: Asking, before: Vec<String>) -> Result<Asked, Unwritable> {
        let mut request = Request::new("GET", &asking.there.target, &asking.there.host())?;
        if self.asks_identity {
            // Without it a server may choose any coding (RFC 9110 section 12.5.3).
            request.headers.add("Accept-Encoding", "identity");
        }
        if let Some((first, last)) = asking.range {
            request.headers.add("Range", Ranges(vec![ByteRange::From(first, Some(last))]));
        }
        for (name, value) in &asking.headers {
            request.headers.add(name, value);
        }
        if !self.persistent {
            request.headers.add("Connection", "close");
        }
        Ok(Asked {
            range: asking.range,
            asking,
            request,
            before,
            redirected: None,
            decoder: None,
            written: None,
            begun: false,
            is_last: false,
        })
    }

    /// When the request at the front was written.
    pub fn front_written(&self) -> Option<Instant> {
        self.asked.front()?.written
    }

    /// Returns the next event.
    pub fn next(&mut self, now: Instant, io: &mut dyn Io) -> Option<Answer> {
        loop {
            let front = self.asked.front()?;
            let Some(connection) = &mut self.connection else {
                self.write(now, io);
                return None;
            };
            if front.written.is_none() {
                let is_elsewhere = !connection.there.is_beside(&front.asking.there);
                if connection.is_open && connection.finished || is_elsewhere {
                    self.let_go(io);
                    continue;
                }
                self.write(now, io);
                self.asked.front()?.written?;
                // A connection is reported again once all its data has been read.
                continue;
            }
            if let Some(item) = connection.reader.next() {
                match item {
                    Ok(HttpItem::Response(response)) if response.is_interim() => {}
                    Ok(HttpItem::Response(response)) => return Some(self.begin(&response, io)),
                    Ok(HttpItem::Body(chunk)) if !chunk.is_empty() => {
                        if let Some(answer) = self.body(chunk, io) {
                            return Some(answer);
                        }
                    }
                    Ok(HttpItem::End) if self.asked.front().is_some_and(|front| front.begun) => {
                        if let Some(answer) = self.done(io) {
                            return Some(answer);
                        }
                    }
                    Ok(HttpItem::Body(_) | HttpItem::End | HttpItem::Request(_)) => {}
                    Err(fault) => {
                        return Some(self.fail(format!("the answer cannot be read: {fault}"), None, io));
                    }
                }
            } else if let Some(chunk) = io.read(connection.channel, READ_BYTES) {
                connection.heard = now;
                connection.reader.push(chunk);
            } else if connection.finished {
                if let Some(answer) = self.finished(io) {
                    return Some(answer);
                }
            } else {
                return None;
            }
        }
    }

    /// Writes as much as possible: the front, and behind it the requests that may be pipelined.
    fn write(&mut self, now: Instant, io: &mut dyn Io) {
        if self.asked.is_empty() {
            return;
        }
        let Some(connection) = &mut self.connection else {
            let Some(there) = self.asked.front().map(|front| front.asking.there.clone()) else { return };
            let channel = self.hosts.open(&there, io);
            let (reader, outgoing) = (Reader::of_responses(), Chunk::default());
            self.connection = Some(Connection {
                channel,
                there,
                is_open: false,
                reader,
                outgoing,
                finished: false,
                answered: 0,
                heard: now,
            });
            return;
        };
        if !connection.is_open || connection.finished {
            return;
        }
        for (place, asked) in self.asked.iter_mut().enumerate() {
            if asked.written.is_some() {
                continue;
            }
            if place > 0 && !self.persistent || !connection.there.is_beside(&asked.asking.there) {
                break;
            }
            connection.reader.expect(&asked.request);
            let mut bytes = connection.outgoing.head().to_vec();
            bytes.extend(asked.request.write());
            connection.outgoing = Chunk::bytes(bytes);
            connection.heard = now;
            asked.written = Some(now);
        }
        self.flush(io);
    }

    fn flush(&mut self, io: &mut dyn Io) {
        let Some(connection) = &mut self.connection else { return };
        if connection.is_open && !connection.outgoing.is_empty() {
            let taken = io.write(connection.channel, connection.outgoing.clone());
            connection.outgoing = connection.outgoing.split_off(taken);
        }
    }

    /// The head of the answer to the front.
    fn begin(&mut self, response: &Response, io: &mut dyn Io) -> Answer {
        let (Some(connection), Some(front)) = (&mut self.connection, self.asked.front_mut()) else {
            return Answer::Done;
        };
        front.is_last = !self.persistent || !response.keeps_alive();
        if let Some(followed) = self.hosts.follow(response, &front.asking.there, &front.before) {
            return match followed {
                Ok(there) => {
                    front.begun = true;
                    let to = there.url();
                    front.redirected = Some(there);
                    Answer::Redirected { status: response.status, to }
                }
                Err(why) => self.fail_for_good(why, Some(response.status), io),
            };
        }
        let left = connection.reader.body_left();
        let part = match response.headers.get("Content-Range").map(str::parse::<ContentRange>) {
            Some(Ok(ContentRange::Part { first, last, of })) => Some((first, last, of)),
            _ => None,
        };
        // A body that is coded has another length than the bytes of the range that it makes.
        let fits = |bytes: u64| {
            left.is_none_or(|left| left == bytes) || response.headers.get("Content-Encoding").is_some()
        };
        let wrong = match (response.status, front.range) {
            (200, None) => None,
            // The whole as one part of it is the whole.
            (206, None) if part.is_some_and(|(first, last, of)| first == 0 && of == Some(last + 1)) => None,
            (206, None) => Some("with a part of the requested resource"),
            (206, Some((first, last))) => match part {
                Some((from, to, _)) if from == first && to <= last && fits(to - from + 1) => None,
                Some(_) => Some("with other bytes than the requested ones"),
                None => Some("without a Content-Range"),
            },
            (200, Some((0, last))) if left == Some(last + 1) => None,
            (200, Some(_)) => Some(
                "with the whole resource in place of the requested bytes: this server has no byte ranges",
            ),
            _ => Some(""),
        };
        front.begun = true;
        let Some(wrong) = wrong else {
            match Decoder::of(&response.headers) {
                Ok(decoder) => front.decoder = decoder,
                Err(fault) => {
                    let why = format!("the answer to GET {} has {fault}", front.request.target);
                    return self.fail_for_good(why, None, io);
                }
            }
            let at = front.asking.there.url();
            let date = response.headers.get("Date").and_then(|date| httpdate::parse_http_date(date).ok());
            let date = date.and_then(|date| Some(date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()));
            return Answer::Head { length: left, date, at };
        };
        let said = format!("{} {} to GET {}", response.status, response.reason, front.request.target);
        let why = format!("the server answered {} {wrong}", said.trim()).trim_end().to_owned();
        let (status, has_range) = (response.status, front.range.is_some());
        let retry_after = response.headers.get("Retry-After").and_then(|wait| wait.trim().parse().ok());
        self.cancel(io);
        Answer::Failed(Failure {
            status: Some(status),
            // The same server gives the same answer for the same range.
            is_final: status == 206 || has_range && matches!(status, 200 | 416),
            retry_after: retry_after.map(Duration::from_secs),
            ..Failure::for_now(why)
        })
    }

    /// Bytes of the body of the answer to the front; nothing where they are of no account, or not ready.
    fn body(&mut self, chunk: Chunk, io: &mut dyn Io) -> Option<Answer> {
        let front = self.asked.front_mut()?;
        if front.redirected.is_some() {
            return None;
        }
        let came = chunk.len() as u64;
        let Some(decoder) = &mut front.decoder else { return Some(Answer::Body(chunk, came)) };
        let mut made = Vec::new();
        match decoder.push(chunk.head(), |part| made.extend(part)) {
            Ok(()) => Some(Answer::Body(Chunk::bytes(made), came)),
            Err(fault) => {
                let why = format!("the answer to GET {}: {fault}", front.request.target);
                Some(self.fail_for_good(why, None, io))
            }
        }
    }

    /// Ends the answer to the front; `None` if it is requested elsewhere now.
    fn done(&mut self, io: &mut dyn Io) -> Option<Answer> {
        let mut front = self.asked.pop_front()?;
        if let Some(connection) = &mut self.connection {
            connection.answered += 1;
        }
        if let Some(Err(fault)) = front.decoder.as_mut().map(Decoder::finish) {
            let why = format!("the answer to GET {}: {fault}", front.request.target);
            return Some(self.fail(why, None, io));
        }
        if front.is_last {
            self.let_go(io);
        }
        let Some(there) = front.redirected else { return Some(Answer::Done) };
        // It is asked for there, before all that is behind it.
        front.before.push(front.asking.there.url());
        let asking = Asking { there, ..front.asking };
        match self.asked(asking, front.before) {
            Ok(asked) => {
                self.again_behind(io);
                self.asked.push_front(asked);
                None
            }
            Err(wrong) => Some(self.fail_for_good(wrong.to_string(), None, io)),
        }
    }

    /// Requests behind a redirected one are written anew, after it.
    fn again_behind(&mut self, io: &mut dyn Io) {
        if self.asked.iter().any(|asked| asked.written.is_some()) {
            self.let_go(io);
        }
    }

    /// The server has finished, and everything that it sent was read. `None`: it is asked again on another connection.
    fn finished(&mut self, io: &mut dyn Io) -> Option<Answer> {
        let connection = self.connection.as_mut()?;
        match connection.reader.finish() {
            Some(Ok(_)) => self.done(io),
            Some(Err(fault)) => Some(self.fail(fault.to_string(), None, io)),
            // It had closed before the request arrived (RFC 9112 section 9.3.1).
            None if connection.answered > 0 => {
                self.let_go(io);
                None
            }
            None => Some(self.fail("the server closed the connection without an answer".into(), None, io)),
        }
    }

    /// Drops the connection. Written requests without an answer are written anew.
    fn let_go(&mut self, io: &mut dyn Io) {
        if let Some(connection) = self.connection.take() {
            io.close(connection.channel);
        }
        for asked in &mut self.asked {
            (asked.written, asked.begun) = (None, false);
            (asked.redirected, asked.decoder) = (None, None);
        }
    }

    fn fail(&mut self, why: String, status: Option<u16>, io: &mut dyn Io) -> Answer {
        self.cancel(io);
        Answer::Failed(Failure { status, ..Failure::for_now(why) })
    }

    fn fail_for_good(&mut self, why: String, status: Option<u16>, io: &mut dyn Io) -> Answer {
        self.cancel(io);
        Answer::Failed(Failure { status, is_final: true, ..Failure::for_now(why) })
    }

    /// Gives up all that is asked for, and with it the connection: HTTP/1.1 has no other way.
    pub fn cancel(&mut self, io: &mut dyn Io) {
        self.asked.clear();
        if let Some(connection) = self.connection.take() {
            io.abort(connection.channel);
        }
    }

    /// Whether it has a connection that takes requests.
    pub fn is_open(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_open && !connection.finished)
    }

    /// Whether the channel is this requester's.
    pub fn has(&self, channel: ChannelId) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.channel == channel)
    }

    /// The connection is there.
    pub fn opened(&mut self, now: Instant, io: &mut dyn Io) {
        if let Some(connection) = &mut self.connection {
            (connection.is_open, connection.heard) = (true, now);
        }
        self.write(now, io);
    }

    /// The connection takes bytes again.
    pub fn writable(&mut self, io: &mut dyn Io) {
        self.flush(io);
    }

    /// The connection could not be made.
    pub fn refused(&mut self, why: String) -> Option<Failure> {
        self.connection = None;
        let was_asked = !self.asked.is_empty();
        self.asked.clear();
        was_asked.then(|| Failure::for_now(why))
    }

    /// Handles a closed connection. Returns the reason of the failure, if a request failed.
    pub fn closed(&mut self, why: CloseReason) -> Option<Failure> {
        let connection = self.connection.as_mut()?;
        let what = match why {
            CloseReason::Finished => {
                connection.finished = true;
                return None;
            }
            CloseReason::Reset => "the connection was reset",
            CloseReason::TimedOut => "the other end answers no more",
        };
        self.connection = None;
        let was_asked = !self.asked.is_empty();
        self.asked.clear();
        was_asked.then(|| Failure::for_now(what))
    }

    /// Time that passed while nothing was read does not count.
    pub fn go_on(&mut self, now: Instant) {
        if let Some(connection) = &mut self.connection {
            connection.heard = now;
        }
    }

    /// When the server has been silent, or busy with the front, for too long.
    pub fn deadline(&self) -> Option<Instant> {
        let front = self.asked.front()?;
        let heard = self.connection.as_ref()?.heard + self.patience;
        Some(front.written.map_or(heard, |written| heard.min(written + self.longest)))
    }

    /// Gives up requests that have taken too long.
    pub fn look(&mut self, now: Instant, io: &mut dyn Io) -> Option<Failure> {
        if self.deadline().is_none_or(|at| at > now) {
            return None;
        }
        let is_silent = self.connection.as_ref().is_some_and(|one| one.heard + self.patience <= now);
        let why = match is_silent {
            true => format!("nothing was heard for {} s", self.patience.as_secs_f64()),
            false => format!("the answer was not whole after {} s", self.longest.as_secs_f64()),
        };
        self.cancel(io);
        Some(Failure::for_now(why))
    }
}
