//! The server's end of one RTSP connection.

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rtcp;
use streamgauge_wire::rtp_asf::{RtpPacketPair, THREE_RANDOM_BYTES};
use streamgauge_wire::rtsp::windows::bodies::EndOfStreamNotice;
use streamgauge_wire::rtsp::windows::{Notice, media_types};
use streamgauge_wire::rtsp::{
    CSeq, Method, Problem, Reader, Request, RtspItem, Version, names, write_request, write_response,
};

use super::Shared;
use super::session::{WmSession, rtp};
use crate::app::{ChannelId, Input, Io};
use crate::rtsp::{Answer, Backlog, TrackPorts, answer, unreadable};

/// Bytes read from the connection at once.
const READ_BYTES: usize = 16 * 1024;

/// The name by which players recognise the server.
const SERVER: &str = concat!("WMServer/9.0 (StreamGauge/", env!("CARGO_PKG_VERSION"), ")");

/// A connection, and the ports of its one session.
pub struct RtspConnection {
    channel: ChannelId,
    reader: Reader,
    backlog: Backlog,
    pub session: Option<WmSession>,
    pub ports: TrackPorts,
    /// Time of the client's last sign of life.
    heard: Instant,
    connected: bool,
    /// Number of its own requests.
    cseq: u32,
}

/// A connection that answers its requests from the state that all share.
pub struct Served<'a> {
    pub connection: &'a mut RtspConnection,
    pub shared: &'a mut Shared,
}

impl Served<'_> {
    /// Sends the three packets by which the player measures the link.
    pub fn probe(&mut self, io: &mut dyn Io) -> bool {
        let Some(channel) = self.connection.session.as_ref().and_then(|session| session.again) else {
            return false;
        };
        let ssrc = self.shared.draws.bits() as u32;
        for (sequence, bytes) in (0..).zip(THREE_RANDOM_BYTES) {
            let random = self.shared.random(bytes);
            let packet = RtpPacketPair { is_first: sequence == 0, random: random.as_slice().into() };
            io.send(channel, rtp(ssrc, sequence, 0, packet.write().head()));
        }
        true
    }
}

impl RtspConnection {
    /// Makes the state of an open connection.
    pub fn new(channel: ChannelId, now: Instant) -> Self {
        let mut backlog = Backlog::new(channel);
        backlog.open();
        RtspConnection {
            channel,
            reader: Reader::default(),
            backlog,
            session: None,
            ports: TrackPorts::default(),
            heard: now,
            connected: true,
            cseq: 0,
        }
    }

    /// Returns whether part of a message has arrived, and the rest of it is awaited.
    pub fn awaits_rest(&self) -> bool {
        !self.reader.is_between_messages()
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
            Input::Datagram { on: channel, bytes: datagram, .. } => {
                let again = self.session.as_ref().and_then(|session| session.again);
                if again.is_some_and(|again| ChannelId(again.0 + 1) == channel) {
                    self.control(now, datagram, shared, io);
                }
            }
            Input::Closed(channel, _) if channel == self.channel && self.connected => self.disconnect(io),
            Input::Stop if self.connected => self.disconnect(io),
            _ => {}
        }
    }

    /// Reads the client's requests while there is room for the answers.
    fn read(&mut self, now: Instant, shared: &mut Shared, io: &mut dyn Io) {
        while self.connected && !self.backlog.is_full() {
            match self.reader.next() {
                Some(item) => self.take(now, item, shared, io),
                None => match io.read(self.channel, READ_BYTES) {
                    Some(chunk) => {
                        self.heard = now;
                        self.reader.push(chunk);
                    }
                    None => return,
                },
            }
        }
    }

    fn take(&mut self, now: Instant, item: Result<RtspItem, Problem>, shared: &mut Shared, io: &mut dyn Io) {
        match item {
            Ok(RtspItem::Request(request)) => {
                let response = answer(&mut Served { connection: self, shared }, now, &request, io);
                self.say(response, io);
            }
            // A client without support for that request, as ffmpeg, learns the end from the closed connection.
            Ok(RtspItem::Response(response))
                if !response.status().is_success()
                    && self.session.as_ref().is_some_and(WmSession::has_ended) =>
            {
                self.disconnect(io);
            }
            // Nothing waits for another response, and over a connection nothing is lost.
            Ok(RtspItem::Response(_) | RtspItem::Interleaved { .. }) => {}
            Err(problem) => {
                self.say(unreadable(&problem), io);
                if problem.is_fatal() {
                    self.disconnect(io);
                }
            }
        }
    }

    fn say(&mut self, mut response: Answer, io: &mut dyn Io) {
        response.insert_header(names::SERVER, SERVER);
        self.backlog.push(Chunk::bytes(write_response(&response)), io);
    }

    /// Handles RTCP from the client: the packets that it lacks.
    fn control(&mut self, now: Instant, datagram: &Chunk, shared: &mut Shared, io: &mut dyn Io) {
        let Some(session) = &mut self.session else { return };
        self.heard = now;
        let ours = session.ssrc();
        let packets = rtcp::parse(datagram.head()).map_while(Result::ok);
        let missing: Vec<u32> = packets
            .filter_map(|packet| match packet {
                rtcp::Packet::Nack(nack) if nack.media_ssrc == ours => Some(nack),
                _ => None,
            })
            .flat_map(|nack| nack.sequences().map(u32::from).collect::<Vec<_>>())
            .collect();
        session.resend(now, missing.into_iter(), &mut shared.line(&mut self.backlog, io));
    }

    /// Ends it.
    pub fn disconnect(&mut self, io: &mut dyn Io) {
        self.session = None;
        self.connected = false;
        self.backlog.close(io);
    }

    fn silence_ends(&self, timeout: Duration) -> Option<Instant> {
        self.connected.then(|| self.heard + timeout)
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
            self.disconnect(io);
            return true;
        }
        let taken = self.backlog.taken();
        if let Some(session) = &mut self.session {
            session.work(now, &mut shared.line(&mut self.backlog, io));
            if session.takes_end() {
                self.say_end(io);
            }
        }
        if self.backlog.taken() != taken {
            // Media that the connection accepts is a sign of life.
            self.heard = now;
        }
        false
    }

    /// Announces that all has been sent, by a request of the server's own ([MS-RTSP] section 2.2.7.10.7).
    fn say_end(&mut self, io: &mut dyn Io) {
        self.cseq += 1;
        let Some(session) = &self.session else { return };
        let notice = EndOfStreamNotice { session: Some(session.id.clone()), cause: None };
        let request = Request::builder(Method::SetParameter, Version::V1_0)
            .typed_header(&CSeq::from(self.cseq))
            .header(names::SESSION, session.id.as_str())
            .header(names::SERVER, SERVER)
            .header(names::CONTENT_TYPE, media_types::EXTENSION_COMMAND)
            .typed_header(&Notice::end_of_stream())
            .build(notice.to_string().into_bytes());
        self.backlog.push(Chunk::bytes(write_request(&request)), io);
    }
}
