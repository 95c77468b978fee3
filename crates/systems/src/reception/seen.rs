//! Which packets have been seen, so that a duplicate does not make a frame look whole.

/// The extended sequence numbers of one source: which of the highest and the `64 * WORDS - 1` before it were
/// received. `WORDS` is a power of two, so that the place of a number survives its wrap.
pub struct Seen<const WORDS: usize> {
    highest: Option<u32>,
    bits: [u64; WORDS],
}

impl<const WORDS: usize> Default for Seen<WORDS> {
    fn default() -> Self {
        const { assert!(WORDS.is_power_of_two()) };
        Seen { highest: None, bits: [0; WORDS] }
    }
}

impl<const WORDS: usize> Seen<WORDS> {
    const WINDOW: u32 = 64 * WORDS as u32;

    /// Returns true for the first arrival of `sequence`, if it is not too far behind to be remembered.
    pub fn first(&mut self, sequence: u32) -> bool {
        let ahead = match self.highest {
            None => Self::WINDOW as i32,
            Some(highest) => sequence.wrapping_sub(highest) as i32,
        };
        if ahead <= -(Self::WINDOW as i32) {
            return false;
        }
        if ahead > 0 {
            for skipped in 0..(ahead as u32).min(Self::WINDOW) {
                let (word, mask) = Self::place(sequence.wrapping_sub(skipped));
                self.bits[word] &= !mask;
            }
            self.highest = Some(sequence);
        }
        let (word, mask) = Self::place(sequence);
        let first = self.bits[word] & mask == 0;
        self.bits[word] |= mask;
        first
    }

    /// Returns whether `sequence` was received, as far as it is remembered.
    pub fn contains(&self, sequence: u32) -> bool {
        let Some(highest) = self.highest else { return false };
        let (word, mask) = Self::place(sequence);
        highest.wrapping_sub(sequence) < Self::WINDOW && self.bits[word] & mask != 0
    }

    fn place(sequence: u32) -> (usize, u64) {
        ((sequence % Self::WINDOW / 64) as usize, 1 << (sequence % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_too_far_behind_is_not_taken() {
        let mut seen = Seen::<16>::default();
        assert!(seen.first(5000));
        assert!(seen.first(5000 - 1023));
        assert!(!seen.first(5000 - 1024));
    }

    proptest! {
        #[test]
        fn each_number_is_first_once(start in any::<u32>(), steps in prop::collection::vec(-40i32..60, 1..400)) {
            let (mut seen, mut model) = (Seen::<16>::default(), BTreeSet::new());
            let mut at = 0i64;
            for step in steps {
                at += i64::from(step);
                if model.iter().next_back().is_some_and(|highest: &i64| highest - at >= 1024) {
                    continue;
                }
                prop_assert_eq!(seen.contains(start.wrapping_add(at as u32)), model.contains(&at));
                prop_assert_eq!(seen.first(start.wrapping_add(at as u32)), model.insert(at));
            }
        }
    }
}
