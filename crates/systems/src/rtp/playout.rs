//! The playout buffer: which frames are whole, and what happens to each when it is due.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

use super::packet::MediaPacket;
use super::session::Session;
use crate::outbox::{MEDIA_END, Outbox};

/// A frame that becomes whole within this time after it was due is late; after it, incomplete.
const LATE_WINDOW: Duration = Duration::from_secs(1);

/// A player that has seen no packet at all gives up so long after the clip should have ended.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
struct Frame {
    packets: u32,
    first_sequence: Option<u32>,
    last_sequence: Option<u32>,
    whole_at: Option<Instant>,
    /// Late and said to be so.
    settled: bool,
}

impl Frame {
    fn expected(&self) -> Option<u32> {
        Some(self.last_sequence?.wrapping_sub(self.first_sequence?).wrapping_add(1))
    }
}

pub struct Playout {
    interval: Duration,
    delay: Duration,
    /// Frames until the end.
    total: u64,
    /// A frame that is not there is waited for; otherwise it is skipped.
    waits: bool,
    /// From `oldest` on.
    frames: VecDeque<Frame>,
    oldest: u64,
    /// The next to fall due.
    next: u64,
    newest: u64,
    started: Instant,
    /// When frame 0 is due; set by the first packet.
    base: Option<Instant>,
    stalled: Option<Instant>,
    paused: Option<Instant>,
    stalled_in_all: Duration,
    shown: u64,
    ended: bool,
}

impl Playout {
    pub fn new(session: &Session, waits: bool) -> Self {
        Playout {
            interval: session.frame_interval,
            delay: session.playout_delay,
            total: session.frames,
            waits,
            frames: VecDeque::new(),
            oldest: 0,
            next: 0,
            newest: 0,
            started: Instant::ZERO,
            base: None,
            stalled: None,
            paused: None,
            stalled_in_all: Duration::ZERO,
            shown: 0,
            ended: false,
        }
    }

    pub fn start(&mut self, now: Instant) {
        self.started = now;
    }

    /// A frame that is not there is waited for.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// The highest frame that a packet has arrived of.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    fn due(&self, number: u64) -> Option<Instant> {
        Some(self.base? + self.interval * number)
    }

    /// Takes a packet, which is no duplicate, of frame `number`.
    pub fn arrived(
        &mut self,
        now: Instant,
        number: u64,
        sequence: u32,
        packet: MediaPacket,
        events: &mut Outbox,
    ) {
        if number >= self.total || number < self.oldest || self.ended {
            return;
        }
        self.base.get_or_insert(now + self.delay - self.interval * number);
        self.newest = self.newest.max(number);
        let index = (number - self.oldest) as usize;
        if index >= self.frames.len() {
            self.frames.resize(index + 1, Frame::default());
        }
        let frame = &mut self.frames[index];
        frame.packets += 1;
        if packet.first {
            frame.first_sequence = Some(sequence);
        }
        if packet.last {
            frame.last_sequence = Some(sequence);
        }
        if frame.expected() != Some(frame.packets) {
            return;
        }
        frame.whole_at = Some(now);
        if number < self.next && !frame.settled {
            frame.settled = true;
            self.say_late(now, number, now, events);
        }
        self.try_resume(now, events);
    }

    fn say_late(&self, now: Instant, number: u64, whole_at: Instant, events: &mut Outbox) {
        let due = self.due(number).unwrap_or(whole_at);
        let late = whole_at.saturating_since(due).as_secs_f64();
        events.say(now, "frame_late", late, "s", format!("frame {number}"));
    }

    fn try_resume(&mut self, now: Instant, events: &mut Outbox) {
        let Some(since) = self.stalled else { return };
        let from = (self.next - self.oldest) as usize;
        let ready = self.frames.iter().skip(from).take_while(|f| f.whole_at.is_some()).count() as u64;
        let all = self.next + ready >= self.total;
        if !(all || (ready > 0 && self.interval * ready >= self.delay)) {
            return;
        }
        self.stalled = None;
        let stalled = now.saturating_since(since);
        self.stalled_in_all += stalled;
        self.base = Some(now - self.interval * self.next);
        let buffered = (self.interval * ready).as_secs_f64();
        let behind = self.stalled_in_all.as_secs_f64();
        let reason =
            format!("{buffered:.3} s buffered from frame {} on; {behind:.3} s behind in all", self.next);
        events.say(now, "resume", stalled.as_secs_f64(), "s", reason);
    }

    /// When `advance` has something to do.
    pub fn next_event(&self) -> Option<Instant> {
        if self.ended || self.paused.is_some() {
            return None;
        }
        if self.base.is_none() {
            return Some(self.started + self.interval * self.total + self.delay + GIVE_UP_AFTER);
        }
        let next = if self.next < self.total && self.stalled.is_none() { self.due(self.next) } else { None };
        let oldest = if self.oldest < self.next { self.due(self.oldest) } else { None };
        next.into_iter().chain(oldest.map(|due| due + LATE_WINDOW)).min()
    }

    /// Does what has fallen due by `now`.
    pub fn advance(&mut self, now: Instant, events: &mut Outbox) {
        if self.ended || self.paused.is_some() {
            return;
        }
        if self.base.is_none() {
            if self.next_event().is_some_and(|at| at <= now) {
                self.end(now, "no packet arrived", events);
            }
            return;
        }
        while self.next < self.total
            && self.stalled.is_none()
            && self.due(self.next).is_some_and(|at| at <= now)
        {
            self.fall_due(events);
        }
        self.settle(now, events);
        if self.oldest >= self.total {
            self.end(now, "all frames were shown or given up", events);
        }
    }

    fn fall_due(&mut self, events: &mut Outbox) {
        let number = self.next;
        let due = self.due(number).expect("only called once playing");
        let index = (number - self.oldest) as usize;
        let whole_at = self.frames.get(index).and_then(|f| f.whole_at);
        match whole_at {
            Some(at) if at <= due || self.waits => {
                self.shown += 1;
                events.say(due, "frame_shown", number as f64, "1", "");
                self.frames[index].settled = true;
            }
            Some(at) => {
                self.frames[index].settled = true;
                self.say_late(at, number, at, events);
            }
            None if self.waits => {
                self.stalled = Some(due);
                let packets = self.frames.get(index).map_or(0, |f| f.packets);
                let reason =
                    format!("frame {number} was not whole when due: {packets} packets of it were there");
                return events.say(due, "stall", number as f64, "1", reason);
            }
            None => {}
        }
        self.next += 1;
    }

    /// Lets go of frames that are settled or past hope.
    fn settle(&mut self, now: Instant, events: &mut Outbox) {
        while self.oldest < self.next {
            let due = self.due(self.oldest).expect("only called once playing");
            let frame = self.frames.front().cloned().unwrap_or_default();
            let number = self.oldest;
            if !frame.settled {
                if due + LATE_WINDOW > now {
                    return;
                }
                let (missing, reason) = match frame.expected() {
                    Some(expected) => {
                        let missing = expected.saturating_sub(frame.packets);
                        (
                            Some(missing as f64),
                            format!("frame {number}: {} of {expected} packets", frame.packets),
                        )
                    }
                    None if frame.packets == 0 => (None, format!("frame {number}: no packet")),
                    None => {
                        (None, format!("frame {number}: {} packets, not its first and last", frame.packets))
                    }
                };
                let unit = if missing.is_some() { "1" } else { "" };
                events.say(due, "frame_incomplete", missing, unit, reason);
            }
            self.frames.pop_front();
            self.oldest += 1;
        }
    }

    /// The clip ends before frame `total`.
    pub fn cut(&mut self, now: Instant, total: u64, events: &mut Outbox) {
        self.total = self.total.min(total.max(self.next));
        if self.base.is_none() {
            return self.end(now, "the server ended before any packet arrived", events);
        }
        self.try_resume(now, events);
        if self.next >= self.total {
            self.stalled = None;
        }
    }

    /// The clip ends with the last frame that a packet has arrived of.
    pub fn cut_after_newest(&mut self, now: Instant, events: &mut Outbox) {
        let arrived = if self.base.is_some() { self.newest + 1 } else { 0 };
        self.cut(now, arrived, events);
    }

    pub fn pause(&mut self, now: Instant) {
        self.paused = self.paused.or(Some(now));
    }

    pub fn resume(&mut self, now: Instant) {
        let Some(since) = self.paused.take() else { return };
        let pause = now.saturating_since(since);
        for time in [&mut self.base, &mut self.stalled].into_iter().flatten() {
            *time += pause;
        }
        self.started += pause;
    }

    /// Ends at once.
    pub fn end(&mut self, now: Instant, why: &'static str, events: &mut Outbox) {
        if !std::mem::replace(&mut self.ended, true) {
            events.say(now, MEDIA_END, self.shown as f64, "1", why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ClipSpec, RtpSpec};

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Frames of one packet, 40 ms apart, due 100 ms after they arrive in time.
    fn playout(waits: bool) -> Playout {
        let ms = Duration::from_millis;
        let clip = ClipSpec {
            name: String::new(),
            duration: ms(400),
            frame_interval: ms(40),
            frame_bytes: vec![1000],
            key_frames: vec![],
        };
        let (rtcp_interval, playout_delay) = (ms(1000), ms(100));
        let spec = RtpSpec { clip, max_payload: 1400, tcp: None, rtcp_interval, playout_delay };
        Playout::new(&Session::new(&spec, "video", 1), waits)
    }

    fn arrive(playout: &mut Playout, ms: u64, number: u64, events: &mut Outbox) {
        let packet = MediaPacket { sequence: number as u16, timestamp: 0, ssrc: 0, first: true, last: true };
        playout.arrived(at(ms), number, number as u32, packet, events);
    }

    fn said(events: &mut Outbox) -> Vec<(u64, String, Option<f64>)> {
        std::iter::from_fn(|| events.next())
            .map(|e| (e.at.as_nanos() / 1_000_000, e.name.into_owned(), e.value))
            .collect()
    }

    #[test]
    fn a_frame_whole_after_it_was_due_is_late_however_late_the_timer() {
        let (mut playout, mut events) = (playout(false), Outbox::default());
        arrive(&mut playout, 0, 0, &mut events);
        // Frame 1 was due at 140 ms; the host has not looked since 90 ms.
        playout.advance(at(90), &mut events);
        arrive(&mut playout, 150, 1, &mut events);
        playout.advance(at(155), &mut events);
        // Frame 2 is due at 180 ms and is whole only after the player has skipped it.
        playout.advance(at(180), &mut events);
        arrive(&mut playout, 500, 2, &mut events);
        let late = "frame_late".to_owned();
        assert_eq!(
            said(&mut events),
            [
                (100, "frame_shown".into(), Some(0.0)),
                (150, late.clone(), Some(0.01)),
                (500, late, Some(0.32)),
            ]
        );
    }

    #[test]
    fn a_second_after_it_was_due_a_frame_is_incomplete() {
        let (mut playout, mut events) = (playout(false), Outbox::default());
        arrive(&mut playout, 0, 0, &mut events);
        playout.advance(at(1_141), &mut events);
        arrive(&mut playout, 1_142, 1, &mut events);
        let said = said(&mut events);
        assert!(said.contains(&(140, "frame_incomplete".into(), None)), "{said:?}");
        assert!(!said.iter().any(|(_, name, _)| name == "frame_late"), "{said:?}");
    }

    #[test]
    fn a_stall_ends_when_as_much_is_buffered_as_at_the_start_or_all_is_there() {
        let (mut playout, mut events) = (playout(true), Outbox::default());
        arrive(&mut playout, 0, 0, &mut events);
        playout.advance(at(300), &mut events);
        for number in 1..=3 {
            // 100 ms are three frames of 40 ms.
            arrive(&mut playout, 300 + 10 * number, number, &mut events);
            playout.advance(at(300 + 10 * number), &mut events);
        }
        assert_eq!(
            said(&mut events)[..4],
            [
                (100, "frame_shown".into(), Some(0.0)),
                (140, "stall".into(), Some(1.0)),
                (330, "resume".into(), Some(0.19)),
                (330, "frame_shown".into(), Some(1.0)),
            ]
        );
        // Three are shown by 410 ms; frame 4 is late, and the stream ends with it.
        playout.advance(at(450), &mut events);
        arrive(&mut playout, 500, 4, &mut events);
        playout.cut_after_newest(at(500), &mut events);
        playout.advance(at(500), &mut events);
        let said = said(&mut events);
        assert_eq!(said.last(), Some(&(500, MEDIA_END.into(), Some(5.0))), "{said:?}");
    }
}
