//! Unit tests of the receiving half; `super` is `receiver`.

use streamgauge_base::{Chunk, Duration, Instant};

use super::super::config::Config;
use super::super::mechanisms::Mechanisms;
use super::{Moment, Receiver, first_window};

fn moment(at: Instant) -> Moment {
    let (rto, srtt) = (Duration::from_millis(200), Some(Duration::from_millis(20)));
    Moment { now: at, rto, srtt, push: false, echo: (0, srtt.unwrap()) }
}

fn receiver() -> Receiver {
    Receiver::new(1, &Config { mss: 100, quick_acks: 0, receive_window: 10_000, ..Config::default() })
}

/// Delivers segment number `n` of 100 bytes at time zero.
fn arrive(receiver: &mut Receiver, n: u64) -> bool {
    receiver.receive(moment(Instant::ZERO), 1 + 100 * n, &Chunk::filler(100), false)
}

/// Returns the blocks sent, in segment numbers.
fn blocks(receiver: &mut Receiver) -> Vec<(u32, u32)> {
    let sack = receiver.take_sack();
    sack.as_slice().iter().map(|&(left, right)| ((left - 1) / 100, (right - 1) / 100)).collect()
}

#[test]
fn blocks_are_reported_most_recent_first_and_repeated() {
    let mut r = receiver();
    arrive(&mut r, 2);
    assert_eq!(blocks(&mut r), [(2, 3)]);
    arrive(&mut r, 4);
    assert_eq!(blocks(&mut r), [(4, 5), (2, 3)]);
    arrive(&mut r, 6);
    assert_eq!(blocks(&mut r), [(6, 7), (4, 5), (2, 3)]);
    arrive(&mut r, 8);
    assert_eq!(blocks(&mut r), [(8, 9), (6, 7), (4, 5)]);
    // Growth makes an old block the first again.
    arrive(&mut r, 5);
    assert_eq!(blocks(&mut r), [(4, 7), (8, 9), (2, 3)]);
    arrive(&mut r, 3);
    assert_eq!(blocks(&mut r), [(2, 7), (8, 9)]);
    // The gap closes up to the next hole.
    arrive(&mut r, 0);
    assert!(arrive(&mut r, 1));
    assert_eq!((r.next(), blocks(&mut r)), (701, vec![(8, 9)]));
    assert!(arrive(&mut r, 7));
    assert_eq!((r.next(), r.readable(), blocks(&mut r)), (901, 900, vec![]));
}

#[test]
fn blocks_forgotten_by_recency_are_reported_when_there_is_room_again() {
    let mut r = receiver();
    for n in [2, 4, 6, 8, 10, 12] {
        arrive(&mut r, n);
    }
    // All but the lowest two of the recent ones become contiguous.
    for n in [11, 9, 7] {
        arrive(&mut r, n);
    }
    assert_eq!(blocks(&mut r), [(6, 13), (2, 3), (4, 5)]);
}

#[test]
fn a_repeated_segment_is_reported_once_ahead_of_the_others() {
    let mut r = receiver();
    arrive(&mut r, 0);
    arrive(&mut r, 3);
    arrive(&mut r, 0);
    assert!(r.ack_due());
    assert_eq!(blocks(&mut r), [(0, 1), (3, 4)]);
    assert_eq!(blocks(&mut r), [(3, 4)]);
    arrive(&mut r, 3);
    assert_eq!(blocks(&mut r)[0], (3, 4));
}

#[test]
fn data_ahead_of_a_gap_is_acknowledged_at_once_and_so_is_its_filling() {
    let mut r = receiver();
    arrive(&mut r, 0);
    assert!(!r.ack_due());
    r.acknowledge();
    arrive(&mut r, 2);
    assert!(r.ack_due());
    r.acknowledge();
    arrive(&mut r, 1);
    assert!(r.ack_due());
    r.acknowledge();
    arrive(&mut r, 3);
    assert!(!r.ack_due());
    arrive(&mut r, 4);
    assert!(r.ack_due());
}

#[test]
fn real_bytes_ahead_of_a_gap_keep_their_place() {
    let mut r = receiver();
    let at = Instant::ZERO;
    r.receive(moment(at), 21, &Chunk::with_filler([3, 4], 8), false);
    r.receive(moment(at), 11, &Chunk::with_filler([2], 9), false);
    r.receive(moment(at), 31, &Chunk::filler(5), true);
    assert_eq!(r.readable(), 0);
    assert!(r.receive(moment(at), 1, &Chunk::bytes([1; 10]), false));
    let mut flat = Vec::new();
    while let Some(chunk) = r.read(usize::MAX) {
        let end = flat.len() + chunk.len();
        flat.extend_from_slice(chunk.head());
        flat.resize(end, 0);
    }
    let mut expected = vec![1; 10];
    expected.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(flat, expected);
    assert!(r.finished());
    assert_eq!(r.next(), 37);
}

#[test]
fn nothing_past_the_window_is_taken() {
    let mut r = receiver();
    assert!(!arrive(&mut r, 100));
    assert!(r.ack_due() && !r.has_sack());
    assert!(!arrive(&mut r, 99));
    assert!(r.has_sack());
}

#[test]
fn overlapping_segments_count_each_byte_once() {
    let mut r = receiver();
    let at = Instant::ZERO;
    r.receive(moment(at), 51, &Chunk::filler(100), false);
    r.receive(moment(at), 101, &Chunk::filler(120), false);
    r.receive(moment(at), 1, &Chunk::filler(80), false);
    assert_eq!((r.next(), r.readable()), (221, 220));
    assert!(r.receive(moment(at), 200, &Chunk::filler(50), false));
    assert_eq!((r.next(), r.readable()), (250, 249));
}

#[test]
fn what_waits_for_the_reader_takes_from_the_window_only_beyond_a_quarter_of_it() {
    let mut r = receiver();
    for n in 0..25 {
        arrive(&mut r, n);
        assert_eq!(r.acknowledge(), 10_000);
    }
    arrive(&mut r, 25);
    assert_eq!(r.acknowledge(), 9_900);
    // Data ahead of a gap fills the buffer as well, and the offered window stays as it is.
    r.read(2_600);
    assert_eq!(r.acknowledge(), 10_000);
    for n in 28..88 {
        arrive(&mut r, n);
    }
    assert_eq!(r.acknowledge(), 10_000);
    arrive(&mut r, 26);
    r.read(100);
    // 12,500 less the 6,000 ahead are less than the window offered before.
    assert_eq!(r.acknowledge(), 9_900);
}

#[test]
fn the_window_opens_again_only_by_a_worthwhile_step() {
    let mut r = receiver();
    for n in 0..100 {
        arrive(&mut r, n);
    }
    assert_eq!(r.acknowledge(), 2_500);
    for n in 100..125 {
        arrive(&mut r, n);
    }
    assert_eq!(r.acknowledge(), 0);
    assert_eq!(r.read(60).map(|chunk| chunk.len()), Some(60));
    assert!(!r.ack_due());
    assert_eq!(r.acknowledge(), 0);
    r.read(40);
    assert!(r.ack_due());
    assert_eq!(r.acknowledge(), 100);
}

#[test]
fn a_full_segment_is_what_the_peer_sends_as_one() {
    let mut r = Receiver::new(1, &Config { quick_acks: 0, ..Config::default() });
    for n in 0..2 {
        assert!(!r.ack_due());
        r.receive(moment(Instant::ZERO), 1 + 500 * n, &Chunk::filler(500), false);
    }
    assert!(r.ack_due(), "two segments of a peer whose segments are small");
}

/// The course of a trial of Linux 6.1 behind a token bucket at 480 kbit/s, of a program that asked for 17,520 B.
#[test]
fn without_the_scaling_ratio_a_buffer_asked_for_offers_what_linux_6_1_does() {
    const MSS: u64 = 1448;
    let mut mechanisms = Mechanisms::default();
    assert!(mechanisms.switch_off("scaling_ratio"));
    let config = Config { receive_window: 17_520, mechanisms, ..Config::default() };
    let mut r = Receiver::new(1, &config);
    let arrive = |r: &mut Receiver, n: u64| {
        r.receive(moment(Instant::ZERO), 1 + MSS * n, &Chunk::filler(MSS as u32), false)
    };
    assert_eq!(first_window(&config), 17_520);
    // A segment is kept back, and the offered window then stays while it is within a segment of the free space.
    for n in 0..6 {
        assert!(arrive(&mut r, n) && r.ack_due());
        assert_eq!(r.acknowledge(), 16_072, "segment {n}");
        r.read(usize::MAX);
    }
    // Segments 10 to 15 wait behind a gap, which leaves the offered window as it is; its right edge stays as it fills.
    let ahead = (10..16).map(|n| (arrive(&mut r, n), r.acknowledge()));
    assert_eq!(ahead.collect::<Vec<_>>(), [(false, 16_072); 6]);
    let fill = |r: &mut Receiver, n| {
        assert!(arrive(r, n) && r.ack_due());
        let window = r.acknowledge();
        r.read(usize::MAX);
        window
    };
    assert_eq!([fill(&mut r, 6), fill(&mut r, 7)], [14_624, 13_176]);
    assert!(!arrive(&mut r, 9) && r.ack_due());
    assert_eq!(r.acknowledge(), 13_176);
    // Eight segments of 2,304 B leave (35,040 - 18,432) / 2 B, in whole segments.
    assert!(arrive(&mut r, 8) && r.ack_due());
    assert_eq!(r.acknowledge(), 5 * 1448);
    // Once they are read the window doubles, and an acknowledgement reports that.
    while r.read(usize::MAX).is_some() {}
    assert!(r.ack_due());
    assert_eq!(r.acknowledge(), 11 * 1448);
    // The remaining room is so little that the acknowledgements are quick no longer.
    assert!(arrive(&mut r, 16) && !r.ack_due());
}

/// The first windows of a guest with Linux 6.1, where the program set no buffer.
#[test]
fn without_early_growth_the_window_itself_is_that_of_linux_6_1() {
    let without = |names: &[&str]| {
        let mut mechanisms = Mechanisms::default();
        assert!(names.iter().all(|name| mechanisms.switch_off(name)));
        let config = Config { receive_window: 3 << 20, mechanisms, ..Config::default() };
        let mut r = Receiver::new(1, &config);
        r.receive(moment(Instant::ZERO), 1, &Chunk::filler(1448), false);
        r.read(usize::MAX);
        (first_window(&config), r.acknowledge())
    };
    // Whole segments of 1,460 B; then all of the first buffer's half but a segment, in units of 128 B.
    assert_eq!(without(&["early_growth"]), (64_240, 501 * 128));
    assert_eq!(without(&[]), (3 << 20, 3 << 20));
}
