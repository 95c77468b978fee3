//! Brings a file's bytes in order: connections, requests, answers, and what is done when one of them fails.

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{
    ByteRange, ContentRange, EntityTag, Fault, HttpItem, Ranges, Reader, Request, Response,
};

use super::spec::HttpPlayerSettings;
use crate::app::{ChannelId, CloseReason, Io};
use crate::carrier::Carrier;
use crate::outbox::Outbox;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 64 << 10;

/// The longest wait before another connection.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// What is fetched, and from where.
#[derive(Clone, PartialEq, Debug)]
pub struct Source {
    /// Of the Host header: a name or an address, with the port if it is not 80.
    pub host: String,
    /// Path and query, `/clip.mp4`.
    pub target: String,
    /// What each connection rides on; whom it leads to is the driver's affair.
    pub carrier: Carrier,
}

/// How it came to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Over {
    /// All bytes came.
    Done,
    /// No more will come.
    Failed(String),
}

/// One file on its way.
pub struct Fetch {
    source: Source,
    settings: HttpPlayerSettings,
    /// The first byte that did not come yet.
    at: u64,
    length: Option<u64>,
    tag: Option<EntityTag>,
    content_type: String,
    connection: Option<Connection>,
    /// In a row, without a byte between them.
    failures: u32,
    again: Option<Instant>,
    /// When it first asked.
    asked_at: Option<Instant>,
    over: Option<Over>,
    /// The status of the last answer that brought nothing.
    refusal: Option<u16>,
}

struct Connection {
    channel: ChannelId,
    is_open: bool,
    reader: Reader,
    /// What is asked for and has not come to its end.
    asked: Option<Asked>,
    /// Of a request, what could not be written yet.
    outgoing: Chunk,
    /// The server has finished, which is of no account before everything is read.
    finished: bool,
    /// Answers that came to their end.
    answered: u32,
    /// When something last came, or was asked.
    heard: Instant,
}

struct Asked {
    /// Its first byte, and what it ends before if that was said.
    first: u64,
    end: Option<u64>,
    /// The answer's head has come; so many bytes of its body are not wanted.
    skip: Option<u64>,
    /// The connection ends with the answer.
    is_last: bool,
}

/// Why an answer is of no use.
enum Useless {
    /// For now.
    Now(String),
    /// For good.
    ForGood(String),
}

impl Fetch {
    /// Of `source`; nothing happens before [`Fetch::next`].
    pub fn new(source: Source, settings: HttpPlayerSettings) -> Self {
        Fetch {
            source,
            settings,
            at: 0,
            length: None,
            tag: None,
            content_type: String::new(),
            connection: None,
            failures: 0,
            again: None,
            asked_at: None,
            over: None,
            refusal: None,
        }
    }

    /// How it ended, once it has.
    pub fn over(&self) -> Option<&Over> {
        self.over.as_ref()
    }

    /// The first byte that did not come yet.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The status of the last answer that brought nothing of the file.
    pub fn refusal(&self) -> Option<u16> {
        self.refusal
    }

    /// Bytes of the whole, once they are known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// What the server calls it.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// When the first request was written.
    pub fn asked_at(&self) -> Option<Instant> {
        self.asked_at
    }

    /// The next bytes of the file. Opens connections and asks where nothing is on its way.
    pub fn next(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) -> Option<Chunk> {
        while self.over.is_none() {
            let Some(connection) = &mut self.connection else {
                if self.again.is_some_and(|at| now < at) {
                    return None;
                }
                self.again = None;
                self.open(now, io);
                return None;
            };
            if !connection.is_open {
                return None;
            }
            if connection.asked.is_none() {
                if connection.finished {
                    io.close(connection.channel);
                    self.connection = None;
                    continue;
                }
                self.ask(now, io, events);
                continue;
            }
            if let Some(item) = connection.reader.next() {
                if let Some(bytes) = self.take(now, item, io, events) {
                    return Some(bytes);
                }
            } else if let Some(chunk) = io.read(connection.channel, READ_BYTES) {
                connection.heard = now;
                connection.reader.push(chunk);
            } else if connection.finished {
                self.finished(now, io, events);
            } else {
                return None;
            }
        }
        None
    }

    fn open(&mut self, now: Instant, io: &mut dyn Io) {
        let channel = io.open(&self.source.carrier);
        self.connection = Some(Connection {
            channel,
            is_open: false,
            reader: Reader::of_responses(),
            asked: None,
            outgoing: Chunk::default(),
            finished: false,
            answered: 0,
            heard: now,
        });
    }

    fn ask(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        let Some(connection) = &mut self.connection else { return };
        let mut request = match Request::new("GET", &self.source.target, &self.source.host) {
            Ok(request) => request,
            Err(wrong) => return self.fail_for_good(wrong.to_string(), io),
        };
        let end = self.settings.request.map(|bytes| {
            let end = self.at.saturating_add(bytes);
            self.length.map_or(end, |length| end.min(length))
        });
        if self.at > 0 || end.is_some() {
            let range = Ranges(vec![ByteRange::From(self.at, end.map(|end| end - 1))]);
            request.headers.add("Range", range);
            if let Some(tag) = self.tag.as_ref().filter(|tag| self.at > 0 && !tag.weak) {
                request.headers.add("If-Range", tag);
            }
        }
        if !self.settings.persistent {
            request.headers.add("Connection", "close");
        }
        let reason = format!("{} {}", request.target, request.headers.get("Range").unwrap_or("the whole"));
        events.say(now, "http_request", self.at as f64, "B", reason);
        connection.reader.expect(&request);
        connection.outgoing = Chunk::bytes(request.write());
        connection.asked = Some(Asked { first: self.at, end, skip: None, is_last: false });
        connection.heard = now;
        self.asked_at.get_or_insert(now);
        self.flush(io);
    }

    fn flush(&mut self, io: &mut dyn Io) {
        let Some(connection) = &mut self.connection else { return };
        if !connection.outgoing.is_empty() {
            let taken = io.write(connection.channel, connection.outgoing.clone());
            connection.outgoing = connection.outgoing.split_off(taken);
        }
    }

    /// A part of an answer; its bytes, if they are the next of the file.
    fn take(
        &mut self,
        now: Instant,
        item: Result<HttpItem, Fault>,
        io: &mut dyn Io,
        events: &mut Outbox,
    ) -> Option<Chunk> {
        match item {
            Ok(HttpItem::Response(response)) if response.is_interim() => {}
            Ok(HttpItem::Response(response)) => match self.begin(&response) {
                Ok(()) => {}
                Err(Useless::Now(why)) => self.fail(now, why, io, events),
                Err(Useless::ForGood(why)) => self.fail_for_good(why, io),
            },
            Ok(HttpItem::Body(mut chunk)) => {
                let skip = self.connection.as_mut()?.asked.as_mut()?.skip.as_mut()?;
                let unwanted = (*skip).min(chunk.len() as u64);
                *skip -= unwanted;
                if unwanted > 0 {
                    chunk = chunk.split_off(unwanted as usize);
                }
                if !chunk.is_empty() {
                    self.at += chunk.len() as u64;
                    self.failures = 0;
                    return Some(chunk);
                }
            }
            Ok(HttpItem::End) => {
                // An interim answer ends too, and another one follows (RFC 9110 section 15.2).
                if self.connection.as_ref()?.asked.as_ref()?.skip.is_some() {
                    self.answered(now, io, events);
                }
            }
            Ok(HttpItem::Request(_)) => {}
            Err(fault) => self.fail_for_good(format!("the server's answer cannot be read: {fault}"), io),
        }
        None
    }

    /// The head of an answer.
    fn begin(&mut self, response: &Response) -> Result<(), Useless> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let Some(asked) = &mut connection.asked else { return Ok(()) };
        let for_good = |why: String| Err(Useless::ForGood(why));
        let answer = format!("{} {}", response.status, response.reason);
        let answered = format!("the server answered {} to GET {}", answer.trim_end(), self.source.target);
        asked.is_last = !self.settings.persistent || !response.keeps_alive();
        self.refusal = Some(response.status).filter(|status| !matches!(status, 200 | 206));
        let body = connection.reader.body_left();
        let length = match response.status {
            200 => {
                // It may send the whole whatever is asked for (RFC 9110 section 14.2).
                asked.skip = Some(self.at);
                (asked.first, asked.end) = (0, None);
                body
            }
            206 => match response.headers.get("Content-Range").map(str::parse) {
                Some(Ok(ContentRange::Part { first, last, of })) if first == asked.first => {
                    if body.is_some_and(|body| body != last - first + 1) {
                        return for_good(format!(
                            "{answered} with a body that is not as long as its Content-Range"
                        ));
                    }
                    asked.skip = Some(0);
                    asked.end = Some(last + 1);
                    of
                }
                _ => {
                    let range = response.headers.get("Content-Range").unwrap_or("no Content-Range");
                    return for_good(format!(
                        "{answered} with {range}, asked for from byte {} on",
                        asked.first
                    ));
                }
            },
            408 | 429 | 500 | 502 | 503 | 504 => return Err(Useless::Now(answered)),
            _ => return for_good(answered),
        };
        let tag = response.headers.get("ETag").and_then(|tag| tag.parse::<EntityTag>().ok());
        let changed = |what: &str| for_good(format!("the file changed while it was fetched: {what}"));
        // A weak tag is no proof that these bytes join those that came (RFC 9110 section 15.3.7.3).
        if let (Some(known), Some(given)) = (&self.tag, &tag)
            && !(if self.at > 0 && !known.weak { known.is_same(given) } else { known.is_like(given) })
        {
            return changed(&format!("its tag was {known} and is {given}"));
        }
        if let (Some(known), Some(given)) = (self.length, length)
            && known != given
        {
            return changed(&format!("it had {known} B and has {given} B"));
        }
        self.length = self.length.or(length);
        self.tag = self.tag.take().or(tag);
        self.content_type = response.headers.get("Content-Type").unwrap_or_default().into();
        Ok(())
    }

    /// An answer came to its end.
    fn answered(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        let Some(connection) = &mut self.connection else { return };
        let Some(asked) = connection.asked.take() else { return };
        connection.answered += 1;
        // To ask again at once would bring the same again.
        let is_unreached = asked.end.or(self.length).is_some_and(|end| self.at < end);
        if is_unreached || asked.skip.is_some_and(|unwanted| unwanted > 0) {
            return self.fail(now, "the answer ended before its bytes did".into(), io, events);
        }
        // Who sends all without saying how much it is has said it now.
        if asked.end.is_none() {
            self.length = self.length.or(Some(self.at));
        }
        if self.length.is_some_and(|length| self.at >= length) {
            self.over = Some(Over::Done);
        }
        if asked.is_last || self.over.is_some() {
            io.close(connection.channel);
            self.connection = None;
        }
    }

    /// The server has finished, everything that it sent was read, and an answer is still waited for.
    fn finished(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        let Some(connection) = &mut self.connection else { return };
        match connection.reader.finish() {
            Some(Ok(_)) => self.answered(now, io, events),
            Some(Err(fault)) => self.fail(now, fault.to_string(), io, events),
            // It had closed before the request came: that is to be expected of a connection that was in use before
            // (RFC 9112 section 9.3.1).
            None if connection.answered > 0 => {
                io.close(connection.channel);
                self.connection = None;
            }
            None => self.fail(now, "the server closed the connection without an answer".into(), io, events),
        }
    }

    /// A connection is of no more use; another is tried later, if that is not the last time.
    fn fail(&mut self, now: Instant, why: String, io: &mut dyn Io, events: &mut Outbox) {
        self.close(io);
        self.failures += 1;
        let what = format!("{why}; {} B of the file came before", self.at);
        events.say(now, "http_failure", f64::from(self.failures), "1", what);
        if self.failures >= self.settings.tries {
            let tries = self.settings.tries;
            self.over = Some(Over::Failed(format!("{why}; {tries} connections failed one after another")));
            return;
        }
        let wait = self.settings.backoff * (1 << (self.failures - 1).min(20));
        self.again = Some(now + wait.min(LONGEST_BACKOFF));
    }

    fn fail_for_good(&mut self, why: String, io: &mut dyn Io) {
        self.close(io);
        self.over = Some(Over::Failed(why));
    }

    /// Lets go of the connection at once.
    pub fn close(&mut self, io: &mut dyn Io) {
        if let Some(connection) = self.connection.take() {
            io.abort(connection.channel);
        }
    }

    fn is_of(&self, channel: ChannelId) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.channel == channel)
    }

    /// The connection is there.
    pub fn opened(&mut self, now: Instant, channel: ChannelId) {
        if let Some(connection) = self.connection.as_mut().filter(|one| one.channel == channel) {
            (connection.is_open, connection.heard) = (true, now);
        }
    }

    /// The connection takes bytes again.
    pub fn writable(&mut self, channel: ChannelId, io: &mut dyn Io) {
        if self.is_of(channel) {
            self.flush(io);
        }
    }

    /// The connection could not be made.
    pub fn refused(
        &mut self,
        now: Instant,
        channel: ChannelId,
        why: String,
        io: &mut dyn Io,
        events: &mut Outbox,
    ) {
        if self.is_of(channel) {
            self.connection = None;
            self.fail(now, why, io, events);
        }
    }

    /// The connection has closed.
    pub fn closed(
        &mut self,
        now: Instant,
        channel: ChannelId,
        why: CloseReason,
        io: &mut dyn Io,
        events: &mut Outbox,
    ) {
        let Some(connection) = self.connection.as_mut().filter(|one| one.channel == channel) else {
            if why == CloseReason::Finished {
                io.close(channel);
            }
            return;
        };
        let what = match why {
            CloseReason::Finished => {
                connection.finished = true;
                return;
            }
            CloseReason::Reset => "the connection was reset",
            CloseReason::TimedOut => "the other end answers no more",
        };
        let is_used = connection.asked.is_some();
        self.connection = None;
        if is_used {
            self.fail(now, what.into(), io, events);
        }
    }

    /// Time that passed while nothing was wanted does not count.
    pub fn go_on(&mut self, now: Instant) {
        if let Some(connection) = &mut self.connection {
            connection.heard = now;
        }
    }

    /// When nothing may come any more.
    fn deadline(&self) -> Option<Instant> {
        let waits = |one: &&Connection| one.asked.is_some() || !one.is_open;
        Some(self.connection.as_ref().filter(waits)?.heard + self.settings.give_up_after)
    }

    /// Gives the connection up if nothing came for too long.
    pub fn look(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        if self.deadline().is_some_and(|at| at <= now) {
            let patience = self.settings.give_up_after.as_secs_f64();
            self.fail(now, format!("nothing was heard for {patience} s"), io, events);
        }
    }

    /// When [`Fetch::look`] and [`Fetch::next`] have something to do, if no input comes.
    pub fn next_event(&self) -> Option<Instant> {
        if self.over.is_some() {
            return None;
        }
        self.again.into_iter().chain(self.deadline()).min()
    }
}
