use streamgauge_base::BitRate;

use super::super::Ladder;
use super::*;

fn ladder() -> Ladder {
    Ladder {
        rates: [500, 1000, 2000, 4000].map(|kbps| BitRate::from_bps(kbps * 1000)).to_vec(),
        segment: Duration::from_secs(4),
        segments: Some(100),
        sizes: Vec::new(),
    }
}

fn time(s: f64) -> Duration {
    Duration::from_nanos((s * 1e9).round() as u64)
}

fn at<'a>(ladder: &'a Ladder, now_s: f64, segment: usize, buffer_s: f64) -> Situation<'a> {
    Situation {
        now: time(now_s),
        ladder,
        segment,
        level: None,
        buffer: time(buffer_s),
        target: time(18.0),
        playing: segment > 0,
        live: None,
    }
}

/// `bytes` in `took_s` up to `done_s`, the first byte at once.
fn came(segment: usize, level: usize, bytes: u64, done_s: f64, took_s: f64) -> Fetched {
    Fetched {
        segment,
        level,
        bytes,
        asked: time(done_s - took_s),
        first_byte: time(done_s - took_s),
        done: time(done_s),
        seen: time(done_s),
        appended: time(done_s),
        reading: time(took_s),
        abandoned: false,
    }
}

/// A rule that requested segments at `kbps`, with `buffer_s` in the buffer after each.
fn after(active: Active, ladder: &Ladder, samples: &[(f64, f64)]) -> DashJs {
    let mut rule = DashJs::new(active, &Tuning::default());
    for (segment, &(kbps, buffer_s)) in samples.iter().enumerate() {
        let level = rule.decide(&at(ladder, segment as f64, segment, buffer_s)).level;
        // Resource Timing adds 300 bytes.
        let bytes = (kbps * 125.0) as u64 - 300;
        let done_s = segment as f64 + 1.0;
        rule.fetched(&came(segment, level, bytes, done_s, 1.0), &at(ladder, done_s, segment + 1, buffer_s));
    }
    rule
}

#[test]
fn it_starts_at_1000_kbps_or_at_what_is_set() {
    let ladder = ladder();
    let start = |tuning: &Tuning| DashJs::new(Active::Both, tuning).decide(&at(&ladder, 0.0, 0, 0.0)).level;
    assert_eq!(start(&Tuning::default()), 1);
    assert_eq!(start(&Tuning { initial: Some(BitRate::from_bps(2_500_000)), ..Tuning::default() }), 2);
}

#[test]
fn a_tenth_of_the_estimate_is_kept_back() {
    let ladder = ladder();
    for (kbps, level) in [(2222.0, 1), (2223.0, 2), (4445.0, 3)] {
        let decision = after(Active::Throughput, &ladder, &[(kbps, 30.0)]).decide(&at(&ladder, 1.0, 1, 30.0));
        assert_eq!(decision.level, level, "{kbps}");
        assert_eq!(decision.estimate, Some(BitRate::from_bps(kbps as u64 * 1000)));
    }
}

/// 0.7 of 4500 kbit/s, times B/4 s: 5 s are enough for 3937 kbit/s, 5.2 s for 4095. Not within the first two segments.
#[test]
fn a_short_buffer_bounds_the_rate_after_two_segments() {
    let ladder = ladder();
    let level = |samples: &[(f64, f64)], buffer_s| {
        let mut rule = after(Active::Throughput, &ladder, samples);
        rule.decide(&at(&ladder, samples.len() as f64, samples.len(), buffer_s)).level
    };
    assert_eq!(level(&[(4500.0, 30.0); 2], 5.0), 2);
    assert_eq!(level(&[(4500.0, 30.0); 2], 5.2), 3);
    assert_eq!(level(&[(4500.0, 30.0)], 5.0), 3);
    assert_eq!(level(&[(4500.0, 30.0); 2], 0.3), 0);
}

#[test]
fn after_a_drop_among_eight_asks_what_was_dropped_from_is_out_of_reach() {
    let mut history = SwitchHistory::default();
    for (from, to) in [(1, 2), (2, 3), (3, 3), (3, 1), (1, 2), (2, 2), (2, 2)] {
        history.push(from, to);
        assert_eq!(history.propose(), None);
    }
    history.push(2, 3);
    assert_eq!(history.propose().unwrap().0, 2);
    for _ in 0..3 {
        history.push(2, 2);
    }
    // Eight later asks without a drop: it is forgotten.
    assert_eq!(history.propose().unwrap().0, 2);
    history.push(2, 2);
    assert_eq!(history.propose(), None);
}

#[test]
fn dynamic_goes_to_bola_at_12_s_and_back_below_6_s() {
    let ladder = ladder();
    let mut rule = DashJs::new(Active::Both, &Tuning::default());
    for (buffer_s, by_bola) in
        [(0.0, false), (11.9, false), (12.0, true), (6.0, true), (5.9, false), (11.9, false)]
    {
        rule.decide(&at(&ladder, 1.0, 1, buffer_s));
        assert_eq!(rule.by_bola, by_bola, "{buffer_s}");
    }
}

/// 18 s for four levels: g = ln 8/0.8 = 2.599302, V = 3.847187; the top level from V (g + R_3 u_2 - R_2 u_3)/(R_3 - R_2)
/// = 10 + V (2 ln 4 - ln 8) = 12.666667 s, by the score that 5.2.1 has.
#[test]
fn bola_prefers_the_top_from_12_7_s() {
    let ladder = ladder();
    let level = |buffer_s| {
        let mut rule = after(Active::Bola, &ladder, &[(9000.0, 8.0), (9000.0, 8.0), (9000.0, 8.0)]);
        rule.bola.placeholder_of(0.0);
        rule.decide(&at(&ladder, 3.0, 3, buffer_s)).level
    };
    assert_eq!((level(12.66), level(12.67)), (2, 3));
}

/// A segment of level 3, 2 MB, at 1000 kbit/s from 0.1 s on.
fn slow(rule: &mut DashJs, ladder: &Ladder, buffer_s: f64) -> Option<(f64, usize)> {
    (1..100).map(|look| look as f64 / 10.0).find_map(|s| {
        let progress = Progress {
            segment: 5,
            level: 3,
            bytes: ((s - 0.1) * 125_000.0).round() as u64,
            of: Some(2_000_000),
            asked: Duration::ZERO,
            first_byte: Some(time(0.1)),
        };
        rule.abandon(&progress, &at(ladder, s, 5, buffer_s)).map(|to| (s, to.level))
    })
}

/// Whole in 16 s, more than 7.2: given up once more than 500 ms have passed since the first report, and six reports.
#[test]
fn a_slow_segment_is_given_up_and_nothing_higher_is_asked_for_10_s_long() {
    let ladder = ladder();
    let fast = || after(Active::Throughput, &ladder, &[(9000.0, 8.0); 3]);
    assert_eq!(slow(&mut fast(), &ladder, 18.1), None);
    let mut rule = fast();
    assert_eq!(slow(&mut rule, &ladder, 18.0), Some((0.8, 1)));
    assert_eq!(rule.decide(&at(&ladder, 10.7, 6, 18.0)).level, 1);
    assert_eq!(rule.decide(&at(&ladder, 10.8, 7, 18.0)).level, 3);

    let off = Tuning { abandons: false, ..Tuning::default() };
    assert_eq!(slow(&mut DashJs::new(Active::Throughput, &off), &ladder, 8.0), None);
}

/// `abandonDict` has the segment's number alone, so that neither its replacement nor a later fetch is given up.
#[test]
fn no_segment_is_given_up_twice() {
    let ladder = ladder();
    let mut rule = after(Active::Throughput, &ladder, &[(9000.0, 8.0); 3]);
    assert!(slow(&mut rule, &ladder, 18.0).is_some());
    assert_eq!(slow(&mut rule, &ladder, 18.0), None);
}

/// 1 kB each 20 ms from 1 s on. The first is reported at once, 2 more at 50 ms, 3 more at 100 ms (one arrives just
/// then). After 50 ms without data the next is reported at once again.
#[test]
fn a_browser_reports_progress_each_50_ms() {
    let ladder = ladder();
    let mut abandonment = Abandonment::default();
    let mut look = |ms: u64, kilobytes: u64| {
        let progress = Progress {
            segment: 5,
            level: 3,
            bytes: kilobytes * 1000,
            of: Some(2_000_000),
            asked: Duration::ZERO,
            first_byte: Some(Duration::from_secs(1)),
        };
        let s = ms as f64 / 1000.0;
        assert_eq!(abandonment.look(&progress, &at(&ladder, s, 5, 8.0)), None);
        let ms = |time: Duration| time.as_nanos() / 1_000_000;
        let again = abandonment.looks_again().map(ms);
        (abandonment.reported().map(|(bytes, time)| (bytes / 1000, ms(time))), again)
    };
    assert_eq!(look(1000, 1), (None, None));
    assert_eq!(look(1020, 2), (None, Some(1050)));
    assert_eq!(look(1040, 3), (None, Some(1050)));
    assert_eq!(look(1050, 3), (Some((2, 50)), None));
    assert_eq!(look(1060, 4), (Some((2, 50)), Some(1100)));
    // Late: the report that was due at 1100 ms was made.
    assert_eq!(look(1120, 5), (Some((3, 100)), Some(1150)));
    assert_eq!(look(1230, 6), (Some((5, 230)), None));
}

#[test]
fn an_empty_buffer_takes_the_placeholder_away() {
    let ladder = ladder();
    let mut rule = after(Active::Bola, &ladder, &[(9000.0, 8.0); 3]);
    let placeholder = |rule: &DashJs| rule.bola.placeholder_s();
    assert!(placeholder(&rule) > 1.0);
    rule.ran_dry();
    assert_eq!(placeholder(&rule), 0.0);
}

#[test]
fn learning_rules_follow_a_steady_throughput() {
    let ladder = ladder();
    for (mut rule, name) in [
        (Box::new(L2a::new(&Tuning::default())) as Box<dyn Rule>, "l2a"),
        (Box::new(LolPlus::new(&Tuning::default())), "lolp"),
    ] {
        let mut levels = Vec::new();
        for segment in 0..40 {
            let done_s = 4.0 * segment as f64 + 2.0;
            let level = rule.decide(&at(&ladder, done_s - 1.0, segment, 8.0)).level;
            levels.push(level);
            rule.fetched(
                &came(segment, level, 2500 * 125, done_s, 1.0),
                &at(&ladder, done_s, segment + 1, 8.0),
            );
        }
        assert_eq!(levels[0], 1, "{name}");
        assert!(levels[20..].iter().all(|&level| level == 2), "{name}: {levels:?}");
    }
}

/// Resource Timing has the cached segment's first fetch: 500 kbit/s in 1 s again, after any later sample.
#[test]
fn what_the_cache_had_is_the_sample_that_it_was() {
    let taken = |cached: bool| {
        let mut measured = Measured::new(&Tuning::default());
        measured.push(&came(0, 0, 62_200, 1.0, 1.0));
        measured.push(&came(1, 1, 499_700, 2.0, 1.0));
        match cached {
            true => measured.push_cached(0, 0),
            false => measured.push(&came(9, 0, 62_200, 3.0, 1.0)),
        }
        (measured.bps(), measured.last_kbps())
    };
    assert_eq!(taken(true), taken(false));
    // A second fetch counts as the first one did. A fetch without data counts nothing.
    let mut measured = Measured::new(&Tuning::default());
    measured.push(&came(0, 0, 62_200, 1.0, 1.0));
    measured.push(&came(0, 0, 62_200, 8.0, 0.1));
    assert_eq!(measured.bps(), Some(500e3));
    measured.push_cached(1, 0);
    assert_eq!(measured.bps(), Some(500e3));
}

/// `lastSegmentWasReplacement`: the placeholder grows by a segment's length.
#[test]
fn a_segment_in_anothers_place_makes_the_placeholder_grow() {
    let ladder = ladder();
    let mut measured = Measured::new(&Tuning::default());
    measured.push(&came(0, 0, 250_000, 1.0, 1.0));
    let mut bola = Bola::new();
    let now = at(&ladder, 20.0, 5, 6.0);
    bola.propose(&now, &measured);
    let mut placeholder = |segment| {
        bola.placeholder_of(1.0);
        bola.fetched(&came(segment, 0, 75_000, 20.0, 0.5), &now);
        bola.placeholder_s()
    };
    let (new, replaced) = (placeholder(5), placeholder(5));
    assert!((replaced - new - ladder.segment.as_secs_f64()).abs() < 1e-9, "{new} {replaced}");
    assert_eq!(placeholder(6), new);
    assert!(placeholder(4) > new);
}
