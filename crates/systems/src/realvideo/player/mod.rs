//! The player's end: RTSP and RDT in, acknowledgements and wishes out, and the playout buffer.

mod adaptation;
mod holes;
mod offers;
mod report;
mod settings;
mod setup;
mod track;

pub use report::{RdtCame, RealPlayerReport};
pub use settings::{PlayerKind, PlayerSettings};

use std::borrow::Cow;
use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::rdt::{self, DataPacket, Packet};
use streamgauge_wire::rm::Pieces;
use streamgauge_wire::rtsp::{Reader, RtspItem};

use self::adaptation::Adaptation;
use self::holes::Arrival;
use self::offers::Offer;
use self::report::Keeping;
use self::track::Track;
use super::RTSP;
use crate::app::{App, CloseReason, Input, Io};
use crate::outbox::{MEDIA_END, Outbox};
use crate::playout::Playout;
use crate::reception::Place;
use crate::rtsp::{Backlog, Client, Step};

/// How long the response to TEARDOWN is waited for.
const FAREWELL: Duration = Duration::from_secs(1);

/// Packets kept that overtook the response to PLAY.
const MOST_EARLY: usize = 1_024;

/// Frames that share a packet; a payload of more is invalid.
const MOST_PIECES: usize = 1_024;

/// Bytes read from the connection at once.
const READ_BYTES: usize = 64 * 1024;

/// Where the session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The connection is not there yet.
    Connecting,
    /// From the first request to the response to PLAY.
    SettingUp,
    /// The server sends, or holds.
    Playing { server_holds: bool },
    /// TEARDOWN was sent; the connection is closed at this time at the latest.
    Leaving { until: Instant },
    /// The session is over.
    Gone,
}

/// The last request sent to the server.
struct LastRequest {
    level: usize,
    delivery_bps: f64,
}

/// Plays one URL.
///
/// Events: `media_end` (value: frames shown; its reason names the end of the session), `playout_start` (s since PLAY
/// was sent), `frame_shown` (value: the frame's number among those with any part received; its reason: its time in the
/// media), `frame_late` (s) and `frame_incomplete` (packets missing, as far as known), `stall` (value: the frame waited
/// for) and `resume` (s stalled), `buffer` (s of media held, at most each 0.5 s); `level_changed` (bit/s that the level
/// needs, with the reason) and `delivery_asked` (bit/s) when the server gets such a request; with each of the server's
/// reports of its clock `estimate` (bit/s that are believed to be there) and `delay_excess` (s); `packets_missed` (1).
pub struct RealPlayer {
    settings: Arc<PlayerSettings>,
    /// Or the fault in the URL.
    client: Result<Client, String>,
    reader: Reader,
    connection: Backlog,
    phase: Phase,
    tracks: Vec<Track>,
    /// The track that events describe.
    main: usize,
    offers: Vec<Offer>,
    /// From DESCRIBE on.
    adaptation: Option<Adaptation>,
    told: Option<LastRequest>,
    /// From PLAY on.
    playout: Option<Playout>,
    stalls: u64,
    duration: Option<Duration>,
    /// Media that arrived before the response to PLAY.
    early: Vec<(usize, Chunk)>,
    play_asked: Option<Instant>,
    /// Time and stream of the last packet: the first of a pair.
    last: Option<(Instant, u16)>,
    paused: bool,
    heard: Instant,
    came: RdtCame,
    keeping: Keeping,
    /// Whether the server has identified itself by a challenge as one of RealNetworks'.
    is_challenged: bool,
    /// The last answer's status, if it was no success.
    refused: Option<u16>,
    is_unplayable: bool,
    events: Outbox,
}

impl RealPlayer {
    /// Makes a player of `url`.
    pub fn new(settings: PlayerSettings, url: &str) -> Self {
        RealPlayer {
            client: Client::new(url),
            reader: Reader::default(),
            connection: Backlog::new(RTSP),
            phase: Phase::Connecting,
            tracks: Vec::new(),
            main: 0,
            offers: Vec::new(),
            adaptation: None,
            told: None,
            playout: None,
            stalls: 0,
            duration: None,
            early: Vec::new(),
            play_asked: None,
            last: None,
            paused: false,
            heard: Instant::ZERO,
            came: RdtCame::default(),
            keeping: Keeping::default(),
            is_challenged: false,
            refused: None,
            is_unplayable: false,
            events: Outbox::default(),
            settings: Arc::new(settings),
        }
    }

    fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    /// Handles RDT of a track.
    fn media(&mut self, now: Instant, track: usize, datagram: &Chunk) {
        self.heard = now;
        if self.playout.is_none() {
            if self.early.len() < MOST_EARLY {
                self.early.push((track, datagram.clone()));
            }
            return;
        }
        for packet in rdt::parse(datagram).map_while(Result::ok) {
            match packet {
                Packet::Data(data) => self.data(now, track, &data),
                Packet::LatencyReport { server_time_ms } => self.clock(now, server_time_ms),
                Packet::StreamEnd(end) => self.ended(end.stream),
                _ => {}
            }
        }
    }

    fn data(&mut self, now: Instant, track: usize, data: &DataPacket<'_>) {
        let (Some(adaptation), Some(playout)) = (&mut self.adaptation, &mut self.playout) else { return };
        let bytes = data.header_bytes(false) + data.payload.len();
        adaptation.packet(now, bytes);
        let (came, keeping) = (&mut self.came, &mut self.keeping);
        let extended = match self.tracks[track].holes.came(now, data.sequence) {
            Arrival::New(extended, missed) => {
                came.missed += u64::from(missed);
                if missed > 0 {
                    adaptation.lost(missed.into());
                    self.events.say(now, "packets_missed", f64::from(missed), "1", "");
                }
                // A pair with a packet between is none.
                let first = self
                    .last
                    .filter(|(_, stream)| data.is_back_to_back && missed == 0 && *stream == data.stream);
                if let Some((at, _)) = first {
                    adaptation.pair(now.saturating_since(at), bytes);
                }
                self.last = Some((now, data.stream));
                extended
            }
            Arrival::Repaired(extended) => {
                came.repaired += 1;
                extended
            }
            Arrival::Duplicate => {
                came.duplicates += 1;
                return;
            }
        };
        came.packets += 1;
        came.bytes += bytes as u64;
        let keeps = keeping.is_wanted;
        let whole = Place { sequence: extended, timestamp: data.timestamp_ms, first: true, last: true };
        if !self.tracks[track].description.is_video {
            let payload = keeps.then(|| data.payload.to_chunk());
            return playout.arrived(now, track, whole, payload, &mut self.events);
        }
        for piece in Pieces::of(data.payload.to_chunk()).map_while(Result::ok).take(MOST_PIECES) {
            let ends = piece.offset as usize + piece.media.len() >= piece.frame_bytes as usize;
            let place = Place {
                timestamp: piece.timestamp_ms.unwrap_or(data.timestamp_ms),
                first: piece.offset == 0,
                last: ends,
                ..whole
            };
            if data.rule.is_multiple_of(2) {
                keeping.key(place.timestamp);
            }
            playout.arrived(now, track, place, keeps.then_some(piece.media), &mut self.events);
        }
    }

    /// Handles the time of the server's clock when it sent this.
    fn clock(&mut self, now: Instant, server_time_ms: u32) {
        let (Some(adaptation), Some(playout)) = (&mut self.adaptation, &self.playout) else { return };
        let delay = now.as_nanos().cast_signed() - i64::from(server_time_ms) * 1_000_000;
        adaptation.report(now, delay, playout.buffer(now));
        self.events.say(now, "delay_excess", adaptation.excess().as_secs_f64(), "s", "");
        if let Some(available) = adaptation.available_bps(now) {
            self.events.say(now, "estimate", available, "bit/s", "");
        }
    }

    fn ended(&mut self, stream: u16) {
        if let Some(track) = self.tracks.iter_mut().find(|track| track.number() == stream) {
            track.ended = true;
        }
        if let Some(playout) = self.playout.as_mut().filter(|_| self.tracks.iter().all(|track| track.ended)) {
            playout.nothing_more("the server said that all was sent");
        }
    }

    fn read(&mut self, now: Instant, io: &mut dyn Io) {
        while let Some(chunk) = io.read(RTSP, READ_BYTES) {
            if !self.is_playing() {
                self.heard = now;
            }
            self.reader.push(chunk);
            while let Some(item) = self.reader.next() {
                match item {
                    Ok(RtspItem::Interleaved { channel, packet }) => {
                        let on = |track: &Track| track.interleaved == Some(channel);
                        if let Some(track) = self.tracks.iter().position(on) {
                            self.media(now, track, &packet);
                        }
                    }
                    // Drops a peer that keeps sending requests without reading replies.
                    Ok(RtspItem::Request(_)) if self.connection.is_full() => {}
                    Ok(RtspItem::Request(request)) => self.connection.push(Client::answer(&request), io),
                    Ok(RtspItem::Response(response)) => {
                        let status = response.status();
                        self.refused = (!status.is_success()).then(|| status.into());
                        self.response(now, response, io);
                    }
                    Err(problem) if problem.is_fatal() || self.phase == Phase::SettingUp => {
                        self.is_unplayable |= self.phase == Phase::SettingUp;
                        self.give_up(now, format!("the server's answer cannot be read: {problem}"), io);
                    }
                    // The next message can be read.
                    Err(_) => {}
                }
            }
        }
    }

    /// Reports received and missing packets, over UDP.
    fn acknowledge(&mut self, now: Instant, io: &mut dyn Io) {
        if !self.settings.retransmission {
            return;
        }
        for track in &mut self.tracks {
            let Some(channel) = track.channel else { continue };
            let number = track.number();
            if let Some(ack) = track.holes.take(now, number) {
                io.send(channel, Packet::Ack(ack).write());
            }
        }
    }

    /// Asks the server to hold or to continue, if its state differs from the wanted one; and for the wanted level of
    /// the media.
    fn steer(&mut self, now: Instant, io: &mut dyn Io) {
        if !self.is_playing() || !self.connection.is_open() {
            return;
        }
        self.tell(now, io);
        let Ok(client) = &mut self.client else { return };
        if client.asked().is_some() {
            return;
        }
        match self.phase {
            Phase::Playing { server_holds: false } if self.paused => self.ask(now, Step::Pause, io),
            Phase::Playing { server_holds: true } if !self.paused => self.ask(now, Step::Play, io),
            Phase::Playing { .. } if client.keep_alive_at().is_some_and(|at| at <= now) => {
                self.ask(now, Step::KeepAlive, io);
            }
            _ => {}
        }
    }

    /// Ends at once, and records why.
    fn give_up(&mut self, now: Instant, why: impl Into<Cow<'static, str>>, io: &mut dyn Io) {
        match &mut self.playout {
            Some(playout) => playout.end(now, why, &mut self.events),
            None if matches!(self.phase, Phase::Connecting | Phase::SettingUp) => {
                self.events.say(now, MEDIA_END, 0.0, "1", why);
            }
            None => {}
        }
        self.leave(now, io);
    }

    /// Sends the goodbye.
    fn leave(&mut self, now: Instant, io: &mut dyn Io) {
        if matches!(self.phase, Phase::Leaving { .. } | Phase::Gone) {
            return;
        }
        self.early.clear();
        if !self.client.as_ref().is_ok_and(Client::has_session) || !self.connection.is_open() {
            self.phase = Phase::Gone;
            return self.connection.close(io);
        }
        self.phase = Phase::Leaving { until: now + FAREWELL };
        self.ask(now, Step::Teardown, io);
    }

    fn closed(&mut self, now: Instant, why: &'static str, io: &mut dyn Io) {
        self.connection.forget();
        match (&mut self.playout, self.phase) {
            (_, Phase::Leaving { .. }) => self.phase = Phase::Gone,
            (Some(playout), _) => playout.nothing_more(why),
            (None, _) => self.give_up(now, why, io),
        }
    }

    /// Returns when silence ends the session.
    fn patience_ends(&self) -> Option<Instant> {
        let limit = self.settings.give_up_after;
        match self.phase {
            Phase::Connecting | Phase::SettingUp => Some(self.heard + limit),
            Phase::Playing { .. } if !self.paused => {
                self.playout.as_ref().filter(|playout| !playout.is_over()).map(|_| self.heard + limit)
            }
            _ => None,
        }
    }

    fn lose_patience(&mut self, now: Instant, io: &mut dyn Io) {
        let limit = self.settings.give_up_after.as_secs_f64();
        let why = format!("nothing came from the server for {limit:.0} s");
        match &mut self.playout {
            Some(playout) => playout.nothing_more(why),
            None => self.give_up(now, why, io),
        }
    }

    /// Does all due work.
    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        if self.patience_ends().is_some_and(|at| at <= now) {
            self.lose_patience(now, io);
        }
        if let Some(playout) = &mut self.playout {
            playout.advance(now, &mut self.events);
            let stalls = playout.stats().stalls;
            if stalls > self.stalls {
                // It gathers more each time.
                self.stalls = stalls;
                let more = (self.settings.rebuffer_step * (stalls - 1)).min(self.settings.rebuffer_most);
                playout.rebuffer(self.settings.preroll + more);
            }
            if playout.has_ended() {
                self.leave(now, io);
            }
        }
        if self.is_playing() {
            if let Some(adaptation) = &mut self.adaptation {
                adaptation.advance(now);
            }
            self.acknowledge(now, io);
        }
        self.steer(now, io);
        if let Phase::Leaving { until } = self.phase
            && until <= now
        {
            self.phase = Phase::Gone;
            self.connection.close(io);
        }
    }
}

impl App for RealPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if self.is_gone() {
            return;
        }
        match input {
            Input::Start => self.heard = now,
            Input::Opened(RTSP) if self.phase == Phase::Connecting => {
                self.connection.open();
                self.heard = now;
                self.begin(now, io);
            }
            Input::Datagram { on: channel, bytes: datagram, .. } => {
                if let Some(track) = self.tracks.iter().position(|track| track.channel == Some(channel)) {
                    self.media(now, track, datagram);
                }
            }
            Input::Readable(RTSP) => self.read(now, io),
            Input::Writable(RTSP) => self.connection.flush(io),
            Input::Refused(RTSP, _) => self.closed(now, "the server could not be reached", io),
            Input::Closed(RTSP, CloseReason::Finished) => {
                self.closed(now, "the server closed the connection", io);
            }
            Input::Closed(RTSP, CloseReason::Reset | CloseReason::TimedOut) => {
                self.closed(now, "the connection to the server failed", io);
            }
            Input::Pause => {
                self.paused = true;
                if let Some(playout) = &mut self.playout {
                    playout.pause(now);
                }
            }
            Input::Resume => {
                self.paused = false;
                self.heard = now;
                if let Some(playout) = &mut self.playout {
                    playout.resume(now);
                }
            }
            Input::Stop => self.give_up(now, "stopped", io),
            _ => {}
        }
        self.work(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Gone => return None,
            Phase::Leaving { until } => return Some(until),
            _ => {}
        }
        let says = self.is_playing() && self.settings.retransmission;
        let holes = self
            .tracks
            .iter()
            .filter(|track| says && track.channel.is_some())
            .filter_map(|track| track.holes.due());
        let client = self.client.as_ref().ok().filter(|_| self.connection.is_open());
        holes
            .chain(client.and_then(Client::keep_alive_at))
            .chain(self.adaptation.as_ref().filter(|_| self.is_playing()).and_then(Adaptation::due))
            .chain(self.patience_ends())
            .chain(self.playout.as_ref().and_then(Playout::next_event))
            .min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }

    fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }
}
