//! Buffer-based adaptation, of Huang et al. (SIGCOMM'14).

use super::{Decision, Fetched, Ladder, Rule, Situation, Tuning};

/// The paper's buffer (section 4), and how much of it is held with the lowest rate and with the highest.
const BUFFER_S: f64 = 240.0;
const RESERVOIR_S: f64 = 90.0;
const UPPER_S: f64 = 216.0;
/// Between these the reservoir is computed, from so much media to come (section 5.1; recalled).
const RESERVOIRS_S: (f64, f64) = (8.0, 140.0);
const AHEAD_S: f64 = 480.0;
/// At start, how much of a segment the buffer must gain by it for a level up: with an empty buffer, and with the cushion
/// full (section 6; recalled).
const GAINS: (f64, f64) = (0.875, 0.5);

/// How much smaller the player's buffer is than the paper's.
fn scale(now: &Situation<'_>) -> f64 {
    (now.target.as_secs_f64() / BUFFER_S).min(1.0)
}

/// Where `buffer_s` lies between `reservoir_s` and `upper_s`: 0 up to the one, 1 from the other.
fn cushion(buffer_s: f64, reservoir_s: f64, upper_s: f64) -> f64 {
    ((buffer_s - reservoir_s) / (upper_s - reservoir_s)).clamp(0.0, 1.0)
}

/// Algorithm 1. The level moves away from `before` only once `mapped` reaches the need of the next level up or down. It
/// then moves to the level just short of `mapped`. `needs` rises with the level.
fn stepped(top: usize, before: usize, mapped: f64, needs: impl Fn(usize) -> f64) -> usize {
    let before = before.min(top);
    if mapped >= needs((before + 1).min(top)) {
        (0..=top).rev().find(|&level| needs(level) < mapped).unwrap_or(0)
    } else if mapped <= needs(before.saturating_sub(1)) {
        (0..=top).find(|&level| needs(level) > mapped).unwrap_or(top)
    } else {
        before
    }
}

fn first(ladder: &Ladder, tuning: &Tuning) -> Decision {
    tuning.initial.map_or_else(
        || Decision::at_once(0, None, "the first: the lowest"),
        |rate| {
            let bps = rate.as_bps() as f64;
            Decision::at_once(ladder.at_most(bps), bps, "the first, of the throughput that was set")
        },
    )
}

/// BBA-0 (section 4). The buffer alone is mapped to a rate: the lowest up to 90 s, then linear to the highest at 216 s
/// of 240 s. A player that holds less media has all of these scaled to its target, which the paper does not cover. The
/// algorithm and its constants are recalled and agree with other implementations; the paper's text was not at hand.
pub struct Bba0 {
    tuning: Tuning,
}

impl Bba0 {
    /// It has no history.
    pub fn new(tuning: &Tuning) -> Self {
        Bba0 { tuning: *tuning }
    }
}

impl Rule for Bba0 {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let Some(before) = now.level else {
            return first(now.ladder, &self.tuning);
        };
        let (ladder, top, scale) = (now.ladder, now.ladder.top(), scale(now));
        let (buffer_s, reservoir_s, upper_s) =
            (now.buffer.as_secs_f64(), RESERVOIR_S * scale, UPPER_S * scale);
        if buffer_s <= reservoir_s {
            let why = format!("{buffer_s:.1} s of buffer, not above the reservoir of {reservoir_s:.1} s");
            return Decision::at_once(0, None, why);
        }
        if buffer_s >= upper_s {
            let why = format!("{buffer_s:.1} s of buffer, at least {upper_s:.1} s: the highest");
            return Decision::at_once(top, None, why);
        }
        let share = cushion(buffer_s, reservoir_s, upper_s);
        let mapped = ladder.bps(0) + share * (ladder.bps(top) - ladder.bps(0));
        let why = format!("{buffer_s:.1} s of buffer are mapped to {:.0} kbit/s", mapped / 1e3);
        Decision::at_once(stepped(top, before, mapped, |level| ladder.bps(level)), None, why)
    }
}

/// BBA-2 (sections 5 and 6). The buffer is mapped to a size between the mean segment's at the lowest rate and at the
/// highest. The rule compares it with the sizes of the next segment. The reservoir is the need of the coming segments
/// of the lowest level beyond its rate, between 8 and 140 s. At the start the level rises by one whenever a segment
/// arrived so fast that the buffer gained 0.875 of its length. This share falls to 0.5 as the cushion fills. The start
/// ends when the buffer shrinks or the map yields more. The constants are scaled as in [`Bba0`]. Recalled and not
/// checked: 8, 140 and 480 s, 0.875 and 0.5, and the two ends of the start. Some of the implementations at hand have
/// the same 8, 140 and 0.875, others their own.
pub struct Bba2 {
    tuning: Tuning,
    is_starting: bool,
    /// How long the last segment took to come.
    took_s: Option<f64>,
}

impl Bba2 {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        Bba2 { tuning: *tuning, is_starting: true, took_s: None }
    }
}

/// Returns the need of the lowest level's coming segments beyond its rate.
fn reservoir_s(now: &Situation<'_>, scale: f64) -> f64 {
    let (ladder, segment_s) = (now.ladder, now.ladder.segment.as_secs_f64());
    let ahead = (AHEAD_S * scale / segment_s) as usize;
    let told = ladder.sizes.first().map_or(&[][..], |sizes| sizes.get(now.segment..).unwrap_or(&[]));
    let beyond = told.iter().take(ahead).map(|&bytes| bytes as f64 * 8.0 / ladder.bps(0) - segment_s);
    beyond.sum::<f64>().clamp(RESERVOIRS_S.0 * scale, RESERVOIRS_S.1 * scale)
}

impl Rule for Bba2 {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let Some(before) = now.level else {
            return first(now.ladder, &self.tuning);
        };
        let (ladder, top, scale) = (now.ladder, now.ladder.top(), scale(now));
        let segment_s = ladder.segment.as_secs_f64();
        let (buffer_s, reservoir_s, upper_s) =
            (now.buffer.as_secs_f64(), reservoir_s(now, scale), UPPER_S * scale);
        let mean_bytes = |level| ladder.bps(level) * segment_s / 8.0;
        let share = cushion(buffer_s, reservoir_s, upper_s);
        let mapped = mean_bytes(0) + share * (mean_bytes(top) - mean_bytes(0));
        let by_map = if buffer_s <= reservoir_s {
            0
        } else if buffer_s >= upper_s {
            top
        } else {
            stepped(top, before, mapped, |level| ladder.bytes(level, now.segment))
        };
        if self.is_starting {
            let gained_s = segment_s - self.took_s.unwrap_or(segment_s);
            let needed = GAINS.0 - (GAINS.0 - GAINS.1) * (buffer_s / upper_s).clamp(0.0, 1.0);
            let level = if gained_s > needed * segment_s { (before + 1).min(top) } else { before.min(top) };
            self.is_starting = gained_s >= 0.0 && by_map <= level;
            if self.is_starting {
                let why = format!(
                    "start: the buffer gained {gained_s:.2} s by the last segment, {:.2} s make a level up",
                    needed * segment_s
                );
                return Decision::at_once(level, None, why);
            }
        }
        let why = format!(
            "{buffer_s:.1} s of buffer, {reservoir_s:.1} s of them reservoir, are mapped to {:.0} kB",
            mapped / 1e3
        );
        Decision::at_once(by_map, None, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        self.took_s = Some(fetched.done.saturating_sub(fetched.asked).as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::telling::{came, ladder, made, playing, s, start};
    use super::*;

    const RATES: [u64; 5] = [235, 560, 1050, 1750, 3000];

    fn level(name: &str, target_s: f64, before: usize, buffer_s: f64) -> usize {
        let ladder = ladder(&RATES, 4);
        let now = Situation { target: s(target_s), ..playing(&ladder, before, buffer_s) };
        made(name, Tuning::default()).decide(&now).level
    }

    /// f(B) = 235 + 2765 (B - 90) / 126 kbit/s. From level 1 (560) it reaches 1050 at 127.14 s, where the level just short
    /// of it is still 560; 1750 at 159.04 s. From level 3 it falls to 1050 at 127.14 s, to 560 at 104.81 s.
    #[test]
    fn bba_0_maps_the_buffer_to_a_rate_with_steps() {
        assert_eq!(level("bba-0", 240.0, 4, 90.0), 0);
        assert_eq!(level("bba-0", 240.0, 0, 216.0), 4);
        assert_eq!(level("bba-0", 240.0, 1, 127.1), 1);
        assert_eq!(level("bba-0", 240.0, 1, 127.2), 2);
        assert_eq!(level("bba-0", 240.0, 1, 159.1), 3);
        assert_eq!(level("bba-0", 240.0, 3, 127.2), 3);
        assert_eq!(level("bba-0", 240.0, 3, 127.1), 2);
        assert_eq!(level("bba-0", 240.0, 3, 104.9), 2);
        assert_eq!(level("bba-0", 240.0, 3, 104.8), 1);
        // A tenth of the buffer, a tenth of everything; more buffer than the paper's changes nothing.
        assert_eq!((level("bba-0", 24.0, 1, 12.71), level("bba-0", 24.0, 1, 12.72)), (1, 2));
        assert_eq!((level("bba-0", 480.0, 1, 127.1), level("bba-0", 480.0, 1, 127.2)), (1, 2));
        assert_eq!(made("bba-0", Tuning::default()).decide(&start(&ladder(&RATES, 4))).level, 0);
    }

    /// Segments of 4 s. With 24 s of buffer the cushion is full at 21.6 s: at 2.16 s of buffer a tenth of the way from
    /// 0.875 to 0.5, 0.8375 * 4 = 3.35 s must be gained: it may take 0.65 s.
    #[test]
    fn bba_2_starts_by_what_segments_gain() {
        let ladder = ladder(&RATES, 4);
        let level = |took_s: &[f64]| {
            let mut rule = made("bba-2", Tuning::default());
            let mut before = rule.decide(&start(&ladder)).level;
            for &took_s in took_s {
                let now = Situation { target: s(24.0), ..playing(&ladder, before, 2.16) };
                rule.fetched(&came(before, 1000.0, 0.0, 0.1, took_s), &now);
                before = rule.decide(&now).level;
            }
            before
        };
        assert_eq!((level(&[0.64]), level(&[0.66]), level(&[0.1, 0.1, 0.1])), (1, 0, 3));
        // One that took longer than it plays ends the start: the map has level 1 for that buffer, ever after.
        assert_eq!((level(&[0.1, 0.1, 4.1]), level(&[0.1, 0.1, 4.1, 0.1, 0.1])), (1, 1));
    }

    /// A scale of 1/10: the reservoir is 0.8 s at least, the map linear from there to 21.6 s. At 11.2 s it is half way:
    /// (235 + 3000) / 2 * 4 / 8 = 808.75 kB; the next segment's sizes are twice the usual, so that is short of level 2's.
    #[test]
    fn bba_2_holds_the_map_against_the_next_segment() {
        let usual = ladder(&RATES, 4);
        let sizes = |times: u64| RATES.iter().map(|kbps| vec![kbps * 500 * times; 100]).collect();
        let level = |ladder: &Ladder, before| {
            let mut rule = made("bba-2", Tuning::default());
            let now = Situation { target: s(24.0), ..playing(ladder, before, 11.2) };
            rule.fetched(&came(before, 1000.0, 0.0, 0.1, 4.1), &now);
            rule.decide(&now).level
        };
        assert_eq!(level(&usual, 1), 2);
        let same = Ladder { sizes: sizes(1), ..usual.clone() };
        assert_eq!(level(&same, 1), 2);
        let mut double = same.clone();
        double.sizes.iter_mut().for_each(|sizes| sizes[10] *= 2);
        assert_eq!(level(&double, 1), 1);
    }

    /// 12 segments of 4 s, each 1 s longer to fetch at the lowest rate than it plays: 12 s, between 0.8 and 14 s.
    #[test]
    fn the_reservoir_is_what_is_needed_beyond_the_lowest_rate() {
        let mut ladder = ladder(&RATES, 4);
        ladder.sizes = vec![vec![235 * 125 * 5; 100]];
        let now = Situation { target: s(24.0), ..playing(&ladder, 0, 10.0) };
        assert!((reservoir_s(&now, 0.1) - 12.0).abs() < 1e-9);
        let last = Situation { segment: 98, ..now };
        assert!((reservoir_s(&last, 0.1) - 2.0).abs() < 1e-9);
        assert!((reservoir_s(&Situation { segment: 100, ..now }, 0.1) - 0.8).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn more_buffer_never_means_a_lower_level(
            before in 0usize..5, less in 0.0..300.0f64, more in 0.0..300.0f64, target_s in 10.0..300.0f64,
        ) {
            let (less, more) = (less.min(more), less.max(more));
            prop_assert!(level("bba-0", target_s, before, less) <= level("bba-0", target_s, before, more));
        }
    }
}
