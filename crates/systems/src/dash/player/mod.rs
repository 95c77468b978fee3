//! The end that asks and shows.

mod abandoning;
mod asking;
mod beside;
mod clock;
mod coming;
mod content;
mod exchange;
mod fragment;
mod page;
mod parts;
mod requester;
pub mod settings;
#[cfg(test)]
mod tests;
mod track;

use std::collections::{BTreeSet, VecDeque};

use streamgauge_base::{Chunk, Duration, Event, Instant};

use self::clock::{Clock, Shelf};
use self::content::Content;
use self::exchange::{Exchange, What};
use self::page::Page;
use self::requester::{Failure, Requester};
use self::settings::DashPlayerSettings;
use self::track::{Place, Track};
use super::manifest::{Address, Live, Manifest};
use crate::abr::{self, Rule, Situation};
use crate::app::{App, ChannelId, CloseReason, Input, Io};
use crate::http::Source;
use crate::outbox::{MEDIA_END, Outbox};
use crate::playout::PlayoutStats;
use crate::standalone::Shows;

/// A rule is asked about a segment on its way at most this far apart.
const ABANDON_TIMER: Duration = Duration::from_millis(100);

/// Time between two events `live_latency`.
const LATENCY_EVENTS: Duration = Duration::from_millis(500);

/// A live playlist or manifest is asked for at most this often.
const LEAST_RELOAD: Duration = Duration::from_millis(500);

/// The distance from the live edge at which play begins, in segments, if the manifest has none (RFC 8216 section
/// 6.3.3).
const LIVE_SEGMENTS: u64 = 3;

/// Plays a presentation: DASH or HLS, on demand or live.
///
/// Pictures are those of each period's main set. The same holds for sound, if it has a set of its own. A segment counts
/// when it is complete.
///
/// Events, each with the meaning of its value and its reason:
/// - `http_request`: the first byte of the range; the target
/// - `decision`: bit/s of the rule's level; the reason, with estimate and buffer
/// - `estimate`: bit/s
/// - `segment_fetched`: bit/s of its transfer; its number, size and time
/// - `segment_from_cache`: bit/s of its level; its number
/// - `manifest_flaw`: s at which segments are missing or double; the place
/// - `segment_abandoned`: received bytes; the reason
/// - `segment_skipped`: its number; the reason
/// - `http_failure`: failed attempts; the reason
/// - `download_off` and `download_on`: s held when the buffer is full and when it has room
/// - `http_redirect`: the status; the new address
/// - `segment_shown` and `level_changed`: bit/s, when it is shown, and when another replaces one that is shown
/// - `frame_shown`: its number
/// - `playout_start`: s since the first request
/// - `stall`: their count
/// - `resume`: s stalled
/// - `gap_jumped`: s
/// - `buffer`: s held, each 0.5 s
/// - `live_latency`: s from capture to the play position, each 0.5 s
/// - `media_end`, the last: pictures shown; the reason of the end
pub struct DashPlayer {
    settings: DashPlayerSettings,
    source: Source,
    seed: u64,
    page: Page,
    lines: Vec<Line>,
    /// The line of initialization segments, where they have one of their own.
    beside: Option<usize>,
    tracks: Vec<Track>,
    content: Content,
    shelves: Vec<Shelf>,
    clock: Option<Clock>,
    manifest: Option<Manifest>,
    /// The manifest's address, and when it was read.
    manifest_at: Address,
    manifest_read: Instant,
    manifest_failures: u32,
    manifest_again: Option<Instant>,
    /// Its bytes, where it names several copies of something.
    manifest_bytes: Vec<u8>,
    /// Copies with a failed request.
    failed_copies: BTreeSet<String>,
    /// The parts that are not played, in words.
    left_out: Vec<String>,
    /// The session has ended because this player does not support the content.
    is_refused: bool,
    /// The server's clock at the session's instant zero, as its answer to the manifest had it.
    server_zero: Option<f64>,
    asked_at: Option<Instant>,
    started: bool,
    paused: bool,
    gone: bool,
    /// Hosts that it may ask beside the manifest's own.
    allowed: Vec<String>,
    bytes: u64,
    last_latency: Option<Instant>,
    last_refusal: Option<u16>,
    kept: Option<VecDeque<Chunk>>,
    /// When it was last given something to do.
    now: Instant,
    events: Outbox,
}

/// A connection and the requests on it.
struct Line {
    requester: Requester,
    exchanges: VecDeque<Exchange>,
    /// Reading has stopped since then, the buffer being full.
    held_off: Option<Instant>,
}

impl DashPlayer {
    /// Plays the MPD or playlist that `source` names. `seed` is for the draws of its rules.
    pub fn new(settings: DashPlayerSettings, source: Source, seed: u64) -> Self {
        let url = format!("http://{}{}", source.host, source.target);
        DashPlayer {
            lines: vec![Line::new(&source, &settings)],
            beside: None,
            settings,
            source,
            seed,
            page: Page::new(seed),
            tracks: Vec::new(),
            content: Content::default(),
            shelves: Vec::new(),
            clock: None,
            manifest: None,
            manifest_at: Address { url, range: None },
            manifest_read: Instant::ZERO,
            manifest_failures: 0,
            manifest_again: None,
            manifest_bytes: Vec::new(),
            failed_copies: BTreeSet::new(),
            left_out: Vec::new(),
            is_refused: false,
            server_zero: None,
            asked_at: None,
            started: false,
            paused: false,
            gone: false,
            allowed: Vec::new(),
            bytes: 0,
            last_latency: None,
            last_refusal: None,
            kept: None,
            now: Instant::ZERO,
            events: Outbox::default(),
        }
    }

    /// Sets the server's clock at the session's instant zero to `zero`, since the Unix epoch. Without it the Date of
    /// the server's answers counts.
    pub fn with_server_clock(self, zero: Duration) -> Self {
        DashPlayer { server_zero: Some(zero.as_secs_f64()), ..self }
    }

    /// Keeps the pictures' bytes for `take_bytes`, each segment's once: none is replaced. Call it before the start.
    pub fn keep_bytes(&mut self) {
        (self.settings.fast_switch, self.settings.cache) = (false, false);
        self.kept = Some(VecDeque::new());
    }

    /// The next bytes of the pictures' initialisation and media segments, in order.
    pub fn take_bytes(&mut self) -> Option<Chunk> {
        self.kept.as_mut()?.pop_front()
    }

    /// The statistics of the pictures so far.
    pub fn fates(&self) -> PlayoutStats {
        self.clock.as_ref().map(Clock::stats).unwrap_or_default()
    }

    /// The pictures that count as shown, as far as segments have arrived.
    pub fn shows(&self) -> Shows {
        self.content.shows()
    }

    /// The parts of the presentation that are not played: sets, renditions, periods, tracks, each with the reason.
    pub fn left_out(&self) -> Vec<String> {
        self.left_out.iter().chain(self.content.left_out()).cloned().collect()
    }

    /// Bytes by time of the segments that were shown, bit/s.
    pub fn measured_bps(&self) -> Option<f64> {
        self.clock.as_ref()?.measured_bps()
    }

    /// From the first request to the first picture's time.
    pub fn startup(&self) -> Option<Duration> {
        self.clock.as_ref()?.startup()
    }

    /// Received bytes of bodies, abandoned ones included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Media held of the pictures.
    pub fn buffer(&self, now: Instant) -> Duration {
        let (Some(clock), Some(shelf)) = (&self.clock, self.shelves.first()) else { return Duration::ZERO };
        clock.buffer(now, shelf)
    }

    /// Where play is in the presentation.
    pub fn position(&self, now: Instant) -> Duration {
        self.clock.as_ref().map_or(Duration::ZERO, |clock| clock.position(now))
    }

    /// How long the presentation plays, if it has an end.
    pub fn duration(&self) -> Option<Duration> {
        self.manifest.as_ref()?.duration
    }

    /// A manifest was read.
    pub fn has_manifest(&self) -> bool {
        self.manifest.is_some()
    }

    /// Returns whether the session ended because this player does not support the content, and nothing has been shown.
    pub fn is_unplayable(&self) -> bool {
        let is_none = !self.has_manifest() && self.bytes > 0;
        is_none || self.is_refused && self.startup().is_none()
    }

    /// Allows requests to these hosts too. Call it before the start.
    pub fn allow_hosts(&mut self, hosts: &[String]) {
        self.allowed.extend_from_slice(hosts);
        self.lines.iter_mut().for_each(|line| line.requester.allow(hosts));
    }

    /// The status of the last answer that was no success.
    pub fn refused(&self) -> Option<u16> {
        self.last_refusal
    }

    /// Since the first request, as rules count.
    fn since(&self, now: Instant) -> Duration {
        self.asked_at.map_or(Duration::ZERO, |asked| now.saturating_since(asked))
    }

    fn live(&self) -> Option<Live> {
        self.manifest.as_ref()?.live
    }

    /// The server's clock, since the epoch, for a live stream with a known start.
    fn server_now(&self, now: Instant) -> Duration {
        let seconds = self.server_zero.unwrap_or(0.0) + now.as_secs_f64();
        Duration::from_nanos((seconds.max(0.0) * 1e9) as u64)
    }

    /// The time by which play is behind the capture.
    fn latency(&self, now: Instant) -> Option<Duration> {
        let starts = self.live()?.starts?;
        Some(self.server_now(now).saturating_sub(starts + self.position(now)))
    }

    fn situation(&self, now: Instant, track: usize) -> Situation<'_> {
        let one = &self.tracks[track];
        let live = self.latency(now).map(|latency| abr::Live {
            latency,
            target: self.live_delay(one.ladder.segment),
            speed: 1.0,
        });
        Situation {
            now: self.since(now),
            ladder: &one.ladder,
            segment: one.next as usize,
            level: one.level,
            buffer: self
                .clock
                .as_ref()
                .map_or(Duration::ZERO, |clock| clock.buffer(now, &self.shelves[track])),
            target: self.settings.buffer,
            playing: self.clock.as_ref().is_some_and(Clock::is_playing),
            live,
        }
    }

    /// The decision of the track's rule, which is taken out while it reads the rest.
    fn with_rule<T>(
        &mut self,
        now: Instant,
        track: usize,
        ask: impl FnOnce(&mut dyn Rule, &Situation<'_>) -> T,
    ) -> T {
        let mut rule = std::mem::replace(&mut self.tracks[track].rule, Box::new(Absent));
        let said = ask(&mut *rule, &self.situation(now, track));
        self.tracks[track].rule = rule;
        said
    }

    fn live_delay(&self, segment: Duration) -> Duration {
        let told = self.live().and_then(|live| live.delay);
        self.settings.live_delay.or(told).unwrap_or(segment * LIVE_SEGMENTS)
    }

    /// The line that a track's segments come by.
    fn line_of(&self, track: usize) -> usize {
        if track < self.lines.len() && self.beside != Some(track) { track } else { 0 }
    }

    fn advance(&mut self, now: Instant) {
        let Some(clock) = &mut self.clock else { return };
        for (place, shelf) in self.shelves.iter_mut().enumerate() {
            let on_its_way = self.lines.iter().flat_map(|line| &line.exchanges);
            let of_track =
                |exchange: &Exchange| matches!(exchange.what, What::Segment(track, ..) if track == place);
            shelf.complete = self.tracks[place].is_complete && !on_its_way.into_iter().any(of_track);
        }
        clock.advance(now, &mut self.shelves, &mut self.events);
        if clock.take_underrun() {
            self.tracks.iter_mut().for_each(|track| track.rule.ran_dry());
        }
        let is_time = self.last_latency.is_none_or(|last| now.saturating_since(last) >= LATENCY_EVENTS);
        if is_time
            && self.clock.as_ref().is_some_and(Clock::is_playing)
            && let Some(latency) = self.latency(now)
        {
            self.last_latency = Some(now);
            self.events.say(now, "live_latency", latency.as_secs_f64(), "s", "");
        }
    }

    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        loop {
            self.advance(now);
            for line in 0..self.lines.len() {
                self.hold_off(now, line);
                if let Some(failure) = self.look(now, line, io) {
                    self.failed(now, line, failure, io);
                }
                if self.gone {
                    return;
                }
                self.consider_abandoning(now, line, io);
            }
            self.ask_more(now, io);
            let mut has_come = false;
            for line in 0..self.lines.len() {
                has_come |= !self.gone && self.take(now, line, io);
            }
            if !has_come {
                break;
            }
        }
        self.advance(now);
        if !self.gone && self.clock.as_ref().is_some_and(Clock::has_ended) {
            self.leave(io);
        }
    }

    fn look(&mut self, now: Instant, line: usize, io: &mut dyn Io) -> Option<Failure> {
        let one = &mut self.lines[line];
        if one.held_off.is_some() || self.paused || one.exchanges.is_empty() {
            return None;
        }
        one.requester.look(now, io)
    }

    /// Ends at once.
    fn end(&mut self, now: Instant, why: &str, io: &mut dyn Io) {
        if self.gone {
            return;
        }
        self.advance(now);
        match &mut self.clock {
            Some(clock) => clock.end(now, why, &mut self.events),
            None => self.events.say(now, MEDIA_END, 0.0, "1", why.to_owned()),
        }
        self.leave(io);
    }

    fn leave(&mut self, io: &mut dyn Io) {
        self.gone = true;
        self.lines.iter_mut().for_each(|line| line.requester.cancel(io));
    }

    fn line_with(&mut self, channel: ChannelId) -> Option<usize> {
        self.lines.iter().position(|line| line.requester.has(channel))
    }

    fn closed(&mut self, now: Instant, channel: ChannelId, why: CloseReason, io: &mut dyn Io) {
        let Some(line) = self.line_with(channel) else {
            if why == CloseReason::Finished {
                io.close(channel);
            }
            return;
        };
        if let Some(failure) = self.lines[line].requester.closed(why) {
            self.failed(now, line, failure, io);
        }
    }

    /// The time at which the rule wants to be asked about the segment in flight.
    fn looks_again(&self, exchange: &Exchange) -> Option<Instant> {
        let track = exchange.what.track()?;
        Some(self.asked_at? + self.tracks[track].rule.looks_again()?)
    }

    /// The time of the next action.
    fn next_event(&self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut at = |time: Option<Instant>| {
            // Every due action is done, or waits for an event.
            if let Some(time) = time.filter(|time| *time > now) {
                next = Some(next.map_or(time, |next: Instant| next.min(time)));
            }
        };
        at(self.clock.as_ref().and_then(|clock| clock.next_event(&self.shelves)));
        at(self.clock.as_ref().and_then(Clock::ready));
        if self.paused {
            return next;
        }
        at(self.manifest_again);
        at(self.manifest_due().filter(|_| self.lines[0].exchanges.is_empty()));
        for line in &self.lines {
            match line.held_off {
                Some(_) => {
                    if let (Some(What::Segment(track, ..)), Some(clock)) =
                        (line.exchanges.front().map(|exchange| exchange.what), &self.clock)
                    {
                        at(clock.falls_to(now, &self.shelves[track], self.settings.buffer));
                    }
                }
                None => {
                    at(line.requester.deadline().filter(|_| !line.exchanges.is_empty()));
                    let asked =
                        line.exchanges.front().filter(|exchange| matches!(exchange.what, What::Segment(..)));
                    at(asked.map(|exchange| exchange.asked_rule.unwrap_or(exchange.asked) + ABANDON_TIMER));
                    at(asked.and_then(|exchange| self.looks_again(exchange)));
                    at(asked.and_then(|exchange| exchange.reads));
                }
            }
        }
        for (place, track) in self.tracks.iter().enumerate() {
            if track.is_complete {
                continue;
            }
            at(track.again);
            at(track.chosen.map(|chosen| chosen.from).filter(|from| *from > now));
            if !self.has_room_for_request(place) {
                continue;
            }
            if track.look.is_some() {
                at(track.look);
            } else if track.off.is_some()
                && let Some(clock) = &self.clock
                && clock.is_playing()
            {
                // The time at which the held media falls below the buffer's size.
                let over = self.held_or_asked(now, place).saturating_sub(self.full(place));
                at(Some(now + over.max(Duration::from_nanos(1))));
            }
            let known = track.indexes.iter().position(Option::is_some);
            if let Some(known) = known
                && let Place::Found(segment) = track.place(track.level.unwrap_or(known), track.next)
            {
                at(self.available_at(&segment).filter(|at| *at > now));
            }
            at(track.reload.filter(|at| *at > now));
        }
        next
    }
}

impl Line {
    fn new(source: &Source, settings: &DashPlayerSettings) -> Self {
        Line { requester: Requester::new(source, settings), exchanges: VecDeque::new(), held_off: None }
    }
}

/// In a rule's place while it is asked.
struct Absent;

impl Rule for Absent {
    fn decide(&mut self, _: &Situation<'_>) -> abr::Decision {
        abr::Decision::at_once(0, None, "")
    }
}

impl App for DashPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.started = true,
            Input::Opened(channel) => {
                if let Some(line) = self.line_with(channel) {
                    self.lines[line].requester.opened(now, io);
                }
            }
            Input::Refused(channel, why) => {
                if let Some(line) = self.line_with(channel)
                    && let Some(failure) = self.lines[line].requester.refused(why.to_string())
                {
                    self.failed(now, line, failure, io);
                }
            }
            Input::Closed(channel, why) => self.closed(now, channel, why, io),
            Input::Writable(channel) => {
                if let Some(line) = self.line_with(channel) {
                    self.lines[line].requester.writable(io);
                }
            }
            Input::Pause => {
                self.paused = true;
                if let Some(clock) = &mut self.clock {
                    clock.pause(now);
                }
            }
            Input::Resume => {
                self.paused = false;
                self.lines.iter_mut().for_each(|line| line.requester.go_on(now));
                if let Some(clock) = &mut self.clock {
                    clock.resume(now);
                }
            }
            Input::Stop if self.started && !self.gone => self.end(now, "stopped", io),
            _ => {}
        }
        if self.started && !self.gone {
            self.work(now, io);
        }
        self.now = now;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.started || self.gone {
            return None;
        }
        self.next_event(self.now)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}
