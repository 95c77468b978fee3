//! The counts that an RTP receiver keeps for its RTCP reports (RFC 3550 section 6.4.1 and appendix A).

use streamgauge_base::{Duration, Instant};

/// A forward jump of the sequence number by this many or more is a restarted sender, not loss (appendix A.1).
const MAX_DROPOUT: u16 = 3000;
/// A packet at most so far behind the highest is late or repeated, not a restart (appendix A.1).
const MAX_MISORDER: u16 = 100;

/// The report block of an RTCP receiver report, without its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceptionReport {
    /// Share of packets lost since the last report, in 1/256; 0 if duplicates outnumber losses.
    pub fraction_lost: u8,
    /// Packets lost since the start, held within 24 signed bits; negative if there are more duplicates than
    /// losses.
    pub cumulative_lost: i32,
    /// Highest sequence number, with the count of its wraps above the low 16 bits.
    pub extended_highest: u32,
    /// Interarrival jitter in RTP timestamp units.
    pub jitter: u32,
}

/// Statistics of one source.
#[derive(Clone, Debug)]
pub struct SourceStatistics {
    clock_rate: u32,
    /// First extended sequence number; `None` before the first packet.
    base: Option<u32>,
    highest: u32,
    received: u32,
    /// The number that would confirm a restart of the sender.
    restart: Option<u16>,
    expected_prior: u32,
    received_prior: u32,
    /// Arrival time minus timestamp of the last packet, in timestamp units.
    transit: Option<u32>,
    /// Sixteen times the jitter.
    jitter_16: u32,
}

impl SourceStatistics {
    /// Makes a counter for a payload with timestamps of `clock_rate` per second (90,000 for video).
    pub fn new(clock_rate: u32) -> Self {
        SourceStatistics {
            clock_rate,
            base: None,
            highest: 0,
            received: 0,
            restart: None,
            expected_prior: 0,
            received_prior: 0,
            transit: None,
            jitter_16: 0,
        }
    }

    /// Handles a packet that arrived. Returns its extended sequence number, or `None` for one far from the others,
    /// which counts only if the next one follows it: the sender has then restarted, and all counts with it.
    pub fn packet(&mut self, now: Instant, sequence: u16, timestamp: u32) -> Option<u32> {
        let Some(_) = self.base else {
            self.restart_at(sequence);
            return Some(self.count(now, u32::from(sequence), timestamp));
        };
        let ahead = sequence.wrapping_sub(self.highest as u16);
        if ahead < MAX_DROPOUT {
            self.highest = self.highest.wrapping_add(u32::from(ahead));
            self.restart = None;
            return Some(self.count(now, self.highest, timestamp));
        }
        let behind = ahead.wrapping_neg();
        if behind <= MAX_MISORDER {
            return Some(self.count(now, self.highest.wrapping_sub(u32::from(behind)), timestamp));
        }
        if self.restart == Some(sequence) {
            self.restart_at(sequence);
            return Some(self.count(now, u32::from(sequence), timestamp));
        }
        self.restart = Some(sequence.wrapping_add(1));
        None
    }

    fn restart_at(&mut self, sequence: u16) {
        *self = SourceStatistics::new(self.clock_rate);
        self.base = Some(u32::from(sequence));
        self.highest = u32::from(sequence);
    }

    fn count(&mut self, now: Instant, extended: u32, timestamp: u32) -> u32 {
        self.received += 1;
        let arrival = u128::from(now.as_nanos()) * u128::from(self.clock_rate) / 1_000_000_000;
        let transit = (arrival as u32).wrapping_sub(timestamp);
        if let Some(last) = self.transit {
            // J += (|D| - J) / 16, kept sixteenfold and rounded (appendix A.8).
            let d = (transit.wrapping_sub(last) as i32).unsigned_abs();
            self.jitter_16 = self.jitter_16.saturating_add(d) - ((self.jitter_16 + 8) >> 4);
        }
        self.transit = Some(transit);
        extended
    }

    /// Counts a packet that is known to be late or repeated, however far behind the newest: a retransmission. It counts
    /// as received but not for jitter, since it waited at the sender.
    pub fn retransmission(&mut self) {
        self.received += 1;
    }

    /// Returns the packets that arrived, repeated ones included.
    pub fn received(&self) -> u32 {
        self.received
    }
    /// Returns the packets from the first to the highest sequence number.
    pub fn expected(&self) -> u32 {
        self.base.map_or(0, |base| self.highest.wrapping_sub(base).wrapping_add(1))
    }
    /// Returns the packets lost since the start; negative if more were repeated than lost.
    pub fn lost(&self) -> i64 {
        i64::from(self.expected()) - i64::from(self.received)
    }
    /// Returns the interarrival jitter.
    pub fn jitter(&self) -> Duration {
        let nanos = u64::from(self.jitter_16) * 1_000_000_000 / 16 / u64::from(self.clock_rate);
        Duration::from_nanos(nanos)
    }

    /// Returns the report block now; the next one's fraction counts from here (appendix A.3).
    pub fn report(&mut self) -> ReceptionReport {
        let expected = self.expected();
        let expected_interval = expected.wrapping_sub(self.expected_prior);
        let received_interval = self.received.wrapping_sub(self.received_prior);
        self.expected_prior = expected;
        self.received_prior = self.received;
        let lost_interval = i64::from(expected_interval) - i64::from(received_interval);
        let fraction_lost = match expected_interval {
            0 => 0,
            n => (lost_interval.max(0) * 256 / i64::from(n)).min(255) as u8,
        };
        ReceptionReport {
            fraction_lost,
            cumulative_lost: self.lost().clamp(-0x80_0000, 0x7f_ffff) as i32,
            extended_highest: self.highest,
            jitter: self.jitter_16 >> 4,
        }
    }
}

/// Returns the round trip between a sender report and the receiver report that answers it (RFC 3550 section 6.4.1):
/// `now` and `last_sr` are middle 32 bits of NTP time, `delay_since_sr` counts 1/65,536 s. `None` if no sender report
/// had arrived (`last_sr` = 0) or the clocks make it negative.
pub fn round_trip(now: u32, last_sr: u32, delay_since_sr: u32) -> Option<Duration> {
    let units = now.wrapping_sub(last_sr).wrapping_sub(delay_since_sr) as i32;
    (last_sr != 0 && units >= 0).then(|| Duration::from_nanos((units as u64 * 1_000_000_000) >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn sequence_numbers_extend_over_wraps_and_late_packets() {
        let mut r = SourceStatistics::new(90_000);
        assert_eq!(r.packet(at(0), 65_534, 0), Some(65_534));
        assert_eq!(r.packet(at(1), 65_535, 0), Some(65_535));
        assert_eq!(r.packet(at(2), 1, 0), Some(65_537));
        assert_eq!(r.packet(at(3), 0, 0), Some(65_536));
        assert_eq!((r.expected(), r.lost()), (4, 0));
        assert_eq!(r.report().extended_highest, 65_537);
    }

    #[test]
    fn loss_is_reported_since_the_last_report_and_since_the_start() {
        let mut r = SourceStatistics::new(90_000);
        for seq in (0..100).filter(|seq| seq % 4 != 3) {
            r.packet(at(u64::from(seq)), seq, 0);
        }
        // 98 is the highest: 99 expected, 75 received.
        let report = r.report();
        assert_eq!((report.fraction_lost, report.cumulative_lost), ((24 * 256 / 99) as u8, 24));
        for seq in 99..199 {
            r.packet(at(200), seq, 0);
        }
        let report = r.report();
        assert_eq!((report.fraction_lost, report.cumulative_lost), (0, 24));
        assert_eq!(r.report().fraction_lost, 0);
    }

    #[test]
    fn duplicates_make_the_loss_negative_and_the_fraction_zero() {
        let mut r = SourceStatistics::new(90_000);
        for seq in [5, 5, 5, 6] {
            r.packet(at(0), seq, 0);
        }
        let report = r.report();
        assert_eq!((report.fraction_lost, report.cumulative_lost), (0, -2));
    }

    #[test]
    fn even_spacing_has_no_jitter_and_a_steady_deviation_converges_on_its_size() {
        let mut even = SourceStatistics::new(90_000);
        let mut uneven = SourceStatistics::new(90_000);
        for i in 0..400u64 {
            let timestamp = (i * 3600) as u32;
            even.packet(at(40 * i), i as u16, timestamp);
            uneven.packet(at(40 * i + 5 * (i % 2)), i as u16, timestamp);
        }
        assert_eq!(even.jitter(), Duration::ZERO);
        // |D| is 5 ms each time: 450 timestamp units.
        assert!((449..=451).contains(&uneven.report().jitter), "{:?}", uneven.report());
        assert!(uneven.jitter().as_nanos().abs_diff(5_000_000) < 20_000);
    }

    #[test]
    fn one_deviation_moves_the_jitter_by_a_sixteenth() {
        let mut r = SourceStatistics::new(1_000);
        r.packet(at(0), 0, 0);
        r.packet(at(20 + 160), 1, 20);
        assert_eq!(r.report().jitter, 10);
    }

    #[test]
    fn a_far_jump_counts_only_when_confirmed() {
        let mut r = SourceStatistics::new(90_000);
        r.packet(at(0), 10, 0);
        assert_eq!(r.packet(at(1), 30_000, 0), None);
        assert_eq!(r.packet(at(2), 11, 0), Some(11));
        assert_eq!(r.packet(at(3), 40_000, 0), None);
        assert_eq!(r.packet(at(4), 40_001, 0), Some(40_001));
        assert_eq!((r.expected(), r.received()), (1, 1));
    }

    #[test]
    fn round_trip_takes_off_the_peer_s_delay() {
        let second = 65_536;
        assert_eq!(round_trip(10 * second, 7 * second, 2 * second), Some(Duration::from_secs(1)));
        assert_eq!(round_trip(10 * second, 0, 0), None);
        assert_eq!(round_trip(10, 5, 6), None);
    }
}
