//! The sender's one timer, as Linux has it: for the retransmission timeout, a tail loss probe (RFC 8985 section 7),
//! the end of RACK's reordering window, or a window probe.

use streamgauge_base::{Duration, Instant};

use super::{GaveUp, Phase, Sender};
use crate::tcp::clock::{expiry, whole_ticks};

/// The addition to a timeout of RACK or of a loss probe, for the rounding of timers (Linux's `TCP_TIMEOUT_MIN_US`).
const SLACK: Duration = Duration::from_millis(2);
/// Before a loss probe while no round trip has been measured.
const PROBE_AT_FIRST: Duration = Duration::from_secs(1);
/// Least time before a window probe.
const LEAST_WINDOW_PROBE: Duration = Duration::from_millis(200);
/// Least time until data that a receiver seems to have reneged on is sent again.
const LEAST_RENEGING: Duration = Duration::from_millis(10);

/// The purpose of the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Nothing,
    Timeout,
    LossProbe,
    Reordering,
    WindowProbe,
}

/// The timer.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    pub at: Instant,
    pub purpose: Purpose,
    /// Expires on Linux's ticks.
    coarse: bool,
}

impl Timer {
    pub fn new(coarse: bool) -> Self {
        Timer { at: Instant::FAR_FUTURE, purpose: Purpose::Nothing, coarse }
    }
    pub fn set(&mut self, now: Instant, delay: Duration, purpose: Purpose) {
        let at = if self.coarse { expiry(now, delay) } else { now + delay };
        *self = Timer { at, purpose, ..*self };
    }
    pub fn stop(&mut self) {
        (self.at, self.purpose) = (Instant::FAR_FUTURE, Purpose::Nothing);
    }
    /// Returns a timeout as the host counts it.
    fn whole(&self, timeout: Duration) -> Duration {
        if self.coarse { whole_ticks(timeout) } else { timeout }
    }
}

/// A tail loss probe that has not been answered.
#[derive(Clone, Copy, Debug)]
pub struct LossProbe {
    /// One past the last byte sent when it was sent.
    pub high: u64,
    /// Whether it repeated a segment.
    pub repeats: bool,
}

impl Sender {
    /// Returns the retransmission timeout.
    pub fn timeout(&self) -> Duration {
        self.timer.whole(self.rto.timeout())
    }

    /// Returns how far off the timeout of the oldest segment is.
    fn timeout_left(&self, now: Instant) -> Duration {
        let since = self.board.oldest().map_or(now, |sent| sent.sent_at());
        self.timeout().saturating_sub(now.saturating_since(since))
    }

    /// Starts the retransmission timer: from now, or, if a loss probe or RACK had it, from when the oldest segment was
    /// sent.
    pub(super) fn rearm_timeout(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timer.stop();
            return;
        }
        let delay = match self.timer.purpose {
            Purpose::LossProbe | Purpose::Reordering => self.timeout_left(now),
            _ => self.timeout(),
        };
        self.timer.set(now, delay, Purpose::Timeout);
    }

    /// Sets the timer for a loss probe, if one may be sent before the timeout. `renewed`: the timeout starts from now.
    pub(super) fn schedule_loss_probe(&mut self, now: Instant, renewed: bool) -> bool {
        let calm = match self.phase {
            Phase::Open => !self.disordered(),
            Phase::Reduced => true,
            Phase::Recovery | Phase::Loss => false,
        };
        if !self.mechanisms.tlp || !calm || self.board.is_empty() {
            return false;
        }
        let probe = match self.rto.srtt() {
            // A lone segment's acknowledgement may be delayed.
            Some(srtt) if self.board.outstanding() == 1 => srtt * 2 + self.min_rto,
            Some(srtt) => srtt * 2 + SLACK,
            None => PROBE_AT_FIRST,
        };
        let left = if renewed { self.timeout() } else { self.timeout_left(now) };
        let delay = if left > Duration::ZERO { probe.min(left) } else { probe };
        self.timer.set(now, delay, Purpose::LossProbe);
        true
    }

    /// Sets the timer for RACK, which will judge more segments lost at `due`.
    pub(super) fn await_judgement(&mut self, now: Instant, due: Instant) {
        self.timer.set(now, due.saturating_since(now) + SLACK, Purpose::Reordering);
    }

    /// Starts the wait after the receiver seems to have reneged: unless more arrives soon, all that it reported is sent
    /// again.
    pub(super) fn await_reneging(&mut self, now: Instant) {
        let half = self.rto.srtt().unwrap_or(Duration::ZERO).div(2);
        self.timer.set(now, half.max(LEAST_RENEGING), Purpose::Timeout);
    }

    /// Sets the timer for a closed window of the peer, while nothing is on the way that would make it answer.
    pub(super) fn await_window(&mut self, now: Instant) {
        self.timer.set(now, self.timeout().max(LEAST_WINDOW_PROBE), Purpose::WindowProbe);
    }

    /// Handles the timer, if it has expired.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), GaveUp> {
        if now < self.timer.at {
            return Ok(());
        }
        let purpose = self.timer.purpose;
        self.timer.at = Instant::FAR_FUTURE;
        match purpose {
            Purpose::Nothing => {}
            Purpose::LossProbe => self.begin_loss_probe(now),
            Purpose::Reordering => self.reordering_over(now),
            Purpose::WindowProbe => {
                self.count_unanswered()?;
                self.timer.stop();
                self.probe_due = self.next < self.buffer.end() || self.fin_waits();
            }
            Purpose::Timeout => {
                self.count_unanswered()?;
                self.time_out(now);
            }
        }
        Ok(())
    }

    /// Counts one more timeout without an answer.
    fn count_unanswered(&mut self) -> Result<(), GaveUp> {
        if self.unanswered >= self.max_retries {
            return Err(GaveUp);
        }
        self.unanswered += 1;
        self.rto.back_off();
        Ok(())
    }

    fn begin_loss_probe(&mut self, now: Instant) {
        self.loss_probe_due = self.loss_probe.is_none();
        if self.loss_probe_due {
            self.expire_pacing(now);
        } else {
            self.rearm_timeout(now);
        }
    }

    /// Restarts the timeout after a loss probe.
    pub(super) fn loss_probe_sent(&mut self, now: Instant, repeats: bool) {
        self.loss_probe = Some(LossProbe { high: self.next, repeats });
        self.counts.loss_probes += 1;
        self.timer.purpose = Purpose::Nothing;
        self.rearm_timeout(now);
    }

    /// Checks whether the loss probe has been answered.
    pub(super) fn answer_loss_probe(&mut self, now: Instant, ack: u64, answer: ProbeAnswer) {
        let Some(probe) = self.loss_probe else { return };
        if ack < probe.high {
            return;
        }
        if !probe.repeats || answer.duplicate {
            self.loss_probe = None;
        } else if ack > probe.high {
            // Something behind the probe arrived and no duplicate was reported: the probe repaired a loss.
            self.loss_probe = None;
            self.phase_end = self.next;
            self.controller.on_congestion_event(now);
            self.undo.end();
            self.phase = Phase::Open;
        } else if answer.nothing_new {
            self.loss_probe = None;
        }
    }
}

/// The relation of an acknowledgement to a loss probe.
#[derive(Clone, Copy, Debug)]
pub struct ProbeAnswer {
    /// Whether it reports the probe as a duplicate.
    pub duplicate: bool,
    /// Whether it moves nothing and carries nothing.
    pub nothing_new: bool,
}
