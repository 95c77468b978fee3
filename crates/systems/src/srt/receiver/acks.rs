//! Acknowledgements and the round trips that they measure (draft-sharabayko-srt-01 sections 4.8.1 and 4.10).

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

/// Acknowledgements without an answer that are remembered.
const REMEMBERED: usize = 1024;

/// The acknowledged packets.
pub(super) struct Acks {
    interval: Duration,
    light_after: u32,
    next: Option<Instant>,
    /// The number of the next full one.
    number: u32,
    /// Full ones without an answer: number, position, time.
    waiting: VecDeque<(u32, u64, Instant)>,
    /// The last position that was sent, and when in a full one.
    sent: u64,
    sent_at: Instant,
    /// The position that the sender is known to have.
    known: u64,
    /// Packets since the last one.
    packets: u32,
}

impl Acks {
    pub fn new(interval: Duration, light_after: u32) -> Self {
        Acks {
            interval,
            light_after,
            next: None,
            number: 1,
            waiting: VecDeque::new(),
            sent: 0,
            sent_at: Instant::ZERO,
            known: 0,
            packets: 0,
        }
    }

    /// Begins at this position, at which nothing is to be acknowledged.
    pub fn start(&mut self, now: Instant, position: u64) {
        (self.next, self.sent, self.known) = (Some(now + self.interval), position, position);
    }

    /// Returns when the next full one may be due.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Counts a data packet; true if a light one is due.
    pub fn packet(&mut self) -> bool {
        self.packets += 1;
        self.packets >= self.light_after
    }

    /// Takes the position of a light one; false if it was sent already.
    pub fn light(&mut self, position: u64) -> bool {
        self.packets = 0;
        let is_news = position > self.sent;
        self.sent = self.sent.max(position);
        is_news
    }

    /// Returns the number of a full one for this position, if one is due: for a new position, or again when
    /// the sender has not answered within `patience`.
    pub fn full(&mut self, now: Instant, position: u64, patience: Duration) -> Option<u32> {
        self.next.filter(|next| *next <= now)?;
        self.next = Some(now + self.interval);
        let is_said = self.waiting.back().is_some_and(|(_, last, _)| *last == position);
        let waits = is_said && self.sent_at + patience > now;
        if position <= self.known || waits {
            return None;
        }
        let number = self.number;
        self.number = self.number.checked_add(1).unwrap_or(1);
        if self.waiting.len() == REMEMBERED {
            self.waiting.pop_front();
        }
        self.waiting.push_back((number, position, now));
        (self.sent, self.sent_at, self.packets) = (position, now, 0);
        Some(number)
    }

    /// Takes the sender's answer; returns the round trip, if it is of one that waits.
    pub fn answered(&mut self, now: Instant, number: u32) -> Option<Duration> {
        let place = self.waiting.iter().position(|(waiting, _, _)| *waiting == number)?;
        let (_, position, sent) = self.waiting[place];
        self.waiting.drain(..=place);
        self.known = self.known.max(position);
        Some(now.saturating_since(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    const PATIENCE: Duration = Duration::from_millis(35);

    fn acks() -> Acks {
        let mut acks = Acks::new(Duration::from_millis(10), 64);
        acks.start(at(0), 5);
        acks
    }

    #[test]
    fn a_position_is_said_until_it_is_answered() {
        let mut acks = acks();
        assert_eq!(acks.full(at(5), 9, PATIENCE), None, "not yet");
        assert_eq!(acks.full(at(10), 5, PATIENCE), None, "nothing new");
        assert_eq!(acks.full(at(20), 9, PATIENCE), Some(1));
        assert_eq!(acks.full(at(30), 9, PATIENCE), None, "an answer may still come");
        assert_eq!(acks.full(at(60), 9, PATIENCE), Some(2));
        assert_eq!(acks.answered(at(70), 3), None);
        assert_eq!(acks.answered(at(70), 2), Some(Duration::from_millis(10)));
        assert_eq!(acks.answered(at(71), 1), None, "the older one is past");
        assert_eq!(acks.full(at(120), 9, PATIENCE), None);
        assert_eq!(acks.full(at(130), 10, PATIENCE), Some(3));
    }

    #[test]
    fn a_light_one_is_due_after_64_packets() {
        let mut acks = acks();
        assert_eq!((0..64).filter(|_| acks.packet()).count(), 1);
        assert!(acks.light(69) && !acks.light(69));
        assert_eq!((0..63).filter(|_| acks.packet()).count(), 0);
    }
}
