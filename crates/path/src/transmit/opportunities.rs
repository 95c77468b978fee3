//! Delivery opportunities, as in mahimahi's packet-delivery traces (mm-link(1); Netravali et al., "Mahimahi:
//! Accurate Record-and-Replay for HTTP", USENIX ATC 2015).

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use crate::spec::OpportunitiesSpec;

/// At each time of the trace a number of bytes may leave. A packet leaves at the opportunity that carries its last
/// byte; the rest of that opportunity serves the next packet at the same instant. An opportunity at which nothing
/// waits, or the rest of one, is lost. After its period the trace begins again.
#[derive(Clone, Debug)]
pub struct Opportunities {
    /// Ascending, none later than the period.
    times: Arc<[Duration]>,
    period: u64,
    bytes: u32,
    /// Periods passed, and the index in `times` of the next opportunity.
    round: u64,
    next: usize,
    /// Bytes left of the opportunity at which the last packet left, while the link is busy.
    left: u32,
    busy: bool,
}

impl Opportunities {
    pub fn new(spec: &OpportunitiesSpec) -> Self {
        let (times, period, bytes) = (spec.times.as_slice().into(), spec.period.as_nanos(), spec.bytes);
        Opportunities { times, period, bytes, round: 0, next: 0, left: 0, busy: false }
    }

    pub fn start(&mut self, now: Instant, bytes: u32) -> Instant {
        let mut at = now;
        if !self.busy {
            self.skip(now);
        }
        self.busy = true;
        let mut missing = bytes;
        while missing > self.left {
            missing -= self.left;
            at = self.take();
            self.left = self.bytes;
        }
        self.left -= missing;
        at
    }

    pub fn idle(&mut self) {
        self.busy = false;
        self.left = 0;
    }

    /// Returns the next opportunity's time; the one after it is next then.
    fn take(&mut self) -> Instant {
        let start = Instant::ZERO + Duration::from_nanos(self.period) * self.round;
        let at = start + self.times[self.next];
        self.next += 1;
        if self.next == self.times.len() {
            (self.round, self.next) = (self.round + 1, 0);
        }
        at
    }

    /// Skips the opportunities lost by `now`: an arrival is after the opportunity of its own instant.
    fn skip(&mut self, now: Instant) {
        let now = now.as_nanos();
        let (round, since) = (now / self.period, Duration::from_nanos(now % self.period));
        let next = self.times.partition_point(|&time| time <= since);
        (self.round, self.next) = if next == self.times.len() { (round + 1, 0) } else { (round, next) };
    }
}
