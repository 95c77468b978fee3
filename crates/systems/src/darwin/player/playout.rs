//! The playout buffer: gathers media before it begins, shows each unit when it is due, and says what became of it.
//!
//! System `rtp` has another: there both ends know the clip, every frame is due a fixed time after it could be sent,
//! and nothing is gathered. Here the description and the timestamps are all there is, there may be several tracks on
//! one clock, the server sends ahead, and play begins when enough media is held.

use std::borrow::Cow;

use streamgauge_base::{Chunk, Duration, Instant};

use super::kept::{Kept, ReceivedUnit};
use super::units::{Place, Timeline, Unit, Units};
use crate::outbox::{MEDIA_END, Outbox};

/// A unit that becomes whole within this time after it was due is late; after it, incomplete. As in system rtp.
const LATE_WINDOW: Duration = Duration::from_secs(1);

/// Nothing in the media's last second is waited for. Over UDP, if it does not come, it was lost, and nothing behind it
/// would show that. On a stream that holds only where nobody knows which picture is the last: the clock goes on, and
/// what comes is shown when it comes.
const TAIL: Duration = Duration::from_secs(1);

/// Least time between two events `buffer`.
const BUFFER_EVENTS: Duration = Duration::from_millis(500);

/// Where the media ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// In the media's time.
    pub at: Duration,
    /// It is the pictures' own end. Else it is the end of whatever lasts longest, sound perhaps.
    pub of_pictures: bool,
}

/// How it plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// Media gathered before play begins, and again after a stall.
    pub prebuffer: Duration,
    /// The clock stops when the buffer has run dry.
    pub stalls: bool,
    /// What is not there comes later, and late is not lost: the media is on a stream.
    pub in_order: bool,
}

/// What became of the units of the pictures' track.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fates {
    /// Whole when due.
    pub shown: u64,
    /// Whole up to a second after.
    pub late: u64,
    /// Neither.
    pub incomplete: u64,
    /// How late the late ones were, in all.
    pub lateness: Duration,
    /// How often the clock stopped.
    pub stalls: u64,
    /// For how long in all, without a stall that goes on.
    pub stalled: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Before play.
    Gathering,
    Playing,
    Stalled {
        since: Instant,
    },
}

/// All tracks of a session, on one clock.
pub struct Playout {
    manner: Manner,
    tracks: Vec<Units>,
    /// The track of which events speak and whose buffer counts: pictures, or else the first.
    main: usize,
    state: State,
    /// The media's time `at` is due at this instant.
    base: Instant,
    at: Duration,
    /// Where the media ends, if it is known.
    end: Option<Duration>,
    /// The pictures end there too.
    of_pictures: bool,
    /// Nothing more will come, and why.
    over: Option<Cow<'static, str>>,
    asked: Instant,
    /// When a unit's packet last came.
    heard: Instant,
    startup: Option<Duration>,
    paused: Option<Instant>,
    last_buffer: Option<Instant>,
    fates: Fates,
    kept: Option<Kept>,
    ended: bool,
}

impl Playout {
    /// For tracks whose units are so far apart, if that is known, of which `main` is the pictures'. PLAY was sent at
    /// `asked`, for the media from `from` to `end`.
    pub fn new(
        manner: Manner,
        intervals: &[Option<Duration>],
        main: usize,
        asked: Instant,
        from: Duration,
        end: Option<End>,
    ) -> Self {
        let mut tracks: Vec<Units> = intervals.iter().map(|interval| Units::new(*interval)).collect();
        tracks.iter_mut().for_each(|track| track.begin(from));
        // A frame that would begin within half a frame of the end is a rounding of the end.
        let half = Duration::from_nanos(intervals[main].map_or(0, |interval| interval.as_nanos() / 2));
        Playout {
            manner,
            tracks,
            main,
            state: State::Gathering,
            base: asked,
            at: from,
            end: end.map(|end| end.at.saturating_sub(half)),
            of_pictures: end.is_some_and(|end| end.of_pictures),
            over: None,
            asked,
            heard: asked,
            startup: None,
            paused: None,
            last_buffer: None,
            fates: Fates::default(),
            kept: None,
            ended: false,
        }
    }

    /// Keeps what comes from now on for `take_unit`.
    pub fn keep_units(&mut self) {
        self.kept = Some(Kept::new(self.tracks.len()));
    }

    /// The next unit that has been shown or given up, in its track's order of decoding; all of them at the end.
    pub fn take_unit(&mut self) -> Option<ReceivedUnit> {
        self.kept.as_mut()?.take()
    }

    /// What became of the pictures so far.
    pub fn fates(&self) -> Fates {
        self.fates
    }

    /// From PLAY to the first picture's time.
    pub fn startup(&self) -> Option<Duration> {
        self.startup
    }

    /// It said its end.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The track's timestamps count so from here on.
    pub fn anchor(&mut self, track: usize, timeline: Timeline) {
        self.tracks[track].anchor(timeline);
    }

    /// Whether the track's timestamps have a meaning yet.
    pub fn is_anchored(&self, track: usize) -> bool {
        self.tracks[track].is_anchored()
    }

    fn due(&self, at: Duration) -> Instant {
        due(self.base, self.at, at)
    }

    /// Where play is in the media.
    pub fn position(&self, now: Instant) -> Duration {
        match self.state {
            State::Playing => self.at + self.paused.unwrap_or(now).saturating_since(self.base),
            State::Gathering | State::Stalled { .. } => self.at,
        }
    }

    /// Media held of the pictures' track: from where play is to the newest that came.
    pub fn buffer(&self, now: Instant) -> Duration {
        let end = self.tracks[self.main].newest_end().unwrap_or(Duration::ZERO);
        end.saturating_sub(self.position(now))
    }

    /// Takes a packet that has not come before.
    pub fn arrived(
        &mut self,
        now: Instant,
        track: usize,
        place: Place,
        payload: Option<Chunk>,
        events: &mut Outbox,
    ) {
        if self.ended {
            return;
        }
        self.heard = now;
        let Some(unit) = self.tracks[track].take(now, place, payload) else { return };
        let due = due(self.base, self.at, unit.at);
        let late = fall_late(unit, now, due);
        self.say_late(now, track, late, events);
    }

    fn say_late(&mut self, at: Instant, track: usize, late: Option<(u64, Duration)>, events: &mut Outbox) {
        if let Some((number, lateness)) = late.filter(|_| track == self.main) {
            self.fates.late += 1;
            self.fates.lateness += lateness;
            events.say(at, "frame_late", lateness.as_secs_f64(), "s", format!("frame {number}"));
        }
    }

    /// The unit of `timestamp` is the first that was sent of the track.
    pub fn begins_with(&mut self, track: usize, timestamp: u32) {
        self.tracks[track].begins_with(timestamp);
    }

    /// Packet `sequence` begins a unit: the one before it, which came after it, ended one.
    pub fn begins_at(&mut self, now: Instant, track: usize, sequence: u32) {
        self.tracks[track].begins_at(now, sequence);
    }

    /// When `advance` has something to do.
    pub fn next_event(&self) -> Option<Instant> {
        if self.ended || self.paused.is_some() || self.state == State::Gathering {
            return None;
        }
        let oldest = self.tracks.iter().filter_map(Units::oldest).map(|unit| self.due(unit.at) + LATE_WINDOW);
        let playing = self.state == State::Playing;
        let next = self.next_due().filter(|_| playing).map(|(_, due)| due);
        let end = self.all_due().filter(|_| playing && self.tracks[self.main].is_empty());
        oldest.chain(next).chain(end).min()
    }

    /// It is known which picture is the last: they are counted, and the end is theirs. Else one is believed in only so
    /// far as something came of it or after it, or the end is more than [`TAIL`] away.
    fn knows_the_last(&self) -> bool {
        self.of_pictures && self.tracks[self.main].are_numbered()
    }

    /// By when all has come or never will, where nobody knows which picture is the last.
    fn all_due(&self) -> Option<Instant> {
        let due = self.due(self.end.filter(|_| !self.knows_the_last())?);
        // On a stream nothing is lost, and what is slow may be on its way still.
        let slow = self.manner.in_order && self.over.is_none();
        Some(if slow { due.max(self.heard) + LATE_WINDOW } else { due })
    }

    /// The track whose next unit falls due first, and when.
    fn next_due(&self) -> Option<(usize, Instant)> {
        let tracks = self.tracks.iter().enumerate().filter_map(|(index, track)| {
            let at = track.next_at()?;
            let expected = track.next().is_some() || index == self.main && self.expects(at);
            expected.then_some((index, at))
        });
        tracks.min_by_key(|&(_, at)| at).map(|(index, at)| (index, self.due(at)))
    }

    /// The pictures' track should have something at `at`, though nothing of it or after it came.
    fn expects(&self, at: Duration) -> bool {
        let tail = if self.knows_the_last() { Duration::ZERO } else { TAIL };
        let before_the_end = self.end.is_some_and(|end| at + tail < end);
        self.waits_at(at) || before_the_end && self.tracks[self.main].are_numbered()
    }

    /// The clock stops rather than go past `at`.
    fn waits_at(&self, at: Duration) -> bool {
        let tail = if self.manner.in_order && self.knows_the_last() { Duration::ZERO } else { TAIL };
        self.manner.stalls
            && self.over.is_none()
            && self.tracks[self.main].is_dry()
            && self.end.is_none_or(|end| at + tail < end)
    }

    /// Does what has fallen due by `now`.
    pub fn advance(&mut self, now: Instant, events: &mut Outbox) {
        if self.ended || self.paused.is_some() {
            return;
        }
        self.begin_or_go_on(now, events);
        while self.state == State::Playing {
            let Some((track, due)) = self.next_due().filter(|(_, due)| *due <= now) else { break };
            self.fall_due(track, due, events);
            // After a stall that ends at once the rest falls due later.
            self.begin_or_go_on(now, events);
        }
        self.settle(now, events);
        self.say_buffer(now, events);
        self.end_if_done(now, events);
    }

    fn begin_or_go_on(&mut self, now: Instant, events: &mut Outbox) {
        if self.state == State::Playing {
            return;
        }
        let track = &self.tracks[self.main];
        let next = track.next_at().unwrap_or(self.at).max(self.at);
        let newest = track.newest_end();
        let held = newest.unwrap_or(Duration::ZERO).saturating_sub(next);
        let tail = if self.knows_the_last() { Duration::ZERO } else { TAIL };
        let comes_to = |end| newest.is_some_and(|newest| newest + tail >= end);
        let all = self.over.is_some() || self.end.is_some_and(comes_to);
        let enough = held >= self.manner.prebuffer && held > Duration::ZERO || all;
        // What would stop the clock at once does not start it.
        let is_whole = track.next().is_some_and(|unit| unit.whole_at.is_some());
        if !enough || newest.is_none() || !is_whole && self.waits_at(next) {
            return;
        }
        match self.state {
            State::Stalled { since } => {
                let stalled = now.saturating_since(since);
                self.fates.stalled += stalled;
                let number = track.next_number();
                let reason = format!(
                    "{:.3} s buffered from frame {number} on; {:.3} s behind in all",
                    held.as_secs_f64(),
                    self.fates.stalled.as_secs_f64()
                );
                events.say(now, "resume", stalled.as_secs_f64(), "s", reason);
            }
            _ => {
                let waited = now.saturating_since(self.asked);
                self.startup = Some(waited);
                let reason = format!("{:.3} s buffered", held.as_secs_f64());
                events.say(now, "playout_start", waited.as_secs_f64(), "s", reason);
            }
        }
        self.state = State::Playing;
        (self.base, self.at) = (now, next);
    }

    fn fall_due(&mut self, track: usize, due: Instant, events: &mut Outbox) {
        let is_main = track == self.main;
        let Some(at) = self.tracks[track].next_at() else { return };
        let whole_at = self.tracks[track].next().and_then(|unit| unit.whole_at);
        if is_main && whole_at.is_none() && self.waits_at(at) {
            return self.stall(due, at, events);
        }
        let in_order = self.manner.in_order;
        let Some(unit) = self.tracks[track].fall() else { return };
        match whole_at {
            Some(whole_at) if whole_at <= due || in_order => {
                (unit.settled, unit.shown) = (true, true);
                let number = unit.number;
                if is_main {
                    self.fates.shown += 1;
                    events.say(due.max(whole_at), "frame_shown", number as f64, "1", "");
                }
            }
            // The host looked too late.
            Some(whole_at) => {
                let late = fall_late(unit, whole_at, due);
                self.say_late(whole_at, track, late, events);
            }
            None => {}
        }
    }

    fn stall(&mut self, due: Instant, at: Duration, events: &mut Outbox) {
        self.state = State::Stalled { since: due };
        (self.base, self.at) = (due, at);
        self.fates.stalls += 1;
        let track = &self.tracks[self.main];
        let (number, packets) = (track.next_number(), track.next().map_or(0, |unit| unit.packets));
        let reason = format!("frame {number} was not whole when due: {packets} packets of it were there");
        events.say(due, "stall", number as f64, "1", reason);
    }

    /// Lets go of units that are settled or past hope.
    fn settle(&mut self, now: Instant, events: &mut Outbox) {
        for track in 0..self.tracks.len() {
            while let Some(unit) = self.tracks[track].oldest() {
                let due = self.due(unit.at);
                if !unit.settled && due + LATE_WINDOW > now {
                    break;
                }
                if !unit.settled && track == self.main {
                    self.fates.incomplete += 1;
                    let (missing, reason) = missing(unit);
                    events.say(
                        due,
                        "frame_incomplete",
                        missing,
                        if missing.is_some() { "1" } else { "" },
                        reason,
                    );
                }
                let Some(unit) = self.tracks[track].leave() else { break };
                if let Some(kept) = &mut self.kept {
                    kept.push(track, unit);
                }
            }
        }
    }

    fn say_buffer(&mut self, now: Instant, events: &mut Outbox) {
        let is_time = self.last_buffer.is_none_or(|last| now.saturating_since(last) >= BUFFER_EVENTS);
        if is_time && self.tracks[self.main].newest_end().is_some() {
            self.last_buffer = Some(now);
            events.say(now, "buffer", self.buffer(now).as_secs_f64(), "s", "");
        }
    }

    fn end_if_done(&mut self, now: Instant, events: &mut Outbox) {
        if self.state != State::Playing {
            let nothing = self.over.is_some() && self.tracks[self.main].newest_end().is_none();
            if nothing {
                self.end(now, self.over.clone().unwrap_or_default(), events);
            }
            return;
        }
        let track = &self.tracks[self.main];
        let at_the_end = match self.end {
            Some(end) if self.knows_the_last() => track.next_at().is_none_or(|next| next >= end),
            _ => self.all_due().is_some_and(|due| due <= now),
        };
        let cut_short = self.over.as_ref().filter(|_| self.end.is_none() || !self.knows_the_last());
        let why = match cut_short {
            _ if !track.is_empty() => return,
            _ if at_the_end => "all frames were shown or given up".into(),
            Some(why) => why.clone(),
            None => return,
        };
        self.end(now, why, events);
    }

    /// Nothing more will come: plays what is held.
    pub fn nothing_more(&mut self, why: impl Into<Cow<'static, str>>) {
        if self.over.is_some() {
            return;
        }
        self.over = Some(why.into());
        let newest = self.tracks[self.main].newest_end().unwrap_or(self.at);
        // In the last second, units that never came were lost; before it, the media ended there.
        if self.end.is_some_and(|end| newest + TAIL < end) {
            self.end = None;
        }
    }

    /// It is known that nothing more will come.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Stops the clock.
    pub fn pause(&mut self, now: Instant) {
        self.paused = self.paused.or(Some(now));
    }

    /// Goes on where it stopped.
    pub fn resume(&mut self, now: Instant) {
        let Some(since) = self.paused.take() else { return };
        let pause = now.saturating_since(since);
        self.base += pause;
        self.asked += pause;
        if let State::Stalled { since } = &mut self.state {
            *since += pause;
        }
    }

    /// Ends at once.
    pub fn end(&mut self, now: Instant, why: impl Into<Cow<'static, str>>, events: &mut Outbox) {
        if !std::mem::replace(&mut self.ended, true) {
            events.say(now, MEDIA_END, self.fates.shown as f64, "1", why);
            if let Some(kept) = &mut self.kept {
                kept.finish();
            }
        }
    }
}

/// When the media's time `time` is due, if its time `at` is at `base`.
fn due(base: Instant, at: Duration, time: Duration) -> Instant {
    if time >= at { base + time.saturating_sub(at) } else { base - at.saturating_sub(time) }
}

/// A unit that became whole at `whole_at`, after it was due: settles it and returns its number and lateness, unless it
/// is about to be given up.
fn fall_late(unit: &mut Unit, whole_at: Instant, due: Instant) -> Option<(u64, Duration)> {
    let lateness = whole_at.saturating_since(due);
    unit.settled = lateness <= LATE_WINDOW;
    unit.settled.then_some((unit.number, lateness))
}

/// Packets missing, as far as known, and how it is said.
fn missing(unit: &Unit) -> (Option<f64>, String) {
    let (number, packets) = (unit.number, unit.packets);
    match unit.expected() {
        Some(expected) => {
            let missing = expected.saturating_sub(packets);
            (Some(f64::from(missing)), format!("frame {number}: {packets} of {expected} packets"))
        }
        None if packets == 0 => (None, format!("frame {number}: no packet")),
        None => (None, format!("frame {number}: {packets} packets, not its first and last")),
    }
}

#[cfg(test)]
mod tests;
