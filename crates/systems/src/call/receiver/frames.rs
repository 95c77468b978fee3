//! Frames as their packets come: which are whole, which can be decoded, when each is due.

use std::collections::BTreeMap;

use streamgauge_base::{Duration, Instant};

use super::super::packet::Place;
use super::delay::PlayoutDelay;

/// Frames further ahead than this are of another stream, or forged.
const MOST_AHEAD: u64 = 10_000;

#[derive(Clone, Debug)]
struct Frame {
    /// Which packets have come.
    came: Vec<bool>,
    left: u16,
    is_key: bool,
    captured: Instant,
    /// The sequence number of its first packet.
    begins: u64,
    whole: bool,
}

/// The outcome of a frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum FrameOutcome {
    /// It was shown, this long after it was captured.
    Shown(u64, Duration),
    /// The next one was due as well: so late it was.
    Late(u64, Duration),
    /// This many of its packets had not arrived when it was given up.
    Incomplete(u64, u16),
}

/// Frames of a whole call.
#[derive(Default)]
pub(super) struct Frames {
    frames: BTreeMap<u64, Frame>,
    /// The next to decode.
    next: u64,
    needs_key: bool,
    delay: PlayoutDelay,
    /// Since when the next frame has been due and not whole.
    waits: Option<Instant>,
}

impl Frames {
    /// Returns a buffer bounded by these.
    pub fn new(least: Duration, most: Duration) -> Self {
        Frames { delay: PlayoutDelay::new(least, most), ..Frames::default() }
    }

    /// Returns the media that the jitter buffer holds.
    pub fn buffer(&self) -> Duration {
        self.delay.delay()
    }

    pub fn needs_key(&self) -> bool {
        self.needs_key
    }

    /// Returns whether packets of a key frame that can be decoded have come.
    pub fn has_key_coming(&self) -> bool {
        self.frames.range(self.next..).any(|(_, frame)| frame.is_key)
    }

    /// Adds a packet that had not arrived before. Returns whether it was of use.
    pub fn packet(&mut self, now: Instant, place: &Place, sequence: u64) -> bool {
        let number = u64::from(place.frame);
        if number < self.next || number > self.next + MOST_AHEAD {
            return false;
        }
        let frame = self.frames.entry(number).or_insert_with(|| Frame {
            came: vec![false; place.packets.into()],
            left: place.packets,
            is_key: place.is_key,
            captured: place.captured,
            begins: sequence.saturating_sub(place.packet.into()),
            whole: false,
        });
        match frame.came.get_mut(usize::from(place.packet)) {
            Some(came) if !*came => *came = true,
            _ => return true,
        }
        frame.left -= 1;
        if frame.left == 0 {
            frame.whole = true;
            self.delay.whole(now, frame.captured);
        }
        true
    }

    /// Gives up frames that cannot be decoded: play continues with the next key frame.
    pub fn give_up(&mut self) {
        (self.needs_key, self.waits) = (true, None);
    }

    /// Returns the next frame that can be decoded.
    fn ready(&self) -> Option<u64> {
        if !self.needs_key && self.frames.get(&self.next).is_some_and(|frame| frame.whole) {
            return Some(self.next);
        }
        let mut keys = self.frames.range(self.next..).filter(|(_, frame)| frame.is_key && frame.whole);
        keys.next().map(|(number, _)| *number)
    }

    fn due(&self, number: u64) -> Option<Instant> {
        Some(self.delay.due(self.frames.get(&number)?.captured))
    }

    /// Returns when a frame is to be shown.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due(self.ready()?)
    }

    /// Returns since when the next frame has been due without being whole, while later ones come.
    pub fn waits(&self) -> Option<Instant> {
        self.waits
    }

    /// Shows frames that are due at `now`. Returns the outcomes of frames, in order, and the sequence number
    /// below which all packets are settled.
    pub fn advance(&mut self, now: Instant) -> (Vec<FrameOutcome>, Option<u64>) {
        let (mut fates, mut done) = (Vec::new(), None);
        while let Some(number) = self.ready() {
            let Some(due) = self.due(number).filter(|due| *due <= now) else { break };
            self.abandon(number, &mut fates);
            let Some(frame) = self.frames.remove(&number) else { break };
            done = Some(frame.begins + frame.came.len() as u64);
            (self.next, self.needs_key, self.waits) = (number + 1, false, None);
            let follows = self.ready().filter(|next| *next == number + 1).and_then(|next| self.due(next));
            fates.push(if follows.is_some_and(|due| due <= now) {
                FrameOutcome::Late(number, now.saturating_since(due))
            } else {
                FrameOutcome::Shown(number, now.saturating_since(frame.captured))
            });
        }
        self.note_waiting(now);
        (fates, done)
    }

    /// Drops frames before `number`, which are not shown any more.
    fn abandon(&mut self, number: u64, fates: &mut Vec<FrameOutcome>) {
        for lost in self.next..number {
            let left = self.frames.remove(&lost).map_or(1, |frame| frame.left);
            fates.push(FrameOutcome::Incomplete(lost, left));
        }
    }

    fn note_waiting(&mut self, now: Instant) {
        let later = self.frames.range(self.next..).next();
        let is_missing = later.is_some_and(|(_, frame)| self.delay.due(frame.captured) <= now);
        if self.waits.is_none() && is_missing && !self.needs_key {
            self.waits = Some(now);
        }
    }

    /// Returns when it is to be looked whether the next frame is missing.
    pub fn next_look(&self) -> Option<Instant> {
        if self.waits.is_some() || self.needs_key {
            return None;
        }
        let (_, frame) = self.frames.range(self.next..).next()?;
        Some(self.delay.due(frame.captured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn place(frame: u32, packet: u16, is_key: bool) -> Place {
        Place { frame, packet, packets: 2, is_key, captured: at(33 * u64::from(frame)) }
    }

    fn frames() -> Frames {
        Frames::new(Duration::from_millis(10), Duration::from_secs(10))
    }

    /// Gives both packets of a frame, 50 ms after it was captured.
    fn whole(frames: &mut Frames, frame: u32, is_key: bool) {
        for packet in 0..2 {
            let sequence = 2 * u64::from(frame) + u64::from(packet);
            assert!(frames.packet(at(33 * u64::from(frame) + 50), &place(frame, packet, is_key), sequence));
        }
    }

    #[test]
    fn a_frame_is_shown_when_it_is_due_and_no_sooner() {
        let mut frames = frames();
        whole(&mut frames, 0, true);
        assert_eq!(frames.poll_timeout(), Some(at(60)));
        assert_eq!(frames.advance(at(59)), (vec![], None));
        assert_eq!(
            frames.advance(at(60)),
            (vec![FrameOutcome::Shown(0, Duration::from_millis(60))], Some(2))
        );
        assert!(!frames.packet(at(70), &place(0, 0, true), 0), "too late to be of use");
    }

    #[test]
    fn of_two_that_are_due_the_later_is_shown() {
        let mut frames = frames();
        whole(&mut frames, 0, true);
        whole(&mut frames, 1, false);
        let (fates, _) = frames.advance(at(100));
        assert_eq!(
            fates,
            [
                FrameOutcome::Late(0, Duration::from_millis(40)),
                FrameOutcome::Shown(1, Duration::from_millis(67))
            ]
        );
    }

    #[test]
    fn without_one_frame_those_after_it_wait_for_a_key_frame() {
        let mut frames = frames();
        whole(&mut frames, 0, true);
        let _ = frames.advance(at(60));
        assert!(frames.packet(at(83), &place(1, 0, false), 2));
        whole(&mut frames, 2, false);
        assert_eq!((frames.advance(at(130)), frames.waits()), ((vec![], None), Some(at(130))));
        frames.give_up();
        whole(&mut frames, 3, true);
        let (fates, done) = frames.advance(at(200));
        let lost = [FrameOutcome::Incomplete(1, 1), FrameOutcome::Incomplete(2, 0)];
        assert_eq!((&fates[..2], done), (&lost[..], Some(8)));
        assert!(matches!(fates[2], FrameOutcome::Shown(3, _)));
    }
}
