//! The times at which media is shown: a clock that gathers, runs, stalls and jumps over skipped media.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

use crate::outbox::{MEDIA_END, Outbox};
use crate::playout::PlayoutStats;

/// Times that differ by less are the same: a manifest's are rounded.
pub(super) const ROUNDING: Duration = Duration::from_millis(20);

/// Least time between two events `buffer`.
const BUFFER_EVENTS: Duration = Duration::from_millis(500);

/// Pictures are reported at least this often. If the session ends in between, no more is missing than a freeze's time
/// (Identifiers for WebRTC's Statistics API, `freezeCount`).
const SHOWS_EACH: Duration = Duration::from_millis(100);

/// A complete segment that has not been shown completely.
#[derive(Clone, PartialEq, Debug)]
pub struct Held {
    /// Its number among the track's, from 0.
    pub ordinal: u64,
    /// When it begins and ends in the presentation.
    pub start: Duration,
    /// When it ends.
    pub end: Duration,
    /// Its level's declared rate, bit/s; 0 where none is declared.
    pub bps: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Pictures in it; 0 if that is not known.
    pub frames: u32,
    /// A filler for a period that has nothing of the track's kind.
    pub is_filler: bool,
    /// When each is shown, from the first; without that they are shown evenly.
    pub times: Vec<Duration>,
}

/// The media that one track holds.
#[derive(Default)]
pub struct Shelf {
    held: VecDeque<Held>,
    /// The last that was shown whole.
    past: Option<Held>,
    /// Nothing more will come.
    pub complete: bool,
    /// The number of shown pictures of its first segment, and whether that has begun.
    shown: u32,
    begun: bool,
    /// The numbers of its first picture, and of the next one after all that were shown.
    first: u64,
    next: u64,
}

impl Shelf {
    /// Takes the next segment, or another in a held one's place; play is at `position`. If that one is being shown, its
    /// pictures from here on are the other's.
    pub fn push(&mut self, segment: Held, position: Duration) {
        match self.held.iter().position(|held| held.ordinal == segment.ordinal) {
            Some(place) => {
                self.begun &= place > 0;
                self.held[place] = segment;
            }
            None if segment.end <= position => {
                // It was already shown, at the level that arrived first.
                self.past =
                    self.past.take().map(|past| if past.ordinal == segment.ordinal { segment } else { past });
            }
            None => self.held.push_back(segment),
        }
    }

    /// The segment that is to be shown at that time, or was shown last.
    pub fn at(&self, time: Duration) -> Option<&Held> {
        self.held.iter().chain(&self.past).find(|held| held.start <= time && time < held.end)
    }

    /// Where the media ends that can be shown from `at` on without a gap.
    pub fn end(&self, at: Duration) -> Duration {
        let mut end = at;
        for segment in &self.held {
            if segment.start > end + ROUNDING {
                break;
            }
            end = end.max(segment.end);
        }
        end
    }

    /// The start of the next held media, at or after `at`.
    fn next_start(&self, at: Duration) -> Option<Duration> {
        let next = self.held.iter().find(|segment| segment.end > at + ROUNDING)?;
        Some(next.start.max(at))
    }

    fn is_empty_from(&self, at: Duration) -> bool {
        self.held.back().is_none_or(|segment| segment.end <= at + ROUNDING)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Gathering,
    Playing,
    Stalled { since: Instant },
    Ended,
}

/// The clock of a session.
pub struct Clock {
    prebuffer: Duration,
    rebuffer: Duration,
    state: State,
    /// The presentation's time `at` is shown at `base`.
    base: Instant,
    at: Duration,
    asked: Instant,
    /// Nothing is shown before.
    ready: Instant,
    paused: Option<Instant>,
    startup: Option<Duration>,
    stats: PlayoutStats,
    last_buffer: Option<Instant>,
    level_bps: Option<u64>,
    /// Bytes of the segments that were shown, and how long these play.
    shown: (u64, Duration),
    /// It ran dry since this was last asked.
    ran_dry: bool,
}

impl Held {
    /// When picture `number` of it is shown, from its beginning.
    fn offset(&self, number: u32) -> Duration {
        let span = self.end.saturating_sub(self.start);
        // Times that lead beyond the segment are not those of its manifest.
        let is_timed =
            self.times.len() == self.frames as usize && self.times.last().is_some_and(|last| *last < span);
        match self.times.get(number as usize).filter(|_| is_timed) {
            Some(time) => *time,
            None => {
                let even = u128::from(span.as_nanos()) * u128::from(number) / u128::from(self.frames.max(1));
                Duration::from_nanos(even as u64)
            }
        }
    }
}

impl Clock {
    /// A clock for a session that was requested at `asked` and begins at `from` in the presentation.
    pub fn new(prebuffer: Duration, rebuffer: Duration, asked: Instant, from: Duration) -> Self {
        Clock {
            prebuffer,
            rebuffer,
            state: State::Gathering,
            base: asked,
            at: from,
            asked,
            ready: asked,
            paused: None,
            startup: None,
            stats: PlayoutStats::default(),
            last_buffer: None,
            level_bps: None,
            shown: (0, Duration::ZERO),
            ran_dry: false,
        }
    }

    /// Shows nothing before `at`.
    pub fn wait_until(&mut self, at: Instant) {
        self.ready = at;
    }

    /// When it may run, while it does not.
    pub fn ready(&self) -> Option<Instant> {
        matches!(self.state, State::Gathering | State::Stalled { .. }).then_some(self.ready)
    }

    /// A picture was shown.
    pub fn has_begun(&self) -> bool {
        self.startup.is_some()
    }

    /// Where play is in the presentation.
    pub fn position(&self, now: Instant) -> Duration {
        match self.state {
            State::Playing => self.at + self.paused.unwrap_or(now).saturating_since(self.base),
            _ => self.at,
        }
    }

    /// It runs.
    pub fn is_playing(&self) -> bool {
        self.state == State::Playing
    }

    /// The end was reported.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// From the first request to the first picture.
    pub fn startup(&self) -> Option<Duration> {
        self.startup
    }

    /// The statistics of the pictures.
    pub fn stats(&self) -> PlayoutStats {
        self.stats
    }

    /// Bytes by time of the segments that were shown, bit/s.
    pub fn measured_bps(&self) -> Option<f64> {
        let (bytes, time) = self.shown;
        (time > Duration::ZERO).then(|| bytes as f64 * 8.0 / time.as_secs_f64())
    }

    /// Whether it ran dry since this was last asked.
    pub fn take_underrun(&mut self) -> bool {
        std::mem::take(&mut self.ran_dry)
    }

    /// Media held of a track.
    pub fn buffer(&self, now: Instant, shelf: &Shelf) -> Duration {
        let position = self.position(now);
        shelf.end(position).saturating_sub(position)
    }

    /// The time at which a track's media will be down to `left`, if nothing more arrives and the clock runs.
    pub fn falls_to(&self, now: Instant, shelf: &Shelf, left: Duration) -> Option<Instant> {
        if !self.is_playing() || self.paused.is_some() {
            return None;
        }
        Some(now + self.buffer(now, shelf).saturating_sub(left))
    }

    /// The viewer stops it.
    pub fn pause(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    /// The viewer lets it go on.
    pub fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused.take() {
            let paused = now.saturating_since(since);
            self.base += paused;
            if let State::Stalled { since } = &mut self.state {
                *since += paused;
            }
        }
    }

    /// The time of its next action, if nothing arrives.
    pub fn next_event(&self, shelves: &[Shelf]) -> Option<Instant> {
        if self.has_ended() || self.paused.is_some() {
            return None;
        }
        let buffer = self.last_buffer.map(|last| last + BUFFER_EVENTS);
        if !self.is_playing() {
            return buffer;
        }
        let dry = self.base + self.runs_to(shelves).saturating_sub(self.at).min(SHOWS_EACH);
        Some(buffer.map_or(dry, |buffer| buffer.min(dry)))
    }

    /// The position at which the clock stops if nothing more arrives. A track that has been shown completely stops
    /// nothing.
    fn runs_to(&self, shelves: &[Shelf]) -> Duration {
        let over = |shelf: &&Shelf| !(shelf.complete && shelf.is_empty_from(self.at));
        shelves.iter().filter(over).map(|shelf| shelf.end(self.at)).min().unwrap_or(self.at)
    }

    /// Does everything that is due by `now`. Pictures are those of the first shelf.
    pub fn advance(&mut self, now: Instant, shelves: &mut [Shelf], events: &mut Outbox) {
        if self.has_ended() || self.paused.is_some() {
            return;
        }
        self.start_if_enough(now, shelves, events);
        if !self.is_playing() && shelves.iter().all(|shelf| shelf.complete && shelf.is_empty_from(self.at)) {
            // The awaited media does not arrive any more.
            let has_begun = self.startup.is_some();
            let why = if has_begun { "played to the end" } else { "no segment came that could be played" };
            return self.end(now, why, events);
        }
        while self.is_playing() {
            let to = self.runs_to(shelves);
            let dry = self.base + to.saturating_sub(self.at);
            let until = dry.min(now);
            self.show(until, shelves, events);
            if dry > now {
                (self.at, self.base) = (self.position(now), now);
                break;
            }
            (self.base, self.at) = (dry, to);
            if shelves.iter().all(|shelf| shelf.complete && shelf.is_empty_from(to)) {
                return self.end(dry, "played to the end", events);
            }
            if let Some(start) = self.over_gap(shelves) {
                self.jump(dry, start, events);
                self.forget_before(shelves);
                continue;
            }
            self.state = State::Stalled { since: dry };
            self.stats.stalls += 1;
            self.ran_dry = true;
            events.say(
                dry,
                "stall",
                self.stats.stalls as f64,
                "1",
                format!("nothing held from {:.3} s on", to.as_secs_f64()),
            );
            self.start_if_enough(now, shelves, events);
        }
        self.say_buffer(now, shelves, events);
    }

    /// The position at which every track that is not over has media again, if the missing media was skipped and is not
    /// only late.
    fn over_gap(&self, shelves: &[Shelf]) -> Option<Duration> {
        let waits = shelves.iter().filter(|shelf| !(shelf.complete && shelf.is_empty_from(self.at)));
        let mut to = self.at;
        for shelf in waits {
            to = to.max(shelf.next_start(self.at)?);
        }
        (to > self.at + ROUNDING).then_some(to)
    }

    fn jump(&mut self, now: Instant, to: Duration, events: &mut Outbox) {
        let jumped = to.saturating_sub(self.at);
        events.say(now, "gap_jumped", jumped.as_secs_f64(), "s", "what was skipped is passed over");
        self.at = to;
    }

    fn forget_before(&mut self, shelves: &mut [Shelf]) {
        for (place, shelf) in shelves.iter_mut().enumerate() {
            while shelf.held.front().is_some_and(|segment| segment.end <= self.at + ROUNDING) {
                shelf.past = shelf.held.pop_front();
                if place == 0 {
                    (shelf.shown, shelf.begun) = (0, false);
                }
            }
        }
    }

    fn start_if_enough(&mut self, now: Instant, shelves: &[Shelf], events: &mut Outbox) {
        let wanted = match self.state {
            State::Gathering | State::Stalled { .. } if now < self.ready => return,
            State::Gathering => self.prebuffer,
            State::Stalled { .. } => self.rebuffer,
            State::Playing | State::Ended => return,
        };
        // A live stream, and one that begins after a gap, is shown from the first media that arrived.
        let first = shelves.iter().filter_map(|shelf| shelf.held.front()).map(|one| one.start).max();
        let begins = match (self.state, first) {
            (State::Gathering, Some(first)) => first.max(self.at),
            (State::Stalled { .. }, _) => self.over_gap(shelves).unwrap_or(self.at),
            _ => self.at,
        };
        let waits = |shelf: &&Shelf| !(shelf.complete && shelf.is_empty_from(begins));
        let mut held = None;
        for shelf in shelves.iter().filter(waits) {
            let one = shelf.end(begins).saturating_sub(begins);
            // A complete presentation counts as enough.
            let enough = one >= wanted && one > ROUNDING || shelf.complete && one > Duration::ZERO;
            if !enough {
                return;
            }
            held = Some(held.map_or(one, |least: Duration| least.min(one)));
        }
        let Some(held) = held else { return };
        if matches!(self.state, State::Stalled { .. }) && begins > self.at {
            self.jump(now, begins, events);
        }
        let reason = format!("{:.3} s held", held.as_secs_f64());
        match self.state {
            State::Stalled { since } => {
                let stalled = now.saturating_since(since);
                self.stats.stalled += stalled;
                events.say(now, "resume", stalled.as_secs_f64(), "s", reason);
            }
            _ => {
                let waited = now.saturating_since(self.asked);
                self.startup = Some(waited);
                events.say(now, "playout_start", waited.as_secs_f64(), "s", reason);
            }
        }
        (self.state, self.base, self.at) = (State::Playing, now, begins);
    }

    /// Shows pictures up to `until`, and reports the segment that is played.
    fn show(&mut self, until: Instant, shelves: &mut [Shelf], events: &mut Outbox) {
        let (base, at) = (self.base, self.at);
        let when = |time: Duration| base + time.saturating_sub(at);
        let position = at + until.saturating_since(base);
        let Some((pictures, others)) = shelves.split_first_mut() else { return };
        while let Some(segment) = pictures.held.front() {
            if segment.start > position {
                break;
            }
            let span = segment.end.saturating_sub(segment.start).as_nanos();
            if !pictures.begun {
                pictures.begun = true;
                // Periods may have pictures at different rates: numbers do not go back.
                pictures.first = number_at(segment.start, span, segment.frames).max(pictures.next);
                if !segment.is_filler {
                    self.shown.0 += segment.bytes;
                    self.shown.1 += segment.end.saturating_sub(segment.start);
                    say_shown(&mut self.level_bps, when(segment.start), segment, events);
                }
            }
            let first = pictures.first;
            while pictures.shown < segment.frames {
                let time = segment.start + segment.offset(pictures.shown);
                if time > position {
                    break;
                }
                if time + ROUNDING >= at {
                    self.stats.shown += 1;
                    let number = first + u64::from(pictures.shown);
                    events.say(when(time), "frame_shown", number as f64, "1", "");
                }
                pictures.shown += 1;
            }
            if segment.end > position {
                break;
            }
            pictures.next = pictures.next.max(first + u64::from(segment.frames));
            pictures.past = pictures.held.pop_front();
            (pictures.shown, pictures.begun) = (0, false);
        }
        for shelf in others {
            while shelf.held.front().is_some_and(|segment| segment.end <= position) {
                shelf.held.pop_front();
            }
        }
    }

    fn say_buffer(&mut self, now: Instant, shelves: &[Shelf], events: &mut Outbox) {
        let is_time = self.last_buffer.is_none_or(|last| now.saturating_since(last) >= BUFFER_EVENTS);
        if is_time && let Some(pictures) = shelves.first() {
            self.last_buffer = Some(now);
            events.say(now, "buffer", self.buffer(now, pictures).as_secs_f64(), "s", "");
        }
    }

    /// Ends it.
    pub fn end(&mut self, now: Instant, why: &str, events: &mut Outbox) {
        if self.has_ended() {
            return;
        }
        if let State::Stalled { since } = self.state {
            self.stats.stalled += now.saturating_since(since);
        }
        (self.at, self.state) = (self.position(now), State::Ended);
        events.say(now, MEDIA_END, self.stats.shown as f64, "1", why.to_owned());
    }
}

/// A segment begins to be shown, perhaps at another level than the one before.
fn say_shown(level_bps: &mut Option<u64>, due: Instant, segment: &Held, events: &mut Outbox) {
    let number = segment.ordinal;
    let bps = Some(segment.bps as f64).filter(|bps| *bps > 0.0);
    events.say(due, "segment_shown", bps, "bit/s", format!("segment {number}"));
    if *level_bps != Some(segment.bps) {
        *level_bps = Some(segment.bps);
        events.say(due, "level_changed", bps, "bit/s", format!("segment {number}"));
    }
}

/// The number of the first picture of a segment of so many, counted from the presentation's start.
fn number_at(start: Duration, span: u64, frames: u32) -> u64 {
    if span == 0 {
        return 0;
    }
    ((u128::from(start.as_nanos()) * u128::from(frames) + u128::from(span) / 2) / u128::from(span)) as u64
}
