//! PANDA, of Li et al. (IEEE JSAC 32(4), 2014; arXiv 1305.0510).

use streamgauge_base::Duration;

use super::{Decision, Fetched, Rule, Situation, Tuning};

/// How fast the rate is probed and how far, 1/s and bit/s.
const KAPPA: f64 = 0.14;
const PROBE_BPS: f64 = 0.3e6;
/// How fast the smoothed rate follows, 1/s.
const ALPHA: f64 = 0.2;
/// The share of the smoothed rate that a level up must leave, beyond the probe.
const EPSILON: f64 = 0.15;
/// How much of the buffer's distance from `BUFFER_S` is made up for by each request.
const BETA: f64 = 0.2;
const BUFFER_S: f64 = 26.0;

/// PANDA, by a rate x that is probed, not measured. It rises by kappa w each second while segments arrive faster, and
/// is drawn back as x exceeds the measured rate: dx/dt = kappa (w - max(0, x - measured + w)). y follows x. A level up
/// must be at most y - w - epsilon y; a level is kept up to y - w. The time between two requests is R d / y + beta (B -
/// 26 s), with R the level's rate, d a segment's length and B the buffer, or the segment's own time if that is longer.
///
/// From other implementations: the equations, w 0.3 Mbit/s, alpha 0.2, epsilon 0.15, beta 0.2, 26 s. Kappa is recalled
/// as 0.14; one of these has 0.28. A step is the time between requests. Long steps must not oscillate, which the paper
/// does not cover. Therefore x is drawn back no lower than the measured rate, and y moves no further than x. The tuning
/// cannot set a share of the throughput.
pub struct Panda {
    probed_bps: Option<f64>,
    smooth_bps: f64,
    /// When the last segment was asked for, and its rate in bit/s.
    last: Option<(Duration, f64)>,
    /// From the last request to the next, at least.
    interval_s: f64,
    initial_bps: Option<f64>,
}

impl Panda {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        Panda {
            probed_bps: None,
            smooth_bps: 0.0,
            last: None,
            interval_s: 0.0,
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
        }
    }

    /// Makes a step of `seconds`, during which segments arrived at `measured_bps`.
    fn step(&mut self, measured_bps: f64, seconds: f64) {
        let Some(probed) = self.probed_bps else {
            (self.probed_bps, self.smooth_bps) = (Some(measured_bps), measured_bps);
            return;
        };
        let change = KAPPA * seconds * (PROBE_BPS - (probed - measured_bps + PROBE_BPS).max(0.0));
        let probed = probed + change.max((measured_bps - probed).min(0.0));
        self.smooth_bps += (ALPHA * seconds).min(1.0) * (probed - self.smooth_bps);
        self.probed_bps = Some(probed);
    }
}

impl Rule for Panda {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let ladder = now.ladder;
        let (Some(before), Some((asked, measured_bps))) = (now.level, self.last) else {
            let level = self.initial_bps.map_or(0, |bps| ladder.at_most(bps - PROBE_BPS - EPSILON * bps));
            return Decision::at_once(level, self.initial_bps, "the first");
        };
        let since_s = now.now.saturating_sub(asked).as_secs_f64();
        let wait_s = (self.interval_s - since_s).max(0.0);
        self.step(measured_bps, since_s + wait_s);
        let y = self.smooth_bps;
        let up = ladder.at_most(y - PROBE_BPS - EPSILON * y);
        let down = ladder.at_most(y - PROBE_BPS);
        let level = before.clamp(up, down);
        let buffer_s = (now.buffer.as_secs_f64() - wait_s).max(0.0);
        let media_s = ladder.bps(level) * ladder.segment.as_secs_f64() / y.max(1.0);
        self.interval_s = (media_s + BETA * (buffer_s - BUFFER_S)).max(0.0);
        let why = format!(
            "probed {:.0} kbit/s, smoothed {:.0}, measured {:.0}: up to level {up}, staying up to {down}",
            self.probed_bps.unwrap_or(0.0) / 1e3,
            y / 1e3,
            measured_bps / 1e3
        );
        let wait = Duration::from_nanos((wait_s * 1e9) as u64);
        Decision { wait, ..Decision::at_once(level, y, why) }
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        self.last = Some((fetched.asked, fetched.throughput_from_request_bps()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::telling::{came, ladder, made, playing, s, start};
    use super::*;

    /// From x = y = 2000 kbit/s. Measured 3000 in a step of 2 s: x rises by 0.14 * 2 * 300 = 84, y by 0.2 * 2 * 84 = 33.6.
    /// Then 2000 in 1 s: x exceeds it by 84: x changes by -0.14 * 84 = -11.76; y by 0.2 * (2072.24 - 2033.6) = 7.728.
    #[test]
    fn the_rate_is_probed_up_and_drawn_back() {
        let mut rule = Panda::new(&Tuning::default());
        rule.step(2e6, 1.0);
        rule.step(3e6, 2.0);
        assert!(
            (rule.probed_bps.unwrap() - 2_084e3).abs() < 1.0 && (rule.smooth_bps - 2_033.6e3).abs() < 1.0
        );
        rule.step(2e6, 1.0);
        assert!((rule.probed_bps.unwrap() - 2_072.24e3).abs() < 1.0);
        assert!((rule.smooth_bps - 2_041.328e3).abs() < 1.0);
        // After a step of any length, x ends at the measured rate, and y at x.
        rule.step(5e5, 60.0);
        assert!((rule.probed_bps.unwrap() - 5e5).abs() < 1e-3 && (rule.smooth_bps - 5e5).abs() < 1e-3);
    }

    /// y = 2000 kbit/s: up to 2000 - 300 - 300 = 1400, kept up to 1700.
    #[test]
    fn a_level_up_must_leave_more_than_one_that_is_kept() {
        let ladder = ladder(&[500, 1400, 1500, 1700, 1800], 2);
        let level = |before| {
            let mut rule = made("panda", Tuning::default());
            rule.fetched(&came(before, 2000.0, 99.0, 0.1, 1.0), &playing(&ladder, before, 10.0));
            rule.decide(&playing(&ladder, before, 10.0)).level
        };
        assert_eq!([0, 1, 2, 3, 4].map(level), [1, 1, 2, 3, 3]);
        assert_eq!(made("panda", Tuning::default()).decide(&start(&ladder)).level, 0);
    }

    /// 1400 kbit/s of 2000, 2 s each: 1.4 s, and 0.2 * (30 - 26) = 0.8 s more with 30 s of buffer. 1 s passes in fetching:
    /// 1.2 s are left. With 18.9 s of buffer 1.4 - 1.42 s: none.
    #[test]
    fn requests_are_as_far_apart_as_media_and_buffer_say() {
        let ladder = ladder(&[500, 1400], 2);
        let wait = |buffer_s: f64| {
            let mut rule = made("panda", Tuning::default());
            rule.fetched(&came(1, 2000.0, 99.0, 0.1, 1.0), &playing(&ladder, 1, buffer_s));
            assert_eq!(rule.decide(&playing(&ladder, 1, buffer_s)).wait, Duration::ZERO);
            rule.fetched(&came(1, 2000.0, 100.0, 0.1, 1.0), &playing(&ladder, 1, buffer_s));
            let decision = rule.decide(&Situation { now: s(101.0), ..playing(&ladder, 1, buffer_s + 1.0) });
            decision.wait.as_secs_f64()
        };
        assert!((wait(30.0) - 1.2).abs() < 1e-6);
        assert_eq!(wait(18.9), 0.0);
    }
}
