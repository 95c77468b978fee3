//! Averages that forget: the throughput as players estimate it.

/// An exponential average with weighted samples: a sample counts half after `half_life` of further weight. The average
/// is divided by the share that its samples have of it, since it begins at 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ewma {
    half_life: f64,
    sum: f64,
    weight: f64,
}

impl Ewma {
    /// Without samples; `half_life` in the unit of the weights, above 0.
    pub fn new(half_life: f64) -> Self {
        Ewma { half_life, sum: 0.0, weight: 0.0 }
    }

    /// Takes in `value`. A sample without weight changes nothing.
    pub fn push(&mut self, value: f64, weight: f64) {
        let old = libm::exp2(-weight / self.half_life);
        self.sum = old * self.sum + (1.0 - old) * value;
        self.weight += weight;
    }

    /// The average of all samples, or none before the first.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The average; `None` before the first sample that has weight.
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / (1.0 - libm::exp2(-self.weight / self.half_life)))
    }
}

/// Two averages of the same samples, one quick to forget and one slow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EwmaPair {
    fast: Ewma,
    slow: Ewma,
}

impl EwmaPair {
    /// With these half-lives, in the unit of the weights.
    pub fn new(fast: f64, slow: f64) -> Self {
        EwmaPair { fast: Ewma::new(fast), slow: Ewma::new(slow) }
    }

    /// Takes in `value` with `weight`.
    pub fn push(&mut self, value: f64, weight: f64) {
        self.fast.push(value, weight);
        self.slow.push(value, weight);
    }

    /// The averages of all samples, or none before the first.
    pub fn weight(&self) -> f64 {
        self.fast.weight()
    }

    /// The lower of the two: slow to believe a rise.
    pub fn lower(&self) -> Option<f64> {
        Some(self.fast.mean()?.min(self.slow.mean()?))
    }

    /// The higher of the two: slow to believe a fall.
    pub fn higher(&self) -> Option<f64> {
        Some(self.fast.mean()?.max(self.slow.mean()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_sample_is_its_own_average_whatever_its_weight() {
        let mut one = Ewma::new(3.0);
        assert_eq!(one.mean(), None);
        one.push(2e6, 0.1);
        assert!((one.mean().unwrap() - 2e6).abs() < 1e-3);
    }

    /// Half-life 1: of 4 then 8, each of weight 1, the sum is (4/2)/2 + 8/2 = 5, its share 3/4.
    #[test]
    fn the_newer_of_two_equal_weights_counts_twice_at_their_half_life() {
        let mut pair = EwmaPair::new(1.0, 1e9);
        pair.push(4.0, 1.0);
        pair.push(8.0, 1.0);
        assert!((pair.higher().unwrap() - 20.0 / 3.0).abs() < 1e-9);
        assert!((pair.lower().unwrap() - 6.0).abs() < 1e-5);
    }

    proptest! {
        #[test]
        fn an_average_lies_among_its_samples(
            samples in prop::collection::vec((1.0..1e8f64, 0.01..20.0f64), 1..40),
        ) {
            let mut pair = EwmaPair::new(3.0, 8.0);
            for &(value, weight) in &samples {
                pair.push(value, weight);
            }
            let least = samples.iter().map(|one| one.0).fold(f64::MAX, f64::min);
            let most = samples.iter().map(|one| one.0).fold(0.0, f64::max);
            let (lower, higher) = (pair.lower().unwrap(), pair.higher().unwrap());
            prop_assert!(least * (1.0 - 1e-9) <= lower && lower <= higher && higher <= most * (1.0 + 1e-9));
        }
    }
}
