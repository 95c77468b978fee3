//! Arithmetic of bandwidths that both versions of BBR share: whole bytes per second, gains in 256ths as Linux counts
//! them.

use streamgauge_base::Duration;

/// A gain of one.
pub const UNIT: u64 = 256;
/// Pacing stays so far below the bandwidth that a queue empties of itself, in per cent.
const PACING_MARGIN_PERCENT: u64 = 1;

/// Returns the bytes/s of `bytes` in `time`.
pub fn rate(bytes: u64, time: Duration) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(time.as_nanos().max(1))).min(u128::from(u64::MAX)) as u64
}

/// Fractional bits of a bandwidth in segments per microsecond (`BW_SCALE` of Linux's `tcp_bbr`).
const SCALE: u32 = 24;

/// Returns the rate of `bytes` in `time`, in bytes/s, rounded down as Linux rounds them: to segments of `mss` bytes per
/// microsecond with `SCALE` fractional bits; 150 kbit/s are 207.8 such units.
pub fn coarse_rate(bytes: u64, time: Duration, mss: u64) -> u64 {
    let us = u128::from((time.as_nanos() / 1_000).max(1));
    let mss = u128::from(mss.max(1));
    let scaled = (u128::from(bytes) << SCALE) / (mss * us);
    ((scaled * mss * 1_000_000) >> SCALE).min(u128::from(u64::MAX)) as u64
}

/// Returns the bytes that `bw` bytes/s carry in `time`; at most the amount that a gain may still multiply.
pub fn carried(bw: u64, time: Duration) -> u64 {
    (u128::from(bw) * u128::from(time.as_nanos()) / 1_000_000_000).min(u128::from(u64::MAX / UNIT)) as u64
}

/// Returns the rate of pacing for `bw` times `gain`.
pub fn paced(bw: u64, gain: u64) -> u64 {
    let rate = u128::from(bw) * u128::from(gain) / u128::from(UNIT);
    (rate * u128::from(100 - PACING_MARGIN_PERCENT) / 100).clamp(1, u128::from(u64::MAX)) as u64
}

/// Below this rate, 1.2 Mbit/s in bytes/s, bursts are of one segment.
const SINGLE_BELOW: u64 = 1_200_000 / 8;

/// Returns the segments that leave together at least, at a pacing rate in bytes/s.
pub fn least_burst(pacing_rate: u64) -> u64 {
    if pacing_rate < SINGLE_BELOW { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_rounds_a_bandwidth_down_to_a_24th_bit_of_segments_per_microsecond() {
        // A segment in 80,747 us, 1,514 B at 150 kbit/s: 207.77 units; a guest's pacing rate shows 207.
        let time = Duration::from_nanos(80_746_667);
        assert_eq!((rate(1_448, time), coarse_rate(1_448, time, 1_448)), (17_932, 17_865));
        assert_eq!(8 * paced(coarse_rate(1_448, time, 1_448), UNIT), 141_488);
        // At 10 Mbit/s the difference is negligible.
        let time = Duration::from_nanos(1_211_000);
        assert_eq!((rate(1_448, time), coarse_rate(1_448, time, 1_448)), (1_195_706, 1_195_704));
        assert_eq!(coarse_rate(1_448, Duration::ZERO, 1_448), 1_448_000_000);
    }

    #[test]
    fn what_a_rate_carries_in_a_time_is_the_rate_of_it() {
        let time = Duration::from_millis(20);
        assert_eq!(carried(1_250_000, time), 25_000);
        assert_eq!(rate(25_000, time), 1_250_000);
        assert_eq!(paced(1_250_000, UNIT * 5 / 4), 1_546_875);
        assert_eq!(
            (rate(1, Duration::ZERO), carried(u64::MAX, Duration::MAX)),
            (1_000_000_000, u64::MAX / UNIT)
        );
    }
}
