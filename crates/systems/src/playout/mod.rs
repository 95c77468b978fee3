//! The playout buffer: waits for media before it begins, shows each unit when it is due, and reports its
//! outcome.
//!
//! There may be several tracks on one clock. The differences of players are in their [`Manner`].

mod decoder;
mod due;
mod kept;
mod manner;
#[cfg(test)]
mod tests;
mod units;

pub use decoder::Decoder;
pub use kept::ReceivedUnit;
pub use manner::{End, Gathers, HostLate, Manner, Start};
pub use units::Timeline;

use std::borrow::Cow;

use streamgauge_base::{Chunk, Duration, Instant};

use self::decoder::PictureOrder;
use self::due::{TAIL, due};
use self::kept::Kept;
use self::units::{Unit, Units};
use crate::media::ClipSpec;
use crate::outbox::{MEDIA_END, Outbox};
use crate::reception::Place;

/// A unit that becomes whole within this time after it was due is late; after it, incomplete.
const LATE_WINDOW: Duration = Duration::from_secs(1);

/// Least time between two events `buffer`.
const BUFFER_EVENTS: Duration = Duration::from_millis(500);

/// Outcomes of the units of the pictures' track.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlayoutStats {
    /// Whole when due.
    pub shown: u64,
    /// Whole up to a second after.
    pub late: u64,
    /// Neither.
    pub incomplete: u64,
    /// Whole when due, and discarded by the decoder.
    pub discarded: u64,
    /// How late the late ones were, in all.
    pub lateness: Duration,
    /// How often the clock stopped.
    pub stalls: u64,
    /// Total duration, without a current stall.
    pub stalled: Duration,
    /// There are no pictures: sound alone is played, which is in no count.
    pub sound_alone: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Before play.
    Gathering,
    Playing,
    /// Stalled by a lack of that track.
    Stalled {
        since: Instant,
        of: usize,
    },
}

/// All tracks of a session, on one clock.
pub struct Playout {
    manner: Manner,
    tracks: Vec<Units>,
    /// The track that events refer to: pictures, or else the first.
    main: usize,
    /// Reach of the other tracks at its last arrival.
    others_then: Duration,
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
    /// Time of the last arrival of a unit's packet.
    heard: Instant,
    startup: Option<Duration>,
    paused: Option<Instant>,
    last_buffer: Option<Instant>,
    stats: PlayoutStats,
    kept: Option<Kept>,
    decoder: Option<PictureOrder>,
    ended: Option<Instant>,
}

impl Playout {
    /// Returns a buffer for tracks with units at these intervals, if known; `main` is the pictures'. PLAY was
    /// sent at `asked`, for the media from `from` to `end`.
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
        let half = half(intervals[main]);
        Playout {
            manner,
            tracks,
            main,
            others_then: Duration::ZERO,
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
            stats: PlayoutStats::default(),
            kept: None,
            decoder: None,
            ended: None,
        }
    }

    /// Sets the decoder of the pictures, which are those of `clip` in turn. Streams with pictures out of
    /// order have their order counts written out (pic_order_cnt_type 0), so that libavcodec discards none of
    /// them.
    pub fn decode_by(&mut self, decoder: Decoder, clip: &ClipSpec) {
        let counts = decoder == Decoder::Libavcodec && clip.display_order.is_empty();
        self.decoder = counts.then(|| PictureOrder::new(clip));
    }

    /// Declares that units of `track` may be sent before others that are shown up to this many places
    /// earlier.
    pub fn decodes_ahead(&mut self, track: usize, places: u64) {
        self.tracks[track].decodes_ahead(places);
    }

    /// Declares that there are no pictures: the main track is sound, which is in no event and no count of
    /// frames.
    pub fn play_sound_alone(&mut self) {
        self.stats.sound_alone = true;
    }

    /// Keeps units from now on for `take_unit`.
    pub fn keep_units(&mut self) {
        self.kept = Some(Kept::new(self.tracks.len()));
    }

    /// Returns the next unit that has been shown or given up, in its track's order of decoding; all of them
    /// at the end.
    pub fn take_unit(&mut self) -> Option<ReceivedUnit> {
        self.kept.as_mut()?.take()
    }

    /// Returns the outcomes of the pictures so far.
    pub fn stats(&self) -> PlayoutStats {
        self.stats
    }

    /// Returns the time from PLAY to the first picture's time.
    pub fn startup(&self) -> Option<Duration> {
        self.startup
    }

    /// Returns whether it has reported its end.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the media's time of `timestamp`, if the track's timestamps have a meaning yet.
    pub fn time_of(&self, track: usize, timestamp: u32) -> Option<Duration> {
        self.tracks[track].time_of(timestamp)
    }

    /// Returns whether the clock runs, unless it is paused.
    pub fn is_playing(&self) -> bool {
        self.state == State::Playing
    }

    /// Returns whether anything has arrived.
    pub fn has_begun(&self) -> bool {
        self.tracks[self.main].newest().is_some()
    }

    /// Makes the track's timestamps count by `timeline` from here on.
    pub fn anchor(&mut self, track: usize, timeline: Timeline) {
        self.tracks[track].anchor(timeline);
    }

    /// Returns whether the track's timestamps have a meaning yet.
    pub fn is_anchored(&self, track: usize) -> bool {
        self.tracks[track].is_anchored()
    }

    /// Returns where play is in the media.
    pub fn position(&self, now: Instant) -> Duration {
        match self.state {
            // Media that has ended plays no further.
            State::Playing => self.at + self.paused.or(self.ended).unwrap_or(now).saturating_since(self.base),
            State::Gathering | State::Stalled { .. } => self.at,
        }
    }

    /// Returns the reach of the received media: of the pictures that count, or of the sound where there are
    /// none.
    pub fn reach(&self) -> Duration {
        self.tracks[self.main].newest_end().unwrap_or(Duration::ZERO)
    }

    /// Returns the media held of the track that counts: from the play position to the newest received.
    pub fn buffer(&self, now: Instant) -> Duration {
        let end = self.tracks[self.leading()].newest_end().unwrap_or(Duration::ZERO);
        end.saturating_sub(self.position(now))
    }

    /// Sets the media to be gathered before it begins.
    pub fn gather(&mut self, gathered: Duration) {
        self.manner.prebuffer = gathered;
    }

    /// Sets the media to be gathered from now on before play resumes after a stall.
    pub fn rebuffer(&mut self, gathered: Duration) {
        self.manner.rebuffer = gathered;
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
        if self.has_ended() {
            return;
        }
        self.heard = now;
        if track == self.main {
            self.others_then =
                self.others().filter_map(|(_, other)| other.newest()).max().unwrap_or(Duration::ZERO);
        }
        if let Some(unit) = self.tracks[track].take(now, place, payload) {
            let due = due(self.base, self.at, unit.at);
            let late = fall_late(unit, now, due, self.manner.host_late);
            self.say_late(now, track, late, events);
        }
        if self.manner.gathers == Gathers::Whole && self.paused.is_none() {
            // With the unit that is enough, not with all that was read at once.
            self.begin_or_go_on(now, events);
        }
        if self.state == State::Gathering && self.manner.start == Start::Delayed {
            self.begin_after_delay(now);
        }
    }

    /// Makes the first received picture due `prebuffer` later.
    fn begin_after_delay(&mut self, now: Instant) {
        let Some(first) = self.tracks[self.main].last_at() else { return };
        self.state = State::Playing;
        (self.base, self.at) = (now + self.manner.prebuffer, first);
        self.startup = Some(self.base.saturating_since(self.asked));
    }

    fn say_late(&mut self, at: Instant, track: usize, late: Option<(u64, Duration)>, events: &mut Outbox) {
        if let Some((number, lateness)) = late.filter(|_| self.is_of_pictures(track)) {
            self.stats.late += 1;
            self.stats.lateness += lateness;
            events.say(at, "frame_late", lateness.as_secs_f64(), "s", format!("frame {number}"));
        }
    }

    /// Declares the unit of `timestamp` as the first that was sent of the track.
    pub fn begins_with(&mut self, track: usize, timestamp: u32) {
        self.tracks[track].begins_with(timestamp);
    }

    /// Notes that packet `sequence` begins a unit: the one before it, which arrived after it, ended one.
    pub fn begins_at(&mut self, now: Instant, track: usize, sequence: u32) {
        self.tracks[track].begins_at(now, sequence);
    }

    fn is_of_pictures(&self, track: usize) -> bool {
        track == self.main && !self.stats.sound_alone
    }

    /// Performs the actions that are due by `now`.
    pub fn advance(&mut self, now: Instant, events: &mut Outbox) {
        if self.has_ended() || self.paused.is_some() {
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
        let is_delayed = self.state == State::Gathering && self.manner.start == Start::Delayed;
        if self.state == State::Playing || is_delayed {
            return;
        }
        let (track, leading) = (&self.tracks[self.main], self.leading());
        let next = self.tracks[if track.next().is_some() { self.main } else { leading }].next_at();
        let next = next.unwrap_or(self.at).max(self.at);
        let (held, up_to) = self.gathered(leading, next);
        // It turned out that nothing was missing.
        let was_needless =
            leading != self.main && matches!(self.state, State::Stalled { of, .. } if of == self.main);
        let tail = if self.knows_the_last() { Duration::ZERO } else { TAIL };
        let comes_to = |end| up_to.is_some_and(|up_to| up_to + tail >= end);
        let all = self.over.is_some() || self.end.is_some_and(comes_to);
        let stalled = matches!(self.state, State::Stalled { .. });
        let wanted = if stalled { self.manner.rebuffer } else { self.manner.prebuffer };
        let enough = held >= wanted && held > Duration::ZERO || all || was_needless;
        // A cause that would stop the clock at once does not start it.
        let is_whole = track.next().is_some_and(|unit| unit.whole_at.is_some());
        if !enough || up_to.is_none() || !is_whole && self.waits_at(leading, next) {
            return;
        }
        match self.state {
            State::Stalled { since, .. } => {
                let stalled = now.saturating_since(since);
                self.stats.stalled += stalled;
                let number = track.next_number();
                let reason = format!(
                    "{:.3} s buffered from frame {number} on; {:.3} s behind in all",
                    held.as_secs_f64(),
                    self.stats.stalled.as_secs_f64()
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
        if whole_at.is_none() && track == self.leading() && self.waits_at(track, at) {
            return self.stall(due, at, track, events);
        }
        let in_order = self.manner.in_order;
        let Some(unit) = self.tracks[track].fall() else { return };
        match whole_at {
            Some(whole_at) if whole_at <= due || in_order => {
                let decoder = self.decoder.as_mut().filter(|_| is_main);
                let is_shown = decoder.is_none_or(|decoder| decoder.gives_out(unit.number));
                (unit.settled, unit.shown) = (true, is_shown);
                if !is_shown {
                    self.stats.discarded += 1;
                    let reason = format!("frame {}: the decoder discards it as out of order", unit.number);
                    return events.say(due, "dropped_frames", self.stats.discarded as f64, "1", reason);
                }
                let is_forgiven = self.manner.host_late == HostLate::Forgiven;
                let shown_at = if is_forgiven { due } else { due.max(whole_at) };
                let number = unit.number;
                if self.is_of_pictures(track) {
                    // Without numbers, the missing units are those in the count without any received part.
                    let reason = match self.tracks[track].are_numbered() {
                        true => Cow::Borrowed(""),
                        false => Cow::Owned(format!("at {:.3} s of the media", at.as_secs_f64())),
                    };
                    self.stats.shown += 1;
                    events.say(shown_at, "frame_shown", number as f64, "1", reason);
                }
            }
            // The host looked too late.
            Some(whole_at) => {
                let late = fall_late(unit, whole_at, due, self.manner.host_late);
                self.say_late(whole_at, track, late, events);
            }
            None => {}
        }
    }

    fn stall(&mut self, due: Instant, at: Duration, of: usize, events: &mut Outbox) {
        self.state = State::Stalled { since: due, of };
        (self.base, self.at) = (due, at);
        self.stats.stalls += 1;
        let track = &self.tracks[self.main];
        let (number, packets) = (track.next_number(), track.next().map_or(0, |unit| unit.packets));
        let reason = if of == self.main {
            format!("frame {number} was not whole when due: {packets} packets of it were there")
        } else {
            "no frame was due, and of what plays without them nothing more was there".into()
        };
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
                if !unit.settled && self.is_of_pictures(track) {
                    self.stats.incomplete += 1;
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
        if self.manner.start == Start::Delayed {
            return;
        }
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

    /// Ends the media at `at` already, or with its received part if that is longer.
    pub fn cut(&mut self, at: Duration) {
        let track = &self.tracks[self.main];
        let held = track.last_at().map_or(Duration::ZERO, |last| last + track.interval());
        let end = at.max(held).saturating_sub(half(Some(track.interval())));
        self.end = Some(self.end.map_or(end, |known| known.min(end)));
    }

    /// Ends the input: plays the held media.
    pub fn nothing_more(&mut self, why: impl Into<Cow<'static, str>>) {
        if self.over.is_some() {
            return;
        }
        self.over = Some(why.into());
        let newest = self.tracks[self.main].newest_end().unwrap_or(self.at);
        // In the last second, units that never arrived were lost; before it, the media ended there.
        if self.end.is_some_and(|end| newest + TAIL < end) {
            self.end = None;
        }
    }

    /// Breaks the media off: plays the held part, and ends with `why`.
    pub fn break_off(&mut self, why: impl Into<Cow<'static, str>>) {
        self.end = None;
        self.nothing_more(why);
    }

    /// Returns whether it is known that nothing more will come.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Stops the clock.
    pub fn pause(&mut self, now: Instant) {
        self.paused = self.paused.or(Some(now));
    }

    /// Continues where it stopped.
    pub fn resume(&mut self, now: Instant) {
        let Some(since) = self.paused.take() else { return };
        let pause = now.saturating_since(since);
        self.base += pause;
        self.asked += pause;
        if let State::Stalled { since, .. } = &mut self.state {
            *since += pause;
        }
    }

    /// Ends at once.
    pub fn end(&mut self, now: Instant, why: impl Into<Cow<'static, str>>, events: &mut Outbox) {
        if self.ended.is_none() {
            self.ended = Some(now);
            events.say(now, MEDIA_END, self.stats.shown as f64, "1", why);
            if let Some(kept) = &mut self.kept {
                kept.finish();
            }
        }
    }
}

fn half(interval: Option<Duration>) -> Duration {
    interval.map_or(Duration::ZERO, |interval| interval.div(2))
}

/// Settles a unit that became whole at `whole_at`, after it was due, and returns its number and lateness,
/// unless it is about to be given up.
fn fall_late(unit: &mut Unit, whole_at: Instant, due: Instant, host: HostLate) -> Option<(u64, Duration)> {
    let lateness = whole_at.saturating_since(due);
    unit.settled = lateness <= LATE_WINDOW || host == HostLate::Forgiven;
    unit.settled.then_some((unit.number, lateness))
}

/// Returns the missing packets, as far as known, and their description.
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
