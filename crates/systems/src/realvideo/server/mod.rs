//! The server's end of one RTSP connection.

mod rtsp;
mod session;
mod settings;
mod stream;

pub use settings::{Preset, ServerSettings};

use std::sync::Arc;

use streamgauge_base::{Chunk, Event, Instant, RandomStream};
use streamgauge_wire::rdt::{self, Packet};
use streamgauge_wire::rm::StreamProperties;
use streamgauge_wire::rtsp::{Problem, Reader, RtspItem, write_response};

use self::session::{Line, RdtSession, Sent};
use self::stream::Way;
use super::RTSP;
use super::object::Shelf;
use crate::app::{App, ChannelId, Input, Io};
use crate::outbox::Outbox;
use crate::rtsp::{Answer, Backlog, TrackPorts, answer, unreadable};

/// Bytes read from the connection at once.
const READ_BYTES: usize = 16 * 1024;

/// Serves one client, over one RTSP connection and the ports of its one session.
///
/// The state that a client can make it keep is bounded: one message of at most 80 kB half read and 16 kB behind it, 64
/// kB and a response not yet written, and for each stream the packets sent within `resend_keep`, 4 MiB at most.
///
/// Events: those of a session (`level_sent`, `packet_resent`), and `session_timeout` (s of silence).
pub struct RealServer {
    shelf: Arc<dyn Shelf<StreamProperties>>,
    settings: Arc<ServerSettings>,
    draws: RandomStream,
    reader: Reader,
    backlog: Backlog,
    session: Option<RdtSession>,
    ports: TrackPorts,
    /// Time of the client's last sign of life.
    heard: Instant,
    connected: bool,
    /// Whether it was silent for too long.
    vanished: bool,
    sent: Sent,
    events: Outbox,
}

impl RealServer {
    /// Serves the objects of `shelf`. Session ids are drawn from `seed` and `flow`, so a server on a network needs a
    /// seed that cannot be guessed.
    pub fn new(
        shelf: Arc<dyn Shelf<StreamProperties>>,
        settings: ServerSettings,
        flow: &str,
        seed: u64,
    ) -> Self {
        RealServer {
            shelf,
            settings: Arc::new(settings),
            draws: RandomStream::named(seed, flow, "realvideo_server"),
            reader: Reader::default(),
            backlog: Backlog::new(RTSP),
            session: None,
            ports: TrackPorts::default(),
            heard: Instant::ZERO,
            connected: false,
            vanished: false,
            sent: Sent::default(),
            events: Outbox::default(),
        }
    }

    /// Returns the counts of sent packets.
    pub(super) fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Returns whether its client was silent for too long.
    pub(super) fn has_lost_its_client(&self) -> bool {
        self.vanished
    }

    /// Reads the client's requests while there is room for the answers.
    fn read(&mut self, now: Instant, io: &mut dyn Io) {
        while self.connected && !self.backlog.is_full() {
            match self.reader.next() {
                Some(item) => self.take(now, item, io),
                None => match io.read(RTSP, READ_BYTES) {
                    Some(chunk) => {
                        self.heard = now;
                        self.reader.push(chunk);
                    }
                    None => return,
                },
            }
        }
    }

    /// Returns whether part of a request has arrived, and the rest of it is awaited.
    pub(super) fn awaits_rest(&self) -> bool {
        !self.reader.is_between_messages()
    }

    fn take(&mut self, now: Instant, item: Result<RtspItem, Problem>, io: &mut dyn Io) {
        match item {
            Ok(RtspItem::Request(request)) => {
                let response = answer(self, now, &request, io);
                self.say(&response, io);
            }
            // It asks nothing.
            Ok(RtspItem::Response(_)) => {}
            Ok(RtspItem::Interleaved { channel, packet }) => {
                self.control(now, Way::Interleaved(channel), &packet, io);
            }
            Err(problem) => {
                self.say(&unreadable(&problem), io);
                if problem.is_fatal() {
                    self.disconnect(io);
                }
            }
        }
    }

    /// Handles RDT from the client. The part behind an unreadable one is passed over, and one question of a datagram is
    /// answered: no client can have more sent to a victim than it sends itself.
    fn control(&mut self, now: Instant, way: Way, datagram: &Chunk, io: &mut dyn Io) {
        let Some(session) = &mut self.session else { return };
        self.heard = now;
        let (backlog, events, sent) = (&mut self.backlog, &mut self.events, &mut self.sent);
        let mut line = Line { io, backlog, events, sent };
        let mut is_answered = false;
        for packet in rdt::parse(datagram).map_while(Result::ok) {
            match packet {
                Packet::Ack(ack) => session.acknowledged(now, &ack, &mut line),
                Packet::RttRequest if !is_answered => {
                    is_answered = true;
                    let nanos = now.as_nanos();
                    let (seconds, micros) = (nanos / 1_000_000_000, nanos % 1_000_000_000 / 1_000);
                    let answer = Packet::RttResponse { seconds: seconds as u32, micros: micros as u32 };
                    line.put(way, answer.write());
                }
                _ => {}
            }
        }
    }

    /// Without a server name: MPlayer follows the challenge only where no name is beside it.
    fn say(&mut self, response: &Answer, io: &mut dyn Io) {
        self.backlog.push(Chunk::bytes(write_response(response)), io);
    }

    fn disconnect(&mut self, io: &mut dyn Io) {
        self.session = None;
        self.connected = false;
        self.backlog.close(io);
    }

    fn silence_ends(&self) -> Option<Instant> {
        self.connected.then(|| self.heard + self.settings.timeout)
    }

    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        if self.silence_ends().is_some_and(|at| at <= now) {
            self.vanished = true;
            let silence = now.saturating_since(self.heard).as_secs_f64();
            self.events.say(now, "session_timeout", silence, "s", "nothing came from the player");
            return self.disconnect(io);
        }
        let taken = self.backlog.taken();
        if let Some(session) = &mut self.session {
            let (backlog, events, sent) = (&mut self.backlog, &mut self.events, &mut self.sent);
            session.work(now, &mut Line { io, backlog, events, sent });
        }
        if self.backlog.taken() != taken {
            // Media that the connection accepts is a sign of life: MPlayer sends nothing while it plays.
            self.heard = now;
        }
    }

    /// Returns the channel of a session's stream.
    fn way_of(&self, channel: ChannelId) -> Option<Way> {
        let mut ways = self.session.iter().flat_map(|session| &session.streams).map(|stream| stream.way);
        ways.find(|way| *way == Way::Udp(channel))
    }
}

impl App for RealServer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Opened(RTSP) => {
                (self.connected, self.heard) = (true, now);
                self.backlog.open();
            }
            Input::Readable(RTSP) => self.read(now, io),
            Input::Writable(RTSP) => {
                self.backlog.flush(io);
                if let Some(session) = self.session.as_mut().filter(|_| self.backlog.is_clear()) {
                    session.unblock(now);
                }
                self.read(now, io);
            }
            Input::Datagram { on: channel, bytes: datagram, .. } => {
                if let Some(way) = self.way_of(channel) {
                    self.control(now, way, datagram, io);
                }
            }
            Input::Closed(RTSP, _) | Input::Stop if self.connected => self.disconnect(io),
            _ => {}
        }
        self.work(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.as_ref().and_then(RdtSession::wake);
        self.silence_ends().into_iter().chain(session).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}

/// Makes the first stream of `object`, all of it wanted, over UDP.
#[cfg(test)]
pub(super) fn stream_over_udp(object: &super::object::Object) -> stream::Stream {
    stream_over(Way::Udp(ChannelId(1)), object)
}

/// Makes the same over the RTSP connection.
#[cfg(test)]
pub(super) fn stream_over_tcp(object: &super::object::Object) -> stream::Stream {
    stream_over(Way::Interleaved(0), object)
}

#[cfg(test)]
fn stream_over(way: Way, object: &super::object::Object) -> stream::Stream {
    let mut stream = stream::Stream::new(0, way, object.streams[0].clone());
    stream.want_lowest();
    stream.seek(streamgauge_base::Duration::ZERO);
    stream
}
