//! Fast switching: a shown or held segment is fetched again at another level.

use super::playing::{adds_up, shows_all};
use super::*;
use crate::dash::origin::{MASTER, RANGES_MASTER, RANGES_MPD, TIMELINE_MPD};
use crate::dash::player::settings::PlayerKind;

const RATES: [u64; 4] = [300_000, 700_000, 1_500_000, 3_000_000];

/// The segment of a report: its number and its rate in bit/s.
fn told(event: &Event) -> (u64, f64) {
    // "segment 7 at 2000 kbit/s: ..." and "segment 7".
    let words: Vec<&str> = event.reason.split(' ').collect();
    let rate = words.get(3).map_or(event.value.unwrap(), |kbps| kbps.parse::<f64>().unwrap() * 1e3);
    (words[1].parse().unwrap(), rate)
}

/// For each segment that was fetched again: its number and its rates, bit/s.
fn fetched_again(events: &[Event]) -> Vec<(u64, Vec<f64>)> {
    let mut of: std::collections::BTreeMap<u64, Vec<f64>> = std::collections::BTreeMap::new();
    for event in named(events, "segment_fetched") {
        let (number, rate) = told(event);
        of.entry(number).or_default().push(rate);
    }
    of.into_iter().filter(|(_, rates)| rates.len() > 1).collect()
}

/// dash.js as it ships, on segments of so many seconds.
fn dash_js(seconds: u64, segment: u64, target: &str, bits_per_s: u64) -> Vec<Event> {
    let ladder = ladder_of(&RATES, seconds, segment);
    play(
        presented(&ladder),
        DashPlayerSettings::of(PlayerKind::DashJs),
        target,
        pipe(bits_per_s),
        2 * seconds,
    )
}

/// On a link of 6 Mbit/s dash.js begins at 700 kbit/s, finds that 3 Mbit/s fit, and returns to the segment that it
/// shows. Recorded with dash.js 5.2.1 in Chromium and segments of 4 s: it then continues with the next segment, and
/// does not fetch that one, or the one after it, again and again.
#[test]
fn a_segment_that_is_fetched_again_is_shown_from_then_on() {
    for segment in [2, 4, 6] {
        for target in [MPD, TIMELINE_MPD] {
            let events = dash_js(72, segment, target, 6_000_000);
            shows_all(&events, 1_800);
            adds_up(&events, 72.0);
            let fetched: Vec<(Instant, (u64, f64))> =
                named(&events, "segment_fetched").iter().map(|event| (event.at, told(event))).collect();
            assert_eq!([fetched[0].1, fetched[1].1], [(0, 7e5), (0, 3e6)], "{segment}");
            let shown: Vec<(Instant, (u64, f64))> =
                named(&events, "segment_shown").iter().map(|event| (event.at, told(event))).collect();
            // From its arrival on, not from the segment after it on.
            assert_eq!([shown[0].1, shown[1].1], [(0, 7e5), (0, 3e6)], "{segment}");
            assert_eq!(shown[1].0, fetched[1].0);
            assert!(shown[2].1.0 == 1 && shown[2].0 > shown[1].0);
        }
    }
}

#[test]
fn what_is_held_at_less_is_fetched_again_where_fast_switching_is_on() {
    for segment in [2, 4, 6] {
        let ladder = ladder_of(&[100_000, 500_000, 2_000_000], 60, segment);
        let playing = |fast_switch| {
            // It rises as the buffer fills.
            let settings =
                DashPlayerSettings { rule: "bba-0".into(), fast_switch, ..DashPlayerSettings::default() };
            play(presented(&ladder), settings, MPD, pipe(6_000_000), 100)
        };
        let (fast, plain) = (playing(true), playing(false));
        for events in [&fast, &plain] {
            shows_all(events, 1_500);
            adds_up(events, 60.0);
            assert!(named(events, "stall").is_empty());
        }
        assert!(fetched_again(&plain).is_empty());
        let again = fetched_again(&fast);
        assert!(!again.is_empty() && again.iter().all(|(_, rates)| rates.is_sorted()), "{again:?}");
        // The level that arrived last is shown, so that the viewer sees more of the top level.
        let top =
            |events: &[Event]| values(events, "segment_shown").iter().filter(|bps| **bps == 2e6).count();
        assert!(top(&fast) > top(&plain), "{} {}", top(&fast), top(&plain));
        // It returns to the segment that is shown.
        let shown = named(&fast, "segment_shown");
        for back in named(&fast, "decision").iter().filter(|event| event.reason.contains(" again: ")) {
            let last = shown.iter().rfind(|event| event.at <= back.at).unwrap();
            assert!(
                back.reason.starts_with(&format!("{} again", last.reason)),
                "{} {}",
                last.reason,
                back.reason
            );
        }
    }
}

#[test]
fn what_came_whole_comes_from_the_browsers_cache_at_the_same_level() {
    let settings = DashPlayerSettings { cache: true, ..DashPlayerSettings::of(PlayerKind::DashJs) };
    for segment in [2, 4, 6] {
        let ladder = ladder_of(&RATES, 120, segment);
        let outage = (ms(30_000), ms(34_000));
        let events = play(presented(&ladder), settings.clone(), MPD, Pipe { outage, ..pipe(1_800_000) }, 240);
        shows_all(&events, 3_000);
        for (number, rates) in fetched_again(&events) {
            let mut different = rates.clone();
            different.sort_by(f64::total_cmp);
            different.dedup();
            assert_eq!(different.len(), rates.len(), "segment {number} of {segment} s: {rates:?}");
        }
    }
}

#[test]
fn play_begins_where_it_is_told() {
    for (segment, begin) in [(2, 21), (4, 10), (6, 21)] {
        for target in [MPD, TIMELINE_MPD, RANGES_MPD, MASTER, RANGES_MASTER] {
            let ladder = ladder_of(&[400_000], 60, segment);
            let settings = DashPlayerSettings { begin_at: Duration::from_secs(begin), ..fixed(0) };
            let events = play(presented(&ladder), settings, target, pipe(2_000_000), 100);
            assert_eq!(values(&events, "frame_shown")[0], (25 * begin) as f64);
            assert_eq!(values(&events, "frame_shown").len() as u64, 25 * (60 - begin));
            assert_eq!(told(named(&events, "segment_shown")[0]).0, begin / segment);
            adds_up(&events, (60 - begin) as f64);
        }
    }
}
