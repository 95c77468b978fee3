//! One bounded class of class-based queueing: Floyd and Van Jacobson, "Link-sharing and Resource Management Models
//! for Packet Networks", IEEE/ACM Transactions on Networking 3(4), 1995, its estimator (section 5 and appendix) and
//! the parameters of Floyd's "Notes on Class-Based Queueing: Setting Parameters" (1995), as in Linux up to 6.2 and
//! described in tc-cbq-details(8).
//!
//! The class sends at the speed of the device below it, and is held back so that the device rests as much of the time
//! as the class's rate demands. After each packet, idle = (time since the last packet ended) - (the time of this packet
//! at the class's rate), and avgidle <- (1 - w) avgidle + w idle with w = 2^-ewma_log. While avgidle is positive, the
//! class may send at once: a burst, bounded by avgidle <= maxidle. Otherwise it waits until one more packet of the same
//! length would bring the average back to zero.
//!
//! The effect on a rate: packets of one length leave at the rate exactly, after a burst of at most `max_burst_packets`.
//! With mixed lengths the average forgets a share w of each surplus and of each debt, so the rate is off by some per
//! cent (at most w times the longest packet's time per packet), as it is in Linux. Times are exact here; Linux 2.4
//! wakes on a clock tick (10 ms where HZ is 100), which this leaves out.

use streamgauge_base::{BitRate, Duration, Instant};

use crate::spec::CbqSpec;

/// No time that is counted with exceeds this, so that sums stay in range.
const LONGEST: i64 = 1 << 60;

/// The class. Averages are scaled by 1 / w, as in Floyd's implementation, which keeps them whole numbers of ns.
#[derive(Clone, Debug)]
pub struct Cbq {
    spec: CbqSpec,
    avgidle: i64,
    maxidle: i64,
    /// Additional sleep, once it is held back at all, so that it then sends `min_burst_packets`.
    offtime: i64,
    /// End of the last packet.
    last: Instant,
    /// While the average is not positive: when the next packet may start.
    allowed: Option<Instant>,
    /// The packet in hand: its bytes and its end.
    sending: Option<(u32, Instant)>,
}

impl Cbq {
    pub fn new(spec: &CbqSpec, rate: BitRate) -> Self {
        let mut class = Cbq {
            spec: *spec,
            avgidle: 0,
            maxidle: 0,
            offtime: 0,
            last: Instant::ZERO,
            allowed: None,
            sending: None,
        };
        class.set_rate(rate);
        // As after a long rest.
        class.avgidle = class.maxidle;
        class
    }

    pub fn start(&mut self, now: Instant, bytes: u32, rate: BitRate) -> Instant {
        self.idle(rate);
        let from = match self.allowed {
            Some(allowed) if allowed > now => allowed + Duration::from_nanos(self.offtime.unsigned_abs()),
            _ => now,
        };
        let ends = from + time(bytes, self.spec.device_rate);
        self.sending = Some((bytes, ends));
        ends
    }

    /// Adds the packet in hand, which has left, to the average.
    pub fn idle(&mut self, rate: BitRate) {
        let Some((bytes, end)) = self.sending.take() else { return };
        let at_rate = signed(time(bytes, rate));
        let idle = signed(end.saturating_since(self.last)) - at_rate;
        self.avgidle = (self.forget(self.avgidle) + idle).min(self.maxidle);
        self.last = end;
        self.allowed = (self.avgidle <= 0).then(|| {
            let wait = self.forget(-self.avgidle) + at_rate - signed(time(bytes, self.spec.device_rate));
            end + Duration::from_nanos(wait.max(0).unsigned_abs())
        });
    }

    /// Sets the rate from now on: the bounds follow it, and so do packets that have not been started.
    pub fn set_rate(&mut self, rate: BitRate) {
        let CbqSpec { device_rate, average_packet, max_burst_packets, min_burst_packets, .. } = self.spec;
        let rest = signed(time(average_packet, rate)) - signed(time(average_packet, device_rate));
        self.maxidle = self.idle_for(rest, max_burst_packets);
        self.offtime = self.idle_for(rest, min_burst_packets.saturating_sub(1));
        self.avgidle = self.avgidle.min(self.maxidle);
    }

    /// Returns (1 - w) `average`.
    fn forget(&self, average: i64) -> i64 {
        average - average / (1 << self.spec.ewma_log)
    }

    /// Returns the scaled average from which exactly `packets` can follow each other, where each lacks `rest` of idle
    /// time: rest (1 - g^n) / ((1 - g) g^n), g = 1 - w (Floyd's Notes, the equation of maxidle).
    fn idle_for(&self, rest: i64, packets: u32) -> i64 {
        let scale = f64::from(1u32 << self.spec.ewma_log);
        let g = 1.0 - 1.0 / scale;
        // By multiplication alone: the same bits on every machine.
        let mut power = 1.0;
        for _ in 0..packets {
            power *= g;
        }
        let idle = rest as f64 * scale * (1.0 - power) / power;
        // `as` saturates, also where the power has become zero.
        (idle as i64).clamp(0, LONGEST)
    }
}

/// Returns the time that `bytes` need at `rate`, rounded up.
fn time(bytes: u32, rate: BitRate) -> Duration {
    if rate.as_bps() == 0 {
        return Duration::from_nanos(LONGEST.unsigned_abs());
    }
    rate.transmission_time(u64::from(bytes))
}

fn signed(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(LONGEST).min(LONGEST)
}
