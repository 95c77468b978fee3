use super::super::telling::{came, coming, ladder, made, playing, s, start};
use super::*;

/// It has fetched something of each level.
fn knowing_all(tuning: &Tuning) -> HlsJs {
    HlsJs { known: (0..10).collect(), ..HlsJs::new(tuning) }
}

fn usual() -> HlsJs {
    knowing_all(&Tuning::default())
}

#[test]
fn it_starts_from_half_a_megabit_or_the_lowest_rate_up_to_five() {
    let level = |kbps: &[u64]| made("hlsjs", Tuning::default()).decide(&start(&ladder(kbps, 4))).level;
    assert_eq!(level(&[100, 400, 500, 600]), 2);
    assert_eq!(level(&[700, 1400]), 0);
    assert_eq!(level(&[6000, 7000]), 0);
    let initial = Some(streamgauge_base::BitRate::from_bps(1_500_000));
    let tuning = Tuning { initial, ..Tuning::default() };
    assert_eq!(made("hlsjs", tuning).decide(&start(&ladder(&[100, 700, 1500], 4))).level, 2);
}

/// One sample is its own average: 2000 kbit in 1.1 s, less the usual 0.1 s to the first byte, is 2000 kbit/s. A level
/// up may need 1400 kbit/s of them, the same level 1900.
#[test]
fn higher_levels_may_need_less() {
    let kbps = [500, 1000, 1399, 1899];
    let ladder = ladder(&kbps, 2);
    let mut rule = usual();
    rule.fetched(&came(0, 2000.0, 0.0, 0.1, 1.1), &playing(&ladder, 0, 2.0));
    let mut level = |before, buffer_s| rule.decide(&playing(&ladder, before, buffer_s)).level;
    assert_eq!((level(0, 20.0), level(2, 20.0), level(3, 20.0)), (2, 2, 3));
    // 0.1 + 1400 * 2 / 1400 = 2.1 s to fetch level 2; 0.1 + 1000 * 2 / 1400 = 1.53 s level 1.
    assert_eq!((level(0, 2.11), level(0, 2.09), level(0, 1.5)), (2, 1, 0));
    // An empty buffer: within a segment's length (2 s, below 4).
    assert_eq!(level(0, 0.0), 1);
}

/// The buffer has 0.3 s. At 2000 kbit/s no level is in time, as the lowest takes 0.1 + 800 / 1900 = 0.5 s. Therefore
/// any level within 4.3 s will do: 0.1 + 6000 / 1900 = 3.3 s. At 5000 the lowest is in time, 0.1 + 800 / 4750 = 0.27 s,
/// and is selected.
#[test]
fn more_throughput_may_mean_a_lower_level() {
    let ladder = ladder(&[200, 1500], 4);
    let level = |kbps| {
        let mut rule = usual();
        rule.fetched(&came(1, kbps, 0.0, 0.1, 1.1), &playing(&ladder, 1, 0.3));
        rule.decide(&playing(&ladder, 1, 0.3)).level
    };
    assert_eq!((level(2000.0), level(5000.0)), (1, 0));
}

/// The wait for the first byte counts as far as it is longer than usual: 2000 kbit in 2.1 s with 1.1 s to the first byte
/// that is 1.1 s on average too, hence 2000 kbit/s; the next of 0.1 s lowers the average.
#[test]
fn what_is_usual_until_the_first_byte_does_not_count() {
    let ladder = ladder(&[500], 2);
    let mut rule = HlsJs::new(&Tuning::default());
    rule.fetched(&came(0, 2000.0, 0.0, 1.1, 2.1), &playing(&ladder, 0, 2.0));
    assert!((rule.bps(&ladder) - 2e6).abs() < 1.0);
    assert!((rule.first_byte_s() - 1.1).abs() < 1e-9);
    rule.fetched(&came(0, 2000.0, 3.0, 0.1, 1.1), &playing(&ladder, 0, 2.0));
    // Weights: 1.4142 e^(-1.21 / 2) = 0.7723 and 1.4142 e^(-0.005) = 1.4072.
    let (r0, r1) = (0.5f64.powf(0.7723 / 9.0), 0.5f64.powf(1.4072 / 9.0));
    let mean = (1.1 * (1.0 - r0) * r1 + 0.1 * (1.0 - r1)) / (1.0 - r0 * r1);
    assert!((rule.first_byte_s() - mean).abs() < 1e-4);
}

/// The fetch of level 2 takes 0.1 + 1400 * 2 / 1400 = 2.1 s at 0.7 of 2000 kbit/s, and 0.1 s more before its first
/// segment.
#[test]
fn a_playlist_that_is_not_there_takes_time() {
    let ladder = ladder(&[500, 1000, 1399], 2);
    for (mut rule, level) in [(usual(), 2), (HlsJs::new(&Tuning::default()), 1)] {
        rule.fetched(&came(0, 2000.0, 0.0, 0.1, 1.1), &playing(&ladder, 0, 2.0));
        assert_eq!(rule.decide(&playing(&ladder, 0, 2.15)).level, level);
    }
}

/// 2000 kbit in 1.1 s, 0.1 s of them to the first byte, and 0.25 s until they were appended: 1600 kbit/s.
#[test]
fn the_time_to_read_a_segment_counts() {
    let ladder = ladder(&[500, 1000], 2);
    let mut rule = usual();
    let fetched = came(0, 2000.0, 0.0, 0.1, 1.1);
    rule.fetched(&Fetched { appended: s(1.35), ..fetched }, &playing(&ladder, 0, 2.0));
    assert!((rule.bps(&ladder) - 1.6e6).abs() < 1.0);
}

/// Level 3 (4 s of 2000 kbit/s), asked for 2.1 s ago, 600 kbit in 2 s: the rest takes 7400 / 300 = 24.7 s. Level 2 would
/// take 0.1 + 4 * 400 / 300 = 5.4 s, level 1 0.1 + 4 * 200 / 300 = 2.8 s, at just its own rate 4.1 s.
#[test]
fn what_comes_too_slowly_is_given_up_for_the_lowest_level() {
    let ladder = ladder(&[100, 200, 400, 2000], 4);
    let (mut rule, now) = (usual(), playing(&ladder, 3, 4.2));
    let slow = coming(3, 600.0, 8000.0, 97.9, 0.1);
    assert_eq!(rule.abandon(&slow, &now).expect("it is given up").level, 0);
    let next = rule.decide(&now);
    assert_eq!((next.level, next.estimate.unwrap().as_bps()), (0, 100_000));
    // After one segment of it, the rule chooses freely again.
    rule.fetched(&came(0, 400.0, 100.0, 0.1, 0.2), &now);
    assert!(rule.decide(&playing(&ladder, 0, 20.0)).level > 0);
    // Never before half a segment's length has passed, with enough buffer, before the first complete segment, or if
    // turned off.
    let early = coming(3, 600.0, 8000.0, 98.1, 0.1);
    assert_eq!(usual().abandon(&early, &now), None);
    assert_eq!(usual().abandon(&slow, &playing(&ladder, 3, 25.0)), None);
    assert_eq!(usual().abandon(&slow, &Situation { now: s(100.0), ..start(&ladder) }), None);
    let tuning = Tuning { abandons: false, ..Tuning::default() };
    assert_eq!(knowing_all(&tuning).abandon(&slow, &now), None);
}

/// With 3 s of buffer level 1 at exactly its rate is not in time. The lowest is next, which takes 2.1 s, and the
/// segment may complete. The same holds with 1 s of buffer, for which no level is in time.
#[test]
fn for_the_lowest_level_nothing_is_given_up() {
    let ladder = ladder(&[100, 200, 400, 2000], 4);
    let slow = |level| coming(level, 600.0, 8000.0, 97.9, 0.1);
    for buffer_s in [3.0, 1.0] {
        let (mut rule, now) = (usual(), playing(&ladder, 3, buffer_s));
        for seconds in [0.0, 5.0, 20.0] {
            assert_eq!(rule.abandon(&slow(3), &Situation { now: now.now + s(seconds), ..now }), None);
        }
        assert_eq!(rule.decide(&playing(&ladder, 3, 25.0)).level, 0);
    }
    // Level 1 has no other below but the lowest: nothing is judged.
    let mut rule = usual();
    assert_eq!(rule.abandon(&slow(1), &playing(&ladder, 1, 1.0)), None);
    assert_eq!(rule.forced, None);
}

/// The rest takes 1350 / 300 = 4.5 s, less than twice the 2.8 s of level 1: it is given up after 2.8 s more.
#[test]
fn what_comes_almost_in_time_gets_as_long_as_the_other_would_take() {
    let ladder = ladder(&[100, 200, 400, 2000], 4);
    let (mut rule, now) = (usual(), playing(&ladder, 3, 4.2));
    let slow = coming(3, 600.0, 1950.0, 97.9, 0.1);
    let mut at = |seconds| rule.abandon(&slow, &Situation { now: now.now + s(seconds), ..now });
    assert_eq!((at(0.0), at(2.7)), (None, None));
    assert_eq!(at(2.8).expect("it is given up").level, 0);
}

/// 500 kbit/s at first. Level 3 delivered nothing for 2.1 s: 8000 / 500 + 0.1 = 16.1 s at least, while the buffer lasts
/// 5 s. Level 2 takes 0.1 + 4 * 400 / 500 = 3.3 s.
#[test]
fn what_does_not_come_at_all_is_given_up() {
    let ladder = ladder(&[100, 200, 400, 2000], 4);
    let mut rule = usual();
    let nothing = coming(3, 0.0, 8000.0, 97.9, 0.1);
    assert_eq!(rule.abandon(&nothing, &playing(&ladder, 3, 5.0)).expect("given up").level, 0);
    assert_eq!(rule.bps(&ladder), 100e3);
}
