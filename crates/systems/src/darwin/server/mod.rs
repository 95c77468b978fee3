//! The server's end of one RTSP connection.

mod bandwidth;
mod flow_control;
mod lateness;
mod line;
mod overbuffer;
mod resender;
mod rto;
mod rtsp;
mod session;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
mod thinning;

pub use settings::{Growth, Preset, ServerSettings};

use std::collections::VecDeque;
use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Event, Instant, RandomStream};
use streamgauge_wire::rtsp::{DynamicRate, Problem, Reader, Request, RtspItem, StatusCode};

use self::line::{Line, Sent};
use self::session::Session;
use self::stream::Way;
use super::RTSP;
use crate::app::{App, Input, Io};
use crate::media::Library;
use crate::outbox::Outbox;
use crate::rtsp::{Answer, Backlog, TrackPorts, status, unreadable, written};

/// Requests that wait for the round trip to be measured.
const MOST_WAITING: usize = 8;

/// Bytes read from the connection at once.
const READ_BYTES: usize = 16 * 1024;

/// Serves one client, over one RTSP connection and the ports of its one session.
///
/// The state that a client can make it keep is bounded: one message of at most 80 kB half read and 16 kB behind it, at
/// most 8 requests waiting for the round trip to be measured (80 kB each), 64 kB and a response not yet written, and
/// for each track of the session its URL (16 kB), the packets of one access unit and 8,192 entries of 64 B of packets
/// outstanding, which a window of 64 kB keeps far below that. Assets are shared.
///
/// Events: those of a session (`rudp_cwnd`, `rudp_cut`, `rudp_rto`, `rudp_retransmit`, `rudp_expired`,
/// `rudp_given_up`, `stale_drop`, `thinning`, `overbuffer`), and `session_timeout` (s of silence).
pub struct DarwinServer {
    library: Arc<dyn Library>,
    settings: Arc<ServerSettings>,
    draws: RandomStream,
    /// Whether it is busy when RTCP arrives, and how likely it is.
    busy: (RandomStream, u64),
    /// How late it wakes.
    wakes: RandomStream,
    reader: Reader,
    backlog: Backlog,
    session: Option<Session>,
    ports: TrackPorts,
    probe: Probe,
    /// Requests that arrived while the round trip was measured.
    waiting: VecDeque<Request<Vec<u8>>>,
    /// Time of the client's last sign of life.
    heard: Instant,
    connected: bool,
    /// Whether it was silent for too long.
    vanished: bool,
    sent: Sent,
    events: Outbox,
}

/// The measurement of the round trip, one for each connection.
enum Probe {
    /// No overbuffering was asked for.
    None,
    /// The next response has to wait for it.
    Due,
    /// It was sent then, and this response waits.
    Sent { at: Instant, response: Box<Answer> },
    /// The measured milliseconds.
    Measured(u32),
}

impl DarwinServer {
    /// Serves the files of `library`. Session ids, SSRCs and the first sequence numbers and timestamps are drawn from
    /// `seed` and `flow`, so a server on a network needs a seed that cannot be guessed.
    pub fn new(library: Arc<dyn Library>, settings: ServerSettings, flow: &str, seed: u64) -> Self {
        DarwinServer {
            library,
            busy: (
                RandomStream::named(seed, flow, "darwin_server_busy"),
                RandomStream::threshold(settings.busy_ack_loss),
            ),
            settings: Arc::new(settings),
            draws: RandomStream::named(seed, flow, "darwin_server"),
            wakes: RandomStream::named(seed, flow, "darwin_server_wakes"),
            reader: Reader::default(),
            backlog: Backlog::new(RTSP),
            session: None,
            ports: TrackPorts::default(),
            probe: Probe::None,
            waiting: VecDeque::new(),
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

    /// Returns whether its session ended because of a silent client.
    pub(super) fn has_lost_its_client(&self) -> bool {
        self.vanished
    }

    /// Returns whether part of a request has arrived, and the rest of it is awaited.
    pub(super) fn awaits_rest(&self) -> bool {
        !self.reader.is_between_messages()
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

    fn take(&mut self, now: Instant, item: Result<RtspItem, Problem>, io: &mut dyn Io) {
        match item {
            Ok(RtspItem::Request(request)) => {
                if !matches!(self.probe, Probe::Sent { .. }) {
                    self.respond(now, &request, io);
                } else if self.waiting.len() < MOST_WAITING {
                    self.waiting.push_back(request);
                } else {
                    self.say(&status(StatusCode::ServiceUnavailable), io);
                    self.disconnect(now, io);
                }
            }
            Ok(RtspItem::Response(_)) => self.measured(now, io),
            Ok(RtspItem::Interleaved { channel, packet }) => {
                let of_channel = |session: &Session| {
                    let of = |way| matches!(way, Way::Interleaved(_, rtcp) if rtcp == channel);
                    session.streams.iter().find(|stream| of(stream.way)).map(|stream| stream.track)
                };
                if let Some(track) = self.session.as_ref().and_then(of_channel) {
                    self.rtcp(now, track, packet.head(), io);
                }
            }
            Err(problem) => {
                self.say(&unreadable(&problem), io);
                if problem.is_fatal() {
                    self.disconnect(now, io);
                }
            }
        }
    }

    fn respond(&mut self, now: Instant, request: &Request<Vec<u8>>, io: &mut dyn Io) {
        match self.answer(now, request, io) {
            Some(response) => self.say(&response, io),
            None => {
                // The public server's request has no CSeq. The content of its body is of no interest.
                let head = format!(
                    "OPTIONS * RTSP/1.0\r\nContent-Type: application/x-random-data\r\n\
                     Content-Length: {}\r\n\r\n",
                    self.settings.probe_bytes
                );
                self.backlog.push(Chunk::with_filler(head.into_bytes(), self.settings.probe_bytes), io);
            }
        }
    }

    /// Handles the client's answer to our request: the response that waited is sent, and the requests from meanwhile
    /// are carried out.
    fn measured(&mut self, now: Instant, io: &mut dyn Io) {
        if !matches!(self.probe, Probe::Sent { .. }) {
            return;
        }
        if let Probe::Sent { at, mut response } = std::mem::replace(&mut self.probe, Probe::None) {
            let rtt_ms = u32::try_from(millis(now.saturating_since(at))).unwrap_or(u32::MAX);
            self.probe = Probe::Measured(rtt_ms);
            if let Ok(Some(dynamic)) = response.typed_header::<DynamicRate>() {
                response.insert_typed_header(&DynamicRate { rtt_ms: Some(rtt_ms), ..dynamic });
            }
            self.say(&response, io);
        }
        while let Some(request) = self.waiting.pop_front() {
            self.respond(now, &request, io);
        }
    }

    fn say(&mut self, response: &Answer, io: &mut dyn Io) {
        self.backlog.push(written(response), io);
    }

    /// Handles RTCP from the player of a track; any RTCP shows that the player is there, unless the server is too busy
    /// to read it.
    fn rtcp(&mut self, now: Instant, track: usize, datagram: &[u8], io: &mut dyn Io) {
        if let Some(session) = &mut self.session {
            let (draws, likely) = &mut self.busy;
            if *likely > 0 && session.is_busy(track) && draws.chance(*likely) {
                return;
            }
            self.heard = now;
            let line =
                &mut Line { io, backlog: &mut self.backlog, events: &mut self.events, sent: &mut self.sent };
            session.rtcp(now, track, datagram, line);
        }
    }

    fn end_session(&mut self, now: Instant, io: &mut dyn Io) {
        if let Some(mut session) = self.session.take() {
            let line =
                &mut Line { io, backlog: &mut self.backlog, events: &mut self.events, sent: &mut self.sent };
            session.end(now, line);
        }
    }

    /// Ends session and connection and forgets the client.
    fn disconnect(&mut self, now: Instant, io: &mut dyn Io) {
        self.end_session(now, io);
        self.backlog.close(io);
        self.forget();
    }

    /// Ends at once: media that waits on the connection is given up with it.
    fn stop(&mut self, now: Instant, io: &mut dyn Io) {
        let interleaved = |stream: &stream::RtpStream| matches!(stream.way, Way::Interleaved(..));
        if self.session.as_ref().is_some_and(|session| session.streams.iter().any(interleaved)) {
            self.end_session(now, io);
            self.backlog.abort(io);
            self.forget();
        } else {
            self.disconnect(now, io);
        }
    }

    fn forget(&mut self) {
        self.connected = false;
        self.backlog.forget();
        self.waiting.clear();
        self.reader = Reader::default();
        self.probe = Probe::None;
    }

    /// Returns when a client that stays silent is given up.
    fn patience(&self) -> Option<Instant> {
        let settings = &self.settings;
        match &self.session {
            Some(_) => Some(self.heard + settings.rtp_timeout),
            None if self.connected => Some(self.heard + settings.rtsp_timeout),
            None => None,
        }
    }

    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        if self.patience().is_some_and(|end| end <= now) {
            if self.session.is_some() {
                self.vanished = true;
                let silent_s = now.saturating_since(self.heard).as_secs_f64();
                self.events.say(now, "session_timeout", silent_s, "s", "nothing heard of the player");
            }
            self.disconnect(now, io);
        }
        let Some(session) = &mut self.session else { return };
        let taken = self.backlog.taken();
        let line =
            &mut Line { io, backlog: &mut self.backlog, events: &mut self.events, sent: &mut self.sent };
        session.work(now, line, &mut self.wakes);
        if self.backlog.taken() != taken {
            // Media that the connection accepts is a sign of life.
            self.heard = now;
        }
    }
}

impl App for DarwinServer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Opened(RTSP) => {
                self.connected = true;
                self.heard = now;
                self.backlog.open();
            }
            Input::Readable(RTSP) => self.read(now, io),
            Input::Writable(RTSP) => {
                self.backlog.flush(io);
                self.read(now, io);
                if let Some(session) = self.session.as_mut().filter(|_| self.backlog.is_clear()) {
                    session.unblock(now);
                }
            }
            Input::Datagram { on: channel, bytes: datagram, .. } => {
                if let Some(track) = self.ports.track_of_rtcp(channel) {
                    self.rtcp(now, track, datagram.head(), io);
                }
            }
            Input::Closed(RTSP, _) => {
                self.end_session(now, io);
                self.forget();
            }
            Input::Stop => self.stop(now, io),
            // A player that pauses announces it by RTSP.
            _ => {}
        }
        self.work(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let wake = self.session.as_ref().and_then(Session::wake);
        wake.into_iter().chain(self.patience()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}

/// Returns the whole milliseconds, in which the public server counts.
fn millis(time: Duration) -> i64 {
    (time.as_nanos() / 1_000_000).cast_signed()
}

/// Returns the whole milliseconds since the trial's start.
fn millis_of(at: Instant) -> i64 {
    (at.as_nanos() / 1_000_000).cast_signed()
}

/// Returns the time that many milliseconds after the trial's start.
fn instant(millis: i64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis.max(0).cast_unsigned())
}

/// Returns a share of `bytes`, rounded down.
fn share(bytes: u32, share: f64) -> u32 {
    (f64::from(bytes) * share) as u32
}
