//! Arithmetic of bandwidths that both versions of BBR share: whole bytes per second, gains in 256ths as Linux counts
//! them.

use streamgauge_base::Duration;

/// A gain of one.
pub const UNIT: u64 = 256;
/// Pacing stays so far below the bandwidth that a queue empties of itself, in per cent.
const PACING_MARGIN_PERCENT: u64 = 1;

/// Bytes/s of `bytes` in `time`.
pub fn rate(bytes: u64, time: Duration) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(time.as_nanos().max(1))).min(u128::from(u64::MAX)) as u64
}

/// Bytes that `bw` bytes/s carry in `time`; at most what a gain may still multiply.
pub fn carried(bw: u64, time: Duration) -> u64 {
    (u128::from(bw) * u128::from(time.as_nanos()) / 1_000_000_000).min(u128::from(u64::MAX / UNIT)) as u64
}

/// The rate of pacing for `bw` times `gain`.
pub fn paced(bw: u64, gain: u64) -> u64 {
    let rate = u128::from(bw) * u128::from(gain) / u128::from(UNIT);
    (rate * u128::from(100 - PACING_MARGIN_PERCENT) / 100).clamp(1, u128::from(u64::MAX)) as u64
}

/// Below this rate, 1.2 Mbit/s in bytes/s, bursts are of one segment.
const SINGLE_BELOW: u64 = 1_200_000 / 8;

/// Segments that leave together at least, at a pacing rate in bytes/s.
pub fn least_burst(pacing_rate: u64) -> u64 {
    if pacing_rate < SINGLE_BELOW { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

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
