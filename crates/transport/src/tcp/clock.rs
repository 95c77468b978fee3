//! The clocks of a Linux host: that of the timestamps option, and the tick that its timers keep.

use streamgauge_base::{Duration, Instant};

/// A tick: HZ = 250, which most distributions' kernels have.
const TICK_NS: u64 = 4_000_000;
/// Ticks until expiry from which on a level of Linux's timer wheel counts in eighths of the one below.
const LEVEL_STEP: u64 = 63;

/// Returns the clock of the timestamps option: milliseconds, wrapping.
#[inline]
pub fn stamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Returns `d` in whole ticks, rounded up.
pub fn whole_ticks(d: Duration) -> Duration {
    Duration::from_nanos(d.as_nanos().div_ceil(TICK_NS).saturating_mul(TICK_NS))
}

/// Returns when a timer that is set at `now` to expire after `delay` does so. Linux counts whole ticks from the last
/// one, never expires early, hence a tick late, and rounds distant times to coarser steps (kernel/time/timer.c: a level
/// of the wheel has 64 slots, the next one's are eight times as long).
pub fn expiry(now: Instant, delay: Duration) -> Instant {
    let ticks = delay.as_nanos().div_ceil(TICK_NS);
    let mut at = (now.as_nanos() / TICK_NS).saturating_add(ticks);
    let (mut shift, mut step) = (0, LEVEL_STEP);
    while ticks >= step && shift < 24 {
        shift += 3;
        step <<= 3;
    }
    at = ((at >> shift) + 1) << shift;
    Instant::from_nanos(at.saturating_mul(TICK_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_expires_up_to_a_tick_late_and_far_off_ones_on_coarser_steps() {
        let ms = Duration::from_millis;
        let at = |n: u64| Instant::ZERO + ms(n);
        for (now, delay, expires) in [
            (0, 40, 44),
            (1, 40, 44),
            (3, 40, 44),
            (4, 40, 48),
            (0, 38, 44),
            (0, 0, 4),
            // 62 ticks are of the first level, 63 of the second, which has slots of 32 ms.
            (0, 248, 252),
            (0, 252, 256),
            (0, 260, 288),
            (100, 252, 352 / 32 * 32 + 32),
            // From 504 ticks on they are 256 ms long.
            (0, 2016, 2048),
            (0, 2560, 2560 + 256),
        ] {
            assert_eq!(expiry(at(now), ms(delay)), at(expires), "{delay} ms at {now} ms");
        }
        assert!(expiry(Instant::FAR_FUTURE, Duration::MAX) >= at(1 << 40));
    }

    #[test]
    fn durations_round_up_to_ticks() {
        assert_eq!(whole_ticks(Duration::from_nanos(1)), Duration::from_millis(4));
        assert_eq!(whole_ticks(Duration::from_millis(8)), Duration::from_millis(8));
    }
}
