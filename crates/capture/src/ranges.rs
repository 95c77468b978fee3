//! Sets of numbers that come mostly in a row.

use std::collections::BTreeMap;

/// NumberRanges that are kept: the last ones.
const MOST: usize = 1 << 16;

/// Numbers as ranges: first and last, by the first.
#[derive(Clone, Debug, Default)]
pub struct NumberRanges(BTreeMap<u64, u64>);

impl NumberRanges {
    /// Adds all from `first` to `last`.
    pub fn add(&mut self, mut first: u64, mut last: u64) {
        if let Some((&low, &high)) = self.0.range(..=first).next_back()
            && high.saturating_add(1) >= first
        {
            (first, last) = (low, last.max(high));
        }
        while let Some((&low, &high)) = self.0.range(first..=last.saturating_add(1)).next() {
            last = last.max(high);
            self.0.remove(&low);
        }
        self.0.insert(first, last);
        if self.0.len() > MOST {
            self.0.pop_first();
        }
    }

    /// Whether it has this number.
    pub fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, &last)| number <= last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_has_what_was_added(added in prop::collection::vec((0..60u64, 0..8u64), 0..30)) {
            let (mut ranges, mut set) = (NumberRanges::default(), BTreeSet::new());
            for (first, more) in added {
                ranges.add(first, first + more);
                set.extend(first..=first + more);
            }
            for number in 0..70 {
                prop_assert_eq!(ranges.contains(number), set.contains(&number));
            }
            let firsts: Vec<_> = ranges.0.iter().collect();
            prop_assert!(firsts.windows(2).all(|two| two[0].1 + 1 < *two[1].0), "{:?}", firsts);
        }
    }
}
