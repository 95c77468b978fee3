//! One connection to the server and what is asked for on it, in order; another one when it is gone.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{
    ByteRange, ContentRange, HttpItem, Ranges, Reader, Request, Response, Unwritable,
};

use super::settings::DashPlayerSettings;
use crate::app::{ChannelId, CloseReason, Io};
use crate::carrier::Carrier;
use crate::http::Source;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 64 << 10;

/// What is asked for: a target at the server, of which some bytes or all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asking {
    /// Path and query.
    pub target: String,
    /// First and last byte.
    pub range: Option<(u64, u64)>,
    /// Header fields beside those of every request.
    pub headers: Vec<(&'static str, String)>,
}

/// What became of the request at the front.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// Its head came.
    Head {
        /// Bytes to come, if it says so.
        length: Option<u64>,
        /// When the server made it, s since the Unix epoch, if it says so.
        date: Option<u64>,
    },
    /// Bytes of its body.
    Body(Chunk),
    /// All came. It is at the front no more.
    Done,
    /// Nothing more of it will come. It, and what was asked for behind it, is asked no more.
    Failed(Failure),
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// In words.
    pub why: String,
    /// What the server answered, where that was the reason.
    pub status: Option<u16>,
}

/// A connection, made when there is something to ask for.
pub struct Requester {
    host: String,
    carrier: Carrier,
    persistent: bool,
    patience: Duration,
    longest: Duration,
    connection: Option<Connection>,
    asked: VecDeque<Asked>,
}

struct Connection {
    channel: ChannelId,
    is_open: bool,
    reader: Reader,
    outgoing: Chunk,
    finished: bool,
    answered: u32,
    /// When something last came, or was asked for.
    heard: Instant,
}

struct Asked {
    request: Request,
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
            host: source.host.clone(),
            carrier: source.carrier.clone(),
            persistent: settings.persistent,
            patience: settings.give_up_after,
            longest: settings.longest_request,
            connection: None,
            asked: VecDeque::new(),
        }
    }

    /// Asks for it, behind what is asked for already.
    ///
    /// # Errors
    ///
    /// What of it no request can have.
    pub fn ask(&mut self, now: Instant, asking: Asking, io: &mut dyn Io) -> Result<(), Unwritable> {
        let mut request = Request::new("GET", &asking.target, &self.host)?;
        if let Some((first, last)) = asking.range {
            request.headers.add("Range", Ranges(vec![ByteRange::From(first, Some(last))]));
        }
        for (name, value) in &asking.headers {
            request.headers.add(name, value);
        }
        if !self.persistent {
            request.headers.add("Connection", "close");
        }
        let range = asking.range;
        self.asked.push_back(Asked { request, range, written: None, begun: false, is_last: false });
        self.write(now, io);
        Ok(())
    }

    /// When the request at the front was written.
    pub fn front_written(&self) -> Option<Instant> {
        self.asked.front()?.written
    }

    /// The next thing that came.
    pub fn next(&mut self, now: Instant, io: &mut dyn Io) -> Option<Answer> {
        loop {
            let front = self.asked.front()?;
            let Some(connection) = &mut self.connection else {
                self.write(now, io);
                return None;
            };
            if front.written.is_none() {
                if connection.is_open && connection.finished {
                    self.let_go(io);
                    continue;
                }
                self.write(now, io);
                return None;
            }
            if let Some(item) = connection.reader.next() {
                match item {
                    Ok(HttpItem::Response(response)) if response.is_interim() => {}
                    Ok(HttpItem::Response(response)) => return Some(self.begin(&response, io)),
                    Ok(HttpItem::Body(chunk)) if !chunk.is_empty() => return Some(Answer::Body(chunk)),
                    Ok(HttpItem::End) if self.asked.front().is_some_and(|front| front.begun) => {
                        return Some(self.done(io));
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

    /// Writes what may be written: the front, and behind it what is asked for while the front is on its way.
    fn write(&mut self, now: Instant, io: &mut dyn Io) {
        if self.asked.is_empty() {
            return;
        }
        let Some(connection) = &mut self.connection else {
            let channel = io.open(&self.carrier);
            let (reader, outgoing) = (Reader::of_responses(), Chunk::default());
            self.connection = Some(Connection {
                channel,
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
            if place > 0 && !self.persistent {
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
        let left = connection.reader.body_left();
        let wrong = match (response.status, front.range) {
            (200, None) => None,
            (206, Some((first, last))) => {
                match response.headers.get("Content-Range").map(str::parse::<ContentRange>) {
                    Some(Ok(ContentRange::Part { first: from, last: to, .. }))
                        if from == first && to <= last && left.is_none_or(|left| left == to - from + 1) =>
                    {
                        None
                    }
                    _ => Some("with other bytes than were asked for"),
                }
            }
            (200, Some(_)) => Some("with the whole, of which a part was asked for"),
            _ => Some(""),
        };
        front.begun = true;
        let Some(wrong) = wrong else {
            let date = response.headers.get("Date").and_then(|date| httpdate::parse_http_date(date).ok());
            let date = date.and_then(|date| Some(date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()));
            return Answer::Head { length: left, date };
        };
        let said = format!("{} {} to GET {}", response.status, response.reason, front.request.target);
        let why = format!("the server answered {} {wrong}", said.trim()).trim_end().to_owned();
        let status = response.status;
        self.fail(why, Some(status), io)
    }

    /// The answer to the front came to its end.
    fn done(&mut self, io: &mut dyn Io) -> Answer {
        let front = self.asked.pop_front();
        if let Some(connection) = &mut self.connection {
            connection.answered += 1;
        }
        if front.is_some_and(|front| front.is_last) {
            self.let_go(io);
        }
        Answer::Done
    }

    /// The server has finished, and everything that it sent was read. `None`: it is asked again on another connection.
    fn finished(&mut self, io: &mut dyn Io) -> Option<Answer> {
        let connection = self.connection.as_mut()?;
        match connection.reader.finish() {
            Some(Ok(_)) => Some(self.done(io)),
            Some(Err(fault)) => Some(self.fail(fault.to_string(), None, io)),
            // It had closed before the request came (RFC 9112 section 9.3.1).
            None if connection.answered > 0 => {
                self.let_go(io);
                None
            }
            None => Some(self.fail("the server closed the connection without an answer".into(), None, io)),
        }
    }

    /// The connection is done with; what was written on it and not answered is asked anew.
    fn let_go(&mut self, io: &mut dyn Io) {
        if let Some(connection) = self.connection.take() {
            io.close(connection.channel);
        }
        self.asked.iter_mut().for_each(|asked| (asked.written, asked.begun) = (None, false));
    }

    fn fail(&mut self, why: String, status: Option<u16>, io: &mut dyn Io) -> Answer {
        self.cancel(io);
        Answer::Failed(Failure { why, status })
    }

    /// Gives up all that is asked for, and with it the connection: HTTP/1.1 has no other way.
    pub fn cancel(&mut self, io: &mut dyn Io) {
        self.asked.clear();
        if let Some(connection) = self.connection.take() {
            io.abort(connection.channel);
        }
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
        was_asked.then_some(Failure { why, status: None })
    }

    /// The connection has closed; why what was asked for failed, if something was.
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
        was_asked.then(|| Failure { why: what.into(), status: None })
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

    /// Gives up what has taken too long.
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
        Some(Failure { why, status: None })
    }
}
