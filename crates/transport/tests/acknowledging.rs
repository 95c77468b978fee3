//! The times at which a receiver acknowledges, segment by segment, on a link of 10 ms each way unless noted otherwise.

mod common;

use common::script::Hearer;
use common::{MSS, Side::*, at, pair, reno};
use streamgauge_base::Chunk;
use streamgauge_transport::tcp::Config;

#[test]
fn acknowledgements_come_for_every_segment_then_every_second_one() {
    // The kernel's first offer, which does not grow.
    let mut pair = pair(Config { receive_window: 64_240, ..reno() });
    pair.serve(100 * MSS);
    pair.run();
    let acks: Vec<_> = pair.acks(Client).iter().skip(1).map(|s| (s.segment.ack - 1) / MSS).collect();
    let steps: Vec<_> = std::iter::once(acks[0]).chain(acks.windows(2).map(|w| w[1] - w[0])).collect();
    // Sixteen quick ones, none of them used by the handshake; then every second, and the end of a super-segment.
    assert_eq!(steps[..16], [1; 16]);
    let twos = steps[16..].iter().filter(|&&step| step == 2).count();
    assert!(steps[16..].iter().all(|&step| step <= 2) && twos > 35, "{steps:?}");
}

#[test]
fn while_linux_would_raise_its_window_every_segment_is_acknowledged() {
    let mut pair = pair(Config { receive_window: 64_240 + 6 * 2 * u64::from(MSS), ..reno() });
    pair.serve(100 * MSS);
    pair.run();
    let acks: Vec<_> = pair.acks(Client).iter().skip(1).map(|s| (s.segment.ack - 1) / MSS).collect();
    // Six that raise it, which spend none of the sixteen quick ones; then every second.
    assert_eq!(acks[..22], std::array::from_fn::<_, 22, _>(|n| n as u32 + 1));
    assert_eq!(acks[22..24], [24, 26]);
}

#[test]
fn a_delayed_acknowledgement_echoes_the_first_clock_it_answers() {
    let mut pair = pair(Config { quick_acks: 0, ..reno() });
    // A reader that drained the queue would acknowledge the end of the written data.
    pair.end(Client).reads = false;
    pair.open();
    for millis in [30, 35] {
        pair.run_until(at(millis));
        pair.serve(MSS);
        pair.settle();
    }
    pair.run();
    let ack = *pair.acks(Client).last().unwrap();
    assert_eq!((ack.at, ack.segment.timestamps.echo), (at(45), 30));
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms_once_quick_acks_are_spent() {
    let mut pair = pair(Config { quick_acks: 1, receive_window: 60_000, ..reno() });
    pair.end(Client).reads = false;
    pair.open();
    pair.serve(MSS);
    pair.run_until(at(100));
    pair.serve(MSS);
    pair.run();
    let acks: Vec<_> = pair.acks(Client).iter().skip(1).map(|s| s.at).collect();
    // Sent at 30 ms and acknowledged at once; sent at 100 ms, arrived at 110 ms, acknowledged at 150 ms.
    assert_eq!(acks, [at(40), at(150)]);
}

#[test]
fn a_pause_of_more_than_a_timeout_brings_quick_acks_back() {
    let mut pair = pair(Config { quick_acks: 1, receive_window: 60_000, ..reno() });
    pair.end(Client).reads = false;
    pair.open();
    for start in [30, 100, 1000] {
        pair.run_until(at(start));
        pair.serve(MSS);
        pair.settle();
    }
    pair.run();
    let acks: Vec<_> = pair.acks(Client).iter().skip(1).map(|s| s.at).collect();
    assert_eq!(acks, [at(40), at(150), at(1010)]);
}

/// Makes a receiver that has spent its quick acknowledgements, with a last segment 25 ms old.
fn slow(config: Config) -> Hearer {
    let mut h = Hearer::open(Config { quick_acks: 1, receive_window: 60_000, ..config });
    h.data(20_000, 0, MSS, false);
    h.data(21_000, 1, MSS, false);
    h.data(22_000, 2, MSS, false);
    h.until(47_000);
    assert_eq!(h.acked().len(), 2);
    h
}

#[test]
fn in_order_segments_wait_for_a_second_one() {
    let mut h = slow(reno());
    h.data(50_000, 3, MSS, false);
    h.data(51_000, 4, MSS, false);
    assert_eq!(h.acked(), [(51_000, 5, vec![])]);
    h.data(52_000, 5, MSS, false);
    h.until(200_000);
    assert_eq!(h.acked(), [(92_000, 6, vec![])]);
}

#[test]
fn timers_of_the_host_are_late_by_up_to_a_tick() {
    let mut h = slow(Config { coarse_timers: true, ..reno() });
    h.data(53_000, 3, MSS, false);
    h.until(200_000);
    // 10 ticks of 4 ms after the tick at 52 ms, and one lest it be early.
    assert_eq!(h.acked(), [(96_000, 4, vec![])]);
}

#[test]
fn the_end_of_a_write_is_acknowledged_when_it_has_been_read() {
    for (reads, expected) in [(true, 50_000), (false, 90_000)] {
        let mut h = slow(reno());
        h.reads = reads;
        h.data(50_000, 3, 100, true);
        h.until(200_000);
        assert_eq!(h.acked()[0].0, expected);
    }
}

#[test]
fn who_answers_lets_the_answer_carry_the_acknowledgement() {
    let mut h = slow(reno());
    h.data(50_000, 3, MSS, false);
    assert_eq!(h.tcp.write(Chunk::filler(10)), 10);
    h.until(50_000);
    h.append(60_000, 100, true);
    let acks = h.acked();
    // Two left with data or for the second segment; the end of the write is not worth one of its own any more.
    assert!(acks.iter().all(|&(us, ..)| us < 61_000), "{acks:?}");
    h.append(70_000, 100, true);
    h.until(80_000);
    assert_eq!(h.acked(), []);
    h.until(200_000);
    assert_eq!(h.acked().len(), 1, "after the delay");
}

#[test]
fn slow_arrivals_lengthen_the_delay_no_further_than_the_round_trip_allows() {
    let mut h = slow(reno());
    h.reads = false;
    for n in 0..10 {
        h.append(100_000 + 25_000 * u64::from(n), 300 - 10 * n, true);
    }
    h.until(500_000);
    // 25 ms apart they would have it wait 50 ms; a round trip of 20 ms allows only the least, 40 ms.
    let times: Vec<_> = h.acked().iter().map(|&(us, ..)| us / 1_000).collect();
    assert_eq!(times, [140, 190, 240, 290, 340]);
}

#[test]
fn arrivals_beyond_a_gap_are_told_at_once_three_times_and_then_once_a_millisecond() {
    let mut h = slow(reno());
    // Segment 3 is missing; 4 to 20 arrive 0.1 ms apart.
    for n in 4..=20u32 {
        h.data(50_000 + 100 * u64::from(n), n, MSS, false);
    }
    h.until(60_000);
    let acks = h.acked();
    let times: Vec<_> = acks.iter().map(|&(us, ..)| us).collect();
    assert_eq!(times, [50_400, 50_500, 50_600, 51_700, 52_700]);
    assert_eq!(acks[4], (52_700, 3, vec![(4, 21)]));
    // The gap is filled: at once.
    h.data(61_000, 3, MSS, false);
    assert_eq!(h.acked(), [(61_000, 21, vec![])]);
}

#[test]
fn what_comes_twice_is_reported_and_makes_acknowledgements_quick() {
    let mut h = Hearer::open(Config { quick_acks: 2, receive_window: 60_000, ..reno() });
    for n in 0..5 {
        h.data(20_000 + u64::from(n), n, MSS, false);
    }
    assert_eq!(h.acked().len(), 3, "two quick ones, and one for two");
    h.until(70_000);
    h.acked();
    h.data(71_000, 1, MSS, false);
    assert_eq!(h.acked(), [(71_000, 5, vec![(1, 2)])]);
    h.data(72_000, 5, MSS, false);
    assert_eq!(h.acked().len(), 1);
    h.data(73_000, 6, MSS, false);
    assert_eq!(h.acked().len(), 0, "the duplicate's own was the first of two");
}
