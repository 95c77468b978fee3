//! HTTP on one side, names on the other: any player plays over content-centric networking.
//!
//! `GET /path` becomes Interests for the segments of `/prefix/path`, and their content in order becomes the
//! answer's body. Requests of one connection are answered one after another, those of several at once.

mod connection;

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Duration, Instant, RandomStream};
use streamgauge_wire::http::Request;
use streamgauge_wire::ndn::{Component, Data, Interest, NackReason, Name};

use self::connection::{Connection, Step, Transfer};
use super::consumer::window::Window;
use super::consumer::{Fetch, FetchReport};
use super::names::{metadata_of, object_of, segment_of};
use super::spec::CcnSettings;
use crate::app::{ChannelId, CloseReason, Io};
use crate::http::{preflight, say_client_data};
use crate::outbox::Outbox;
use crate::standalone::Answered;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 16 << 10;

/// Requests of one connection that wait for their answers; behind them nothing is read.
const MOST_WAITING: usize = 16;

/// Bytes of a body that wait to be written; with more no further segment is taken, and the window stops.
const MOST_OUTGOING: usize = 64 << 10;

/// How long a player may take to close a connection that has been answered to its end.
const LINGERS: Duration = Duration::from_secs(2);

/// Least interval of the proxy's reports of a window.
const WINDOW_EVENTS: Duration = Duration::from_millis(100);

/// Answers HTTP with the objects that its forwarder fetches.
pub struct Proxy {
    prefix: Name,
    settings: CcnSettings,
    seed: u64,
    connections: BTreeMap<ChannelId, Connection>,
    /// Interests that are to go out.
    interests: VecDeque<Interest>,
    nonces: RandomStream,
    last_window: Option<Instant>,
    /// Cost of all answers.
    asked: FetchReport,
    /// Result of each request, if results are kept.
    answered: Option<VecDeque<Answered>>,
    /// Connections that ask for nothing are closed, the first of them then.
    is_impatient: bool,
    patience_ends: Option<Instant>,
}

impl Proxy {
    /// Returns a proxy of the objects under `prefix`. Nonces are drawn from `seed` and the flow `owner`.
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
            answered: None,
            is_impatient: false,
            patience_ends: None,
        }
    }

    /// Keeps the result of each request until it is taken.
    pub fn keep_answered(&mut self) {
        self.answered = Some(VecDeque::new());
    }

    /// Closes from now on connections that ask for nothing, or too slowly, as strangers' may.
    pub fn lose_patience(&mut self) {
        self.is_impatient = true;
    }

    /// Returns the result of the next request.
    pub fn next_answered(&mut self) -> Option<Answered> {
        self.answered.as_mut()?.pop_front()
    }

    fn note(&mut self, now: Instant, transfer: &Transfer, whole: bool) {
        if let Some(answered) = &mut self.answered {
            answered.push_back(transfer.answered(now, whole));
        }
    }

    /// Returns the cost of all objects so far.
    pub fn asked(&self) -> FetchReport {
        self.asked
    }

    /// Returns the next Interest for the forwarder.
    pub fn next_interest(&mut self) -> Option<Interest> {
        self.interests.pop_front()
    }

    /// Returns whether a stream is one of its connections.
    pub fn has(&self, channel: ChannelId) -> bool {
        self.connections.contains_key(&channel)
    }

    /// Adds the connection of a player.
    pub fn accepted(&mut self, channel: ChannelId) {
        let window = Window::new(&self.settings.window(), self.seed);
        self.connections.insert(channel, Connection::new(window));
    }

    /// Handles the close of a player's stream.
    pub fn closed(&mut self, now: Instant, channel: ChannelId, why: CloseReason) {
        match why {
            CloseReason::Finished => {
                if let Some(connection) = self.connections.get_mut(&channel) {
                    connection.no_more = true;
                    if connection.lingers_until.is_some() {
                        self.connections.remove(&channel);
                    }
                }
            }
            CloseReason::Reset | CloseReason::TimedOut => {
                let gone = self.connections.remove(&channel);
                if let Some(transfer) = gone.and_then(|connection| connection.transfer) {
                    self.note(now, &transfer, false);
                }
            }
        }
    }

    /// Refuses the requests that are being answered: there is no producer to ask.
    pub fn nobody_there(&mut self, why: &str) {
        for connection in self.connections.values_mut() {
            if connection.transfer.as_ref().is_some_and(|transfer| transfer.step != Step::Answered) {
                connection.refuse(502, why);
            }
        }
    }

    /// Ends all connections.
    pub fn stop(&mut self, io: &mut dyn Io) {
        for channel in std::mem::take(&mut self.connections).into_keys() {
            io.abort(channel);
        }
    }

    /// Returns when something expires, or an Interest may go.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let asks = |one: &Connection| one.transfer.as_ref()?.fetch.deadline(now, &one.window);
        let own = self.connections.values().filter_map(|one| one.lingers_until.or_else(|| asks(one)));
        own.chain(self.patience_ends).min()
    }

    /// Passes a Data of the forwarder on to every connection that asked for it.
    pub fn data(&mut self, now: Instant, data: &Data) {
        for connection in self.connections.values_mut() {
            let Some(transfer) = &mut connection.transfer else { continue };
            if !data.name.starts_with(&transfer.name) || transfer.step == Step::Answered {
                continue;
            }
            if data.is_no() {
                // For an object of unknown length more segments are requested than there are.
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

    /// Handles an Interest that the network refused. For congestion and copies the consumer's own timer is
    /// the remedy.
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

    /// Advances each connection as far as possible now.
    pub(super) fn work(&mut self, now: Instant, io: &mut dyn Io, events: &mut Outbox) {
        let mut connections = std::mem::take(&mut self.connections);
        self.patience_ends = None;
        connections.retain(|channel, connection| {
            self.go_on(now, *channel, connection, io, events) && self.waits_for(now, *channel, connection, io)
        });
        self.connections = connections;
    }

    /// Returns false where the connection is over.
    fn go_on(
        &mut self,
        now: Instant,
        channel: ChannelId,
        connection: &mut Connection,
        io: &mut dyn Io,
        events: &mut Outbox,
    ) -> bool {
        if let Some(until) = connection.lingers_until {
            connection.drain(channel, io);
            if until <= now {
                io.abort(channel);
            }
            return until > now;
        }
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
                if let Some(transfer) = connection.transfer.take() {
                    self.note(now, &transfer, false);
                }
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
            if connection.no_more {
                return false;
            }
            connection.drain(channel, io);
            connection.lingers_until = Some(now + LINGERS);
        }
        true
    }

    /// Returns false where the connection is closed because its request, or taking the answer, takes too
    /// long.
    fn waits_for(
        &mut self,
        now: Instant,
        channel: ChannelId,
        connection: &mut Connection,
        io: &mut dyn Io,
    ) -> bool {
        let Some(ends) = connection.patience_ends(now).filter(|_| self.is_impatient) else { return true };
        if ends <= now {
            io.abort(channel);
            if let Some(transfer) = connection.transfer.take() {
                self.note(now, &transfer, false);
            }
            return false;
        }
        self.patience_ends = Some(self.patience_ends.map_or(ends, |other| other.min(ends)));
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
        let is_preflight = request.method == "OPTIONS";
        let fetch = Fetch::new(0, until, self.settings.interest_tries);
        connection.transfer = Some(Transfer::new(now, request, step, name, fetch));
        if is_preflight {
            return connection.only(preflight().head);
        }
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

    /// Frees the connection for the next request, where an answer is complete.
    fn end(&mut self, now: Instant, connection: &mut Connection, events: &mut Outbox) -> bool {
        let is_done = connection.transfer.as_ref().is_some_and(|one| one.step == Step::Answered);
        if !is_done || !connection.outgoing.is_empty() {
            return false;
        }
        let Some(transfer) = connection.transfer.take() else { return false };
        let FetchReport { interests, expired, bytes } = transfer.asked();
        let reason = format!(
            "{} {}: {interests} Interests, {expired} expired, {:.3} s",
            transfer.request.method,
            transfer.name,
            transfer.took(now).as_secs_f64()
        );
        self.asked.bytes += bytes;
        events.say(now, "object_fetched", bytes as f64, "B", reason);
        self.note(now, &transfer, true);
        true
    }
}
