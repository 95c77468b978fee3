//! Missing packets, and when they are reported (draft-sharabayko-srt-01 section 4.8.2).

use std::collections::BTreeSet;

use streamgauge_base::Instant;
use streamgauge_wire::srt::{LossRange, MOST_RANGES, SequenceNumber};

/// Missing packets by their counts.
#[derive(Default)]
pub(super) struct Losses {
    missing: BTreeSet<u64>,
    next: Option<Instant>,
}

impl Losses {
    /// Notes that packets of these counts are missing; the next periodic report is due at `next`, unless one is.
    pub fn lose(&mut self, counts: std::ops::Range<u64>, next: Option<Instant>) {
        if self.missing.is_empty() {
            self.next = next;
        }
        self.missing.extend(counts);
    }

    /// Notes that a packet came; true if it was missing.
    pub fn came(&mut self, count: u64) -> bool {
        self.missing.remove(&count)
    }

    /// Forgets packets before `next`.
    pub fn skip_to(&mut self, next: u64) {
        if self.missing.first().is_some_and(|first| *first < next) {
            self.missing = self.missing.split_off(&next);
        }
    }

    /// Returns the first.
    pub fn first(&self) -> Option<u64> {
        self.missing.first().copied()
    }

    pub fn len(&self) -> u64 {
        self.missing.len() as u64
    }

    /// Returns when the next periodic report is due.
    pub fn next_report(&self) -> Option<Instant> {
        self.next.filter(|_| !self.missing.is_empty())
    }

    /// Sets the time of the next periodic report.
    pub fn report_at(&mut self, next: Instant) {
        self.next = Some(next);
    }

    /// Returns all as ranges, as far as one datagram holds them.
    pub fn ranges(&self) -> Vec<LossRange> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &count in &self.missing {
            let is_full = ranges.len() == MOST_RANGES;
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == count => *last = count,
                _ if is_full => break,
                _ => ranges.push((count, count)),
            }
        }
        ranges.into_iter().map(|(first, last)| range(first, last)).collect()
    }
}

/// Returns a range of counts, the first and the last.
pub(super) fn range(first: u64, last: u64) -> LossRange {
    LossRange { first: SequenceNumber::of(first), last: SequenceNumber::of(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_range() {
        let mut losses = Losses::default();
        losses.lose(3..6, Some(Instant::from_nanos(5)));
        losses.lose(8..9, Some(Instant::from_nanos(7)));
        assert_eq!(losses.ranges(), [range(3, 5), range(8, 8)]);
        assert_eq!(losses.next_report(), Some(Instant::from_nanos(5)), "the first one's");
        assert!(losses.came(4) && !losses.came(4));
        assert_eq!(losses.ranges(), [range(3, 3), range(5, 5), range(8, 8)]);
        losses.skip_to(6);
        assert_eq!((losses.first(), losses.len()), (Some(8), 1));
        assert!(losses.came(8) && losses.next_report().is_none());
    }

    #[test]
    fn a_report_fits_into_a_datagram() {
        let mut losses = Losses::default();
        (0..2_000).for_each(|count| losses.lose(3 * count..3 * count + 1, None));
        assert_eq!(losses.ranges().len(), MOST_RANGES);
    }
}
