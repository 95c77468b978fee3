//! The end that shows.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Event, Instant};

use super::fetch::{Fetch, Over};
use super::film::Film;
use super::source::Source;
use super::spec::HttpPlayerSettings;
use crate::app::{App, Input, Io};
use crate::media::Asset;
use crate::outbox::{MEDIA_END, Outbox};
use crate::playout::{Gathers, HostLate, Manner, Playout, PlayoutStats, Start};

/// Plays one file while it is received: an MP4 or QuickTime file with its moov box in front.
///
/// Which frames are whole follows from the file's own tables and the bytes that have come. A program that
/// needs the bytes (to pass them to a decoder or write them to a file) calls [`HttpPlayer::keep_bytes`]
/// before the start and takes them by [`HttpPlayer::take_bytes`] after each input; a trial keeps none.
///
/// Events: `http_request` (value: the first byte asked for; the reason is target and Range), `http_failure`
/// (value: connections that failed one after another; the cause), `download_off` and `download_on` (s of
/// media held when reading stops and resumes), `playout_start` (s since the first request), `frame_shown`
/// (value: the frame's number), `stall` (value: the frame waited for) and `resume` (s stalled), `buffer` (s
/// of media held, at most each 0.5 s), at last `media_end` (frames shown; the cause of the end).
pub struct HttpPlayer {
    settings: HttpPlayerSettings,
    fetch: Fetch,
    film: Film,
    playout: Option<Playout>,
    started: bool,
    /// Whether it holds enough media that reading has stopped.
    is_off: bool,
    /// When reading resumes.
    on_at: Option<Instant>,
    paused: bool,
    gone: bool,
    kept: Option<VecDeque<Chunk>>,
    events: Outbox,
}

impl HttpPlayer {
    /// Returns the player of `source`.
    pub fn new(settings: HttpPlayerSettings, source: Source) -> Self {
        HttpPlayer {
            fetch: Fetch::new(source, settings.clone()),
            settings,
            film: Film::default(),
            playout: None,
            started: false,
            is_off: false,
            on_at: None,
            paused: false,
            gone: false,
            kept: None,
            events: Outbox::default(),
        }
    }

    /// Allows requests to these hosts too. Call it before the start.
    pub fn allow_hosts(&mut self, hosts: &[String]) {
        self.fetch.allow(hosts);
    }

    /// Keeps the file's bytes for `take_bytes`. Call it before the start.
    pub fn keep_bytes(&mut self) {
        self.kept = Some(VecDeque::new());
    }

    /// Returns the file's next bytes, from its first on and without a gap.
    pub fn take_bytes(&mut self) -> Option<Chunk> {
        self.kept.as_mut()?.pop_front()
    }

    /// Tracks and units of the file, once its moov box has come.
    pub fn asset(&self) -> Option<&Asset> {
        self.film.asset()
    }

    /// Returns the outcomes of the pictures so far.
    pub fn fates(&self) -> PlayoutStats {
        self.playout.as_ref().map(Playout::stats).unwrap_or_default()
    }

    /// Returns the time from the first request to the first picture's time.
    pub fn startup(&self) -> Option<Duration> {
        self.playout.as_ref()?.startup()
    }

    /// Returns the received bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.fetch.at()
    }

    /// Returns the bytes of the whole file, once they are known.
    pub fn length(&self) -> Option<u64> {
        self.fetch.length()
    }

    /// Returns the media held, from the play position to the newest received.
    pub fn buffer(&self, now: Instant) -> Duration {
        self.playout.as_ref().map_or(Duration::ZERO, |playout| playout.buffer(now))
    }

    /// Returns where play is in the media.
    pub fn position(&self, now: Instant) -> Duration {
        let Some(playout) = &self.playout else { return Duration::ZERO };
        let position = playout.position(now);
        // The clock runs to the media's end, where less than the last second is missing. A cut file does not reach it.
        let is_cut = self.length().is_some_and(|length| self.bytes() < length);
        if playout.has_ended() && is_cut { position.min(playout.reach()) } else { position }
    }

    /// Returns the status of the last answer that brought nothing of the file.
    pub fn refused(&self) -> Option<u16> {
        self.fetch.refusal()
    }

    /// Returns whether the file cannot be played, or cannot be fetched.
    pub fn is_unplayable(&self) -> bool {
        self.asset().is_none() && (self.bytes() > 0 || self.fetch.is_refused())
    }

    fn manner(&self) -> Manner {
        Manner {
            start: Start::Gathered,
            prebuffer: self.settings.prebuffer,
            rebuffer: self.settings.rebuffer,
            gathers: Gathers::Whole,
            host_late: HostLate::Forgiven,
            stalls: true,
            in_order: true,
        }
    }

    /// Decides whether to read more, by the held media.
    fn decide(&mut self, now: Instant) {
        let (Some((most, again)), Some(playout)) = (self.settings.read_between(), &self.playout) else {
            return;
        };
        let held = playout.buffer(now);
        if !self.is_off && held >= most && playout.is_playing() {
            self.is_off = true;
            self.events.say(now, "download_off", held.as_secs_f64(), "s", "");
        } else if self.is_off && (held <= again || !playout.is_playing()) {
            self.is_off = false;
            self.fetch.go_on(now);
            self.events.say(now, "download_on", held.as_secs_f64(), "s", "");
        }
        let left = held.saturating_sub(again).max(Duration::from_nanos(1));
        self.on_at = (self.is_off && !self.paused).then(|| now + left);
    }

    fn take(&mut self, now: Instant, bytes: Chunk, io: &mut dyn Io) {
        match self.film.take(&bytes, self.fetch.length()) {
            Ok(true) => {
                let asked = self.fetch.asked_at().unwrap_or(now);
                self.playout = self.film.playout(self.manner(), asked);
            }
            Ok(false) => {}
            Err(error) => {
                let called = match self.fetch.content_type() {
                    "" => String::new(),
                    called => format!(" (the server calls it {called})"),
                };
                return self.end(now, &format!("the file cannot be played{called}: {error}"), io);
            }
        }
        if let Some(playout) = &mut self.playout {
            self.film.tell(now, playout, &mut self.events);
        }
        if let Some(kept) = &mut self.kept {
            kept.push_back(bytes);
        }
    }

    fn advance(&mut self, now: Instant) {
        if let Some(playout) = &mut self.playout {
            playout.advance(now, &mut self.events);
        }
    }

    /// Ends the input: held media are played.
    fn come_to_end(&mut self, now: Instant, io: &mut dyn Io) {
        let (why, is_cut) = match self.fetch.over() {
            None => return,
            Some(Over::Failed(why)) => (why.clone(), true),
            Some(Over::Done) if self.film.missing() > 0 => {
                ("the file ends before its last frame".into(), true)
            }
            Some(Over::Done) => ("all of the file came".into(), false),
        };
        match &mut self.playout {
            None if is_cut => self.end(now, &why, io),
            None => self.end(now, "the file ends before its moov box", io),
            Some(playout) if !playout.is_over() => {
                if is_cut {
                    playout.break_off(why);
                } else {
                    playout.nothing_more(why);
                }
                self.advance(now);
            }
            Some(_) => {}
        }
    }

    /// Ends at once.
    fn end(&mut self, now: Instant, why: &str, io: &mut dyn Io) {
        match &mut self.playout {
            Some(playout) => playout.end(now, why.to_owned(), &mut self.events),
            None => self.events.say(now, MEDIA_END, 0.0, "1", why.to_owned()),
        }
        self.leave(io);
    }

    fn leave(&mut self, io: &mut dyn Io) {
        self.gone = true;
        self.fetch.close(io);
    }

    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        loop {
            self.advance(now);
            self.decide(now);
            if self.is_off || self.gone {
                break;
            }
            match self.fetch.next(now, io, &mut self.events) {
                Some(bytes) => self.take(now, bytes, io),
                None => break,
            }
        }
        if !self.gone {
            self.come_to_end(now, io);
        }
        if !self.gone && self.playout.as_ref().is_some_and(Playout::has_ended) {
            self.leave(io);
        }
    }
}

impl App for HttpPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        let (fetch, events) = (&mut self.fetch, &mut self.events);
        match input {
            Input::Start => self.started = true,
            Input::Opened(channel) => fetch.opened(now, channel),
            Input::Refused(channel, why) => fetch.refused(now, channel, why.to_string(), io, events),
            Input::Closed(channel, why) => fetch.closed(now, channel, why, io, events),
            Input::Writable(channel) => fetch.writable(channel, io),
            Input::Pause => {
                self.paused = true;
                if let Some(playout) = &mut self.playout {
                    playout.pause(now);
                }
            }
            Input::Resume => {
                self.paused = false;
                fetch.go_on(now);
                if let Some(playout) = &mut self.playout {
                    playout.resume(now);
                }
            }
            Input::Stop if self.started && !self.gone => self.end(now, "stopped", io),
            _ => {}
        }
        if !self.started || self.gone {
            return;
        }
        if !self.is_off && !self.paused {
            self.fetch.look(now, io, &mut self.events);
        }
        self.work(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.started || self.gone {
            return None;
        }
        let fetch = self.fetch.next_event().filter(|_| !self.is_off && !self.paused);
        let playout = self.playout.as_ref().and_then(Playout::next_event);
        fetch.into_iter().chain(playout).chain(self.on_at).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}
