//! Missing packets, and when they are asked for.

use std::collections::BTreeMap;

use streamgauge_base::{Duration, Instant};

/// A missing packet.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// When it should have come.
    since: Instant,
    /// The next request.
    next: Instant,
    asked: u32,
}

/// When requests end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Time between two requests.
    pub spacing: Duration,
    /// Requests for one packet.
    pub most: u32,
    /// The age from which it is not asked for.
    pub until: Duration,
}

/// Missing packets by their counts.
#[derive(Default)]
pub(super) struct Missing {
    lost: BTreeMap<u64, Lost>,
    /// No later than the first time at which one needs something.
    due: Option<Instant>,
}

impl Missing {
    /// Notes a packet that should have come at `since`; the first request is due at `next`.
    pub fn lose(&mut self, count: u64, since: Instant, next: Instant) {
        self.lost.insert(count, Lost { since, next, asked: 0 });
        self.due = Some(self.due.map_or(next, |due| due.min(next)));
    }

    /// Notes that a packet came.
    pub fn came(&mut self, count: u64) {
        self.lost.remove(&count);
    }

    pub fn len(&self) -> usize {
        self.lost.len()
    }

    pub fn clear(&mut self) {
        *self = Missing::default();
    }

    /// Returns when `turn` has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.lost.is_empty())
    }

    /// Returns the packets that are asked for now, in order, and forgets those that are asked for no more.
    pub fn turn(&mut self, now: Instant, bounds: Bounds) -> Vec<u64> {
        let mut asked = Vec::new();
        self.lost.retain(|&count, lost| {
            if lost.asked >= bounds.most || lost.since + bounds.until < now {
                return false;
            }
            if lost.next <= now {
                lost.next = now + bounds.spacing;
                lost.asked += 1;
                asked.push(count);
            }
            true
        });
        self.due = self.lost.values().map(|lost| lost.next).min();
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    const BOUNDS: Bounds =
        Bounds { spacing: Duration::from_millis(110), most: 3, until: Duration::from_millis(1_000) };

    #[test]
    fn a_packet_is_asked_for_each_spacing_and_no_more_than_the_bound() {
        let mut missing = Missing::default();
        missing.lose(7, at(0), at(25));
        missing.lose(9, at(5), at(30));
        let mut asked = Vec::new();
        while let Some(due) = missing.due() {
            asked.push((due, missing.turn(due, BOUNDS)));
        }
        let times = [25, 30, 135, 140, 245, 250].map(at);
        let counts = [7, 9, 7, 9, 7, 9].map(|count| vec![count]);
        assert_eq!(asked[..6], times.into_iter().zip(counts).collect::<Vec<_>>());
        assert!(asked[6..].iter().all(|(_, counts)| counts.is_empty()) && missing.len() == 0);
    }

    #[test]
    fn an_old_packet_and_one_that_came_are_not_asked_for() {
        let mut missing = Missing::default();
        [1, 2, 3].into_iter().for_each(|count| missing.lose(count, at(10 * count), at(900)));
        missing.came(2);
        assert_eq!(missing.turn(at(1_015), BOUNDS), [3]);
        assert_eq!((missing.len(), missing.due()), (1, Some(at(1_125))));
    }
}
