//! Received packets of a source: sequence numbers without their wrap, duplicates, losses, jitter.

use streamgauge_base::{Duration, Instant};
use streamgauge_transport::rtp;

use super::seen::Seen;

/// Number of packets for which the reception is remembered. Where packets are sent again, one up to so far
/// behind the newest is late, not of a sender that began anew: a retransmission of Reliable UDP may come ten
/// seconds after its time. A quarter of the numbers, so that newer and older are never mixed up.
const WINDOW: u32 = 16_384;
const WORDS: usize = WINDOW as usize / 64;

/// Meaning of a packet behind a later one, where it is not declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Late {
    /// Overtaken on its way. It counts for jitter, and more than 100 behind it is of a sender that began anew (RFC 3550
    /// appendices A.1 and A.8).
    Reordered,
    /// Sent again, however far behind. It waited at the sender: its delay is no jitter.
    SentAgain,
}

/// Relation of a packet to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It has not come before; its number, extended by the count of wraps.
    First(u32),
    /// It has.
    Duplicate,
    /// Far from the others: it counts only if the next one follows it.
    Stray,
}

/// Counts of received packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets, duplicates included.
    pub packets: u64,
    /// RTP bytes of them, headers included.
    pub bytes: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets that first arrived behind a later one. Where the path keeps the order, these are
    /// retransmissions.
    pub behind: u64,
}

/// The packets of one source.
pub struct Reception {
    statistics: rtp::SourceStatistics,
    late: Late,
    highest: Option<u32>,
    came: Seen<WORDS>,
    /// Those received that ended their unit.
    ended: Seen<WORDS>,
    counts: Counts,
}

impl Reception {
    /// Returns the state for timestamps of `clock_rate` ticks a second.
    pub fn new(clock_rate: u32, late: Late) -> Self {
        Reception {
            statistics: rtp::SourceStatistics::new(clock_rate),
            late,
            highest: None,
            came: Seen::default(),
            ended: Seen::default(),
            counts: Counts::default(),
        }
    }

    /// Counts a packet of `bytes`; `ends` marks its unit's last.
    pub fn packet(
        &mut self,
        now: Instant,
        sequence: u16,
        timestamp: u32,
        bytes: usize,
        ends: bool,
    ) -> Arrival {
        self.counts.packets += 1;
        self.counts.bytes += bytes as u64;
        let behind = self.highest.map_or(0, |highest| u32::from((highest as u16).wrapping_sub(sequence)));
        let extended = match self.highest {
            Some(highest) if behind < WINDOW && self.late == Late::SentAgain => {
                self.statistics.retransmission();
                highest.wrapping_sub(behind)
            }
            _ => match self.statistics.packet(now, sequence, timestamp) {
                Some(extended) => extended,
                None => return Arrival::Stray,
            },
        };
        // A packet from before the first has a number below 0, which wraps.
        let is_newest = |highest: u32| extended.wrapping_sub(highest).cast_signed() > 0;
        let began_anew = self.statistics.received() == 1;
        if self.highest.is_some_and(|highest| began_anew && !is_newest(highest)) {
            (self.came, self.ended) = (Seen::default(), Seen::default());
            self.highest = None;
        }
        if !self.came.first(extended) {
            self.counts.duplicates += 1;
            return Arrival::Duplicate;
        }
        if ends {
            self.ended.first(extended);
        }
        match self.highest {
            Some(highest) if !is_newest(highest) => self.counts.behind += 1,
            _ => self.highest = Some(extended),
        }
        Arrival::First(extended)
    }

    /// Returns whether packet `sequence` begins a unit, as far as the one before it reveals that: `None` if
    /// that has not arrived.
    pub fn follows_an_end(&self, sequence: u32) -> Option<bool> {
        let before = sequence.wrapping_sub(1);
        self.came.contains(before).then(|| self.ended.contains(before))
    }

    /// Returns the counts of received packets.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the packets between the first and the newest that never arrived.
    pub fn lost(&self) -> u64 {
        let distinct = self.counts.packets - self.counts.duplicates;
        u64::from(self.statistics.expected()).saturating_sub(distinct)
    }

    /// Returns the interarrival jitter (RFC 3550 section 6.4.1).
    pub fn jitter(&self) -> Duration {
        self.statistics.jitter()
    }

    /// Returns the statistics for the report block.
    pub fn statistics(&mut self) -> &mut rtp::SourceStatistics {
        &mut self.statistics
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_retransmission_far_behind_is_no_restart_and_no_jitter() {
        let mut reception = Reception::new(90_000, Late::SentAgain);
        for n in 0..1000u16 {
            if n != 17 && n != 18 {
                let at = Instant::from_nanos(u64::from(n) * 10_000_000);
                assert_eq!(reception.packet(at, n, u32::from(n) * 900, 100, true), Arrival::First(n.into()));
            }
        }
        assert_eq!((reception.lost(), reception.follows_an_end(19)), (2, None));
        for n in [17, 18u16] {
            let at = Instant::from_nanos(10_000_000_000);
            assert_eq!(reception.packet(at, n, u32::from(n) * 900, 100, false), Arrival::First(n.into()));
            assert_eq!(reception.packet(at, n, u32::from(n) * 900, 100, false), Arrival::Duplicate);
        }
        assert_eq!(reception.jitter().as_nanos(), 0);
        assert_eq!(reception.lost(), 0);
        assert_eq!((reception.follows_an_end(19), reception.follows_an_end(21)), (Some(false), Some(true)));
        let counts = reception.counts();
        assert_eq!((counts.packets, counts.duplicates, counts.behind), (1002, 2, 2));
    }

    #[test]
    fn a_sender_that_begins_anew_is_followed_at_its_second_packet() {
        let mut reception = Reception::new(90_000, Late::SentAgain);
        let mut packet = |n| reception.packet(Instant::ZERO, n, 0, 100, true);
        assert_eq!(packet(50_000), Arrival::First(50_000));
        assert_eq!(packet(7), Arrival::Stray);
        assert_eq!(packet(8), Arrival::First(8));
        assert_eq!(packet(9), Arrival::First(9));
        assert_eq!(packet(8), Arrival::Duplicate);
    }

    #[test]
    fn where_nothing_is_sent_again_a_packet_far_behind_is_of_a_sender_that_begins_anew() {
        let mut reception = Reception::new(90_000, Late::Reordered);
        let mut packet = |n| reception.packet(Instant::ZERO, n, 0, 100, true);
        for n in 0..5_000 {
            assert_eq!(packet(n), Arrival::First(n.into()));
        }
        assert_eq!(packet(4_900), Arrival::Duplicate);
        assert_eq!((packet(4_000), packet(4_001)), (Arrival::Stray, Arrival::First(4_001)));
        assert_eq!((packet(4_002), packet(4_001)), (Arrival::First(4_002), Arrival::Duplicate));
    }

    #[test]
    fn only_a_packet_that_was_overtaken_counts_for_jitter() {
        let jitter = |late| {
            let mut reception = Reception::new(90_000, late);
            for (n, ms) in [(0u16, 0u64), (2, 80), (1, 100), (3, 120)] {
                reception.packet(Instant::from_nanos(ms * 1_000_000), n, u32::from(n) * 3600, 100, true);
            }
            reception.jitter().as_nanos()
        };
        assert_eq!(jitter(Late::SentAgain), 0);
        assert!(jitter(Late::Reordered) > 0);
    }

    #[test]
    fn a_packet_from_before_the_first_changes_nothing_for_the_others() {
        for first in [5u16, 50_000] {
            let mut reception = Reception::new(90_000, Late::SentAgain);
            let mut packet = |n: u16| reception.packet(Instant::ZERO, n, 0, 100, true);
            let (number, before) = (u32::from(first), first.wrapping_sub(8));
            assert_eq!(packet(first), Arrival::First(number));
            assert_eq!(packet(before), Arrival::First(number.wrapping_sub(8)));
            assert_eq!(packet(first + 1), Arrival::First(number + 1));
            assert_eq!((packet(first), packet(before)), (Arrival::Duplicate, Arrival::Duplicate));
            assert_eq!(reception.counts().behind, 1);
        }
    }

    proptest! {
        #[test]
        fn every_number_is_first_once_across_wraps(
            start in any::<u16>(), steps in prop::collection::vec(-2000i32..2010, 1..400),
        ) {
            let (mut reception, mut model, mut at) = (Reception::new(90_000, Late::SentAgain), BTreeSet::new(), 0i32);
            let mut newest = 0;
            for step in std::iter::once(0).chain(steps) {
                // As far back as is remembered, and ahead less than a restart.
                at = (at + step).clamp((newest - 16_000).max(0), newest + 2_900);
                newest = newest.max(at);
                let arrival = reception.packet(Instant::ZERO, start.wrapping_add(at as u16), 0, 1, false);
                if model.insert(at) {
                    prop_assert_eq!(arrival, Arrival::First(u32::from(start) + at as u32));
                } else {
                    prop_assert_eq!(arrival, Arrival::Duplicate);
                }
            }
        }
    }
}
