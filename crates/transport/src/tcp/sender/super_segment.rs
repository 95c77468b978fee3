//! Super-segments: Linux hands its lower layers several segments as one, of about a millisecond of data. That shows on
//! the wire by the segments that leave together, and by those that push (net/ipv4/tcp_output.c, as of 6.18).

use streamgauge_base::{Duration, Instant};

use super::write_queue::View;
use super::{Blocked, Phase, Sender};
use crate::tcp::congestion::Controller;
use crate::tcp::pacing::{Pacer, near_bytes};

/// Most bytes of a super-segment (Linux's `gso_max_size`), but two segments always leave.
const MOST_SUPER: u64 = 65_536;
/// A super-segment that is not full waits for no acknowledgement that is further off, and only if something was sent as
/// recently as that (`tcp_tso_should_defer`, since Linux 6.18).
const LONGEST_DEFERRAL: Duration = Duration::from_millis(1);
/// The share of the window that does not wait for more, as a divisor (`tcp_tso_win_divisor`).
const DEFERRED_SHARE: u64 = 3;

impl Sender {
    /// Returns the segments of half of the window: no super-segment has more (`tcp_cwnd_test`).
    pub(super) fn half_window(&self) -> u64 {
        self.window() / 2 / self.mss
    }

    /// Decides whether a super-segment that could leave `now` waits for the next acknowledgement, with which it would
    /// be longer: as in Linux, while nothing is being repaired (`tcp_tso_should_defer`). A window that has grown by a
    /// segment therefore lets that out with the segments after it, if an acknowledgement is due at once.
    pub(super) fn defers(&self, now: Instant) -> Result<(), Blocked> {
        if !self.mechanisms.tso_defer
            || matches!(self.phase, Phase::Recovery | Phase::Loss)
            || (self.burst && self.leaving < self.most_leaving)
            || self.forced
            || now.saturating_since(self.last_sent) > LONGEST_DEFERRAL
            || self.next_departure(now) > now
        {
            return Ok(());
        }
        let left = self.waiting();
        if left.min(self.in_block()) <= self.full() {
            return Ok(());
        }
        let granted = self.window().saturating_sub(self.pipe());
        let taken = self.edge.saturating_sub(self.next);
        let limit = granted.min(taken);
        let share = self.window().min(self.edge - self.una) / DEFERRED_SHARE;
        if limit >= self.super_segment() * self.mss || limit >= share {
            return Ok(());
        }
        if self.writes.as_ref().is_some_and(|writes| !writes.is_last()) && limit >= self.in_block() {
            // A block that is not the last one gets no more data.
            return Ok(());
        }
        let Some(oldest) = self.board.oldest() else { return Ok(()) };
        let srtt = self.rto.srtt().unwrap_or(Duration::ZERO);
        if oldest.sent_at() + srtt > now + LONGEST_DEFERRAL.min(srtt.div(2)) {
            return Ok(());
        }
        if limit > left {
            // The waiting data ends with the FIN: no more will follow.
            return if self.closing { Ok(()) } else { Err(Blocked::Deferred) };
        }
        Err(if granted < taken { Blocked::Window } else { Blocked::Deferred })
    }

    /// Linux hands its lower layers several segments as one, of about a millisecond of data, and has the last of them
    /// push, so that the peer acknowledges it at once (RFC 9293 section 3.9.1.2 lets a sender push when it likes). True
    /// if the segment that has just been made is the last of several.
    pub(super) fn ends_super_segment(&mut self, full: u64) -> bool {
        if !self.burst || self.leaving == self.most_leaving {
            let most = self.super_segment().min(self.half_window()).max(1);
            (self.leaving, self.most_leaving) = (0, most as u32);
        }
        self.leaving += 1;
        let goes_on = self.leaving < self.most_leaving && self.admits() && self.takes_another(full);
        if !goes_on {
            self.most_leaving = self.leaving;
        }
        !goes_on && self.leaving > 1
    }

    /// Returns whether the peer's window has room for another segment of `full` bytes, or the rest of one, and neither
    /// block nor super-segment end.
    fn takes_another(&self, full: u64) -> bool {
        let usable = self.edge.saturating_sub(self.next);
        if self.writes.is_none() {
            return self.waiting() >= full && usable >= full;
        }
        let rest = self.in_block().min(usable);
        rest >= full || (rest > 0 && self.small_end <= self.una)
    }

    /// Returns whether a segment of `len` bytes, the rest of the peer's window, may leave with those before it: one at
    /// a time, by Nagle's test in Minshall's form.
    pub(super) fn may_cut(&self, len: u64) -> bool {
        let goes_on = self.burst && self.leaving < self.most_leaving;
        self.writes.is_some() && len > 0 && goes_on && self.small_end <= self.una
    }

    /// Returns the bytes from the next one to the end of its block, if there are blocks.
    #[inline]
    pub(super) fn in_block(&self) -> u64 {
        self.writes.as_ref().map_or(u64::MAX, |writes| writes.in_block(self.next))
    }

    /// Returns the bytes that are written and not sent, so far as they may be.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        let end = self.writes.as_ref().map_or(self.buffer.end(), |writes| match writes.is_held() {
            true => self.next,
            false => writes.written(),
        });
        end.saturating_sub(self.next)
    }

    /// Lets the program write on if Linux 6.1 would, as nothing may leave. True if something may then leave.
    pub(super) fn writes_on(&mut self) -> bool {
        let (pipe, window) = (self.pipe(), self.window());
        let Some(writes) = &mut self.writes else { return false };
        let (offered, next, max_window) = (self.buffer.end(), self.next, self.max_window);
        let scarce = writes.written().saturating_sub(next) < self.mss;
        let writes_on = writes.write_on(View { offered, next, max_window, pipe, window }).is_some();
        if writes.began() && scarce && pipe < window && !self.board.waits_to_resend() {
            self.board.starve();
        }
        writes_on
    }

    /// Returns the segments of a super-segment: a paced sender's burst, else the data of 2^-10 s at 1.2 windows per
    /// round trip, or 2 in slow start, and two at the least (`tcp_tso_autosize`, `tcp_update_pacing_rate`).
    fn super_segment(&self) -> u64 {
        if let Some(pacer) = &self.pacer {
            return paced_burst(pacer, self.controller.as_ref(), self.rto.min_rtt(), self.mss);
        }
        let srtt = self.rto.srtt().unwrap_or(Duration::ZERO).as_nanos().max(1);
        let window = self.window().min(1 << 30);
        let hastens = window < self.controller.ssthresh() / 2;
        let carried = window * if hastens { 1_953_125 } else { 1_171_875 };
        let near = if self.mechanisms.tso_by_rtt { near_bytes(self.rto.min_rtt()) } else { 0 };
        // Most paths are slower and longer than that: no need to divide.
        if carried < srtt.saturating_mul((3 * self.mss).saturating_sub(near)) {
            return 2;
        }
        ((carried / srtt + near).min(MOST_SUPER - 1) / self.mss).max(2)
    }
}

/// Returns the segments that leave back to back under pacing.
pub(super) fn paced_burst(pacer: &Pacer, controller: &dyn Controller, min_rtt: Duration, mss: u64) -> u64 {
    let rate = controller.pacing_rate().unwrap_or(0);
    (pacer.burst_bytes(rate, min_rtt) / mss).min(controller.most_burst()).max(controller.least_burst())
}
