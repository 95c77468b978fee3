//! Exponential averages whose samples have weights, as browsers' players keep them.

/// An average in which a sample counts half once `half_life` of weight has come after it. It begins at 0; that 0 is taken
/// out of what it says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Ewma {
    half_life: f64,
    sum: f64,
    weight: f64,
}

impl Ewma {
    /// Without samples; `half_life` above 0, in the unit of the weights.
    pub fn new(half_life: f64) -> Self {
        Ewma { half_life, sum: 0.0, weight: 0.0 }
    }

    /// Takes in `value` with `weight`.
    pub fn push(&mut self, value: f64, weight: f64) {
        let kept = libm::exp2(-weight / self.half_life);
        self.sum = kept * self.sum + (1.0 - kept) * value;
        self.weight += weight;
    }

    /// The average, once there is a sample that weighs something.
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / (1.0 - libm::exp2(-self.weight / self.half_life)))
    }

    /// Of all samples together.
    pub fn weight(&self) -> f64 {
        self.weight
    }
}

/// The same samples averaged twice; the lower average is believed: quick to fall, slow to rise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct EwmaPair {
    fast: Ewma,
    slow: Ewma,
}

impl EwmaPair {
    /// With these half-lives.
    pub fn new(fast: f64, slow: f64) -> Self {
        EwmaPair { fast: Ewma::new(fast), slow: Ewma::new(slow) }
    }

    /// Takes in `value` with `weight`.
    pub fn push(&mut self, value: f64, weight: f64) {
        self.fast.push(value, weight);
        self.slow.push(value, weight);
    }

    /// The lower average, once there is a sample.
    pub fn lower(&self) -> Option<f64> {
        Some(self.fast.mean()?.min(self.slow.mean()?))
    }

    /// Of all samples together.
    pub fn weight(&self) -> f64 {
        self.fast.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half-lives 1 and 2, samples 4 then 8 of weight 1. Fast: (4/2)/2 + 8/2 = 5 of a share 3/4. Slow: with r = 2^-1/2,
    /// (4r + 8)(1 - r) of a share 1/2.
    #[test]
    fn the_lower_of_two_averages_is_the_slow_one_while_values_rise() {
        let mut pair = EwmaPair::new(1.0, 2.0);
        assert_eq!(pair.lower(), None);
        pair.push(4.0, 1.0);
        assert!((pair.lower().unwrap() - 4.0).abs() < 1e-12);
        pair.push(8.0, 1.0);
        let r = 0.5f64.sqrt();
        assert!((pair.lower().unwrap() - (4.0 * r + 8.0) * (1.0 - r) / 0.5).abs() < 1e-12);
        assert!((pair.fast.mean().unwrap() - 20.0 / 3.0).abs() < 1e-12);
        assert_eq!(pair.weight(), 2.0);
    }
}
