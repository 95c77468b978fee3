//! The times at which a paced sender's segments leave.

use streamgauge_base::Instant;

use super::super_segment::paced_burst;
use super::{Blocked, Sender};

impl Sender {
    /// Returns the bytes per second at which segments leave, if they are paced.
    pub fn pacing_rate(&self) -> Option<u64> {
        self.pacer.as_ref().and_then(|_| self.controller.pacing_rate())
    }

    /// Returns when pacing lets the next segment leave.
    pub(in crate::tcp) fn next_departure(&self, now: Instant) -> Instant {
        self.pacer.as_ref().map_or(now, |pacer| pacer.next())
    }

    /// Makes the segments of a timer leave without waiting for their time.
    pub(in crate::tcp) fn expire_pacing(&mut self, now: Instant) {
        if let Some(pacer) = &mut self.pacer {
            pacer.expire(now);
        }
    }

    /// Checks whether the segment of `len` bytes at `seq` may leave `now`. If so it does.
    pub(super) fn pace(&mut self, now: Instant, seq: u64, len: u64) -> Result<(), Blocked> {
        if let Some(pacer) = &self.pacer {
            let at = pacer.may_leave(now, seq);
            if at > now {
                return Err(Blocked::Until(at));
            }
        }
        if self.pipe() == 0 {
            let since = now.saturating_since(self.last_sent);
            self.controller.on_start(now, since, self.next, self.board.is_app_limited());
        }
        if self.pacer.is_none() {
            return Ok(());
        }
        let most = self.half_window();
        if let (Some(pacer), Some(rate)) = (&mut self.pacer, self.controller.pacing_rate()) {
            let burst = paced_burst(pacer, self.controller.as_ref(), self.rto.min_rtt(), self.mss).min(most);
            pacer.leave(now, seq, len, rate, burst);
        }
        Ok(())
    }
}
