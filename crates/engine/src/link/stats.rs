//! Measures that decide a trial's validity.

use serde::Serialize;

/// Buckets of a power of two.
const FINE: u64 = 32;

/// Counts of nanoseconds in buckets of a width of at most 1/32 of their value.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

/// Percentiles in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Percentiles {
    /// Half are at or under this.
    pub p50: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// All.
    pub max: u64,
    /// How many there are.
    pub count: u64,
}

impl Histogram {
    /// Returns an empty one.
    pub fn new() -> Self {
        Histogram { buckets: vec![0; bucket(u64::MAX) + 1], count: 0, max: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.max = self.max.max(ns);
    }

    /// Its percentiles, each the upper end of its bucket but never above the maximum.
    pub fn percentiles(&self) -> Percentiles {
        let at = |per_mille: u64| {
            let rank = (self.count * per_mille).div_ceil(1000);
            let mut seen = 0;
            for (index, &count) in self.buckets.iter().enumerate() {
                seen += count;
                if seen >= rank {
                    return upper_end(index).min(self.max);
                }
            }
            self.max
        };
        Percentiles { p50: at(500), p99: at(990), p999: at(999), max: self.max, count: self.count }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < FINE {
        return ns as usize;
    }
    // Above the first 32 values, each power of two has 32 buckets.
    let shift = 63 - ns.leading_zeros() as u64 - FINE.trailing_zeros() as u64;
    (FINE * (shift + 1) + ((ns >> shift) - FINE)) as usize
}

fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < FINE {
        return bucket;
    }
    let (shift, within) = (bucket / FINE - 1, bucket % FINE);
    (((u128::from(FINE + within + 1)) << shift) - 1).min(u128::from(u64::MAX)) as u64
}

/// Packets and Ethernet bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Ethernet bytes.
    pub bytes: u64,
}

impl Tally {
    /// Counts one more packet.
    #[inline]
    pub fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// Traffic of one port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PortStats {
    /// Frames read from the ring.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that the kernel took.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that found the ring full.
    pub ring_drops: u64,
    /// Frames that the kernel refused.
    pub send_errors: u64,
    /// Frames too long to carry.
    pub truncated: u64,
    /// Frames with a checksum left to hardware.
    pub checksum_missing: u64,
    /// Frames without room for their bytes.
    pub slab_drops: u64,
    /// Frames of the trial that left later than their own transmission time at the bottleneck.
    pub late: u64,
}

/// Arrivals older than their path's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Clamped {
    /// How many.
    pub count: u64,
    /// The oldest, ns.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        let mut before = 0;
        for index in 1..bucket(u64::MAX) {
            let end = upper_end(index);
            assert_eq!(bucket(before + 1), index);
            assert_eq!(bucket(end), index);
            assert!(end - before <= (end / 32).max(1), "bucket {index}: {before}..{end}");
            before = end;
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|us| histogram.add(us * 1000));
        let p = histogram.percentiles();
        for (found, exact) in [(p.p50, 500_000), (p.p99, 990_000), (p.p999, 999_000)] {
            assert!(found >= exact && found <= exact + exact / 16, "{found} for {exact}");
        }
        assert_eq!((p.max, p.count), (1_000_000, 1000));
    }
}
