//! Shaka Player.

use streamgauge_base::Duration;

use super::estimate::EwmaPair;
use super::{Decision, Fetched, Progress, Rule, Situation, Tuning};

/// Half-lives of the throughput's averages (`fastHalfLife`, `slowHalfLife`), in seconds of fetching.
const HALF_LIVES_S: (f64, f64) = (2.0, 5.0);
/// Bytes of a sample, and time, below which it is ignored (`minBytes`, `cacheLoadThreshold`).
const LEAST_BYTES: u64 = 16_000;
const LEAST_S: f64 = 0.005;
/// A segment that comes is a sample each time that so long has passed.
const SAMPLE: Duration = Duration::from_millis(100);
/// Bytes from which the averages are believed (`minTotalBytes`), and what the throughput is taken to be before.
const ENOUGH_BYTES: u64 = 128_000;
const DEFAULT_BPS: f64 = 1e6;
/// Time between choices (`switchInterval`).
const INTERVAL: Duration = Duration::from_secs(8);
/// Of the throughput, what a level may need (`bandwidthDowngradeTarget`).
const SHARE: f64 = 0.95;

/// Shaka Player 5.2.12, `SimpleAbrManager` on `EwmaBandwidthEstimator`, with `useNetworkInformation` off.
///
/// A level is chosen as samples come, at most each 8 s and first when 128 kB came: the highest within 0.95 of the throughput.
/// (A level is kept up to the next one's rate over 0.85, but of the levels that are right the highest is taken, and the next
/// is right from its rate over 0.95: the 0.85 decides nothing.) If that happens while a segment comes, up or down, the segment
/// is given up if one of the new level comes before the buffer is empty, or is smaller than what is missing.
pub struct Shaka {
    throughput: EwmaPair,
    bytes: u64,
    level: usize,
    chosen: Option<Duration>,
    is_started: bool,
    /// Of the segment that comes: when it was asked for, and up to when and which byte samples were taken.
    sampled: Option<(Duration, Duration, u64)>,
    /// A segment came whole.
    has_media: bool,
    default_bps: f64,
    share: f64,
    abandons: bool,
}

impl Shaka {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        Shaka {
            throughput: EwmaPair::new(HALF_LIVES_S.0, HALF_LIVES_S.1),
            bytes: 0,
            level: 0,
            chosen: None,
            is_started: false,
            sampled: None,
            has_media: false,
            default_bps: tuning.initial.map_or(DEFAULT_BPS, |rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(SHARE),
            abandons: tuning.abandons,
        }
    }

    fn bps(&self) -> f64 {
        self.throughput.lower().filter(|_| self.bytes >= ENOUGH_BYTES).unwrap_or(self.default_bps)
    }

    fn sample(&mut self, bytes: u64, time: Duration) {
        let seconds = time.as_secs_f64();
        if bytes >= LEAST_BYTES && seconds >= LEAST_S {
            self.bytes += bytes;
            self.throughput.push(bytes as f64 * 8.0 / seconds, seconds);
        }
    }

    fn choose(&mut self, now: &Situation<'_>) {
        let speed = now.live.map_or(1.0, |live| live.speed);
        self.level = now.ladder.at_most(self.share * self.bps() / speed);
        self.chosen = Some(now.now);
    }

    /// Chooses if it is time to.
    fn suggest(&mut self, now: &Situation<'_>) {
        let is_first = !self.is_started && self.bytes >= ENOUGH_BYTES;
        self.is_started |= is_first;
        let is_due = self.chosen.is_some_and(|at| now.now.saturating_sub(at) >= INTERVAL);
        if is_first || self.is_started && is_due {
            self.choose(now);
        }
    }

    /// Up to when and which byte of the segment that was asked for then samples were taken.
    fn sampled(&self, asked: Duration) -> (Duration, u64) {
        let same = self.sampled.filter(|(of, ..)| *of == asked);
        same.map_or((asked, 0), |(_, until, bytes)| (until, bytes))
    }
}

impl Rule for Shaka {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        if self.chosen.is_none() {
            self.choose(now);
        }
        let why = format!(
            "chosen {:.1} s ago; throughput {:.0} kbit/s now",
            self.chosen.map_or(0.0, |at| now.now.saturating_sub(at).as_secs_f64()),
            self.bps() / 1e3
        );
        Decision::at_once(self.level.min(now.ladder.top()), self.bps(), why)
    }

    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        if !fetched.abandoned {
            let (until, bytes) = self.sampled(fetched.asked);
            self.sample(fetched.bytes.saturating_sub(bytes), fetched.done.saturating_sub(until));
            self.suggest(now);
            self.has_media = true;
        }
        self.sampled = None;
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        let (until, bytes) = self.sampled(progress.asked);
        let (time, more) = (now.now.saturating_sub(until), progress.bytes.saturating_sub(bytes));
        if time <= SAMPLE || more < LEAST_BYTES {
            return None;
        }
        self.sampled = Some((progress.asked, now.now, progress.bytes));
        self.sample(more, time);
        let before = self.level;
        self.suggest(now);
        if self.level == before || self.level == progress.level || !self.abandons {
            return None;
        }
        if !self.has_media {
            // Of the other stream no segment is known yet, and then nothing is weighed (5.2.12, `StreamingEngine`'s decision
            // whether to abort; seen so in the player itself).
            let why = format!("throughput {:.0} kbit/s, by the first that came", self.bps() / 1e3);
            return Some(Decision::at_once(self.level, self.bps(), why));
        }
        let new_bytes = now.ladder.bytes(self.level, progress.segment);
        let missing = progress.of.map_or(0, |of| of.saturating_sub(progress.bytes)) as f64;
        let fetch_s = new_bytes * 8.0 / self.bps();
        let buffer_s = now.buffer.as_secs_f64();
        let kbps = self.bps() / 1e3;
        let why = if fetch_s < buffer_s {
            format!(
                "throughput {kbps:.0} kbit/s; the other takes {fetch_s:.1} s, the buffer lasts {buffer_s:.1} s"
            )
        } else if missing > new_bytes {
            format!(
                "throughput {kbps:.0} kbit/s; {missing:.0} bytes are missing, the other has {new_bytes:.0}"
            )
        } else {
            return None;
        };
        Some(Decision::at_once(self.level, self.bps(), why))
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

    /// 950 of 1000 kbit/s may be used at first; the first choice comes with the first 128 kB (1024 kbit), the next 8 s on.
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
        rule.sample(15_999, s(1.0));
        rule.sample(1_000_000, s(0.004));
        assert_eq!((rule.bytes, rule.throughput.lower()), (0, None));
        rule.sample(128_000, s(0.5));
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

    /// 128 kB come in 4 s: 256 kbit/s, level 0. Of 3200 kbit 2176 are missing, and the lower has 800; with 4 s of buffer
    /// it would also come in time (3.1 s). The first segment is given up whatever is missing.
    #[test]
    fn a_choice_while_a_segment_comes_may_give_it_up() {
        let ladder = ladder(&[200, 800], 4);
        let slow = coming(1, 1024.0, 3200.0, 0.0, 0.1);
        let given_up = |buffer_s, slow: &Progress, tuning| {
            let mut rule = made("shaka", tuning);
            assert_eq!(rule.decide(&start(&ladder)).level, 1);
            if buffer_s > 0.0 {
                // Too small for a sample.
                rule.fetched(&came(1, 100.0, 0.0, 0.0, 0.1), &at(playing(&ladder, 1, 2.0), 0.1));
            }
            rule.abandon(slow, &at(playing(&ladder, 1, buffer_s), 4.0)).map(|decision| decision.level)
        };
        let almost = coming(1, 1024.0, 1724.0, 0.0, 0.1);
        for first in [&slow, &almost] {
            assert_eq!(given_up(0.0, first, Tuning::default()), Some(0));
        }
        assert_eq!(given_up(0.1, &slow, Tuning::default()), Some(0));
        // 700 kbit are missing, fewer than the lower level has.
        assert_eq!(given_up(3.0, &almost, Tuning::default()), None);
        assert_eq!(given_up(3.2, &almost, Tuning::default()), Some(0));
        assert_eq!(given_up(3.2, &almost, Tuning { abandons: false, ..Tuning::default() }), None);
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
