use super::*;
use crate::tcp::mechanisms::Mechanisms;

const MS: u64 = 1_000_000;

/// Sends segments of 1,448 bytes 1.2 ms apart, 20 ms after the value that they echo; returns those that raise the
/// window.
fn raised(growth: &mut WindowGrowth, segments: std::ops::Range<u64>) -> Vec<u64> {
    let rtt = Duration::from_millis(20);
    let arrive = |&n: &u64| {
        let raised = growth.arrived(1448, 1448, ((n + 1) as u32, rtt));
        growth.read(Instant::from_nanos(10_000 * MS + n * 1_200_000), 1448, 0, 0);
        raised
    };
    segments.filter(arrive).collect()
}

#[test]
fn the_first_buffer_has_room_for_six_rises() {
    let mut growth = WindowGrowth::new(0, &Config::default());
    assert_eq!(raised(&mut growth, 0..17), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn the_buffer_follows_what_is_read_in_a_round_trip() {
    let mut growth = WindowGrowth::new(0, &Config::default());
    raised(&mut growth, 0..19);
    // Segments 2 to 18 in 20 ms: 49,232 B, and once more 1.4 times as much, for it grew from 10 to 17.
    assert_eq!(growth.room, 118_156);
    // 36,236 B in steps of 2,896 B.
    assert_eq!(raised(&mut growth, 19..200), (19..32).collect::<Vec<_>>());
}

#[test]
fn a_buffer_asked_for_is_not_tuned() {
    let mut growth = WindowGrowth::new(0, &Config { receive_window: 70_000, ..Config::default() });
    assert_eq!(raised(&mut growth, 0..300), [0, 1]);
    // The segment's own memory is not offered.
    assert_eq!(growth.offered, 68_552);
    let mut small = WindowGrowth::new(0, &Config { receive_window: 16_384, ..Config::default() });
    assert_eq!(raised(&mut small, 0..300), []);
}

#[test]
fn short_segments_raise_nothing() {
    let mut growth = WindowGrowth::new(0, &Config::default());
    assert!(!growth.arrived(127, 127, (1, Duration::from_millis(20))));
    assert!(growth.arrived(128, 128, (1, Duration::from_millis(20))));
}

#[test]
fn what_waits_behind_a_gap_makes_room_and_counts_as_read_once_it_is_filled() {
    let mut growth = WindowGrowth::new(0, &Config::default());
    raised(&mut growth, 0..3);
    growth.ahead(60 * 1448, 0);
    assert_eq!(growth.room, (2 * 10 + 60) * 1448);
    // The buffer holds the data ahead: nothing more is offered.
    assert_eq!(growth.offered, FIRST + 3 * 2 * 1448);
    let filled = Instant::from_nanos(10_030 * MS);
    growth.read(filled, 61 * 1448, 0, 0);
    // With segment 2 that is 62 in one round trip after 10.
    assert_eq!(growth.room, ((2.0 * 62.0 + 4.0 * 62.0 * 5.2) * 1448.0) as u32);
}

#[test]
fn what_is_not_read_yet_does_not_count() {
    let mut growth = WindowGrowth::new(0, &Config::default());
    raised(&mut growth, 0..3);
    growth.read(Instant::from_nanos(10_030 * MS), 30 * 1448, 31 * 1448, 0);
    assert_eq!((growth.room, growth.greatest), (FIRST_ROOM, 10 * 1448));
}

fn late() -> WindowGrowth {
    let mut mechanisms = Mechanisms::default();
    assert!(mechanisms.switch_off("early_growth"));
    WindowGrowth::new(0, &Config { mechanisms, ..Config::default() })
}

/// The course of a trial of Linux 6.1 at 10 Mbit/s and 20 ms: nothing rises in the first two round trips, then each segment.
#[test]
fn in_6_1_nothing_rises_until_the_buffer_is_made_larger_and_then_more() {
    let mut growth = late();
    assert_eq!((raised(&mut growth, 0..19), growth.offered), (vec![], 131_072 / 2 - 1_448));
    // Segments 2 to 18 in 20 ms: (2 * 24,616 + 16 * 1,448) * (1 + 2 * 10,136 / 14,480) of 1,448 each, and each uses
    // 2,920 B of memory.
    assert_eq!(growth.room, 120 * 2_920 / 2);
    // 111,112 B, less half of the segment's own 2,304 B, in steps of 2,896 B.
    assert_eq!(raised(&mut growth, 19..60), (19..57).collect::<Vec<_>>());
}

#[test]
fn in_6_1_what_waits_behind_a_gap_makes_no_room_but_takes_it() {
    let mut growth = late();
    raised(&mut growth, 0..19);
    let room = growth.room;
    assert!(!growth.ahead(200 * 1448, 200 * 1448));
    assert_eq!((growth.room, growth.offered), (room, 64_088));
    assert!(growth.ahead(50 * 1448, 50 * 1448));
    assert_eq!((growth.room, growth.offered), (room, 64_088 + 2_896));
}

#[test]
fn in_6_1_a_buffer_asked_for_offers_all_but_a_segment_at_once() {
    let mut mechanisms = Mechanisms::default();
    assert!(mechanisms.switch_off("early_growth"));
    let mut growth =
        WindowGrowth::new(0, &Config { receive_window: 50_000, mechanisms, ..Config::default() });
    assert_eq!((raised(&mut growth, 0..300), growth.offered), (vec![], 48_552));
}

#[test]
fn in_6_1_a_shorter_round_trip_is_believed_at_once_too_and_counts_in_ms() {
    let mut growth = late();
    let mut told = |echo, us| {
        growth.arrived(1448, 1448, (echo, Duration::from_micros(us)));
        growth.rtt_us
    };
    assert_eq!([told(1, 50_000), told(2, 100_900), told(3, 20_000)], [0, 100_000, 20_000]);
}

#[test]
fn in_6_1_the_buffer_grows_as_soon_as_a_guests_did() {
    // A guest's arrivals of CUBIC on 10 Mbit/s and 20 ms, in ms since the first, from the segment on that ends the
    // first round trip: every second one brings an echo of its own, and shows a longer round trip, until the queue's
    // first acknowledgements are echoed. It looked again at the thirtieth, 24.22 ms later, and not at the one before.
    let echoes = [21.27, 22.48, 23.69, 24.9, 26.11, 27.32, 28.54, 29.74, 30.95, 32.16, 24.22];
    let mut growth = late();
    growth.arrived(1448, 1448, (0, Duration::from_millis(25)));
    growth.read(Instant::from_nanos(0), 10 * 1448, 0, 0);
    let mut grown = Vec::new();
    for segment in 10..34u64 {
        let now = Instant::from_nanos(32_510_000 + (segment - 10) * 1_211_000);
        let place = ((segment - 10) / 2).min(10) as usize;
        let ago = Duration::from_nanos((echoes[place] * 1e6) as u64);
        growth.arrived(1448, 1448, (1 + place as u32, ago));
        let before = growth.buffer;
        growth.read(now, 1448, 0, 0);
        if growth.buffer > before {
            grown.push(segment);
        }
    }
    assert_eq!(grown, [10, 30]);
}

#[test]
fn a_shorter_round_trip_is_believed_at_once_and_a_longer_one_gradually() {
    let mut growth = WindowGrowth::new(0, &Config::default());
    let mut told = |echo, ms| {
        growth.arrived(1448, 1448, (echo, Duration::from_millis(ms)));
        growth.rtt_us
    };
    // An acknowledgement without data may have echoed the first segment's value before.
    assert_eq!(
        [told(1, 50), told(2, 100), told(2, 10), told(3, 180), told(4, 20)],
        [0, 100_000, 100_000, 110_000, 20_000]
    );
}

#[test]
fn in_6_1_a_window_that_comes_sooner_is_a_round_trip() {
    let mut growth = late();
    for echo in 1..3 {
        growth.arrived(1448, 1448, (echo, Duration::from_millis(100)));
    }
    let mut filled = |ms, next| {
        growth.fill(Instant::from_nanos(ms * MS), next);
        growth.rtt_us
    };
    // The window offered when the wait began counts, 64,240 B.
    assert_eq!(
        [filled(1_000, 1_448), filled(1_040, 65_687), filled(1_060, 65_688)],
        [100_000, 100_000, 60_000]
    );
    // The next one needs more time.
    assert_eq!(filled(1_200, 200_000), 60_000);
}
