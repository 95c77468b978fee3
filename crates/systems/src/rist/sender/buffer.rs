//! Packets that were sent, and those that are to be sent again.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub payload: Box<[u8]>,
    /// Its timestamp.
    pub ticks: u32,
    origin: Instant,
    /// When it was last asked for.
    asked: Option<Instant>,
    is_queued: bool,
    /// How often it was sent again.
    pub repeats: u32,
}

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// It will be sent again.
    Queued,
    /// It waits to be sent again.
    Waits,
    /// It was asked for too short a time ago.
    TooSoon,
    /// It is not kept, or was never sent.
    Unknown,
}

/// The packets of one sender, by counts that extend their numbers.
pub(super) struct RepeatBuffer {
    /// The count of the first that is kept.
    first: u64,
    kept: VecDeque<Kept>,
    queue: VecDeque<u64>,
}

impl RepeatBuffer {
    /// Returns a buffer whose first packet will have this count.
    pub fn new(first: u64) -> Self {
        RepeatBuffer { first, kept: VecDeque::new(), queue: VecDeque::new() }
    }

    /// Keeps a packet that is sent now; returns its count.
    pub fn push(&mut self, origin: Instant, ticks: u32, payload: &[u8]) -> u64 {
        let payload = payload.into();
        self.kept.push_back(Kept { payload, ticks, origin, asked: None, is_queued: false, repeats: 0 });
        self.end() - 1
    }

    /// Returns the count of the next packet.
    pub fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Returns when the oldest was sent.
    pub fn oldest(&self) -> Option<Instant> {
        self.kept.front().map(|kept| kept.origin)
    }

    fn get(&mut self, count: u64) -> Option<&mut Kept> {
        self.kept.get_mut(usize::try_from(count.checked_sub(self.first)?).ok()?)
    }

    /// Takes a request for a packet. With a spacing it is repeated once in that time, and not while it waits.
    pub fn ask(&mut self, now: Instant, count: u64, spacing: Option<Duration>) -> Asked {
        let Some(kept) = self.get(count) else { return Asked::Unknown };
        if let Some(spacing) = spacing {
            if kept.is_queued {
                return Asked::Waits;
            }
            if kept.asked.is_some_and(|asked| asked + spacing > now) {
                return Asked::TooSoon;
            }
        }
        kept.asked = Some(now);
        kept.is_queued = true;
        self.queue.push_back(count);
        Asked::Queued
    }

    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns the next packet that is to be sent again, with its count. One that is kept no longer is left out.
    pub fn next(&mut self) -> Option<(u64, &mut Kept)> {
        let count = loop {
            let count = self.queue.pop_front()?;
            if count >= self.first {
                break count;
            }
        };
        let kept = self.get(count)?;
        kept.is_queued = false;
        Some((count, kept))
    }

    /// Removes packets that were sent more than `hold` ago.
    pub fn drop_older(&mut self, now: Instant, hold: Duration) {
        let old = self.kept.iter().take_while(|kept| kept.origin + hold <= now).count();
        self.kept.drain(..old);
        self.first += old as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn ten() -> RepeatBuffer {
        let mut buffer = RepeatBuffer::new(100);
        (0..10).for_each(|ms| assert_eq!(buffer.push(at(ms), 0, b"x"), 100 + ms));
        buffer
    }

    fn drained(buffer: &mut RepeatBuffer) -> Vec<u64> {
        std::iter::from_fn(|| buffer.next().map(|(count, _)| count)).collect()
    }

    #[test]
    fn a_packet_is_repeated_once_in_the_spacing() {
        let (mut buffer, spacing) = (ten(), Some(Duration::from_millis(100)));
        assert_eq!(buffer.ask(at(20), 103, spacing), Asked::Queued);
        assert_eq!(buffer.ask(at(20), 103, spacing), Asked::Waits);
        assert_eq!(drained(&mut buffer), [103]);
        assert_eq!(buffer.ask(at(119), 103, spacing), Asked::TooSoon);
        assert_eq!(buffer.ask(at(120), 103, spacing), Asked::Queued);
        assert_eq!([99, 110].map(|count| buffer.ask(at(20), count, spacing)), [Asked::Unknown; 2]);
    }

    #[test]
    fn without_a_spacing_each_request_counts() {
        let mut buffer = ten();
        assert_eq!([103, 102, 103].map(|count| buffer.ask(at(20), count, None)), [Asked::Queued; 3]);
        assert_eq!(drained(&mut buffer), [103, 102, 103]);
    }

    #[test]
    fn old_packets_are_gone_though_they_were_asked_for() {
        let mut buffer = ten();
        assert_eq!([104, 105].map(|count| buffer.ask(at(20), count, None)), [Asked::Queued; 2]);
        buffer.drop_older(at(104), Duration::from_millis(100));
        assert_eq!((buffer.oldest(), drained(&mut buffer)), (Some(at(5)), vec![105]));
    }
}
