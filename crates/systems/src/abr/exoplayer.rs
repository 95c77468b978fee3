//! Android's ExoPlayer.

use std::collections::VecDeque;

use super::{Decision, Fetched, Rule, Situation, Tuning};

/// The usable share of the throughput.
const SHARE: f64 = 0.7;
/// Weight of the samples that the median is of.
const MOST_WEIGHT: u64 = 2000;
/// Time or bytes of samples from which the median is believed.
const ENOUGH_MS: u64 = 2000;
const ENOUGH_BYTES: u64 = 512 << 10;
/// Throughput before that, where nothing is known of country and network.
const DEFAULT_BPS: f64 = 1e6;
/// No level up with less buffer, none down with as much or more.
const BUFFER_FOR_UP_S: f64 = 10.0;
const BUFFER_FOR_STAYING_S: f64 = 25.0;
/// The share of the media between the play position and the live edge, less a segment, that suffices for a level up.
const LIVE_SHARE: f64 = 0.75;

/// ExoPlayer 2.19.1, `AdaptiveTrackSelection` on `DefaultBandwidthMeter`: a median of segments' rates, each weighted by the
/// square root of its bytes, first byte to last in whole milliseconds; up only above 10 s of buffer, down only below 25 s.
/// It gives up no segment. Its player knows a first throughput by country and kind of network; here it is the 1 Mbit/s that
/// it takes without them. Media already held is never thrown away for better (it may be, in ExoPlayer, above 25 s).
pub struct ExoPlayer {
    /// Weights and rates in bit/s, the oldest first.
    samples: VecDeque<(u64, f64)>,
    by_rate: Vec<(f64, u64)>,
    weight: u64,
    elapsed_ms: u64,
    bytes: u64,
    /// Bytes of segments that took less than a millisecond: they count with the next.
    carried: u64,
    bps: f64,
    share: f64,
}

impl ExoPlayer {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        ExoPlayer {
            samples: VecDeque::new(),
            by_rate: Vec::new(),
            weight: 0,
            elapsed_ms: 0,
            bytes: 0,
            carried: 0,
            bps: tuning.initial.map_or(DEFAULT_BPS, |rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(SHARE),
        }
    }

    fn sample(&mut self, weight: u64, bps: f64) {
        self.samples.push_back((weight, bps));
        self.weight += weight;
        while self.weight > MOST_WEIGHT {
            let excess = self.weight - MOST_WEIGHT;
            let (oldest, _) = self.samples.front_mut().expect("they weigh something");
            let less = excess.min(*oldest);
            *oldest -= less;
            self.weight -= less;
            if *oldest == 0 {
                self.samples.pop_front();
            }
        }
    }

    fn median(&mut self) -> f64 {
        self.by_rate.clear();
        self.by_rate.extend(self.samples.iter().map(|&(weight, bps)| (bps, weight)));
        self.by_rate.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0;
        let middle = self.by_rate.iter().find(|(_, weight)| {
            below += weight;
            2 * below >= self.weight
        });
        middle.map_or(self.bps, |&(bps, _)| bps)
    }
}

impl Rule for ExoPlayer {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let speed = now.live.map_or(1.0, |live| live.speed);
        let ideal = now.ladder.at_most(self.share * self.bps / speed);
        let why = format!("{:.0} % of the median of {:.0} kbit/s", self.share * 100.0, self.bps / 1e3);
        let Some(level) = now.level else {
            return Decision::at_once(ideal, self.bps, why);
        };
        let buffer_s = now.buffer.as_secs_f64();
        let for_up_s = now.live.map_or(BUFFER_FOR_UP_S, |live| {
            let ahead = live.latency.saturating_sub(now.ladder.segment);
            BUFFER_FOR_UP_S.min(LIVE_SHARE * ahead.as_secs_f64())
        });
        if ideal > level && buffer_s < for_up_s {
            let why = format!("{why}, but no level up with {buffer_s:.1} s of buffer, below {for_up_s:.1} s");
            return Decision::at_once(level, self.bps, why);
        }
        if ideal < level && buffer_s >= BUFFER_FOR_STAYING_S {
            let why = format!("{why}, but no level down with {buffer_s:.1} s of buffer, at least 25 s");
            return Decision::at_once(level, self.bps, why);
        }
        Decision::at_once(ideal, self.bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        let ms = fetched.done.saturating_sub(fetched.first_byte).as_nanos() / 1_000_000;
        let bytes = self.carried + fetched.bytes;
        self.elapsed_ms += ms;
        self.bytes += fetched.bytes;
        if ms == 0 {
            self.carried = bytes;
            return;
        }
        self.carried = 0;
        self.sample((bytes as f64).sqrt() as u64, bytes as f64 * 8000.0 / ms as f64);
        if self.elapsed_ms >= ENOUGH_MS || self.bytes >= ENOUGH_BYTES {
            self.bps = self.median();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::telling::{came, ladder, made, playing, s, start};
    use super::super::{Live, Situation};
    use super::*;

    /// 1 Mbit/s by default: 700 kbit/s may be used.
    #[test]
    fn it_starts_from_a_megabit_and_waits_for_enough_samples() {
        let ladder = ladder(&[300, 700, 900, 2000], 4);
        let mut rule = made("exoplayer", Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 1);
        // 1.9 s and 250 kB are not enough.
        rule.fetched(&came(1, 2000.0, 0.0, 0.1, 2.0), &playing(&ladder, 1, 4.0));
        assert_eq!(rule.decide(&playing(&ladder, 1, 20.0)).estimate.unwrap().as_bps(), 1_000_000);
        rule.fetched(&came(1, 4000.0, 4.0, 0.1, 2.1), &playing(&ladder, 1, 8.0));
        assert_eq!(rule.decide(&playing(&ladder, 1, 20.0)).estimate.unwrap().as_bps(), 2_000_000);
    }

    /// The weights are 1000, 500 and 500 (1 MB and twice 250 kB). Half of 2000 is reached at the lowest rate whose
    /// weight with those below it is 1000.
    #[test]
    fn the_median_is_weighted_by_the_roots_of_bytes_and_slides() {
        let ladder = ladder(&[300, 700, 900, 2000], 4);
        let mut rule = made("exoplayer", Tuning::default());
        let now = playing(&ladder, 0, 20.0);
        rule.fetched(&came(0, 8000.0, 0.0, 0.0, 8.0), &now);
        rule.fetched(&came(0, 2000.0, 9.0, 0.0, 0.5), &now);
        rule.fetched(&came(0, 2000.0, 10.0, 0.0, 0.25), &now);
        assert_eq!(rule.decide(&now).estimate.unwrap().as_bps(), 1_000_000);
        // One of 4000 kbit/s more: the first, of 1000 kbit/s, keeps a weight of 500.
        rule.fetched(&came(0, 2000.0, 11.0, 0.0, 0.5), &now);
        assert_eq!(rule.decide(&now).estimate.unwrap().as_bps(), 4_000_000);
    }

    #[test]
    fn the_buffer_holds_back_ups_and_downs() {
        let ladder = ladder(&[300, 700, 900, 2000], 4);
        let mut rule = made("exoplayer", Tuning::default());
        let level =
            |rule: &mut dyn Rule, level, buffer_s| rule.decide(&playing(&ladder, level, buffer_s)).level;
        assert_eq!((level(&mut *rule, 0, 9.9), level(&mut *rule, 0, 10.0)), (0, 1));
        assert_eq!((level(&mut *rule, 3, 24.9), level(&mut *rule, 3, 25.0)), (1, 3));
        // 8 s behind the live edge: 0.75 of 8 - 4 s suffices.
        let live = Some(Live { latency: s(8.0), target: s(8.0), speed: 1.0 });
        let at = |buffer_s| Situation { live, ..playing(&ladder, 0, buffer_s) };
        assert_eq!((rule.decide(&at(2.9)).level, rule.decide(&at(3.0)).level), (0, 1));
    }

    #[test]
    fn what_took_no_millisecond_counts_with_the_next() {
        let ladder = ladder(&[300, 700], 4);
        let mut rule = made("exoplayer", Tuning::default());
        let now = playing(&ladder, 0, 20.0);
        rule.fetched(&came(0, 4000.0, 0.0, 0.0, 0.0005), &now);
        rule.fetched(&came(0, 4000.0, 1.0, 0.0, 1.0), &now);
        assert_eq!(rule.decide(&now).estimate.unwrap().as_bps(), 8_000_000);
    }
}
