//! The greatest of late, in constant space (Kathleen Nichols' windowed filter, as Linux's `lib/minmax.c` has it).
//!
//! It keeps the best sample, and the best of the last three quarters and of the last half of the window after it, so
//! that the sample that replaces an expired best is nearly, not always, the true maximum.

use std::fmt::Debug;

/// A sample and its time.
type Taken<V> = (u64, V);

/// The greatest sample of a window of time; its unit is the caller's: rounds, or nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WindowedMax<V> {
    best: [Taken<V>; 3],
}

impl<V: Copy + Ord + Debug + Default> WindowedMax<V> {
    /// Returns the maximum.
    pub fn get(&self) -> V {
        self.best[0].1
    }

    /// Adds the sample `value` at `now`; samples older than `window` no longer count.
    pub fn add(&mut self, window: u64, now: u64, value: V) {
        let sample = (now, value);
        let [first, second, third] = &mut self.best;
        if value >= first.1 || now - third.0 > window {
            self.best = [sample; 3];
            return;
        }
        if value >= second.1 {
            (*second, *third) = (sample, sample);
        } else if value >= third.1 {
            *third = sample;
        }
        let age = now - first.0;
        if age > window {
            // The best has expired, and perhaps the one behind it.
            self.best = [*second, *third, sample];
            if now - self.best[0].0 > window {
                self.best = [self.best[1], sample, sample];
            }
        } else if second.0 == first.0 && age > window / 4 {
            // Nothing since the best: a quarter on, the present sample is the best of the rest.
            (*second, *third) = (sample, sample);
        } else if third.0 == second.0 && age > window / 2 {
            *third = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_counts_for_its_window_and_no_longer() {
        let mut max = WindowedMax::default();
        for t in 0..40u64 {
            max.add(10, t, if t == 5 { 100 } else { 10 + t % 3 });
            let expected = if (5..=15).contains(&t) { 100 } else { 10 };
            assert!((expected..=expected.max(12)).contains(&max.get()), "{} at {t}", max.get());
        }
    }

    #[test]
    fn a_fall_is_seen_a_window_after_its_last_high() {
        let mut max = WindowedMax::default();
        let seen: Vec<u64> = (0..30u64)
            .map(|t| {
                max.add(10, t, if t < 10 { 1_000 } else { 500 });
                max.get()
            })
            .collect();
        assert!(seen[..20].iter().all(|&v| v == 1_000), "{seen:?}");
        assert!(seen[20..].iter().all(|&v| v == 500), "{seen:?}");
    }
}
