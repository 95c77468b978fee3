//! The pictures in delivered packets: whole, incomplete or missing.

use streamgauge_base::{Duration, Instant};

use crate::media::mpegts::{FIRST_STAMP, PictureReader, ReadPicture, TICKS_PER_S};
use crate::outbox::{MEDIA_END, Outbox};

/// The pictures of a clip, by their time stamps.
pub struct ReceivedPictures {
    reader: PictureReader,
    interval: Duration,
    count: u64,
    /// The first without an outcome.
    next: u64,
    shown: u64,
    started: Instant,
    latency: Duration,
    /// When picture 0 is due, once one arrived.
    base: Option<Instant>,
    ended: bool,
}

impl ReceivedPictures {
    /// Returns those of a clip with so many pictures at this interval.
    pub fn new(interval: Duration, count: u64) -> Self {
        ReceivedPictures {
            reader: PictureReader::default(),
            interval,
            count,
            next: 0,
            shown: 0,
            started: Instant::ZERO,
            latency: Duration::ZERO,
            base: None,
            ended: false,
        }
    }

    pub fn start(&mut self, now: Instant) {
        self.started = now;
    }

    /// Sets the latency by which the pictures are judged.
    pub fn judge_by(&mut self, latency: Duration) {
        self.latency = latency;
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Notes that datagrams before the next are missing.
    pub fn gap(&mut self) {
        self.reader.gap();
    }

    /// Takes a datagram that is delivered now, and that arrived `wait` later than without loss and queue.
    pub fn push(&mut self, now: Instant, wait: Duration, payload: &[u8], events: &mut Outbox) {
        self.reader.push(now, wait, payload);
        self.settle(events);
    }

    fn settle(&mut self, events: &mut Outbox) {
        while let Some(picture) = self.reader.next_picture() {
            self.picture(&picture, events);
        }
    }

    fn picture(&mut self, picture: &ReadPicture, events: &mut Outbox) {
        let step = self.interval.as_nanos().max(1);
        let ticks = u128::from(picture.stamp.saturating_sub(FIRST_STAMP));
        let media = (ticks * 1_000_000_000 / u128::from(TICKS_PER_S)) as u64;
        let number = media.saturating_add(step / 2) / step;
        if number < self.next || number >= self.count {
            return;
        }
        if self.base.is_none() {
            self.base = Some(picture.at - self.interval * number);
            let waited = picture.at.saturating_since(self.started).as_secs_f64();
            events.say(picture.at, "playout_start", waited, "s", "");
        }
        self.miss(picture.at, number, events);
        self.next = number + 1;
        if picture.is_whole {
            events.say(picture.at, "picture_wait", picture.wait.as_secs_f64(), "s", "");
            let late = picture.wait.saturating_sub(self.latency);
            // A missing packet is skipped when the next one is due: until then it may come, too late to be shown in time.
            if late > Duration::ZERO {
                events.say(picture.at, "frame_late", late.as_secs_f64(), "s", format!("frame {number}"));
            } else {
                self.shown += 1;
                events.say(picture.at, "frame_shown", number as f64, "1", "");
            }
        } else {
            let reason = format!("frame {number}: packets of it are missing");
            events.say(picture.at, "frame_incomplete", None, "", reason);
        }
    }

    /// Gives up pictures before `number`.
    fn miss(&mut self, at: Instant, number: u64, events: &mut Outbox) {
        for lost in self.next..number.min(self.count) {
            events.say(at, "frame_incomplete", None, "", format!("frame {lost}: no packet"));
        }
        self.next = self.next.max(number.min(self.count));
    }

    /// Lets the pictures' times be later by a pause.
    pub fn shift(&mut self, pause: Duration) {
        if let Some(base) = &mut self.base {
            *base += pause;
        }
    }

    /// Ends the stream: pictures that were due by now and never arrived are given up.
    pub fn end(&mut self, now: Instant, why: &'static str, events: &mut Outbox) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.reader.finish();
        self.settle(events);
        if let Some(base) = self.base {
            let due = now.saturating_since(base).as_nanos() / self.interval.as_nanos().max(1) + 1;
            self.miss(now, due, events);
        }
        let why = if self.next == self.count { "all frames were shown or given up" } else { why };
        events.say(now, MEDIA_END, self.shown as f64, "1", why);
    }
}
