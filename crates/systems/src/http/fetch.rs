//! Fetches a file's bytes in order: connections, requests, answers, and the reaction to failures.

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{
    ByteRange, ContentRange, Decoder, EntityTag, Fault, HttpItem, Ranges, Reader, Request, Response,
};

use super::redirect::Hosts;
use super::source::{Destination, Source};
use super::spec::HttpPlayerSettings;
use crate::app::{ChannelId, CloseReason, Io};
use crate::outbox::Outbox;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 64 << 10;

/// The longest wait before another connection.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// The result of a fetch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Over {
    /// All bytes were received.
    Done,
    /// No more will come.
    Failed(String),
}

/// One file on its way.
pub struct Fetch {
    /// The place of the file after permanent redirections.
    there: Destination,
    hosts: Hosts,
    asks_identity: bool,
    /// URLs of the same place as the next request, and that place.
    before: Vec<String>,
    next: Option<Destination>,
    /// Its body is coded, so that its length and its ranges are those of the coded bytes.
    is_coded: bool,
    /// Another attempt would bring the same.
    is_refused: bool,
    retry_after: Option<Duration>,
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
    there: Destination,
    is_open: bool,
    reader: Reader,
    /// The request that has not been completed.
    asked: Option<Asked>,
    /// The part of a request that could not be written yet.
    outgoing: Chunk,
    /// The server has finished, which is of no account before everything is read.
    finished: bool,
    /// Number of complete answers.
    answered: u32,
    /// Time of the last arrival, or request.
    heard: Instant,
}

struct Asked {
    /// Its first byte, and the byte before which it ends if that was declared.
    first: u64,
    end: Option<u64>,
    /// The answer's head has arrived; this many bytes of its body are skipped.
    skip: Option<u64>,
    /// The connection ends with the answer.
    is_last: bool,
    /// Where the answer leads.
    redirected: Option<Destination>,
    /// Undoes the body's coding.
    decoder: Option<Decoder>,
}

/// Why an answer is of no use.
enum Useless {
    /// For now.
    Now(String),
    /// For good.
    ForGood(String),
}

impl Fetch {
    /// Returns the fetch of `source`; nothing happens before [`Fetch::next`].
    pub fn new(source: Source, settings: HttpPlayerSettings) -> Self {
        Fetch {
            there: source.destination(),
            hosts: Hosts::of(&source),
            asks_identity: source.asks_identity,
            before: Vec::new(),
            next: None,
            is_coded: false,
            is_refused: false,
            retry_after: None,
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

    /// Allows further hosts.
    pub fn allow(&mut self, hosts: &[String]) {
        self.hosts.allow(hosts);
    }

    /// Returns how it ended, once it has.
    pub fn over(&self) -> Option<&Over> {
        self.over.as_ref()
    }

    /// Returns the first byte that did not come yet.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns the status of the last answer that brought nothing of the file.
    pub fn refusal(&self) -> Option<u16> {
        self.refusal
    }

    /// Returns whether it failed in a way that another attempt would not mend.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Returns the bytes of the whole, once they are known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Returns the server's name for its type.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Returns when the first request was written.
    pub fn asked_at(&self) -> Option<Instant> {
        self.asked_at
    }

    /// Returns the next bytes of the file. Opens connections and asks where nothing is on its way.
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
                let there = self.next.as_ref().unwrap_or(&self.there);
                if connection.finished || !connection.there.is_beside(there) {
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
        let there = self.next.clone().unwrap_or_else(|| self.there.clone());
        let channel = self.hosts.open(&there, io);
        self.connection = Some(Connection {
            channel,
            there,
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
        let there = self.next.as_ref().unwrap_or(&self.there);
        let mut request = match Request::new("GET", &there.target, &there.host()) {
            Ok(request) => request,
            Err(wrong) => return self.fail_for_good(wrong.to_string(), io),
        };
        if self.asks_identity {
            // Without it a server may choose any coding (RFC 9110 section 12.5.3).
            request.headers.add("Accept-Encoding", "identity");
        }
        // The decoder begins anew with each answer: a coded file is requested whole.
        let begins = if self.is_coded { 0 } else { self.at };
        let end = self.settings.request.filter(|_| !self.is_coded).map(|bytes| {
            let end = self.at.saturating_add(bytes);
            self.length.map_or(end, |length| end.min(length))
        });
        if begins > 0 || end.is_some() {
            let range = Ranges(vec![ByteRange::From(begins, end.map(|end| end - 1))]);
            request.headers.add("Range", range);
            if let Some(tag) = self.tag.as_ref().filter(|tag| begins > 0 && !tag.weak) {
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
        connection.asked =
            Some(Asked { first: begins, end, skip: None, is_last: false, redirected: None, decoder: None });
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

    /// Processes a part of an answer; returns its bytes, if they are the next of the file.
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
                Ok(None) => {}
                Ok(Some((status, to))) => events.say(now, "http_redirect", f64::from(status), "1", to),
                Err(Useless::Now(why)) => self.fail(now, why, io, events),
                Err(Useless::ForGood(why)) => self.fail_for_good(why, io),
            },
            Ok(HttpItem::Body(mut chunk)) => {
                let asked = self.connection.as_mut()?.asked.as_mut()?;
                if asked.redirected.is_some() {
                    return None;
                }
                if let Some(decoder) = &mut asked.decoder {
                    let mut made = Vec::new();
                    if let Err(fault) = decoder.push(chunk.head(), |part| made.extend(part)) {
                        self.fail_for_good(format!("the answer to GET {}: {fault}", self.there.target), io);
                        return None;
                    }
                    chunk = Chunk::bytes(made);
                }
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
                let asked = self.connection.as_ref()?.asked.as_ref()?;
                if asked.skip.is_some() || asked.redirected.is_some() {
                    self.answered(now, io, events);
                }
            }
            Ok(HttpItem::Request(_)) => {}
            Err(fault) => self.fail_for_good(format!("the server's answer cannot be read: {fault}"), io),
        }
        None
    }

    /// Processes the head of an answer; returns its status and its target, if it is a redirection.
    fn begin(&mut self, response: &Response) -> Result<Option<(u16, String)>, Useless> {
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let Some(asked) = &mut connection.asked else { return Ok(None) };
        let for_good = |why: String| Err(Useless::ForGood(why));
        let there = self.next.as_ref().unwrap_or(&self.there);
        let answer = format!("{} {}", response.status, response.reason);
        let answered = format!("the server answered {} to GET {}", answer.trim_end(), there.target);
        asked.is_last = !self.settings.persistent || !response.keeps_alive();
        self.retry_after = None;
        match self.hosts.follow(response, there, &self.before) {
            Some(Ok(to)) => {
                let url = to.url();
                asked.redirected = Some(to);
                return Ok(Some((response.status, url)));
            }
            Some(Err(why)) => {
                self.refusal = Some(response.status);
                return for_good(why);
            }
            None => {}
        }
        asked.decoder = match Decoder::of(&response.headers) {
            Ok(decoder) => decoder,
            Err(fault) => return for_good(format!("the answer to GET {} has {fault}", there.target)),
        };
        self.is_coded |= asked.decoder.is_some();
        self.refusal = Some(response.status).filter(|status| !matches!(status, 200 | 206));
        let body = connection.reader.body_left();
        let length = match response.status {
            200 => {
                // It may send the whole for any request (RFC 9110 section 14.2).
                asked.skip = Some(self.at);
                (asked.first, asked.end) = (0, None);
                // How long it is when its coding is undone is known at its end.
                body.filter(|_| asked.decoder.is_none())
            }
            206 if asked.decoder.is_some() => {
                return for_good(format!(
                    "{answered} with a part of a coded body, which cannot be read alone"
                ));
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
            408 | 429 | 500 | 502 | 503 | 504 => {
                let wait = response.headers.get("Retry-After").and_then(|wait| wait.trim().parse().ok());
                self.retry_after = wait.map(Duration::from_secs);
                return Err(Useless::Now(answered));
            }
            _ => return for_good(answered),
        };
        let tag = response.headers.get("ETag").and_then(|tag| tag.parse::<EntityTag>().ok());
        let changed = |what: &str| for_good(format!("the file changed while it was fetched: {what}"));
        // A weak tag is no proof that these bytes join the earlier ones (RFC 9110 section 15.3.7.3).
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
        Ok(None)
    }

    /// Processes the end of an answer.
    fn answered(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        let Some(connection) = &mut self.connection else { return };
        let Some(mut asked) = connection.asked.take() else { return };
        connection.answered += 1;
        if let Some(to) = asked.redirected {
            let from = self.next.take().unwrap_or_else(|| self.there.clone());
            self.before.push(from.url());
            self.next = Some(to);
            if asked.is_last {
                io.close(connection.channel);
                self.connection = None;
            }
            return;
        }
        self.before.clear();
        if self.next.take().is_some() {
            // A permanent redirection holds for the requests that follow.
            let there = self.there.url();
            self.there = self.hosts.find(&there).unwrap_or_else(|_| self.there.clone());
        }
        if let Some(Err(fault)) = asked.decoder.as_mut().map(Decoder::finish) {
            return self.fail(now, fault.to_string(), io, events);
        }
        // To ask again at once would bring the same again.
        let is_unreached = asked.end.or(self.length).is_some_and(|end| self.at < end);
        if is_unreached || asked.skip.is_some_and(|unwanted| unwanted > 0) {
            return self.fail(now, "the answer ended before its bytes did".into(), io, events);
        }
        // A server that sends everything without a length has revealed it now.
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

    /// Handles the end of a server's data, with everything read and an answer still awaited.
    fn finished(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        let Some(connection) = &mut self.connection else { return };
        match connection.reader.finish() {
            Some(Ok(_)) => self.answered(now, io, events),
            Some(Err(fault)) => self.fail(now, fault.to_string(), io, events),
            // It had closed before the request arrived: that is to be expected of a connection that was in
            // use before (RFC 9112 section 9.3.1).
            None if connection.answered > 0 => {
                io.close(connection.channel);
                self.connection = None;
            }
            None => self.fail(now, "the server closed the connection without an answer".into(), io, events),
        }
    }

    /// Gives a connection up; another is tried later, if that is not the last time.
    fn fail(&mut self, now: Instant, why: String, io: &mut dyn Io, events: &mut Outbox) {
        self.close(io);
        // Another attempt begins where the first one did.
        (self.next, self.before) = (None, Vec::new());
        self.failures += 1;
        let what = format!("{why}; {} B of the file came before", self.at);
        events.say(now, "http_failure", f64::from(self.failures), "1", what);
        if self.failures >= self.settings.tries {
            let tries = self.settings.tries;
            self.over = Some(Over::Failed(format!("{why}; {tries} connections failed one after another")));
            return;
        }
        let own = self.settings.backoff * (1 << (self.failures - 1).min(20));
        let wait = own.max(self.retry_after.take().unwrap_or(Duration::ZERO));
        self.again = Some(now + wait.min(LONGEST_BACKOFF));
    }

    fn fail_for_good(&mut self, why: String, io: &mut dyn Io) {
        self.close(io);
        self.is_refused = true;
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

    /// Notes that the connection is open.
    pub fn opened(&mut self, now: Instant, channel: ChannelId) {
        if let Some(connection) = self.connection.as_mut().filter(|one| one.channel == channel) {
            (connection.is_open, connection.heard) = (true, now);
        }
    }

    /// Continues when the connection accepts bytes again.
    pub fn writable(&mut self, channel: ChannelId, io: &mut dyn Io) {
        if self.is_of(channel) {
            self.flush(io);
        }
    }

    /// Handles a connection that could not be made.
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

    /// Handles a connection that has closed.
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

    /// Excludes the time that passed while nothing was wanted.
    pub fn go_on(&mut self, now: Instant) {
        if let Some(connection) = &mut self.connection {
            connection.heard = now;
        }
    }

    /// Returns when nothing may come any more.
    fn deadline(&self) -> Option<Instant> {
        let waits = |one: &&Connection| one.asked.is_some() || !one.is_open;
        Some(self.connection.as_ref().filter(waits)?.heard + self.settings.give_up_after)
    }

    /// Gives the connection up after too long a silence.
    pub fn look(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        if self.deadline().is_some_and(|at| at <= now) {
            let patience = self.settings.give_up_after.as_secs_f64();
            self.fail(now, format!("nothing was heard for {patience} s"), io, events);
        }
    }

    /// Returns when [`Fetch::look`] and [`Fetch::next`] are due, without any input.
    pub fn next_event(&self) -> Option<Instant> {
        if self.over.is_some() {
            return None;
        }
        self.again.into_iter().chain(self.deadline()).min()
    }
}
