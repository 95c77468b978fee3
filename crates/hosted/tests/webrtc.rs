//! str0m by our clock and chance: it works, it repeats, it adapts, and malformed bytes do not end it.

mod call;

use call::{Conditions, Course};
use streamgauge_base::{Duration, Instant};

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + s(seconds)
}

fn step(now: Instant) -> u64 {
    if now < at(8) { 1_500_000 } else { 500_000 }
}

/// Returns the estimate in bit/s at a time.
fn estimate(course: &Course, when: u64) -> f64 {
    let before = course.estimates.iter().take_while(|(told, _)| *told <= at(when));
    before.last().expect("an estimate").1.as_bps() as f64
}

#[test]
fn on_a_wide_link_every_frame_comes_soon_and_the_estimate_rises() {
    let course = Conditions::usual(1, s(10)).run();
    assert_eq!((course.dropped, course.failed.as_slice()), (0, &[][..]));
    let sent = course.frames.len();
    assert!((285..=300).contains(&sent), "{sent} frames of some 298");
    let late = course.frames.iter().map(|(when, frame)| when.saturating_since(frame.head.captured)).max();
    assert!(late.unwrap() < Duration::from_millis(150), "{late:?}");
    assert!(course.frames.iter().all(|(_, frame)| frame.is_contiguous && frame.missing == 0));
    assert!(estimate(&course, 10) > 1e6, "{}", estimate(&course, 10));
    let trip = course.trips.last().unwrap();
    assert!((Duration::from_millis(38)..Duration::from_millis(60)).contains(trip), "{trip:?}");
}

#[test]
fn it_falls_below_a_capacity_that_falls() {
    let course = Conditions { rate: step, ..Conditions::usual(1, s(20)) }.run();
    assert!(estimate(&course, 8) > 700e3, "{}", estimate(&course, 8));
    assert!(estimate(&course, 20) < 500e3, "{}", estimate(&course, 20));
}

#[test]
fn the_same_call_has_the_same_bytes_in_any_epoch_and_on_any_thread() {
    let conditions = Conditions { rate: step, ..Conditions::usual(1, s(14)) };
    let first = conditions.run();
    assert!(first.dropped > 0, "a course with loss");
    let others = [0, 1, 7].map(|turns| {
        let conditions = Conditions { turns, ..conditions.clone() };
        std::thread::spawn(move || conditions.run()).join().unwrap()
    });
    for (other, is_same_epoch) in others.iter().zip([true, false, false]) {
        let course =
            |one: &Course| one.sent.iter().map(|(when, sent)| (*when, sent.len())).collect::<Vec<_>>();
        assert!(course(other) == course(&first));
        assert!((&other.estimates, &other.frames) == (&first.estimates, &first.frames));
        // Sender reports have the high bits of the date.
        assert_eq!(other.sent == first.sent, is_same_epoch);
    }
}

#[test]
fn seed_and_phase_change_what_is_sent() {
    let usual = Conditions { drop: |number| number % 20 == 19, ..Conditions::usual(1, s(3)) };
    let mut other_phase = usual.clone();
    other_phase.call.phase = Duration::from_millis(77);
    let mut other_seed = usual.clone();
    other_seed.call.seed = 2;
    let first = usual.run();
    assert!(usual.run() == first);
    assert!(other_phase.run().sent != first.sent, "packets have the date of their departure");
    assert!(other_seed.run().sent != first.sent, "sources and credentials are by seed");
}

#[test]
fn what_is_lost_is_asked_for_and_comes_again() {
    let course = Conditions { drop: |number| number % 50 == 49, ..Conditions::usual(1, s(10)) }.run();
    assert!(course.dropped > 10 && course.requests > 5, "{} {}", course.dropped, course.requests);
    let whole = course.frames.iter().filter(|(_, frame)| frame.is_contiguous).count();
    assert!(whole > 280, "{whole} of some 298 frames");
}

#[test]
fn after_a_gap_that_stays_a_key_frame_helps() {
    // Two seconds in which nothing arrives.
    fn is_lost(number: usize) -> bool {
        (400..600).contains(&number)
    }
    let course = Conditions { drop: is_lost, ..Conditions::usual(1, s(15)) }.run();
    let missing: u64 = course.frames.iter().map(|(_, frame)| frame.missing).sum();
    assert!(missing > 0 && course.keys_asked > 0, "{missing} {}", course.keys_asked);
    let (_, last) = course.frames.last().unwrap();
    assert!(last.is_contiguous && last.head.number > 350, "{last:?}");
}

#[test]
fn malformed_bytes_do_not_end_a_call() {
    let noise: &[&[u8]] = &[
        b"",
        b"\x00",
        b"\x16\xfe\xfd\x09",
        b"\x15\x00",
        &[0; 20],
        b"\x80\x60",
        b"\x90\x60\0\x01\0\0\0\0\0\0\0\x02\xbe\xde\xff\xff",
        b"\x80\xc8\0\x06\0\0\0\0",
        b"\x8f\xcd\xff\xff\0\0\0\x01",
        b"hello, this is no call at all",
    ];
    let course = Conditions { noise, ..Conditions::usual(1, s(5)) }.run();
    assert_eq!(course.failed, [] as [String; 0]);
    assert!(course.frames.len() > 135, "{} frames", course.frames.len());
}

#[test]
fn the_other_end_hears_of_the_close() {
    let course = Conditions { close: Some(at(3)), ..Conditions::usual(1, s(6)) }.run();
    assert_eq!((course.closed, course.failed.len()), (1, 0));
    assert!(course.sent.last().unwrap().0 < at(4));
}
