//! Reports to rules, for tests.

use streamgauge_base::{BitRate, Duration};

use super::{Fetched, Ladder, Progress, Rule, Situation, Tuning, rule};

/// A rule of that name.
pub fn made(name: &str, tuning: Tuning) -> Box<dyn Rule> {
    (rule(name).expect("there is one").make)(&tuning)
}

/// Seconds.
pub fn s(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

/// Levels of these rates in kbit/s, a hundred segments of `segment_s` each.
pub fn ladder(kbps: &[u64], segment_s: u64) -> Ladder {
    Ladder {
        rates: kbps.iter().map(|kbps| BitRate::from_bps(kbps * 1000)).collect(),
        segment: Duration::from_secs(segment_s),
        segments: Some(100),
        sizes: Vec::new(),
    }
}

/// Before anything was fetched.
pub fn start(ladder: &Ladder) -> Situation<'_> {
    Situation {
        now: Duration::ZERO,
        ladder,
        segment: 0,
        level: None,
        buffer: Duration::ZERO,
        target: s(30.0),
        playing: false,
        live: None,
    }
}

/// While media plays: `buffer_s` held, the segment before of `level`.
pub fn playing(ladder: &Ladder, level: usize, buffer_s: f64) -> Situation<'_> {
    Situation {
        now: s(100.0),
        segment: 10,
        level: Some(level),
        buffer: s(buffer_s),
        playing: true,
        ..start(ladder)
    }
}

/// `kbit` asked for at `asked_s`: `wait_s` to the first byte, `took_s` to the last.
pub fn came(level: usize, kbit: f64, asked_s: f64, wait_s: f64, took_s: f64) -> Fetched {
    Fetched {
        segment: 0,
        level,
        bytes: (kbit * 125.0).round() as u64,
        asked: s(asked_s),
        first_byte: s(asked_s + wait_s),
        done: s(asked_s + took_s),
        seen: s(asked_s + took_s),
        appended: s(asked_s + took_s),
        reading: s(took_s),
        abandoned: false,
    }
}

/// `kbit` of `of_kbit` so far, asked for at `asked_s`, first byte after `wait_s`.
pub fn coming(level: usize, kbit: f64, of_kbit: f64, asked_s: f64, wait_s: f64) -> Progress {
    Progress {
        segment: 10,
        level,
        bytes: (kbit * 125.0).round() as u64,
        of: Some((of_kbit * 125.0).round() as u64),
        asked: s(asked_s),
        first_byte: (kbit > 0.0).then(|| s(asked_s + wait_s)),
    }
}
