//! The player's end: RTSP, RTP and RTCP in, acknowledgements and reports out, and the playout buffer.

mod acks;
mod claim;
mod report;
mod settings;
mod setup;
#[cfg(test)]
mod tests;
mod track;

pub use crate::playout::{PlayoutStats, ReceivedUnit};
pub use crate::rtsp::MediaTransport;
pub use report::PlayerReport;
pub use settings::{PlayerKind, PlayerSettings};

use std::borrow::Cow;

use streamgauge_base::{Chunk, Duration, Event, Instant, RandomStream};
use streamgauge_wire::reliable_udp::ClientReport;
use streamgauge_wire::rtsp::{Reader, RtspItem, interleave};

use self::track::Track;
use super::RTSP;
use crate::app::{App, CloseReason, Input, Io};
use crate::media::sdp::TrackDescription;
use crate::outbox::{MEDIA_END, Outbox};
use crate::playout::Playout;
use crate::reception::Reports;
use crate::rtsp::{Backlog, Client, Step};

/// How long the response to TEARDOWN is waited for.
const FAREWELL: Duration = Duration::from_secs(1);

/// Packets kept that overtook the response to PLAY, which gives their timestamps a meaning.
const MOST_EARLY: usize = 1_024;

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

/// Plays one URL.
///
/// Events: `media_end` (value: frames shown; its reason names the end of the session), `playout_start` (s since PLAY
/// was sent), `frame_shown` (value: the frame's number), `frame_late` (s) and `frame_incomplete` (packets missing, as
/// far as known), `stall` (value: the frame waited for) and `resume` (s stalled), `buffer` (s of media held, at most
/// each 0.5 s); with each receiver report `jitter` (s), `fraction_lost` (1) and `cumulative_lost` (packets). Frames are
/// those of the first track with pictures, or else of the first.
pub struct DarwinPlayer {
    settings: PlayerSettings,
    /// Or the fault in the URL.
    client: Result<Client, String>,
    ssrc: u32,
    reader: Reader,
    connection: Backlog,
    phase: Phase,
    tracks: Vec<Track>,
    /// The track that events describe.
    main: usize,
    /// From PLAY on.
    playout: Option<Playout>,
    /// Length of the media, from its description.
    duration: Option<Duration>,
    /// Start of play in the media.
    from: Duration,
    /// Whether the description has one track: its end is the presentation's.
    alone: bool,
    /// Tracks that are not played, each with the reason.
    left_out: Vec<String>,
    /// Headers that were passed over, each with the reason.
    passed_over: Vec<String>,
    /// Over UDP, media that arrived before the response to PLAY.
    early: Vec<(usize, Chunk)>,
    /// Time when PLAY was first sent.
    play_asked: Option<Instant>,
    paused: bool,
    /// Time of the last arrival: of media, once it is requested.
    heard: Instant,
    reports: Reports,
    next_report: Option<Instant>,
    keep: bool,
    /// The status of the last answer that was no success.
    refused: Option<u16>,
    rtcp_datagrams: u64,
    events: Outbox,
}

impl DarwinPlayer {
    /// Makes a player of `url`. The SSRC and the times of reports are drawn from `seed` and `flow`.
    pub fn new(settings: PlayerSettings, url: &str, flow: &str, seed: u64) -> Self {
        DarwinPlayer {
            client: Client::new(url),
            ssrc: RandomStream::named(seed, flow, "darwin_player").bits() as u32,
            reader: Reader::default(),
            connection: Backlog::new(RTSP),
            phase: Phase::Connecting,
            tracks: Vec::new(),
            main: 0,
            playout: None,
            duration: None,
            from: settings.begin,
            alone: false,
            left_out: Vec::new(),
            passed_over: Vec::new(),
            early: Vec::new(),
            play_asked: None,
            paused: false,
            heard: Instant::ZERO,
            reports: Reports::new(
                settings.report_interval,
                RandomStream::named(seed, flow, "darwin_player_reports"),
            ),
            next_report: None,
            keep: false,
            refused: None,
            rtcp_datagrams: 0,
            events: Outbox::default(),
            settings,
        }
    }

    /// Keeps the received units for `take_unit`; a trial keeps nothing. Call it before the start.
    pub fn keep_units(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// Returns the next unit that has been shown or given up, in its track's order of decoding: up to 16 of a track
    /// wait for one that is decoded before them and shown after them, until the end.
    pub fn take_unit(&mut self) -> Option<ReceivedUnit> {
        self.playout.as_mut()?.take_unit()
    }

    /// Returns the track that events describe, by its number among those of `take_unit`, and its description by the
    /// server: that with pictures, or else the first. `None` before it is known.
    pub fn main_track(&self) -> Option<(usize, &TrackDescription)> {
        self.tracks.get(self.main).map(|track| (self.main, &track.description))
    }

    /// Tracks that are not played, each with the reason.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Returns the server's claims that its packets disprove, each with the reason.
    pub(super) fn passed_over(&self) -> Vec<String> {
        let of_tracks = self.tracks.iter().filter_map(|track| {
            let wrong = track.passed_over.as_ref()?;
            Some(format!("RTP-Info of {} ({wrong})", track.description.name()))
        });
        self.passed_over.iter().cloned().chain(of_tracks).collect()
    }

    /// Returns the status of the last answer that was no success: a player continues without some things, without
    /// others it ends.
    pub(super) fn refused(&self) -> Option<u16> {
        self.refused
    }

    /// Returns the count of RTCP datagrams sent by UDP.
    pub(super) fn rtcp_datagrams(&self) -> u64 {
        self.rtcp_datagrams
    }

    /// Returns whether Reliable UDP was granted.
    pub(super) fn has_reliable_udp(&self) -> bool {
        self.tracks.iter().any(|track| track.reliable)
    }

    fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    /// Handles a packet of the track's media.
    fn media(&mut self, now: Instant, track: usize, packet: &Chunk) {
        self.heard = now;
        let Some(playout) = &mut self.playout else {
            if self.early.len() < MOST_EARLY {
                self.early.push((track, packet.clone()));
            }
            return;
        };
        let taken = self.tracks[track].media(now, packet);
        if let Some(timeline) = self.tracks[track].take_anchor() {
            playout.anchor(track, timeline);
        }
        let Some(media) = taken else { return };
        if !playout.is_anchored(track) {
            let timeline = self.tracks[track].timeline(media.place.timestamp, self.from);
            playout.anchor(track, timeline);
        }
        let payload = self.keep.then(|| {
            let mut payload = packet.clone().split_off(media.payload_at);
            let _ = payload.split_off(payload.len() - media.padding);
            payload
        });
        playout.arrived(now, track, media.place, payload, &mut self.events);
        if media.opens {
            playout.begins_with(track, media.place.timestamp);
        }
        if media.before_another {
            playout.begins_at(now, track, media.place.sequence.wrapping_add(1));
        }
    }

    fn control(&mut self, now: Instant, track: usize, datagram: &Chunk) {
        self.heard = now;
        let bye = self.tracks[track].control(now, datagram.head(), self.settings.follow_ack_hints);
        if bye
            && track == self.main
            && let Some(playout) = &mut self.playout
        {
            playout.nothing_more("the server said goodbye");
        }
    }

    fn datagram(&mut self, now: Instant, input: Input<'_>) {
        let Input::Datagram { on: channel, bytes: datagram, .. } = input else { return };
        let place = self.tracks.iter().zip(0..).find_map(|(track, index)| {
            let (rtp, rtcp) = track.channels?;
            (channel == rtp || channel == rtcp).then_some(index)
        });
        if let Some(track) = place {
            self.packet(now, track, datagram);
        }
    }

    /// Handles a packet of a track's pair of channels. Either channel may carry it: RTCP's types are none of RTP's (RFC
    /// 5761 section 4).
    fn packet(&mut self, now: Instant, track: usize, packet: &Chunk) {
        if packet.head().get(1).is_some_and(|kind| (200..=207).contains(kind)) {
            self.control(now, track, packet);
        } else {
            self.media(now, track, packet);
        }
    }

    /// Returns the track with packets on `channel` of the connection.
    fn track_of(&mut self, channel: u8, packet: &Chunk) -> Option<usize> {
        let has =
            |track: &Track| track.interleaved.is_some_and(|(rtp, rtcp)| channel == rtp || channel == rtcp);
        if let Some(index) = self.tracks.iter().position(has) {
            return Some(index);
        }
        // Some servers use other channels than they announced.
        let is_its = |track: &Track| track.interleaved.is_some() && track.source.is_awaited(packet);
        let index = self.tracks.iter().position(is_its)?;
        self.tracks[index].interleaved = Some((channel, channel.wrapping_add(1)));
        Some(index)
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
                        if let Some(track) = self.track_of(channel, &packet) {
                            self.packet(now, track, &packet);
                        }
                    }
                    // Drops a peer that keeps sending requests without reading replies.
                    Ok(RtspItem::Request(_)) if self.connection.is_full() => {}
                    Ok(RtspItem::Request(request)) => self.connection.push(Client::answer(&request), io),
                    Ok(RtspItem::Response(response)) => {
                        if !response.status().is_success() {
                            self.refused = Some(response.status().into());
                        }
                        self.response(now, response, io);
                    }
                    Err(problem) if problem.is_fatal() || self.phase == Phase::SettingUp => {
                        self.give_up(now, format!("the server's answer cannot be read: {problem}"), io);
                    }
                    // The next message can be read.
                    Err(_) => {}
                }
            }
        }
    }

    /// Sends RTCP of `track`.
    fn send_control(&mut self, track: usize, datagram: Vec<u8>, io: &mut dyn Io) {
        let (track, datagram) = (&self.tracks[track], Chunk::bytes(datagram));
        match track.interleaved {
            None => {
                if let Some((_, rtcp)) = track.channels {
                    self.rtcp_datagrams += 1;
                    io.send(rtcp, datagram);
                }
            }
            // On a connection that is stuck the next report replaces this one.
            Some((_, rtcp)) if self.connection.is_clear() => {
                self.connection.push(interleave(rtcp, &datagram), io);
            }
            Some(_) => {}
        }
    }

    fn report(&mut self, now: Instant, bye: bool, io: &mut dyn Io) {
        for index in 0..self.tracks.len() {
            let track = &self.tracks[index];
            let client =
                (self.settings.client_reports && track.reliable).then(|| self.client_report(now, index));
            let (datagram, block) = self.tracks[index].report(now, self.ssrc, client, bye);
            self.send_control(index, datagram, io);
            if let Some(block) = block.filter(|_| index == self.main && !bye) {
                let ticks = f64::from(self.tracks[index].description.clock_rate);
                self.events.say(now, "jitter", f64::from(block.jitter) / ticks, "s", "");
                self.events.say(now, "fraction_lost", f64::from(block.fraction_lost) / 256.0, "1", "");
                self.events.say(now, "cumulative_lost", f64::from(block.cumulative_lost), "1", "");
            }
        }
    }

    /// Returns the playout's part of a client report.
    fn client_report(&self, now: Instant, track: usize) -> ClientReport {
        let overbuffer_window = self.settings.overbuffer_window;
        let Some(playout) = self.playout.as_ref().filter(|_| track == self.main) else {
            return ClientReport { overbuffer_window, ..ClientReport::default() };
        };
        let stats = playout.stats();
        let (buffer, prebuffer) = (playout.buffer(now).as_nanos(), self.settings.prebuffer.as_nanos().max(1));
        let late_ms = stats.lateness.as_nanos() / 1_000_000 / stats.late.max(1);
        let short = |number: u64| Some(u16::try_from(number).unwrap_or(u16::MAX));
        ClientReport {
            late_ms: short(late_ms),
            buffer_delay_ms: short(buffer / 1_000_000),
            buffer_fill: short((u128::from(buffer) * 100 / u128::from(prebuffer)).min(100) as u64),
            packets_dropped: short(self.tracks[track].source.reception().counts().duplicates),
            overbuffer_window,
            ..ClientReport::default()
        }
    }

    /// Asks the server to hold or to continue, if its state differs from the wanted one.
    fn steer(&mut self, now: Instant, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        if client.asked().is_some() || !self.connection.is_open() {
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
        let was_playing = self.is_playing();
        self.next_report = None;
        self.early.clear();
        if !self.client.as_ref().is_ok_and(Client::has_session) || !self.connection.is_open() {
            self.phase = Phase::Gone;
            return self.connection.close(io);
        }
        if was_playing {
            self.report(now, true, io);
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
            if playout.has_ended() {
                self.leave(now, io);
            }
        }
        if self.is_playing() {
            for index in 0..self.tracks.len() {
                if let Some(datagram) = self.tracks[index].take_acks(now, self.ssrc) {
                    self.send_control(index, datagram, io);
                }
            }
            if self.next_report.is_some_and(|at| at <= now) {
                self.report(now, false, io);
                self.next_report = Some(self.reports.next(now));
            }
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

impl App for DarwinPlayer {
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
            Input::Datagram { .. } => self.datagram(now, input),
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
        let acks = self.tracks.iter().filter(|_| self.is_playing()).filter_map(|track| track.acks.due());
        let client = self.client.as_ref().ok().filter(|_| self.connection.is_open());
        let keep_alive = client.and_then(Client::keep_alive_at);
        acks.chain(self.next_report)
            .chain(keep_alive)
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
