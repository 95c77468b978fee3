//! Bounds on the path's capacity: those of the short term, which losses lower outside probing, and one of the long
//! term, which probing raises and too much loss lowers (draft-ietf-ccwg-bbr-01 sections 5.3.3.6 and 5.5.10).

use super::super::bandwidth::UNIT;

/// The share of a window that may be lost: 2 %, as a fraction.
const LOSS_THRESHOLD: (u64, u64) = (2, 100);
/// The fraction of a bound that remains after a loss: 0.7.
const BETA: (u64, u64) = (7, 10);
/// Room left for other flows while cruising: 0.15, as a fraction.
const HEADROOM: (u64, u64) = (15, 100);
/// The slope of probing stops doubling here.
const MAX_UP_ROUNDS: u32 = 30;

fn part(of: u64, (numerator, denominator): (u64, u64)) -> u64 {
    (u128::from(of) * u128::from(numerator) / u128::from(denominator)) as u64
}

/// Returns whether `lost` of `in_flight` bytes is more than a path that suits should lose.
pub fn too_much_lost(lost: u64, in_flight: u64) -> bool {
    lost > part(in_flight, LOSS_THRESHOLD)
}

/// Returns `bytes` as a loss leaves them.
pub fn beta(bytes: u64) -> u64 {
    part(bytes, BETA)
}

/// The bounds; `u64::MAX` where there is none.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub bw_lo: u64,
    pub inflight_lo: u64,
    pub inflight_hi: u64,
    /// While probing, `inflight_hi` grows by a segment for this many bytes acknowledged; `u64::MAX` for never.
    up_bytes: u64,
    up_acked: u64,
    up_rounds: u32,
    /// `bw_lo`, `inflight_lo` and `inflight_hi` before the last repair began.
    undo: [u64; 3],
}

impl Bounds {
    pub fn new() -> Self {
        Bounds {
            bw_lo: u64::MAX,
            inflight_lo: u64::MAX,
            inflight_hi: u64::MAX,
            up_bytes: u64::MAX,
            up_acked: 0,
            up_rounds: 0,
            undo: [u64::MAX; 3],
        }
    }

    /// Lowers the bounds after a round with losses, in which `bw` bytes/s and `in_flight` bytes were delivered at the
    /// most.
    pub fn lower(&mut self, max_bw: u64, window: u64, bw: u64, in_flight: u64) {
        if self.bw_lo == u64::MAX {
            self.bw_lo = max_bw;
        }
        if self.inflight_lo == u64::MAX {
            self.inflight_lo = window;
        }
        self.bw_lo = bw.max(beta(self.bw_lo));
        self.inflight_lo = in_flight.max(beta(self.inflight_lo));
    }

    /// Begins probing: the bounds of the short term, which losses lowered, are forgotten.
    pub fn forget_lower(&mut self) {
        (self.bw_lo, self.inflight_lo) = (u64::MAX, u64::MAX);
    }

    /// Returns the long-term bound with room left for others, at least `least`.
    pub fn with_headroom(&self, mss: u64, least: u64) -> u64 {
        if self.inflight_hi == u64::MAX {
            return u64::MAX;
        }
        let headroom = part(self.inflight_hi, HEADROOM).max(mss);
        self.inflight_hi.saturating_sub(headroom).max(least)
    }

    /// Notes that `in_flight` bytes were in flight without too much loss.
    pub fn carried(&mut self, in_flight: u64) {
        if self.inflight_hi != u64::MAX {
            self.inflight_hi = self.inflight_hi.max(in_flight);
        }
    }

    /// Stops probing.
    pub fn stop_probing(&mut self) {
        self.up_bytes = u64::MAX;
    }
    /// Begins the slope anew.
    pub fn refill(&mut self) {
        (self.up_rounds, self.up_acked) = (0, 0);
    }
    /// Begins a round of probing: the bound grows twice as fast as in the one before.
    pub fn steepen(&mut self, mss: u64, window: u64) {
        let growth = 1u64 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.up_bytes = (window / growth).max(mss);
    }
    /// Handles `acked` acknowledged bytes while the window was at the bound.
    pub fn probe_upward(&mut self, mss: u64, acked: u64) {
        if self.up_bytes == u64::MAX || self.inflight_hi == u64::MAX {
            return;
        }
        self.up_acked += acked;
        let segments = self.up_acked / self.up_bytes;
        self.up_acked -= segments * self.up_bytes;
        self.inflight_hi += segments * mss;
    }

    /// Saves the bounds at the start of a repair, for a possible undo.
    pub fn save(&mut self) {
        self.undo = [self.bw_lo, self.inflight_lo, self.inflight_hi];
    }
    /// Restores the bounds after a reduction that was for nothing.
    pub fn restore(&mut self) {
        let [bw_lo, inflight_lo, inflight_hi] = self.undo;
        self.bw_lo = self.bw_lo.max(bw_lo);
        self.inflight_lo = self.inflight_lo.max(inflight_lo);
        self.inflight_hi = self.inflight_hi.max(inflight_hi);
    }
}

/// Returns `bytes` times `gain`.
pub fn times(bytes: u64, gain: u64) -> u64 {
    (u128::from(bytes) * u128::from(gain) / u128::from(UNIT)).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lossy_round_lowers_to_seven_tenths_or_what_was_delivered() {
        let mut bounds = Bounds::new();
        bounds.lower(1_000, 100_000, 500, 90_000);
        assert_eq!((bounds.bw_lo, bounds.inflight_lo, bounds.inflight_hi), (700, 90_000, u64::MAX));
        bounds.lower(1_000, 100_000, 600, 10_000);
        assert_eq!((bounds.bw_lo, bounds.inflight_lo), (600, 63_000));
        bounds.forget_lower();
        assert_eq!((bounds.bw_lo, bounds.inflight_lo), (u64::MAX, u64::MAX));
    }

    #[test]
    fn two_per_cent_is_not_too_much() {
        assert!(!too_much_lost(2_000, 100_000));
        assert!(too_much_lost(2_001, 100_000));
    }

    #[test]
    fn headroom_is_fifteen_per_cent_but_leaves_the_least() {
        let mut bounds = Bounds::new();
        assert_eq!(bounds.with_headroom(1_000, 4_000), u64::MAX);
        for (hi, left) in [(100_000, 85_000), (5_000, 4_000), (3_000, 4_000), (6_000, 5_000)] {
            bounds.inflight_hi = hi;
            assert_eq!(bounds.with_headroom(1_000, 4_000), left, "of {hi}");
        }
    }

    #[test]
    fn probing_upward_doubles_its_growth_per_round() {
        let mut bounds = Bounds::new();
        bounds.inflight_hi = 50_000;
        bounds.refill();
        for segments in [1, 2, 4, 8] {
            let before = bounds.inflight_hi;
            bounds.steepen(1_000, 48_000);
            (0..48).for_each(|_| bounds.probe_upward(1_000, 1_000));
            assert_eq!(bounds.inflight_hi - before, segments * 1_000);
        }
        bounds.stop_probing();
        bounds.probe_upward(1_000, 1_000_000);
        assert_eq!(bounds.inflight_hi, 65_000);
    }

    #[test]
    fn what_a_needless_repair_lowered_comes_back() {
        let mut bounds = Bounds::new();
        bounds.inflight_hi = 50_000;
        bounds.save();
        bounds.lower(1_000, 100_000, 500, 10_000);
        bounds.inflight_hi = 20_000;
        bounds.restore();
        assert_eq!((bounds.bw_lo, bounds.inflight_lo, bounds.inflight_hi), (u64::MAX, u64::MAX, 50_000));
    }
}
