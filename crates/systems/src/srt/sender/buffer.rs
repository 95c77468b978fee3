//! Packets that may be sent, or sent again.

use std::collections::{BTreeSet, VecDeque};

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::srt::LossRange;

/// A packet of the application.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub payload: Box<[u8]>,
    /// When it was handed over, and the same as its timestamp.
    pub origin: Instant,
    pub origin_us: u32,
    /// When it was sent again for the last time.
    repeated: Option<Instant>,
}

/// The packets of one sender, by counts that extend their numbers.
pub(super) struct SendBuffer {
    /// The count of the first that is held.
    first: u64,
    /// The first that was not sent yet.
    unsent: u64,
    held: VecDeque<Held>,
    lost: BTreeSet<u64>,
    most: usize,
}

impl SendBuffer {
    /// Returns a buffer for so many packets; its first has this count.
    pub fn new(first: u64, most: usize) -> Self {
        SendBuffer { first, unsent: first, held: VecDeque::new(), lost: BTreeSet::new(), most }
    }

    /// Adds a packet; false if there is no room.
    pub fn push(&mut self, origin: Instant, origin_us: u32, payload: &[u8]) -> bool {
        let has_room = self.held.len() < self.most;
        if has_room {
            self.held.push_back(Held { payload: payload.into(), origin, origin_us, repeated: None });
        }
        has_room
    }

    fn end(&self) -> u64 {
        self.first + self.held.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns when the oldest was handed over.
    pub fn oldest(&self) -> Option<Instant> {
        self.held.front().map(|held| held.origin)
    }

    /// Returns whether a packet waits: a lost one, or a new one where fewer than `window` are in flight.
    pub fn has_next(&self, window: u64) -> bool {
        !self.lost.is_empty() || (self.unsent < self.end() && self.unsent - self.first < window)
    }

    /// Returns the next packet with its count, and whether it was sent before. Lost ones are first.
    pub fn next(&mut self, now: Instant, window: u64) -> Option<(u64, &Held, bool)> {
        if let Some(count) = self.lost.pop_first() {
            let held = self.held.get_mut((count - self.first) as usize)?;
            held.repeated = Some(now);
            return Some((count, &*held, true));
        }
        let count = self.unsent;
        if count >= self.end() || count - self.first >= window {
            return None;
        }
        self.unsent += 1;
        Some((count, &self.held[(count - self.first) as usize], false))
    }

    /// Returns the count nearest to those held, of a number of the peer's.
    pub fn count(&self, number: streamgauge_wire::srt::SequenceNumber) -> u64 {
        number.near(self.first)
    }

    /// Removes packets before `next`, which all have arrived. Returns false for a number that was never sent.
    pub fn acknowledge(&mut self, next: u64) -> bool {
        let is_sent = next <= self.unsent;
        if is_sent {
            self.remove_before(next);
        }
        is_sent
    }

    /// Notes lost packets, of those that were sent and are held. A packet that was sent again after `since` is on its way.
    pub fn lose(&mut self, losses: &[LossRange], since: Option<Instant>) {
        for LossRange { first, last } in losses {
            let (first, last) = (self.count(*first), self.count(*last));
            for count in first.max(self.first)..last.saturating_add(1).min(self.unsent) {
                let repeated = self.held[(count - self.first) as usize].repeated;
                if since.is_none_or(|since| repeated.is_none_or(|at| at <= since)) {
                    self.lost.insert(count);
                }
            }
        }
    }

    /// Removes packets that were handed over more than `hold` ago. Returns how many.
    pub fn drop_older(&mut self, now: Instant, hold: Duration) -> u64 {
        let old = self.held.iter().take_while(|held| held.origin + hold <= now).count() as u64;
        self.remove_before(self.first + old);
        old
    }

    fn remove_before(&mut self, next: u64) {
        if next > self.first {
            self.held.drain(..(next - self.first) as usize);
            self.lost = self.lost.split_off(&next);
            self.first = next;
            self.unsent = self.unsent.max(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_wire::srt::SequenceNumber;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn range(first: u64, last: u64) -> [LossRange; 1] {
        [LossRange { first: SequenceNumber::of(first), last: SequenceNumber::of(last) }]
    }

    /// Counts begin so that numbers wrap within the ten packets.
    const FIRST: u64 = (1 << 31) - 5;

    fn ten() -> SendBuffer {
        let mut buffer = SendBuffer::new(FIRST, 10);
        (0..10).for_each(|ms| assert!(buffer.push(at(ms), 0, b"x")));
        assert!(!buffer.push(at(10), 0, b"x"), "it is full");
        buffer
    }

    fn sends(buffer: &mut SendBuffer, now: Instant) -> Vec<(u64, bool)> {
        let next = || buffer.next(now, 8).map(|(count, _, again)| (count - FIRST, again));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn lost_packets_leave_before_new_ones_and_no_more_than_the_window_is_in_flight() {
        let mut buffer = ten();
        assert_eq!(sends(&mut buffer, at(20)), (0..8).map(|count| (count, false)).collect::<Vec<_>>());
        assert!(!buffer.has_next(8) && buffer.has_next(9));
        // Unsent packets are not lost, and acknowledged ones are gone.
        buffer.lose(&range(FIRST + 3, FIRST + 100), None);
        assert_eq!(sends(&mut buffer, at(30)), [3, 4, 5, 6, 7].map(|count| (count, true)));
        assert!(buffer.acknowledge(FIRST + 6) && !buffer.acknowledge(FIRST + 9));
        buffer.lose(&range(FIRST, FIRST + 6), None);
        assert_eq!(sends(&mut buffer, at(40)), [(6, true), (8, false), (9, false)]);
    }

    #[test]
    fn a_packet_on_its_way_again_is_not_sent_a_third_time() {
        let mut buffer = ten();
        sends(&mut buffer, at(20));
        let lost = range(FIRST + 2, FIRST + 2);
        buffer.lose(&lost, Some(at(0)));
        assert_eq!(sends(&mut buffer, at(30)), [(2, true)]);
        buffer.lose(&lost, Some(at(25)));
        assert_eq!(sends(&mut buffer, at(35)), []);
        buffer.lose(&lost, Some(at(30)));
        assert_eq!(sends(&mut buffer, at(40)), [(2, true)]);
    }

    #[test]
    fn old_packets_are_dropped_sent_or_not() {
        let mut buffer = ten();
        sends(&mut buffer, at(20));
        buffer.lose(&range(FIRST, FIRST + 7), None);
        assert_eq!(buffer.drop_older(at(108), Duration::from_millis(100)), 9);
        assert_eq!((buffer.oldest(), buffer.has_next(8)), (Some(at(9)), true));
        assert_eq!(sends(&mut buffer, at(108)), [(9, false)]);
    }
}
