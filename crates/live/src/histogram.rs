//! Durations in buckets, small enough to be kept for each flow.

/// Buckets of a power of two.
const FINE: u64 = 16;
const FINE_BITS: u64 = FINE.trailing_zeros() as u64;
/// The last bucket holds all from 2^40 ns, 18 minutes, on.
const OCTAVES: u64 = 40;
const BUCKETS: usize = (FINE * (OCTAVES - FINE_BITS + 1)) as usize;

/// Counts of nanoseconds, in buckets at most 1/16 of their value wide.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u32]>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: vec![0; BUCKETS].into_boxed_slice(), count: 0, max: 0 }
    }
}

impl Histogram {
    /// Returns one without room, in the place of another.
    pub(crate) fn none() -> Self {
        Histogram { buckets: Box::default(), count: 0, max: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.max = self.max.max(ns);
    }

    /// Returns how many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns a value that `share` of all are at or under: the upper end of its bucket. `None` of none.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let index = self.buckets.iter().position(|&count| {
            seen += u64::from(count);
            seen >= rank
        })?;
        Some(upper_end(index as u64).min(self.max))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (own, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*other);
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.buckets.fill(0);
            (self.count, self.max) = (0, 0);
        }
    }
}

#[inline]
fn bucket(ns: u64) -> usize {
    if ns < FINE {
        return ns as usize;
    }
    let shift = 63 - u64::from(ns.leading_zeros()) - FINE_BITS;
    ((FINE * (shift + 1) + ((ns >> shift) - FINE)) as usize).min(BUCKETS - 1)
}

fn upper_end(bucket: u64) -> u64 {
    if bucket < FINE {
        return bucket;
    }
    let (shift, within) = (bucket / FINE - 1, bucket % FINE);
    ((FINE + within + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        for index in 1..BUCKETS as u64 {
            let (before, end) = (upper_end(index - 1), upper_end(index));
            assert_eq!((bucket(before + 1), bucket(end)), (index as usize, index as usize));
            assert!(end - before <= (end / FINE).max(1), "bucket {index}: {before}..{end}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut all = Histogram::default();
        assert_eq!(all.quantile(0.5), None);
        let (mut odd, mut even) = (Histogram::default(), Histogram::default());
        for us in 1..=1000u64 {
            if us % 2 == 0 { even.add(us * 1000) } else { odd.add(us * 1000) }
        }
        all.merge(&odd);
        all.merge(&even);
        for (share, exact) in [(0.5, 500_000), (0.95, 950_000), (1.0, 1_000_000)] {
            let found = all.quantile(share).unwrap();
            assert!(found >= exact && found <= exact + exact / FINE, "{found} for {exact}");
        }
        all.clear();
        assert_eq!((all.count(), all.max(), all.quantile(0.5)), (0, 0, None));
    }
}
