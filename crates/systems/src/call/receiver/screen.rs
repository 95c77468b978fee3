//! The picture of a call: shows each frame when it is due, and asks for a key frame when only that helps.

use streamgauge_base::{Duration, Instant};

use super::super::packet::Place;
use super::frames::{FrameOutcome, Frames};
use crate::outbox::Outbox;

/// A key frame is asked for so often.
const KEY_EVERY: Duration = Duration::from_millis(300);
/// Interval of reports of the jitter buffer.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Gathers frames in a jitter buffer and shows them.
///
/// Events: `playout_start` (s), `frame_shown` (its number) with `live_latency` (s), `frame_late` (s), `frame_incomplete`
/// (packets missing), `stall` (frames shown before it) while only a key frame helps and `resume` (s); `buffer` (s, the
/// jitter buffer), `key_frame_asked`.
pub(crate) struct Screen {
    frames: Frames,
    asked_key: Option<Instant>,
    stalled: Option<Instant>,
    started: Instant,
    shown: u64,
    told: Option<Instant>,
}

impl Screen {
    /// Returns a screen with a jitter buffer within these bounds.
    pub fn new(least: Duration, most: Duration) -> Self {
        Screen {
            frames: Frames::new(least, most),
            asked_key: None,
            stalled: None,
            started: Instant::ZERO,
            shown: 0,
            told: None,
        }
    }

    /// Begins to count the time until the first picture.
    pub fn start(&mut self, now: Instant) {
        self.started = now;
    }

    /// Returns the frames shown.
    pub fn frames_shown(&self) -> u64 {
        self.shown
    }

    /// Adds a packet that had not arrived before. Returns whether it was of use.
    pub fn packet(&mut self, now: Instant, place: &Place, sequence: u64) -> bool {
        self.frames.packet(now, place, sequence)
    }

    /// Gives up frames that cannot be decoded: only a key frame helps.
    pub fn give_up(&mut self, now: Instant, why: &'static str, events: &mut Outbox) {
        if !self.frames.needs_key() {
            self.frames.give_up();
            self.stalled = Some(now);
            events.say(now, "stall", self.shown as f64, "1", why);
        }
    }

    /// Gives up if the next frame has been due for `patience` while later ones came.
    pub fn check_patience(&mut self, now: Instant, patience: Duration, events: &mut Outbox) {
        if self.frames.waits().is_some_and(|since| now.saturating_since(since) >= patience) {
            self.give_up(now, "a frame did not come", events);
        }
    }

    /// A key frame that is on its way gets three times as long.
    fn key_wait(&self) -> Duration {
        KEY_EVERY * if self.frames.has_key_coming() { 3 } else { 1 }
    }

    /// Returns whether a key frame must be asked for now.
    pub fn asks_for_key(&mut self, now: Instant, events: &mut Outbox) -> bool {
        if !self.frames.needs_key() {
            self.asked_key = None;
            return false;
        }
        let wait = self.key_wait();
        let asks = self.asked_key.is_none_or(|asked| now.saturating_since(asked) >= wait);
        if asks {
            self.asked_key = Some(now);
            events.say(now, "key_frame_asked", 1.0, "1", "");
        }
        asks
    }

    /// Shows frames that are due. Returns the sequence number below which all packets are settled.
    pub fn show(&mut self, now: Instant, events: &mut Outbox) -> Option<u64> {
        let (fates, done) = self.frames.advance(now);
        for fate in fates {
            match fate {
                FrameOutcome::Shown(number, behind) => self.shown(now, number, behind, events),
                FrameOutcome::Late(_, late) => {
                    events.say(now, "frame_late", late.as_secs_f64(), "s", "the next was due as well");
                }
                FrameOutcome::Incomplete(_, packets) => {
                    let why = if packets == 0 {
                        "it needs a frame that did not come"
                    } else {
                        "packets are missing"
                    };
                    events.say(now, "frame_incomplete", f64::from(packets), "1", why);
                }
            }
        }
        done
    }

    fn shown(&mut self, now: Instant, number: u64, behind: Duration, events: &mut Outbox) {
        if self.shown == 0 {
            let since = now.saturating_since(self.started).as_secs_f64();
            events.say(now, "playout_start", since, "s", "");
        }
        if let Some(since) = self.stalled.take() {
            events.say(now, "resume", now.saturating_since(since).as_secs_f64(), "s", "");
        }
        events.say(now, "frame_shown", number as f64, "1", "");
        events.say(now, "live_latency", behind.as_secs_f64(), "s", "");
        self.shown += 1;
        if self.told.is_none_or(|told| now.saturating_since(told) >= TELL_EVERY) {
            self.told = Some(now);
            events.say(now, "buffer", self.frames.buffer().as_secs_f64(), "s", "");
        }
    }

    /// Returns when it has something to do, with that patience.
    pub fn poll_timeout(&self, patience: Duration) -> Option<Instant> {
        let waits = self.frames.waits().filter(|_| !self.frames.needs_key()).map(|since| since + patience);
        let key = self.asked_key.filter(|_| self.frames.needs_key()).map(|asked| asked + self.key_wait());
        let frames = [self.frames.poll_timeout(), self.frames.next_look()];
        [waits, key].into_iter().chain(frames).flatten().min()
    }
}
