//! Quantiles of many values in little memory.

/// Keeps every `stride`-th value, at most [`Samples::MOST`] of them. Kept values are evenly spread over the whole
/// course, so quantiles are those of an even selection.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    kept: Vec<i64>,
    stride: u64,
    count: u64,
    least: Option<i64>,
}

impl Samples {
    /// The most values that are kept.
    pub const MOST: usize = 512;

    /// Adds a value.
    pub fn push(&mut self, value: i64) {
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        let stride = self.stride.max(1);
        if self.count.is_multiple_of(stride) {
            if self.kept.len() == Self::MOST {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride = stride * 2;
            }
            self.kept.push(value);
        }
        self.count += 1;
    }

    /// Adds `by` to all values so far.
    pub fn shift(&mut self, by: i64) {
        self.kept.iter_mut().chain(&mut self.least).for_each(|value| *value += by);
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least of all values.
    pub fn least(&self) -> Option<i64> {
        self.least
    }

    /// The quantile `part` (0 to 1), the nearest rank; `None` without values.
    pub fn quantile(&self, part: f64) -> Option<i64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let rank = (part * (sorted.len().checked_sub(1)?) as f64).round() as usize;
        sorted.get(rank).copied()
    }

    /// As [`quantile`](Self::quantile), from ns to s.
    pub fn quantile_s(&self, part: f64) -> Option<f64> {
        self.quantile(part).map(|ns| ns as f64 / 1e9)
    }
}
