//! hls.js.

use std::collections::BTreeSet;

use streamgauge_base::Duration;

use super::estimate::{Ewma, EwmaPair};
use super::{Decision, Fetched, Ladder, Progress, Rule, Situation, Tuning};

/// Half-lives of the throughput's averages (`abrEwmaFastVoD`, `abrEwmaSlowVoD`), in seconds of fetching.
const HALF_LIVES_S: (f64, f64) = (3.0, 9.0);
/// The shares of the throughput that a level may need: the previous level and lower ones, and higher ones
/// (`abrBandWidthFactor`, `abrBandWidthUpFactor`).
const SHARES: (f64, f64) = (0.95, 0.7);
/// The throughput at first is the lowest level's rate, but between these (`abrEwmaDefaultEstimate`, `...Max`).
const DEFAULT_BPS: (f64, f64) = (500e3, 5e6);
/// Time to the first byte before one was seen.
const DEFAULT_FIRST_BYTE_S: f64 = 0.1;
const LEAST_FIRST_BYTE_S: f64 = 0.005;
/// The time by which a fetch may outlast the buffer, at first and where no level is in time (`maxStarvationDelay`).
const MOST_STARVATION_S: f64 = 4.0;
/// The least weight of an average that counts.
const LEAST_WEIGHT_S: f64 = 0.001;

/// hls.js 1.7.4, `abr-controller` on `ewma-bandwidth-estimator`, with the options' defaults.
///
/// **Throughput** is the lower of two averages of segments' rates. The time of a sample ends when the segment was read.
/// The usual part of the time to the first byte is subtracted.
///
/// **A level is suitable** if it needs at most its share of the throughput and its fetch ends before the buffer is
/// empty. The fetch includes the level's playlist before its first segment. If no level is suitable, the buffer may be
/// empty for 4 s or a segment's length.
///
/// **A segment is too slow** if, half a segment's length after the request, the rest takes longer than the buffer lasts
/// and a lower level would take less. That level is next. If it is not the lowest, the segment is given up: at once if
/// the rest takes twice the other's time, else after the other's time. An abandoned segment is fetched again at the
/// lowest level (`abortAndSwitch`).
///
/// Not modelled: the transfer time of a playlist, errors, codecs, screen sizes, and a start at the first level of the
/// playlist (a ladder is ascending).
pub struct HlsJs {
    throughput: EwmaPair,
    first_byte: Ewma,
    /// The throughput while there are no samples; unset before the first decision.
    default_bps: Option<f64>,
    shares: (f64, f64),
    abandons: bool,
    /// Levels that have had a segment, so that their playlists are there.
    known: BTreeSet<usize>,
    /// The level of the next segment, since the previous one was too slow.
    forced: Option<usize>,
    /// The segment that was judged too slow, by when it was asked for, and when it is given up if it is.
    judged: Option<(Duration, Option<Duration>)>,
}

impl HlsJs {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        HlsJs {
            throughput: EwmaPair::new(HALF_LIVES_S.0, HALF_LIVES_S.1),
            first_byte: Ewma::new(HALF_LIVES_S.1),
            default_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            shares: tuning.safety_factor.map_or(SHARES, |share| (share, share)),
            abandons: tuning.abandons,
            known: BTreeSet::new(),
            forced: None,
            judged: None,
        }
    }

    fn bps(&self, ladder: &Ladder) -> f64 {
        let known = self.throughput.lower().filter(|_| self.throughput.weight() >= LEAST_WEIGHT_S);
        let first = || ladder.bps(0).min(DEFAULT_BPS.1).max(DEFAULT_BPS.0);
        known.or(self.default_bps).unwrap_or_else(first)
    }

    fn first_byte_s(&self) -> f64 {
        let known = self.first_byte.mean().filter(|_| self.first_byte.weight() >= LEAST_WEIGHT_S);
        known.unwrap_or(DEFAULT_FIRST_BYTE_S)
    }

    fn sample(&mut self, seconds: f64, bytes: u64) {
        if bytes > 0 {
            let seconds = seconds.max((bytes as f64 / 1e8).min(0.05));
            self.throughput.push(bytes as f64 * 8.0 / seconds, seconds);
        }
    }

    fn sample_first_byte(&mut self, seconds: f64) {
        let weight = std::f64::consts::SQRT_2 * libm::exp(-seconds * seconds / 2.0);
        self.first_byte.push(seconds.max(LEAST_FIRST_BYTE_S), weight);
    }

    /// How long the level's playlist takes: as long as a first byte, if it is not there yet.
    fn playlist_s(&self, level: usize) -> f64 {
        if self.known.contains(&level) { 0.0 } else { self.first_byte_s() }
    }

    fn begin_anew(&mut self, bps: f64) {
        self.throughput = EwmaPair::new(HALF_LIVES_S.0, HALF_LIVES_S.1);
        self.first_byte = Ewma::new(HALF_LIVES_S.1);
        self.default_bps = Some(bps);
    }

    /// Gives up the segment in flight: the lowest level is next, and its rate is the throughput.
    fn give_up(&mut self, now: &Situation<'_>, why: String) -> Decision {
        let bps = now.ladder.bps(0);
        self.begin_anew(bps);
        self.forced = Some(0);
        Decision::at_once(0, bps, why)
    }

    /// Returns the highest level up to `highest` that needs at most its share of `bps` and has a fetch of less than
    /// `within_s`.
    fn best(&self, now: &Situation<'_>, bps: f64, highest: usize, within_s: f64, by: &By) -> Option<usize> {
        let (before, first_byte_s) = (now.level.unwrap_or(0), self.first_byte_s());
        (0..=highest).rev().find(|&level| {
            let usable = bps * if level > before { by.shares.1 } else { by.shares.0 };
            let fetch_s =
                first_byte_s + now.ladder.bps(level) * by.segment_s / usable + self.playlist_s(level);
            usable >= now.ladder.bps(level) && (now.live.is_some() || fetch_s < within_s)
        })
    }
}

/// The criteria for a level.
struct By {
    /// The shares of the throughput that the previous level and lower ones, and higher ones, may need.
    shares: (f64, f64),
    segment_s: f64,
}

/// How long the buffer lasts.
fn lasts_s(now: &Situation<'_>) -> f64 {
    now.buffer.as_secs_f64() / now.live.map_or(1.0, |live| live.speed)
}

impl Rule for HlsJs {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let (bps, top) = (self.bps(now.ladder), now.ladder.top());
        let kbps = bps / 1e3;
        if now.level.is_none() {
            // Segments are taken to be 1 s long while no playlist of a level was read.
            let by = By { shares: (1.0, 1.0), segment_s: 1.0 };
            let level = self.best(now, bps, top, lasts_s(now) / 2.0 + MOST_STARVATION_S, &by);
            return Decision::at_once(
                level.unwrap_or(0),
                bps,
                format!("the first: the throughput is taken to be {kbps:.0} kbit/s"),
            );
        }
        if let Some(level) = self.forced {
            return Decision::at_once(
                level,
                bps,
                format!("throughput {kbps:.0} kbit/s, after what came too slowly"),
            );
        }
        let by = By { shares: self.shares, segment_s: now.ladder.segment.as_secs_f64() };
        let lasts_s = lasts_s(now);
        if lasts_s > 0.0
            && let Some(level) = self.best(now, bps, top, lasts_s, &by)
        {
            let why = format!("throughput {kbps:.0} kbit/s, in time for a buffer of {lasts_s:.1} s");
            return Decision::at_once(level, bps, why);
        }
        let within_s = lasts_s + MOST_STARVATION_S.min(by.segment_s);
        let why = format!("throughput {kbps:.0} kbit/s, not in time for a buffer of {lasts_s:.1} s");
        Decision::at_once(self.best(now, bps, top, within_s, &by).unwrap_or(0), bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        // An abandoned segment was counted when it was given up.
        if fetched.abandoned {
            return;
        }
        let waited_s = fetched.first_byte.saturating_sub(fetched.asked).as_secs_f64();
        let took_s = fetched.appended.saturating_sub(fetched.asked).as_secs_f64();
        self.known.insert(fetched.level);
        self.forced = self.forced.filter(|level| *level != fetched.level);
        self.sample_first_byte(waited_s);
        self.sample(took_s - waited_s.min(self.first_byte_s()), fetched.bytes);
    }

    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        let is_whole = progress.bytes > 0 && progress.of == Some(progress.bytes);
        if !self.abandons || progress.level == 0 || is_whole || now.level.is_none() {
            return None;
        }
        if let Some((_, due)) = self.judged.filter(|(asked, _)| *asked == progress.asked) {
            let why = || "it still comes too slowly".to_owned();
            return due.filter(|due| now.now >= *due).map(|_| self.give_up(now, why()));
        }
        let (segment_s, first_byte_s) = (now.ladder.segment.as_secs_f64(), self.first_byte_s());
        let (lasts_s, loading_s) = (lasts_s(now), now.now.saturating_sub(progress.asked).as_secs_f64());
        let speed = now.live.map_or(1.0, |live| live.speed);
        if loading_s <= first_byte_s.max(segment_s / (2.0 * speed)) {
            return None;
        }
        let bps = self.bps(now.ladder);
        let waited_s = progress.first_byte.filter(|_| progress.bytes > 0);
        let waited_s = waited_s.map(|at| at.saturating_sub(progress.asked).as_secs_f64());
        let bits = progress.bytes as f64 * 8.0;
        let declared = now.ladder.bps(progress.level) * segment_s;
        let of = progress.of.map_or(declared, |bytes| bytes as f64 * 8.0).max(bits);
        let coming_bps = waited_s.map(|waited_s| match loading_s - waited_s {
            streaming_s if streaming_s < 0.001 => bits / loading_s.min(bits / bps),
            streaming_s => bits / streaming_s,
        });
        let rest_s = coming_bps.map_or_else(|| of / bps + first_byte_s, |coming| (of - bits) / coming);
        if rest_s <= lasts_s {
            return None;
        }
        let at_bps = coming_bps.unwrap_or(bps);
        let (mut level, mut other_s) = (0, f64::INFINITY);
        for lower in (1..progress.level).rev() {
            other_s = first_byte_s + segment_s * now.ladder.bps(lower) / at_bps + self.playlist_s(lower);
            if other_s < lasts_s.min(segment_s + first_byte_s) {
                level = lower;
                break;
            }
        }
        if other_s >= rest_s || other_s > 10.0 * segment_s {
            return None;
        }
        match waited_s {
            Some(waited_s) => self.sample(loading_s - waited_s.min(first_byte_s), progress.bytes),
            None => self.sample_first_byte(loading_s),
        }
        let rate = now.ladder.bps(level);
        if self.bps(now.ladder) * self.shares.1 > rate {
            self.begin_anew(rate);
        }
        let by = By { shares: (1.0, 1.0), segment_s };
        let level = self.best(now, rate, level, lasts_s, &by).unwrap_or(level);
        self.forced = Some(level);
        let is_at_once = rest_s > 2.0 * other_s;
        let due = if is_at_once { now.now } else { now.now + Duration::from_nanos((other_s * 1e9) as u64) };
        // The lowest level is next, but it does not replace the segment in flight.
        self.judged = Some((progress.asked, (level > 0).then_some(due)));
        let why = format!(
            "the rest takes {rest_s:.1} s at {:.0} kbit/s, the buffer lasts {lasts_s:.1} s",
            at_bps / 1e3
        );
        (level > 0 && is_at_once).then(|| self.give_up(now, why))
    }
}

#[cfg(test)]
mod tests;
