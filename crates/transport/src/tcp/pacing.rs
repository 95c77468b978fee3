//! When a paced sender may send: as Linux paces inside TCP, by the time at which the next segment may leave.
//!
//! Linux hands its lower layers super-segments of about a millisecond of data, which leave back to back even where the
//! link sends them one by one. A burst here is as large.

use streamgauge_base::{Duration, Instant};

/// The first segments of a connection leave unpaced (Linux's `fq` and TCP alike).
const UNPACED_SEGMENTS: u64 = 10;
/// Most bytes of one super-segment: the maximum of the length field of an IP packet.
const MAX_BURST_BYTES: u64 = 65_535;
/// A round trip of this many times 2^9 us or more adds nothing to a burst; a shorter one adds `MAX_BURST_BYTES` halved
/// as often as it holds 2^9 us (Linux's `tcp_tso_rtt_log`).
const RTT_SHIFT: u64 = 9;

/// The clock of one paced sender.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// The next super-segment may leave.
    next: Instant,
    /// The super-segment that is leaving: its time, the next sequence number, and the number of segments that may
    /// follow.
    leaving: Instant,
    follows: u64,
    left: u64,
    /// How much later it left than it might have, less the part already made good.
    credit: u64,
    /// Segments sent.
    sent: u64,
    paced: bool,
    /// The burst, as the time that the rate needs for it.
    burst: Duration,
    /// Time when the waiting data may leave.
    pub wake: Instant,
}

impl Pacer {
    /// Makes the pacer of a sender that has sent nothing.
    pub fn new(burst: Duration) -> Self {
        Pacer {
            next: Instant::ZERO,
            leaving: Instant::ZERO,
            follows: 0,
            left: 0,
            credit: 0,
            sent: 0,
            paced: false,
            burst,
            wake: Instant::FAR_FUTURE,
        }
    }

    /// Returns the bytes of a super-segment at `rate` bytes/s: those of the burst's time, and more on the shortest
    /// paths.
    pub fn burst_bytes(&self, rate: u64, min_rtt: Duration) -> u64 {
        let paced = u128::from(rate) * u128::from(self.burst.as_nanos()) / 1_000_000_000;
        paced.saturating_add(near_bytes(min_rtt).into()).min(u128::from(MAX_BURST_BYTES)) as u64
    }

    fn goes_on(&self, now: Instant, seq: u64) -> bool {
        self.left > 0 && self.leaving == now && self.follows == seq
    }

    /// Returns when the next super-segment may leave.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Handles a timeout: its retransmission leaves at `now`, as in Linux, however low the rate. Otherwise a timeout
    /// could follow before anything has left.
    pub fn expire(&mut self, now: Instant) {
        self.next = self.next.min(now);
    }

    /// Returns when the segment at `seq` may leave: `now`, or later.
    pub fn may_leave(&self, now: Instant, seq: u64) -> Instant {
        if self.goes_on(now, seq) { now } else { self.next.max(now) }
    }

    /// Notes that a segment of `len` bytes at `seq` leaves at `rate` bytes/s, as one of at most `burst`.
    pub fn leave(&mut self, now: Instant, seq: u64, len: u64, rate: u64, burst: u64) {
        if !self.goes_on(now, seq) {
            self.credit = now.saturating_since(self.next).as_nanos();
            self.next = self.next.max(now);
            (self.leaving, self.left) = (now, burst.max(1));
            self.paced = self.sent + self.left >= UNPACED_SEGMENTS;
        }
        self.follows = seq + len;
        self.left -= 1;
        self.sent += 1;
        if self.paced {
            let time = u128::from(len) * 1_000_000_000 / u128::from(rate.max(1));
            let time = time.min(u128::from(u64::MAX)) as u64;
            // A late timer is made good, up to half of the burst's time.
            let good = self.credit.min(time / 2);
            self.credit -= good;
            self.next += Duration::from_nanos(time - good);
        }
    }
}

/// Returns the bytes that the shortest paths add to a super-segment (`tcp_tso_autosize`, since Linux 5.18).
pub fn near_bytes(min_rtt: Duration) -> u64 {
    let halvings = (min_rtt.as_nanos() / 1_000) >> RTT_SHIFT;
    if halvings < 32 { (MAX_BURST_BYTES + 1) >> halvings } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    /// A segment a millisecond.
    const RATE: u64 = 1_000_000;
    const BURST: Duration = Duration::from_nanos(1_000_000_000 >> 10);

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// Sends segment after segment, each `late` us after it may leave, and returns when they left, in us.
    fn run(pacer: &mut Pacer, segments: std::ops::Range<u64>, burst: u64, late: u64) -> Vec<u64> {
        let mut now = at(0);
        let times = segments.map(|n| {
            let may = pacer.may_leave(now, n * MSS);
            now = if may > now { may + Duration::from_micros(late) } else { now };
            pacer.leave(now, n * MSS, MSS, RATE, burst);
            now.as_nanos() / 1_000
        });
        times.collect()
    }

    #[test]
    fn the_tenth_segment_is_the_first_to_be_paced() {
        let times = run(&mut Pacer::new(BURST), 0..14, 1, 0);
        assert_eq!(times, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1_000, 2_000, 3_000, 4_000]);
        let times = run(&mut Pacer::new(BURST), 0..14, 2, 0);
        assert_eq!(times[10..], [2_000, 2_000, 4_000, 4_000]);
    }

    #[test]
    fn late_timers_do_not_add_up_until_they_are_late_by_half_a_burst() {
        let times = run(&mut Pacer::new(BURST), 0..110, 1, 100);
        assert_eq!(times[109] - times[10], 99_000);
        let times = run(&mut Pacer::new(BURST), 0..110, 1, 700);
        assert!(times[109] - times[10] > 99_000 + 99 * 150, "{}", times[109] - times[10]);
    }

    #[test]
    fn a_timeout_lets_one_super_segment_out_at_once() {
        let mut pacer = Pacer::new(BURST);
        run(&mut pacer, 0..12, 1, 0);
        let now = at(2_001);
        assert!(pacer.may_leave(now, 0) > now);
        pacer.expire(now);
        assert_eq!(pacer.may_leave(now, 0), now);
        pacer.leave(now, 0, MSS, RATE, 1);
        assert_eq!(pacer.may_leave(now, MSS), now + Duration::from_millis(1));
    }

    #[test]
    fn a_burst_is_only_what_follows_in_sequence_at_once() {
        let mut pacer = Pacer::new(BURST);
        run(&mut pacer, 0..10, 1, 0);
        let now = pacer.may_leave(at(0), 10 * MSS);
        pacer.leave(now, 10 * MSS, MSS, RATE, 4);
        assert_eq!(pacer.may_leave(now, 11 * MSS), now);
        assert!(pacer.may_leave(now, 3 * MSS) > now);
        let later = now + Duration::from_micros(1);
        assert!(pacer.may_leave(later, 11 * MSS) > later);
    }

    #[test]
    fn a_burst_is_about_a_millisecond_of_data_and_more_next_door() {
        let at = |rate, rtt_us| Pacer::new(BURST).burst_bytes(rate, Duration::from_micros(rtt_us));
        assert_eq!(at(1_250_000, 20_000), 1_220);
        assert_eq!(at(125_000_000, 20_000), 65_535);
        assert_eq!(at(12_500_000, 5_000), 12_207 + 128);
        assert_eq!(at(1_250_000, 100), 65_535);
    }
}
