//! Losses detected by time: RACK (RFC 8985 section 6.2), as in Linux.

use streamgauge_base::{Duration, Instant};

use super::{AMBIGUOUS, LOST, Learned, RESENT, SACKED, Scoreboard, Transmission};

/// Segments that must be SACKed before a segment that they overtook is lost without further delay, while no reordering
/// has been seen (RFC 8985 section 6.2, step 4).
const DUP_THRESH: u32 = 3;
/// Most reordering that is believed, in segments (Linux's `tcp_max_reordering`).
const MAX_REORDERING: u32 = 300;
/// Recoveries without duplicates after which a widened window is given up (RFC 8985 section 6.2, step 4).
const PERSIST: u8 = 16;

/// RACK's state of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// The last sent of all segments known to have arrived.
    newest: Option<Transmission>,
    /// The round trip by which losses are judged.
    rtt: Duration,
    /// Whether something has arrived since losses were last looked for.
    advanced: bool,
    /// Segments were seen to overtake others.
    reordering_seen: bool,
    /// The reordering window in quarters of the least round trip.
    steps: u8,
    persist: u8,
    /// Whether the receiver has reported duplicates since the last widening.
    duplicates: bool,
    /// Duplicates count again once this transmission, or a later one, has arrived: a round trip.
    round: u64,
    /// How far segments were seen to overtake others, in segments.
    reordering: u32,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            newest: None,
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            steps: 1,
            persist: 0,
            duplicates: false,
            round: 0,
            reordering: DUP_THRESH,
        }
    }
}

impl Rack {
    /// Returns the reordering window while `sacked` segments are SACKed; `repairing`: in fast recovery or after a
    /// timeout.
    pub fn window(&self, repairing: bool, sacked: u32, min_rtt: Duration, srtt: Duration) -> Duration {
        if !self.reordering_seen && (repairing || sacked >= DUP_THRESH) {
            return Duration::ZERO;
        }
        Duration::from_nanos((min_rtt.as_nanos() / 4).saturating_mul(u64::from(self.steps))).min(srtt)
    }
    /// Returns whether reordering by more than three segments was seen.
    pub fn reorders_much(&self) -> bool {
        self.reordering > DUP_THRESH
    }
    /// Notes that segments were seen to overtake others.
    pub fn note_reordering(&mut self, segments: u32) {
        self.reordering_seen = true;
        self.reordering = self.reordering.max(segments.min(MAX_REORDERING));
    }
    /// Handles a timeout although duplicates arrived: reordering was overestimated.
    pub fn doubt_reordering(&mut self) {
        self.reordering = DUP_THRESH;
    }
    /// Notes that the receiver reported duplicates, not those of a loss probe.
    pub fn note_duplicates(&mut self) {
        self.duplicates |= self.reordering_seen;
    }
    /// Widens the window if duplicates showed that it is too narrow, at most once per round trip. `next` is the number
    /// of the next transmission.
    pub fn adapt(&mut self, next: u64) {
        let Some((newest, _)) = self.newest else { return };
        if newest < self.round {
            self.duplicates = false;
        }
        if std::mem::take(&mut self.duplicates) {
            self.steps = self.steps.saturating_add(1);
            self.round = next;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }
    /// Notes that a recovery ended in which nothing proved to be for nothing.
    pub fn calm_recovery(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }
    /// Notes a recovery that was for nothing, as duplicates showed.
    pub fn spurious_recovery(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }
    /// Makes the next opportunity look for losses, regardless of the arrivals.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }
}

impl Scoreboard {
    /// See [`Rack::adapt`].
    pub fn adapt_reordering(&mut self) {
        self.rack.adapt(self.transmissions);
    }

    /// Notes which transmission has arrived, and its round trip; `of_last`: that of the segment examined last, which is
    /// an older one where a single acknowledgement covers one more segment and reports segments that have overtaken the
    /// next. Linux uses that one, so that a segment sent along with it gets the reordering window; by the newest's (RFC
    /// 8985 section 6.2, step 2) it is lost at once.
    pub fn note_newest(&mut self, now: Instant, learned: &Learned, of_last: bool) {
        let (Some(newest), Some((_, last))) = (learned.newest, learned.last) else { return };
        self.rack.advanced = true;
        let newer = self.rack.newest.is_none_or(|known| newest > known);
        if newer {
            self.rack.newest = Some(newest);
        }
        if of_last {
            self.rack.rtt = now - last;
        } else if newer {
            self.rack.rtt = now - newest.1;
        }
    }

    /// Judges segments lost if anything has arrived since the last time, and returns when the next one will be: a
    /// segment sent before one that has arrived is lost `window` after the time when an equal delay would have
    /// acknowledged it.
    pub fn judge(&mut self, now: Instant, window: Duration) -> Option<Instant> {
        if !std::mem::take(&mut self.rack.advanced) {
            return None;
        }
        self.judge_by_time(now, window)
    }

    /// Returns the same, whether anything has arrived or not.
    pub fn judge_by_time(&mut self, now: Instant, window: Duration) -> Option<Instant> {
        let (newest, span) = (self.rack.newest?, self.rack.rtt + window);
        let copies = self.judge_copies(newest, now, span);
        let originals = self.judge_originals(newest, now, span);
        copies.max(originals)
    }

    /// Returns the segments that have not been judged lost. The answer is when the last of those that something has
    /// overtaken will be.
    fn judge_originals(&mut self, newest: Transmission, now: Instant, span: Duration) -> Option<Instant> {
        let mut at = (self.judged - self.base) as usize;
        let mut firm = true;
        let mut due = None;
        while let Some(sent) = self.ring.get_mut(at) {
            if sent.state & (SACKED | LOST) == 0 {
                let overtaken = sent.sent < newest;
                if overtaken && sent.sent.1 + span <= now {
                    sent.state |= LOST;
                    self.lost += 1;
                    self.lost_ever += 1;
                    if sent.is(RESENT) {
                        sent.state &= !RESENT;
                        self.resent -= 1;
                    }
                    let index = self.base + at as u64;
                    self.resend = self.resend.min(index);
                    self.lost_end = self.lost_end.max(index + 1);
                } else {
                    firm = false;
                    if overtaken {
                        due = due.max(Some(sent.sent.1 + span));
                    } else if !sent.is(AMBIGUOUS) {
                        // Those behind it were sent later still.
                        break;
                    }
                }
            }
            at += 1;
            if firm {
                self.judged = self.base + at as u64;
            }
        }
        due
    }

    /// Copies of segments that were judged lost.
    fn judge_copies(&mut self, newest: Transmission, now: Instant, span: Duration) -> Option<Instant> {
        let again = &mut self.repair.as_mut()?.again;
        let mut due = None;
        while let Some(&(index, transmission)) = again.front() {
            let sent = index.checked_sub(self.base).and_then(|at| self.ring.get_mut(at as usize));
            let sent = sent.filter(|sent| sent.is(RESENT) && sent.is(LOST) && sent.sent == transmission);
            if let Some(sent) = sent {
                if transmission >= newest {
                    break;
                }
                if transmission.1 + span > now {
                    due = Some(transmission.1 + span);
                    break;
                }
                sent.state &= !RESENT;
                self.resent -= 1;
                self.lost_ever += 1;
                self.resend = self.resend.min(index);
            }
            again.pop_front();
        }
        due
    }

    /// Notes that the retransmission timer expired (RFC 8985 section 6.3): the oldest segment is lost, and of the
    /// others those sent at least a round trip ago. If the oldest is SACKed the receiver has reneged (RFC 2018 section
    /// 8): its reports are forgotten, and all is lost.
    pub fn time_out(&mut self, now: Instant) {
        let reneged = self.ring.front().is_some_and(|sent| sent.is(SACKED));
        if let Some(repair) = &mut self.repair {
            repair.known = Default::default();
        }
        let span = self.rack.rtt;
        for (at, sent) in self.ring.iter_mut().enumerate() {
            if reneged {
                sent.state &= !SACKED;
            } else if sent.is(SACKED) || (at > 0 && sent.sent.1 + span > now) {
                continue;
            }
            let copy = sent.is(RESENT);
            self.resent -= u32::from(copy);
            if !sent.is(LOST) {
                self.lost += 1;
            }
            if !sent.is(LOST) || copy {
                self.lost_ever += 1;
            }
            sent.state = (sent.state & !RESENT) | LOST;
        }
        if reneged {
            self.sacked = 0;
        }
        self.resend = self.base;
        self.lost_end = self.base + self.ring.len() as u64;
        let not_lost = self.ring.iter().position(|sent| sent.state & (SACKED | LOST) == 0);
        self.judged = self.base + not_lost.unwrap_or(self.ring.len()) as u64;
    }

    /// Notes that nothing was lost after all.
    pub fn unmark_losses(&mut self) {
        self.ring.iter_mut().for_each(|sent| sent.state &= !LOST);
        self.lost = 0;
        self.judged = self.base;
        self.lost_end = 0;
    }
}
