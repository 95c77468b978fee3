//! The server's end of one MMS connection.

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::mms::{
    self, EndOfStream, MmsItem, MmsMessage, Reader, ResendRequest, StreamSwitch, TcpHeader,
};

use super::super::object::Object;
use super::Shared;
use super::session::{Way, WmSession};
use crate::app::{ChannelId, Input, Io};
use crate::rtsp::Backlog;

/// Bytes read from the connection at once.
const READ_BYTES: usize = 16 * 1024;

/// `openFileId` of the one file that a player has open.
pub const FILE: u32 = 1;

/// A connection, its one file, and the way of its media.
pub struct MmsConnection {
    channel: ChannelId,
    /// Where datagrams may be sent from.
    pub datagrams: Option<ChannelId>,
    reader: Reader,
    pub backlog: Backlog,
    /// Time of the client's last sign of life, and whether it was pinged since.
    heard: Instant,
    is_asked: bool,
    connected: bool,
    sequence: u16,
    /// The id that a player sends in requests for lost packets.
    pub client_id: u32,
    /// Two packets before the header, by which the player measures the link.
    pub measures: bool,
    /// Way of the media, once the player has given it.
    pub way: Option<Way>,
    pub object: Option<Arc<Object>>,
    pub session: Option<WmSession>,
}

impl MmsConnection {
    /// Makes the state of an open connection.
    pub fn new(channel: ChannelId, datagrams: Option<ChannelId>, now: Instant) -> Self {
        let mut backlog = Backlog::new(channel);
        backlog.open();
        MmsConnection {
            channel,
            datagrams,
            reader: Reader::of_requests(),
            backlog,
            heard: now,
            is_asked: false,
            connected: true,
            sequence: 0,
            client_id: 0,
            measures: false,
            way: None,
            object: None,
            session: None,
        }
    }

    /// Returns whether part of a message has arrived, and the rest of it is awaited.
    pub fn awaits_rest(&self) -> bool {
        !self.reader.is_between_packets()
    }

    /// Adds data of it that arrived before.
    pub fn push(&mut self, came: Chunk) {
        self.reader.push(came);
    }

    /// Handles its inputs; it ignores inputs of others.
    pub fn handle(&mut self, now: Instant, input: &Input<'_>, shared: &mut Shared, io: &mut dyn Io) {
        match *input {
            Input::Readable(channel) if channel == self.channel => self.read(now, shared, io),
            Input::Writable(channel) if channel == self.channel => {
                self.backlog.flush(io);
                if let Some(session) = self.session.as_mut().filter(|_| self.backlog.is_clear()) {
                    session.unblock(now);
                }
                self.read(now, shared, io);
            }
            Input::Datagram { on: channel, bytes: datagram, .. } if self.datagrams == Some(channel) => {
                self.resend(now, datagram, shared, io);
            }
            Input::Closed(channel, _) if channel == self.channel && self.connected => self.disconnect(io),
            Input::Stop if self.connected => self.disconnect(io),
            _ => {}
        }
    }

    fn read(&mut self, now: Instant, shared: &mut Shared, io: &mut dyn Io) {
        while self.connected && !self.backlog.is_full() {
            match self.reader.next() {
                Some(Ok(MmsItem::Message(message))) => self.answer(now, message, shared, io),
                // Players send none.
                Some(Ok(MmsItem::Data(_))) => {}
                Some(Err(_)) => self.disconnect(io),
                None => match io.read(self.channel, READ_BYTES) {
                    Some(chunk) => {
                        (self.heard, self.is_asked) = (now, false);
                        self.reader.push(chunk);
                    }
                    None => return,
                },
            }
        }
    }

    /// Sends a message.
    pub fn say(&mut self, message: MmsMessage, io: &mut dyn Io) {
        let header = TcpHeader { sequence: self.sequence, time_sent_ms: 0 };
        self.sequence = self.sequence.wrapping_add(1);
        self.backlog.push(Chunk::bytes(mms::write(header, &[message])), io);
    }

    /// Retransmits the packets that the client lacks.
    fn resend(&mut self, now: Instant, datagram: &Chunk, shared: &mut Shared, io: &mut dyn Io) {
        let Ok(request) = ResendRequest::parse(datagram.head()) else { return };
        let Some(session) = self.session.as_mut().filter(|_| request.client_id == self.client_id) else {
            return;
        };
        self.heard = now;
        let missing = request.sequences.into_iter();
        session.resend(now, missing, &mut shared.line(&mut self.backlog, io));
    }

    /// Selects streams, before or while they play. Returns whether all could be.
    pub fn select(&mut self, switches: &[StreamSwitch]) -> bool {
        let (Some(session), Some(way)) = (&mut self.session, self.way) else { return false };
        session.select(switches, way)
    }

    /// Ends it.
    pub fn disconnect(&mut self, io: &mut dyn Io) {
        (self.session, self.object) = (None, None);
        self.connected = false;
        self.backlog.close(io);
    }

    /// Returns when silence ends: a client that is silent for half of its time is pinged, and dropped after all of it.
    fn silence_ends(&self, timeout: Duration) -> Option<Instant> {
        let bears = if self.is_asked { timeout } else { timeout.div(2) };
        self.connected.then(|| self.heard + bears)
    }

    /// Returns when it is next due.
    pub fn wake(&self, timeout: Duration) -> Option<Instant> {
        let session = self.session.as_ref().and_then(WmSession::wake);
        self.silence_ends(timeout).into_iter().chain(session).min()
    }

    /// Does all due work. Returns whether its client has been silent for too long.
    pub fn work(&mut self, now: Instant, shared: &mut Shared, io: &mut dyn Io) -> bool {
        if self.silence_ends(shared.settings.timeout).is_some_and(|at| at <= now) {
            if self.is_asked {
                shared.say_silence(now, self.heard);
                self.disconnect(io);
                return true;
            }
            self.is_asked = true;
            self.say(MmsMessage::Ping, io);
        }
        let taken = self.backlog.taken();
        if let Some(session) = &mut self.session {
            session.work(now, &mut shared.line(&mut self.backlog, io));
            if session.takes_end() {
                let incarnation = session.incarnation.into();
                let end = EndOfStream { result: EndOfStream::DONE, incarnation };
                self.say(MmsMessage::ReportEndOfStream(end), io);
            }
        }
        if self.backlog.taken() != taken && !self.is_asked {
            // Media that the connection accepts is a sign of life.
            self.heard = now;
        }
        false
    }
}
