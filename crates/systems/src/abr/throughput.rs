//! The highest level within a share of the mean throughput of the last segments.
//!
//! As dash.js's `ThroughputRule` with its sliding window (dash.js 4.7, module Settings: `bandwidthSafetyFactor` 0.9, the
//! last four segments of media on demand), without its widening of the window where throughput varies much.

use streamgauge_base::BitRate;

use super::{Decision, Reason, Rule, Situation};

/// Its settings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Throughput {
    /// So much of the estimate may be used, above 0 and at most 1.
    pub safety_factor: f64,
    /// The estimate is the mean of so many segments, at least 1.
    pub segments: usize,
}

impl Default for Throughput {
    /// dash.js's.
    fn default() -> Self {
        Throughput { safety_factor: 0.9, segments: 4 }
    }
}

impl Rule for Throughput {
    fn decide(&mut self, situation: &Situation<'_>) -> Decision {
        let Situation { rates, throughput, .. } = situation;
        assert!(!rates.is_empty(), "content has at least one level");
        let last = &throughput[throughput.len().saturating_sub(self.segments.max(1))..];
        if last.is_empty() {
            return Decision { level: 0, reason: Reason::NothingMeasured };
        }
        let sum: u128 = last.iter().map(|rate| u128::from(rate.as_bps())).sum();
        let mean = (sum / last.len() as u128) as u64;
        let estimate = BitRate::from_bps(mean);
        let allowed = BitRate::from_bps((mean as f64 * self.safety_factor) as u64);
        match rates.partition_point(|rate| *rate <= allowed).checked_sub(1) {
            Some(level) => Decision { level, reason: Reason::Within { estimate, allowed } },
            None => Decision { level: 0, reason: Reason::AllAbove { estimate, allowed } },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamgauge_base::Duration;

    use super::*;

    fn decide(rule: &mut dyn Rule, rates: &[u64], throughput: &[u64], buffer: Duration) -> Decision {
        let of = |bps: &[u64]| bps.iter().map(|&bps| BitRate::from_bps(bps)).collect::<Vec<_>>();
        let (rates, throughput) = (of(rates), of(throughput));
        rule.decide(&Situation { rates: &rates, level: None, buffer, throughput: &throughput })
    }

    const LADDER: [u64; 4] = [235_000, 560_000, 1_050_000, 1_750_000];

    #[test]
    fn it_asks_for_the_highest_level_within_nine_tenths_of_the_mean_of_four() {
        let decided = |throughput: &[u64]| {
            let Decision { level, reason } =
                decide(&mut Throughput::default(), &LADDER, throughput, Duration::ZERO);
            (level, reason)
        };
        let rates = |estimate, allowed| (BitRate::from_bps(estimate), BitRate::from_bps(allowed));
        assert_eq!(decided(&[]), (0, Reason::NothingMeasured));
        let (estimate, allowed) = rates(1_000_000, 900_000);
        assert_eq!(decided(&[1_000_000]), (1, Reason::Within { estimate, allowed }));
        // 9 Mbit/s was five segments ago.
        let last = [9_000_000, 400_000, 800_000, 1_200_000, 1_600_000];
        assert_eq!(decided(&last), (1, Reason::Within { estimate, allowed }));
        let (estimate, allowed) = rates(200_000, 180_000);
        assert_eq!(decided(&[200_000]), (0, Reason::AllAbove { estimate, allowed }));
        assert_eq!(decided(&[1_944_445]).0, 3);
        assert_eq!(decided(&[1_944_444]).0, 2);
    }

    proptest! {
        #[test]
        fn its_level_is_there_and_is_the_highest_that_its_reason_allows(
            mut rates in prop::collection::vec(1u64..20_000_000, 1..12),
            throughput in prop::collection::vec(0u64..1 << 40, 0..20),
            factor in 0.01f64..=1.0, segments in 0usize..10, buffer_ms in 0u64..60_000,
        ) {
            rates.sort_unstable();
            let mut rule = Throughput { safety_factor: factor, segments };
            let buffer = Duration::from_millis(buffer_ms);
            let Decision { level, reason } = decide(&mut rule, &rates, &throughput, buffer);
            prop_assert!(level < rates.len());
            match reason {
                Reason::NothingMeasured => prop_assert!(throughput.is_empty() && level == 0),
                Reason::Within { estimate, allowed } => {
                    prop_assert!(rates[level] <= allowed.as_bps() && allowed <= estimate);
                    prop_assert!(rates[level + 1..].iter().all(|&rate| rate > allowed.as_bps()));
                }
                Reason::AllAbove { estimate, allowed } => {
                    prop_assert!(level == 0 && rates[0] > allowed.as_bps() && allowed <= estimate);
                }
            }
            // What the rule does not look at changes nothing.
            prop_assert_eq!(decide(&mut rule, &rates, &throughput, Duration::ZERO).level, level);
        }

        #[test]
        fn more_throughput_never_means_a_lower_level(
            throughput in prop::collection::vec(0u64..4_000_000, 1..10),
            more in prop::collection::vec(0u64..1_000_000, 10),
        ) {
            let rule = &mut Throughput::default();
            let before = decide(rule, &LADDER, &throughput, Duration::ZERO).level;
            let raised: Vec<u64> = throughput.iter().zip(more).map(|(rate, more)| rate + more).collect();
            prop_assert!(decide(rule, &LADDER, &raised, Duration::ZERO).level >= before);
        }
    }
}
