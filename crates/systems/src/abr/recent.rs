//! The last few of a row of numbers, and their means.

use std::collections::VecDeque;

/// The last `most` numbers that were pushed.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    most: usize,
    numbers: VecDeque<f64>,
}

impl Recent {
    /// Empty; at least one number is kept.
    pub fn new(most: usize) -> Self {
        Recent { most, numbers: VecDeque::with_capacity(most) }
    }

    /// Takes in `number`, and drops the oldest if there is no room.
    pub fn push(&mut self, number: f64) {
        if self.numbers.len() == self.most {
            self.numbers.pop_front();
        }
        self.numbers.push_back(number);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// From the oldest.
    pub fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        self.numbers.iter().copied()
    }

    /// The newest.
    pub fn last(&self) -> Option<f64> {
        self.numbers.back().copied()
    }

    /// Sum over count.
    pub fn mean(&self) -> Option<f64> {
        (self.len() > 0).then(|| self.iter().sum::<f64>() / self.len() as f64)
    }

    /// The harmonic mean: count over the sum of reciprocals. 0 if one of the numbers is 0.
    pub fn harmonic_mean(&self) -> Option<f64> {
        (self.len() > 0).then(|| self.len() as f64 / self.iter().map(f64::recip).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_the_last_numbers_alone() {
        let mut recent = Recent::new(3);
        assert_eq!((recent.mean(), recent.harmonic_mean(), recent.last()), (None, None, None));
        for number in [100.0, 2.0, 3.0, 6.0] {
            recent.push(number);
        }
        assert!((recent.mean().unwrap() - 11.0 / 3.0).abs() < 1e-12);
        assert!((recent.harmonic_mean().unwrap() - 3.0).abs() < 1e-12);
        assert_eq!((recent.last(), recent.len()), (Some(6.0), 3));
        recent.push(0.0);
        assert_eq!(recent.harmonic_mean(), Some(0.0));
    }
}
