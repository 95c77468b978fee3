//! Finds a policer: where two stretches of heavy loss in turn deliver at one rate, that is its rate, and sending no
//! faster saves the losses (Linux's `tcp_bbr`, long-term bandwidth sampling).

use streamgauge_base::{Duration, Instant};

use super::{coarse_rate, rate};

/// Least round trips of a stretch; one of four times as many ends without a verdict.
const LEAST_ROUNDS: u32 = 4;
/// A stretch is lossy if the bytes lost are this many 256ths of those delivered: about 20 %.
const LOSSY: u64 = 50;
/// Two rates are the same within an eighth ...
const SAME_RATIO: u64 = 8;
/// ... or 4 kbit/s, in bytes/s.
const SAME_BYTES_PER_S: u64 = 4_000 / 8;
/// A policer is believed in for this many round trips of probing.
const BELIEVED_ROUNDS: u32 = 48;

/// The connection's present state.
pub struct Now {
    /// Time when something was last delivered.
    pub at: Instant,
    pub delivered: u64,
    pub lost: u64,
    pub round_start: bool,
    /// In PROBE_BW.
    pub probing: bool,
    /// If bandwidths are as coarse as Linux's, bytes of a segment.
    pub coarse: Option<u64>,
}

/// Result of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Unchanged,
    /// A policer has been found.
    Policed,
    /// It is no longer believed in.
    ProbeAgain,
}

/// The state of the search.
#[derive(Clone, Debug, Default)]
pub struct LongTerm {
    sampling: bool,
    policed: bool,
    /// Bytes/s of the last stretch, or the policer's.
    bw: u64,
    rounds: u32,
    began: Instant,
    delivered: u64,
    lost: u64,
    last_lost: u64,
}

impl LongTerm {
    /// Begins as the connection opens.
    pub fn begin(&mut self, now: Instant) {
        self.reset(now, 0, 0);
    }
    /// Returns the policer's rate in bytes/s, if one is believed in.
    pub fn policed(&self) -> Option<u64> {
        self.policed.then_some(self.bw)
    }
    /// Returns the bytes lost until the last sample.
    pub fn last_lost(&self) -> u64 {
        self.last_lost
    }

    fn begin_stretch(&mut self, at: Instant, delivered: u64, lost: u64) {
        (self.began, self.delivered, self.lost, self.rounds) = (at, delivered, lost, 0);
    }

    /// Forgets everything.
    pub fn reset(&mut self, at: Instant, delivered: u64, lost: u64) {
        (self.bw, self.policed, self.sampling) = (0, false, false);
        self.begin_stretch(at, delivered, lost);
    }

    /// Handles an acknowledgement; `losses`: it reported some.
    pub fn sample(&mut self, now: &Now, losses: bool, app_limited: bool) -> Verdict {
        self.last_lost = now.lost;
        if self.policed {
            if now.probing && now.round_start {
                self.rounds += 1;
                if self.rounds >= BELIEVED_ROUNDS {
                    self.reset(now.at, now.delivered, now.lost);
                    return Verdict::ProbeAgain;
                }
            }
            return Verdict::Unchanged;
        }
        if !self.sampling {
            // A stretch begins with a loss: the policer's tokens are spent.
            if !losses {
                return Verdict::Unchanged;
            }
            self.begin_stretch(now.at, now.delivered, now.lost);
            self.sampling = true;
        }
        if app_limited {
            self.reset(now.at, now.delivered, now.lost);
            return Verdict::Unchanged;
        }
        self.rounds += u32::from(now.round_start);
        if self.rounds < LEAST_ROUNDS {
            return Verdict::Unchanged;
        }
        if self.rounds > 4 * LEAST_ROUNDS {
            self.reset(now.at, now.delivered, now.lost);
            return Verdict::Unchanged;
        }
        // The stretch ends with a loss, too.
        let (lost, delivered) = (now.lost - self.lost, now.delivered - self.delivered);
        let time = now.at.saturating_since(self.began);
        if !losses || delivered == 0 || lost * 256 < LOSSY * delivered || time < Duration::from_millis(1) {
            return Verdict::Unchanged;
        }
        let bw = match now.coarse {
            Some(mss) => coarse_rate(delivered, time, mss),
            None => rate(delivered, time),
        };
        self.end_stretch(now, bw)
    }

    fn end_stretch(&mut self, now: &Now, bw: u64) -> Verdict {
        if self.bw > 0 {
            let apart = bw.abs_diff(self.bw);
            if apart * SAME_RATIO <= self.bw || apart <= SAME_BYTES_PER_S {
                self.bw = (bw + self.bw) / 2;
                (self.policed, self.rounds) = (true, 0);
                return Verdict::Policed;
            }
        }
        self.bw = bw;
        self.begin_stretch(now.at, now.delivered, now.lost);
        Verdict::Unchanged
    }
}
