//! BIC-TCP: binary increase congestion control (Xu, Harfoush, Rhee, INFOCOM 2004), Linux's default from 2.6.8 to 2.6.18.
//!
//! After a loss the window is searched for between where it is and where the loss was: by `MAX_INCREMENT` segments per
//! round trip while that is far, by a quarter of the distance when it is near (the paper halves it), then by less and less;
//! past the old maximum the same way outwards (max probing). Parameters are those of Linux (net/ipv4/tcp_bic.c).
//!
//! Increments are per round trip, as in the paper: segments acknowledged are counted, not acknowledgements. Linux in
//! 2004 to 2007 counted acknowledgements and divided by a running mean of segments per acknowledgement, which has the
//! same effect. Today's module counts segments and divides too, so it grows about twice as fast; so does this one
//! without [`Mechanisms::bic_per_round`](crate::tcp::Mechanisms::bic_per_round).

use streamgauge_base::{Duration, Instant};

use super::window::{HZ, Window, jiffies};
use super::{Ack, Controller, Repair};

/// Most segments per round trip (S_max).
const MAX_INCREMENT: u32 = 16;
/// Up to this window it is Reno.
const LOW_WINDOW: u32 = 14;
/// The window's fraction after a loss, in 1/1024.
const BETA: u64 = 819;
/// Divisor of the distance to the old maximum.
const SEARCH: u32 = 4;
/// Round trips in which it creeps through the last `SEARCH` segments.
const SMOOTH: u32 = 20;
/// Most segments acknowledged per segment of growth while no loss has revealed a maximum: 5 % per round trip.
const UNKNOWN: u32 = 20;
/// For the running mean of segments per acknowledgement: the weight of one is 1 in 2^`RATIO_SHIFT`.
const RATIO_SHIFT: u32 = 4;
/// That mean before there are any, in 1 / 2^`RATIO_SHIFT`.
const RATIO: u32 = 2 << RATIO_SHIFT;
/// Jiffies for which an increment holds while the window does not change.
const STANDS: u32 = HZ / 32;

/// BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    window: Window,
    /// The window before the last reduction, after fast convergence, in segments; 0 if unknown.
    max: u32,
    /// Segments acknowledged per segment of growth, for which window, and since when.
    per: u32,
    per_window: u32,
    per_since: u32,
    /// Running mean of the segments that an acknowledgement is for, in 1 / 2^`RATIO_SHIFT`; `None`: increments are
    /// those of a round trip. Linux counts those that arrive outside repairs, the first duplicate too (`bictcp_acked`).
    ratio: Option<u32>,
    /// Since a loss was reported, no acknowledgement has ended its repair.
    repairs: bool,
}

impl Bic {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them; see
    /// [`Mechanisms::bic_per_round`](crate::tcp::Mechanisms::bic_per_round).
    pub fn new(mss: u32, initial: u32, per_round: bool) -> Self {
        let ratio = (!per_round).then_some(RATIO);
        let window = Window::new(mss, initial);
        Bic { window, max: 0, per: 0, per_window: 0, per_since: 0, ratio, repairs: false }
    }

    fn threshold(&mut self) -> u32 {
        let window = self.window.segments();
        // Fast convergence: a flow with a lower maximum than before yields to newer ones.
        self.max = if window < self.max { scaled(window, 1024 + BETA) / 2 } else { window };
        if window <= LOW_WINDOW { window / 2 } else { scaled(window, BETA) }
    }

    /// Handles an acknowledgement for `acked` segments outside repairs.
    fn count(&mut self, acked: u32) {
        self.ratio = self.ratio.map(|ratio| ratio + acked - (ratio >> RATIO_SHIFT));
    }

    fn update(&mut self, now: Instant) {
        let (window, now) = (self.window.segments(), jiffies(now));
        if self.per_window == window && now - self.per_since <= STANDS {
            return;
        }
        (self.per_window, self.per_since) = (window, now);
        let per = increment(window, self.max);
        // Where it is Reno, it is Reno either way.
        let ratio = self.ratio.filter(|_| window > LOW_WINDOW);
        self.per = ratio.map_or(per, |ratio| (per << RATIO_SHIFT) / ratio).max(1);
    }
}

/// Returns `segments` times `factor` / 1024.
fn scaled(segments: u32, factor: u64) -> u32 {
    (u64::from(segments) * factor / 1024) as u32
}

/// Returns the segments acknowledged per segment of growth at `window`, where the last loss was at `max` segments.
fn increment(window: u32, max: u32) -> u32 {
    let creep = window * SMOOTH / SEARCH;
    if window <= LOW_WINDOW {
        return window;
    }
    let per = if window < max {
        match (max - window) / SEARCH {
            far if far > MAX_INCREMENT => window / MAX_INCREMENT,
            0 | 1 => creep,
            step => window / step,
        }
    } else {
        match window - max {
            0..SEARCH => creep,
            past if past < MAX_INCREMENT * (SEARCH - 1) => window * (SEARCH - 1) / past,
            _ => window / MAX_INCREMENT,
        }
    };
    if max == 0 { per.min(UNKNOWN) } else { per }
}

impl Controller for Bic {
    fn on_ack(&mut self, ack: &Ack) {
        let mut acked = self.window.acked(ack.delivered);
        if ack.repair == Repair::None && !std::mem::take(&mut self.repairs) {
            self.count(acked);
        }
        if !ack.window_limited {
            return;
        }
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            self.update(ack.now);
            self.window.avoid(self.per, acked);
        }
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        // The duplicate that first reported the loss was for no segment.
        self.count(0);
        self.repairs = true;
        let threshold = self.threshold();
        self.window.reduce(threshold);
    }

    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            let threshold = self.threshold();
            self.window.lower(threshold);
        }
        self.window.collapse();
        // All knowledge of the path is forgotten.
        (self.max, self.per, self.per_window, self.per_since) = (0, 0, 0, 0);
        (self.ratio, self.repairs) = (self.ratio.map(|_| RATIO), true);
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        self.window.idle(idle, rto);
    }
    fn on_undo(&mut self, _now: Instant) {
        self.window.undo();
    }
    fn window(&self) -> u64 {
        self.window.bytes()
    }
    fn ssthresh(&self) -> u64 {
        self.window.threshold_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    const MSS: u64 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    /// Returns the growth in segments of each of `rounds` round trips.
    fn run(bic: &mut Bic, now: &mut Instant, rounds: u32) -> Vec<u32> {
        let mut growth = Vec::new();
        for _ in 0..rounds {
            let before = bic.window.segments();
            for _ in 0..before {
                *now += RTT.div(before.into());
                bic.on_ack(&test_ack(*now, MSS, RTT));
            }
            growth.push(bic.window.segments() - before);
        }
        growth
    }

    fn after_loss_at(segments: u32) -> (Bic, Instant) {
        let mut bic = Bic::new(MSS as u32, segments, true);
        bic.on_congestion_event(Instant::ZERO);
        (bic, Instant::ZERO)
    }

    #[test]
    fn a_loss_reduces_to_four_fifths_and_a_small_window_to_one_half() {
        assert_eq!(after_loss_at(1000).0.window(), 799 * MSS);
        assert_eq!(after_loss_at(14).0.window(), 7 * MSS);
    }

    #[test]
    fn it_rises_linearly_then_searches_then_creeps() {
        let (mut bic, mut now) = after_loss_at(1000);
        let growth = run(&mut bic, &mut now, 60);
        // 201 segments to grow: by 16 per round trip, or one more where the division rounds, until 64 are left.
        assert!(growth[..8].iter().all(|&grown| (16..=17).contains(&grown)), "{growth:?}");
        // Then by a quarter of the rest (less from window to window within a round trip).
        assert!((10..=14).contains(&growth[9]) && growth[10] < growth[9], "{growth:?}");
        assert!(growth[12] <= 7 && growth[16] <= 2, "{growth:?}");
        // The last segments need SMOOTH / SEARCH = 5 round trips each.
        assert!((8..=9).contains(&growth[18..].iter().sum::<u32>()), "{growth:?}");
    }

    #[test]
    fn past_the_maximum_it_probes_faster_and_faster_up_to_the_limit() {
        let (mut bic, mut now) = after_loss_at(1000);
        run(&mut bic, &mut now, 10);
        bic.window.set(1010);
        let growth = run(&mut bic, &mut now, 12);
        assert!(growth.windows(2).all(|pair| pair[0] <= pair[1] + 1), "{growth:?}");
        assert!(growth[0] < 6 && growth[11] == 16, "{growth:?}");
    }

    #[test]
    fn fast_convergence_lowers_the_maximum_of_a_shrinking_flow() {
        let (mut bic, _) = after_loss_at(1000);
        bic.on_congestion_event(Instant::ZERO);
        // 799 * (1 + 0.8) / 2.
        assert_eq!((bic.max, bic.window.segments()), (719, 639));
    }

    #[test]
    fn a_small_window_grows_as_reno() {
        let (mut bic, mut now) = after_loss_at(10);
        assert_eq!(run(&mut bic, &mut now, 6), [1; 6]);
    }

    #[test]
    fn without_a_maximum_it_grows_by_a_twentieth_at_least() {
        let mut bic = Bic::new(MSS as u32, 800, true);
        bic.on_timeout(Instant::ZERO, false);
        assert_eq!((bic.window(), bic.ssthresh()), (MSS, 639 * MSS));
        bic.window.set(640);
        let mut now = Instant::ZERO;
        // Where the linear increase would be 16.
        assert_eq!(run(&mut bic, &mut now, 1), [32]);
    }

    #[test]
    fn as_linux_counts_today_it_grows_twice_as_fast() {
        let growth = |per_round| {
            let mut bic = Bic::new(MSS as u32, 1000, per_round);
            bic.on_congestion_event(Instant::ZERO);
            let mut now = Instant::ZERO;
            for _ in 0..400 {
                now += RTT.div(400);
                bic.on_ack(&test_ack(now, 2 * MSS, RTT));
            }
            bic.window.segments() - 799
        };
        // Less by one for the duplicate that reported the loss.
        assert_eq!((growth(true), growth(false)), (16, 31));
        let (mut small, mut now) = (Bic::new(MSS as u32, 10, false), Instant::ZERO);
        small.on_congestion_event(now);
        assert_eq!(run(&mut small, &mut now, 6), [1; 6]);
    }

    #[test]
    fn a_duplicate_counts_as_an_acknowledgement_of_nothing_and_what_ends_a_repair_not_at_all() {
        let mut bic = Bic::new(MSS as u32, 1000, false);
        assert_eq!(bic.ratio, Some(32));
        bic.on_congestion_event(Instant::ZERO);
        assert_eq!(bic.ratio, Some(30));
        let mut after = Vec::new();
        for _ in 0..3 {
            bic.on_ack(&test_ack(Instant::ZERO + RTT, 2 * MSS, RTT));
            after.extend(bic.ratio);
        }
        assert_eq!(after, [30, 31, 32]);
    }
}
