//! A controller's periodic updates without a timer.

use streamgauge_base::{Duration, Instant};

/// The times `update`, `2 update`, `3 update` and so on, caught up with when something happens: between two
/// events nothing that an update reads changes but time itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    every: Duration,
    next: Instant,
}

impl Ticks {
    pub fn new(every: Duration) -> Self {
        Ticks { every, next: Instant::ZERO + every }
    }

    /// Returns the next update that is due by `now`. One that falls on the time of an event precedes it.
    #[inline]
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        let at = self.next;
        (at <= now && at < Instant::FAR_FUTURE).then(|| {
            self.next = at + self.every;
            at
        })
    }

    /// Leaves out the updates that are due by `now`, which would change nothing.
    pub fn skip(&mut self, now: Instant) {
        if self.next <= now {
            let left_out = (now - self.next).as_nanos() / self.every.as_nanos() + 1;
            self.next += self.every * left_out;
        }
    }
}
