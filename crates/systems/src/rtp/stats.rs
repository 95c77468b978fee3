//! What a receiver counts (RFC 3550 appendix A).

use streamgauge_base::Instant;

use super::session::ticks;

/// Sequence numbers back from the highest within which a duplicate is known as one.
const WINDOW: u64 = 1024;

/// Reception of one source.
pub struct Reception {
    /// Extended sequence number of the first packet.
    base: u64,
    /// Extended highest sequence number.
    highest: Option<u64>,
    received: u64,
    seen: [u64; (WINDOW / 64) as usize],
    /// Transit time of the latest packet in RTP ticks.
    transit: Option<u32>,
    /// Sixteen times the interarrival jitter, as in appendix A.8.
    jitter: u32,
    expected_before: u64,
    received_before: u64,
}

/// The figures of a report block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Of the packets expected since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Since the start, clamped to 24 bits; duplicates do not make it negative here.
    pub cumulative_lost: u32,
    /// Cycles in the high half.
    pub highest: u32,
    /// RTP ticks.
    pub jitter: u32,
}

impl Reception {
    /// A source whose first packet will carry `first_sequence`, as RTP-Info said.
    pub fn new(first_sequence: u16) -> Self {
        // One cycle up, so that no extended number is negative.
        let base = 0x1_0000 + u64::from(first_sequence);
        Reception {
            base,
            highest: None,
            received: 0,
            seen: [0; (WINDOW / 64) as usize],
            transit: None,
            jitter: 0,
            expected_before: 0,
            received_before: 0,
        }
    }

    /// Counts a packet and returns its extended sequence number, or `None` if it is a duplicate.
    pub fn receive(&mut self, now: Instant, sequence: u16, timestamp: u32) -> Option<u64> {
        let reference = self.highest.unwrap_or(self.base);
        let ahead = i64::from(sequence.wrapping_sub(reference as u16) as i16);
        let extended = reference.checked_add_signed(ahead).filter(|e| *e >= self.base)?;
        let bit = |e: u64| ((e % WINDOW / 64) as usize, 1u64 << (e % 64));
        match self.highest {
            Some(highest) if extended <= highest => {
                let (word, mask) = bit(extended);
                if highest - extended >= WINDOW || self.seen[word] & mask != 0 {
                    return None;
                }
            }
            _ => {
                let from = self.highest.map_or(extended, |h| h + 1);
                for skipped in from.max(extended.saturating_sub(WINDOW - 1))..extended {
                    let (word, mask) = bit(skipped);
                    self.seen[word] &= !mask;
                }
                self.highest = Some(extended);
            }
        }
        let (word, mask) = bit(extended);
        self.seen[word] |= mask;
        self.received += 1;

        let arrival = ticks(now.saturating_since(Instant::ZERO)) as u32;
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            let difference = (transit.wrapping_sub(before) as i32).unsigned_abs();
            self.jitter = self.jitter.wrapping_add(difference).wrapping_sub((self.jitter + 8) >> 4);
        }
        Some(extended)
    }

    /// Forgets the last transit time: the sender's clock stood still.
    pub fn resync(&mut self) {
        self.transit = None;
    }

    /// The report block for now; the next one counts its fraction from here. `None` before the first packet.
    pub fn report(&mut self) -> Option<Block> {
        let highest = self.highest?;
        let expected = highest - self.base + 1;
        let lost = expected.saturating_sub(self.received);
        let expected_interval = expected - self.expected_before;
        let received_interval = self.received - self.received_before;
        self.expected_before = expected;
        self.received_before = self.received;
        let lost_interval = expected_interval.saturating_sub(received_interval);
        let fraction = (lost_interval << 8).checked_div(expected_interval).unwrap_or(0);
        Some(Block {
            fraction_lost: fraction.min(255) as u8,
            cumulative_lost: lost.min(0x7f_ffff) as u32,
            highest: (highest - 0x1_0000) as u32,
            jitter: self.jitter >> 4,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn counts_losses_across_the_wrap_and_since_the_last_report() {
        let mut reception = Reception::new(65_530);
        assert_eq!(reception.report(), None);
        for n in (0u16..20).filter(|n| n % 5 != 1) {
            assert!(reception.receive(at_ms(0), 65_530u16.wrapping_add(n), 0).is_some());
        }
        let block = reception.report().unwrap();
        // 20 expected, 4 lost: 4 * 256 / 20 = 51.
        assert_eq!((block.cumulative_lost, block.fraction_lost), (4, 51));
        assert_eq!(block.highest, 0x1_0000 + 13);
        for n in 20u16..30 {
            reception.receive(at_ms(0), 65_530u16.wrapping_add(n), 0);
        }
        let block = reception.report().unwrap();
        assert_eq!((block.cumulative_lost, block.fraction_lost), (4, 0));
    }

    #[test]
    fn a_late_packet_counts_once_and_a_duplicate_not_at_all() {
        let mut reception = Reception::new(0);
        for n in [0u16, 1, 3, 2, 2, 3, 0] {
            reception.receive(at_ms(0), n, 0);
        }
        assert_eq!(reception.received, 4);
        assert_eq!(reception.report().unwrap().cumulative_lost, 0);
    }

    #[test]
    fn a_jump_clears_the_window_behind_it() {
        let mut reception = Reception::new(0);
        for n in 0..100u16 {
            reception.receive(at_ms(0), n, 0);
        }
        assert!(reception.receive(at_ms(0), 1100, 0).is_some());
        assert!(reception.receive(at_ms(0), 1024 + 50, 0).is_some(), "50 is no duplicate of 1074");
        assert!(reception.receive(at_ms(0), 80, 0).is_none(), "already seen");
    }

    #[test]
    fn packets_before_the_first_are_not_of_this_session() {
        assert_eq!(Reception::new(10).receive(at_ms(0), 9, 0), None);
    }

    #[test]
    fn jitter_follows_appendix_a_8() {
        // Transit alternates by 10 ms = 900 ticks: the estimate tends to 900.
        let mut reception = Reception::new(0);
        for n in 0..500u16 {
            let ms = u64::from(n) * 20;
            reception.receive(at_ms(ms + u64::from(n % 2) * 10), n, (ms * 90) as u32);
        }
        let jitter = reception.report().unwrap().jitter;
        assert!((890..=900).contains(&jitter), "{jitter}");
    }
}
