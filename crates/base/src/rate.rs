//! Bit rates.

use crate::time::Duration;

/// A bit rate in bit/s. Always 1000-based.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct BitRate(u64);

impl BitRate {
    /// Makes a rate of `bps` bit/s.
    pub const fn from_bps(bps: u64) -> Self {
        BitRate(bps)
    }
    /// Returns the rate in bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Bits times 10^9 that pass in `d`: the exact unit in which a rate stage keeps its remainder.
    pub const fn nanobits_in(self, d: Duration) -> u128 {
        self.0 as u128 * d.as_nanos() as u128
    }
    /// Returns the transmission time of `bytes`, rounded up to a nanosecond. Panics if the rate is zero.
    pub const fn transmission_time(self, bytes: u64) -> Duration {
        let nanobits = bytes as u128 * 8 * 1_000_000_000;
        Duration::from_nanos(nanobits.div_ceil(self.0 as u128) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_at_one_megabit_takes_12_112_ms() {
        assert_eq!(BitRate::from_bps(1_000_000).transmission_time(1514), Duration::from_micros(12_112));
    }

    #[test]
    fn rounds_up() {
        assert_eq!(BitRate::from_bps(3).transmission_time(1).as_nanos(), 2_666_666_667);
    }
}
