//! The server's end of HTTP: a connection with the media as its response, and others beside it for other requests.

use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{HttpItem, Reader, Request};
use streamgauge_wire::wmsp::{PacketContent, WmspPacket, reasons};

use super::Shared;
use super::session::WmSession;
use crate::app::{ChannelId, CloseReason, Input, Io};
use crate::rtsp::Backlog;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 16 * 1024;

/// Connections of a player at a time; of more, the first is closed.
const MOST_CONNECTIONS: usize = 4;

/// A connection.
pub struct HttpConnection {
    reader: Reader,
    pub backlog: Backlog,
    /// A head with a body that is still to be skipped.
    asked: Option<Request>,
    /// Whether its response is the media.
    pub plays: bool,
    /// Whether it ends behind the waiting data.
    pub is_last: bool,
}

/// Those of a player, and its one session.
#[derive(Default)]
pub struct HttpConnections {
    pub connections: BTreeMap<ChannelId, HttpConnection>,
    /// `client-id`.
    pub client_id: Option<u32>,
    pub session: Option<WmSession>,
    /// Time of the client's last sign of life.
    heard: Instant,
}

impl HttpConnections {
    /// Accepts a connection.
    pub fn accept(&mut self, now: Instant, channel: ChannelId, io: &mut dyn Io) {
        if self.connections.len() >= MOST_CONNECTIONS
            && let Some((_, mut first)) = self.connections.pop_first()
        {
            self.over(first.plays);
            first.backlog.close(io);
        }
        let mut backlog = Backlog::new(channel);
        backlog.open();
        let reader = Reader::of_requests();
        let connection = HttpConnection { reader, backlog, asked: None, plays: false, is_last: false };
        self.connections.insert(channel, connection);
        self.heard = now;
    }

    /// Returns whether part of a request has arrived on one of them, and the rest of it is awaited.
    pub fn await_rest(&self) -> bool {
        self.connections.values().any(|connection| !connection.reader.is_between_messages())
    }

    /// Adds data that arrived on a connection before.
    pub fn push(&mut self, channel: ChannelId, came: Chunk) {
        self.connections.get_mut(&channel).into_iter().for_each(|one| one.reader.push(came.clone()));
    }

    /// Handles their inputs; they ignore inputs of others.
    pub fn handle(&mut self, now: Instant, input: &Input<'_>, shared: &mut Shared, io: &mut dyn Io) {
        match *input {
            Input::Readable(channel) => self.read(now, channel, shared, io),
            Input::Writable(channel) => {
                let Some(connection) = self.connections.get_mut(&channel) else { return };
                connection.backlog.flush(io);
                if connection.plays && connection.backlog.is_clear() {
                    self.session.iter_mut().for_each(|session| session.unblock(now));
                }
                self.read(now, channel, shared, io);
            }
            Input::Closed(channel, CloseReason::Finished) => {
                // A player that plays continues to read, or is closed and shows that by a reset.
                let goes_on = |connection: &&mut HttpConnection| !connection.backlog.is_clear();
                match self.connections.get_mut(&channel).filter(goes_on) {
                    Some(connection) => connection.is_last |= !connection.plays,
                    None => self.close(channel, io),
                }
            }
            Input::Closed(channel, _) => {
                if let Some(connection) = self.connections.remove(&channel) {
                    self.over(connection.plays);
                }
            }
            Input::Stop => {
                let all: Vec<ChannelId> = self.connections.keys().copied().collect();
                all.into_iter().for_each(|channel| self.close(channel, io));
            }
            _ => {}
        }
    }

    fn close(&mut self, channel: ChannelId, io: &mut dyn Io) {
        if let Some(mut connection) = self.connections.remove(&channel) {
            self.over(connection.plays);
            connection.backlog.close(io);
        }
    }

    /// Removes a connection, and the session with the one that played.
    fn over(&mut self, played: bool) {
        if played {
            self.session = None;
        }
    }

    fn read(&mut self, now: Instant, channel: ChannelId, shared: &mut Shared, io: &mut dyn Io) {
        while let Some(connection) = self.connections.get_mut(&channel) {
            if connection.backlog.is_full() || connection.is_last {
                return;
            }
            match connection.reader.next() {
                Some(Ok(HttpItem::Request(request))) => connection.asked = Some(request),
                Some(Ok(HttpItem::End)) => {
                    let Some(request) = connection.asked.take() else { continue };
                    self.answer(now, channel, &request, shared, io);
                }
                // Players' reports about themselves are ignored here.
                Some(Ok(HttpItem::Body(_) | HttpItem::Response(_))) => {}
                Some(Err(fault)) => self.refuse(channel, fault.status(), io),
                None => match io.read(channel, READ_BYTES) {
                    Some(chunk) => {
                        self.heard = now;
                        connection.reader.push(chunk);
                    }
                    None => return,
                },
            }
        }
    }

    fn silence_ends(&self, timeout: Duration) -> Option<Instant> {
        (!self.connections.is_empty()).then(|| self.heard + timeout)
    }

    /// Returns when it is next due.
    pub fn wake(&self, timeout: Duration) -> Option<Instant> {
        let session = self.session.as_ref().and_then(WmSession::wake);
        self.silence_ends(timeout).into_iter().chain(session).min()
    }

    /// Does all due work. Returns whether its client has been silent for too long.
    pub fn work(&mut self, now: Instant, shared: &mut Shared, io: &mut dyn Io) -> bool {
        if self.silence_ends(shared.settings.timeout).is_some_and(|at| at <= now) {
            shared.say_silence(now, self.heard);
            let all: Vec<ChannelId> = self.connections.keys().copied().collect();
            all.into_iter().for_each(|channel| self.close(channel, io));
            return true;
        }
        let playing = self.connections.values_mut().find(|connection| connection.plays);
        if let (Some(connection), Some(session)) = (playing, &mut self.session) {
            let taken = connection.backlog.taken();
            session.work(now, &mut shared.line(&mut connection.backlog, io));
            if session.takes_end() {
                let end = WmspPacket::from(PacketContent::End(reasons::DONE));
                connection.backlog.push(end.write(), io);
                connection.is_last = true;
            }
            if connection.backlog.taken() != taken {
                // Media that the connection accepts is a sign of life.
                self.heard = now;
            }
        }
        let is_over = |one: &HttpConnection| one.is_last && one.backlog.is_clear();
        let over: Vec<ChannelId> =
            self.connections.iter().filter(|(_, one)| is_over(one)).map(|(channel, _)| *channel).collect();
        over.into_iter().for_each(|channel| self.close(channel, io));
        false
    }
}
