//! Shaka Player.

use streamgauge_base::{Duration, RandomStream};

use super::estimate::EwmaPair;
use super::{Decision, Fetched, Progress, Rule, Situation, Tuning};

/// Half-lives of the throughput's averages (`fastHalfLife`, `slowHalfLife`), in seconds of fetching.
const HALF_LIVES_S: (f64, f64) = (2.0, 5.0);
/// Bytes of a sample, and time, below which it is ignored (`minBytes`, `cacheLoadThreshold`).
const LEAST_BYTES: u64 = 16_000;
const LEAST_MS: u64 = 5;
/// The segment in flight gives a sample each time that more than this many ms have passed.
const SAMPLE_MS: u64 = 100;
/// Bytes from which the averages count (`minTotalBytes`), and the assumed throughput before.
const ENOUGH_BYTES: u64 = 128_000;
const DEFAULT_BPS: f64 = 1e6;
/// Time between choices, in ms (`switchInterval`).
const INTERVAL_MS: u64 = 8000;
/// The share of the throughput that a level may need (`bandwidthDowngradeTarget`).
const SHARE: f64 = 0.95;

/// Shaka Player 5.2.12, `SimpleAbrManager` on `EwmaBandwidthEstimator`, with `useNetworkInformation` off.
///
/// A level is chosen as samples arrive, at most each 8 s, and first after 128 kB: the highest within 0.95 of the
/// throughput. (A level is kept up to the next one's rate over 0.85. But the highest suitable level is selected, and
/// the next one is suitable from its rate over 0.95, so that 0.85 decides nothing.) The segment in flight is given up,
/// even if its last bytes made the choice. The reason: the prefetch of the previous level holds it, which
/// `switchStream` clears (`media/segment_prefetch.js`). The weighing in `StreamingEngine.shouldAbortCurrentRequest_` is
/// too late to keep it.
pub struct Shaka {
    throughput: EwmaPair,
    bytes: u64,
    level: usize,
    /// When the last choice was, in ms.
    chosen: Option<u64>,
    is_started: bool,
    /// For the segment in flight: the time of its request, and the ms and the byte up to which samples were taken.
    sampled: Option<(Duration, u64, u64)>,
    /// Its clock counts whole ms (`Date.now()`); how far into one the session begins is drawn.
    begins: Duration,
    default_bps: f64,
    share: f64,
    abandons: bool,
}

impl Shaka {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        let mut drawn = RandomStream::named(tuning.seed, "shaka", "clock");
        Shaka {
            throughput: EwmaPair::new(HALF_LIVES_S.0, HALF_LIVES_S.1),
            bytes: 0,
            level: 0,
            chosen: None,
            is_started: false,
            sampled: None,
            begins: Duration::from_nanos(drawn.below(1_000_000)),
            default_bps: tuning.initial.map_or(DEFAULT_BPS, |rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(SHARE),
            abandons: tuning.abandons,
        }
    }

    fn bps(&self) -> f64 {
        self.throughput.lower().filter(|_| self.bytes >= ENOUGH_BYTES).unwrap_or(self.default_bps)
    }

    fn ms(&self, at: Duration) -> u64 {
        (at + self.begins).as_nanos() / 1_000_000
    }

    fn sample(&mut self, bytes: u64, ms: u64) {
        if bytes >= LEAST_BYTES && ms >= LEAST_MS {
            self.bytes += bytes;
            self.throughput.push(bytes as f64 * 8e3 / ms as f64, ms as f64 / 1e3);
        }
    }

    fn choose(&mut self, now: &Situation<'_>) {
        let speed = now.live.map_or(1.0, |live| live.speed);
        self.level = now.ladder.at_most(self.share * self.bps() / speed);
        self.chosen = Some(self.ms(now.now));
    }

    /// Chooses if it is time to.
    fn suggest(&mut self, now: &Situation<'_>) {
        let is_first = !self.is_started && self.bytes >= ENOUGH_BYTES;
        self.is_started |= is_first;
        let ms = self.ms(now.now);
        let is_due = self.chosen.is_some_and(|at| ms.saturating_sub(at) >= INTERVAL_MS);
        if is_first || self.is_started && is_due {
            self.choose(now);
        }
    }

    /// Up to which ms and which byte of the segment that was asked for then samples were taken.
    fn sampled(&self, asked: Duration) -> (u64, u64) {
        let same = self.sampled.filter(|(of, ..)| *of == asked);
        same.map_or((self.ms(asked), 0), |(_, until, bytes)| (until, bytes))
    }
}

impl Rule for Shaka {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        if self.chosen.is_none() {
            self.choose(now);
        }
        let why = format!(
            "chosen {:.1} s ago; throughput {:.0} kbit/s now",
            self.chosen.map_or(0.0, |at| self.ms(now.now).saturating_sub(at) as f64 / 1e3),
            self.bps() / 1e3
        );
        Decision::at_once(self.level.min(now.ladder.top()), self.bps(), why)
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        if !fetched.abandoned {
            let (until, bytes) = self.sampled(fetched.asked);
            let ms = self.ms(fetched.seen).saturating_sub(until);
            self.sample(fetched.bytes.saturating_sub(bytes), ms);
            // The page chooses when it has read the end, which is later than the last byte's arrival.
            self.suggest(&Situation { now: now.now.max(fetched.seen), ..*now });
        }
        self.sampled = None;
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        let (until, bytes) = self.sampled(progress.asked);
        let ms = self.ms(now.now);
        let (time_ms, more) = (ms.saturating_sub(until), progress.bytes.saturating_sub(bytes));
        let is_whole = progress.of == Some(progress.bytes);
        if !is_whole && (time_ms <= SAMPLE_MS || more < LEAST_BYTES) {
            return None;
        }
        self.sampled = Some((progress.asked, ms, progress.bytes));
        self.sample(more, time_ms);
        self.suggest(now);
        if self.level == progress.level || !self.abandons {
            return None;
        }
        let why = format!("another level is chosen at a throughput of {:.0} kbit/s", self.bps() / 1e3);
        Some(Decision::at_once(self.level, self.bps(), why))
    }

    /// `HttpFetchPlugin` looks at each piece that it reads.
    fn asked_each(&self) -> Duration {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::telling::{came, coming, ladder, made, playing, s, start};
    use super::*;

    fn at(now: Situation<'_>, seconds: f64) -> Situation<'_> {
        Situation { now: s(seconds), ..now }
    }

    /// 950 of 1000 kbit/s may be used at first. The first choice follows the first 128 kB (1024 kbit), the next one 8 s
    /// later.
    #[test]
    fn it_chooses_when_enough_came_and_each_eight_seconds() {
        let ladder = ladder(&[400, 950, 1899, 3799], 2);
        let mut rule = made("shaka", Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 1);
        rule.fetched(&came(1, 1000.0, 0.0, 0.1, 0.5), &at(playing(&ladder, 1, 2.0), 0.5));
        assert_eq!(rule.decide(&at(playing(&ladder, 1, 2.0), 0.5)).estimate.unwrap().as_bps(), 1_000_000);
        rule.fetched(&came(1, 1000.0, 0.5, 0.1, 0.5), &at(playing(&ladder, 1, 4.0), 1.0));
        assert_eq!(rule.decide(&at(playing(&ladder, 1, 4.0), 1.0)).level, 2);
        for (asked_s, level) in [(4.0, 2), (8.4, 2), (8.5, 3)] {
            rule.fetched(&came(2, 4000.0, asked_s, 0.1, 0.5), &at(playing(&ladder, 2, 4.0), asked_s + 0.5));
            assert_eq!(rule.decide(&playing(&ladder, 2, 4.0)).level, level, "{asked_s}");
        }
    }

    #[test]
    fn small_and_cached_samples_are_ignored() {
        let mut rule = Shaka::new(&Tuning::default());
        rule.sample(15_999, 1000);
        rule.sample(1_000_000, 4);
        assert_eq!((rule.bytes, rule.throughput.lower()), (0, None));
        rule.sample(128_000, 500);
        assert!((rule.bps() - 2_048_000.0).abs() < 1.0);
    }

    /// The same averages whether a segment is one sample or several of the same rate.
    #[test]
    fn a_segment_is_sampled_as_it_comes() {
        let ladder = ladder(&[400, 950], 2);
        let mut rule = Shaka::new(&Tuning::default());
        rule.decide(&start(&ladder));
        for step in 1..=9 {
            let now = at(playing(&ladder, 1, 2.0), 0.11 * f64::from(step));
            assert_eq!(rule.abandon(&coming(1, 220.0 * f64::from(step), 4000.0, 0.0, 0.0), &now), None);
        }
        rule.fetched(&came(1, 4000.0, 0.0, 0.0, 2.0), &at(playing(&ladder, 1, 4.0), 2.0));
        assert_eq!(rule.bytes, 500_000);
        assert!((rule.throughput.weight() - 2.0).abs() < 1e-9 && (rule.bps() - 2e6).abs() < 1.0);
    }

    /// 128 kB arrive in 4 s: 256 kbit/s, level 0. The missing part and the buffer decide nothing.
    #[test]
    fn a_choice_while_a_segment_comes_gives_it_up() {
        let ladder = ladder(&[200, 800], 4);
        let given_up = |buffer_s, of_kbit, tuning| {
            let mut rule = made("shaka", tuning);
            assert_eq!(rule.decide(&start(&ladder)).level, 1);
            let coming = coming(1, 1024.0, of_kbit, 0.0, 0.1);
            rule.abandon(&coming, &at(playing(&ladder, 1, buffer_s), 4.0)).map(|decision| decision.level)
        };
        for buffer_s in [0.0, 0.1, 3.2] {
            for of_kbit in [3200.0, 1724.0, 1024.0] {
                assert_eq!(given_up(buffer_s, of_kbit, Tuning::default()), Some(0), "{buffer_s} {of_kbit}");
            }
        }
        assert_eq!(given_up(3.2, 1724.0, Tuning { abandons: false, ..Tuning::default() }), None);
        // 1000 kbit are no 128 kB yet.
        let mut rule = made("shaka", Tuning::default());
        rule.decide(&start(&ladder));
        assert_eq!(
            rule.abandon(&coming(1, 1000.0, 1000.0, 0.0, 0.1), &at(playing(&ladder, 1, 3.0), 4.0)),
            None
        );
    }

    /// Eight seconds after the first choice there is another, in the middle of the segment that took the first one's place.
    #[test]
    fn what_took_anothers_place_is_given_up_too() {
        let ladder = ladder(&[200, 800], 4);
        let mut rule = made("shaka", Tuning::default());
        rule.decide(&start(&ladder));
        let slow = coming(1, 1024.0, 3200.0, 0.0, 0.1);
        assert!(rule.abandon(&slow, &at(playing(&ladder, 1, 2.0), 4.0)).is_some());
        let fast = |kbit| coming(0, kbit, 30_000.0, 4.0, 4.1);
        assert_eq!(rule.abandon(&fast(15_000.0), &at(playing(&ladder, 0, 2.0), 11.9)), None);
        let decision = rule.abandon(&fast(20_000.0), &at(playing(&ladder, 0, 2.0), 12.1));
        assert_eq!(decision.map(|decision| decision.level), Some(1));
    }

    proptest! {
        /// The player's own words: of levels with R / 0.95 <= T <= next R / 0.85 the last, else the lowest.
        #[test]
        fn the_upgrade_target_decides_nothing(
            rates in prop::collection::btree_set(50u64..20_000, 1..10), bps in 1e4..3e7f64,
        ) {
            let kbps: Vec<u64> = rates.into_iter().collect();
            let ladder = ladder(&kbps, 4);
            let mut chosen = 0;
            for level in 0..=ladder.top() {
                let next = if level < ladder.top() { ladder.bps(level + 1) } else { f64::INFINITY };
                if ladder.bps(level) / 0.95 <= bps && bps <= next / 0.85 {
                    chosen = level;
                }
            }
            prop_assert_eq!(ladder.at_most(0.95 * bps), chosen);
        }
    }
}
