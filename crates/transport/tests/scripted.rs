//! Slow start, fast recovery, timeouts and idle restart, segment by segment: one end's segments with their times, on a
//! link of 10 ms each way unless noted otherwise.

mod common;

use common::{MSS, Seen, Side::*, Verdict, at, drop_data, ms, pair, reno, sent_at, without};
use streamgauge_base::Duration;
use streamgauge_transport::tcp::{CloseReason, Config, ConnectionEvent, Mechanisms};

#[test]
fn slow_start_doubles_from_ten_segments() {
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, ..reno() });
    pair.serve(200 * MSS);
    pair.run();
    // The handshake ends at 30 ms; a round trip is 20 ms.
    for (millis, count) in [(30, 10), (50, 20), (70, 40), (90, 80), (110, 50)] {
        assert_eq!(sent_at(&pair, millis).len(), count, "at {millis} ms");
    }
    assert_eq!(pair.tcp(Server).stats().retransmits, 0);
}

#[test]
fn fast_recovery_repairs_one_loss_in_one_round_trip() {
    // The fourth segment of the first flight is lost.
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, ..reno() }).with_script(drop_data(&[3]));
    pair.serve(60 * MSS);
    pair.run();
    // At 50 ms: three acknowledgements open the window by three and clock six out; then the first two
    // duplicates clock out one segment each (limited transmit, RFC 3042) and the third the retransmission.
    let at_50 = sent_at(&pair, 50);
    assert_eq!(at_50[..9], [10, 11, 12, 13, 14, 15, 16, 17, 3]);
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.retransmits, stats.recoveries, stats.timeouts), (1, 1, 0));
    assert_eq!(pair.ends[0].received, u64::from(60 * MSS));
    // Window 13 at the loss; half of it, in whole segments.
    assert_eq!(stats.ssthresh, u64::from(6 * MSS));
}

#[test]
fn the_fast_retransmit_leaves_with_the_third_duplicate() {
    // Segments 1 ms apart; number 3 is lost, 4, 5 and 6 are acknowledged at 54, 55 and 56 ms.
    let mut count = 0;
    let mut pair =
        pair(Config { delayed_ack: Duration::ZERO, ..without(&["tso_defer"]) }).with_script(move |seen| {
            if seen.segment.payload.is_empty() || seen.at != at(30) {
                return Verdict::Deliver;
            }
            count += 1;
            if count == 4 { Verdict::Drop } else { Verdict::Late(ms(count - 1)) }
        });
    pair.serve(60 * MSS);
    pair.run();
    let again: Vec<_> =
        pair.data(Server).iter().filter(|s| s.segment.seq == 1 + 3 * MSS).map(|s| s.at).collect();
    assert_eq!(again, [at(30), at(56)]);
    assert_eq!([54, 55, 56].map(|millis| sent_at(&pair, millis).len()), [1, 1, 1]);
}

#[test]
fn proportional_rate_reduction_halves_smoothly() {
    // All acknowledgements arrive at once: with it the second duplicate's segment would wait for the third.
    let mut pair =
        pair(Config { delayed_ack: Duration::ZERO, initial_window: 40, ..without(&["tso_defer"]) })
            .with_script(drop_data(&[0]));
    pair.serve(400 * MSS);
    pair.run_until(at(55));
    // 40 in flight, 39 duplicates: the first two let out a new segment each, the rest about one for two.
    let flight = sent_at(&pair, 50);
    assert_eq!(flight[..3], [40, 41, 0]);
    assert!((20..=22).contains(&flight.len()), "{flight:?}");
    // By the end of recovery the bytes in flight have fallen to the threshold.
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.retransmits, stats.recoveries, stats.ssthresh), (1, 1, u64::from(20 * MSS)));
    assert_eq!(stats.in_flight, u64::from(20 * MSS));
    pair.run();
    assert_eq!(pair.tcp(Server).stats().retransmits, 1);
}

#[test]
fn several_losses_of_one_window_are_one_congestion_event() {
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, initial_window: 20, ..reno() })
        .with_script(drop_data(&[2, 5, 6, 11]));
    pair.serve(200 * MSS);
    pair.run();
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.retransmits, stats.recoveries, stats.timeouts), (4, 1, 0));
    let again: Vec<_> = sent_at(&pair, 50).into_iter().filter(|&n| n < 20).collect();
    assert_eq!(again, [2, 5, 6, 11]);
}

#[test]
fn one_duplicate_is_enough_once_reordering_would_have_shown() {
    // Only one segment follows the lost one.
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, ..reno() }).with_script(drop_data(&[3]));
    pair.serve(5 * MSS);
    pair.run();
    let again: Vec<_> =
        pair.data(Server).iter().filter(|s| s.segment.seq == 1 + 3 * MSS).map(|s| s.at).collect();
    // Its SACK arrives at 50 ms; a quarter of the round trip and 2 ms later it is no reordering.
    assert_eq!(again, [at(30), at(57)]);
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.timeouts, stats.retransmits, stats.recoveries), (0, 1, 1));
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut copies = 0;
    let script = move |seen: &Seen| {
        let is_it = seen.segment.seq == 1 + 3 * MSS && !seen.segment.payload.is_empty();
        copies += u32::from(is_it);
        if is_it && copies <= 2 { Verdict::Drop } else { Verdict::Deliver }
    };
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, ..reno() }).with_script(script);
    pair.serve(60 * MSS);
    pair.run();
    let sent: Vec<_> =
        pair.data(Server).iter().filter(|s| s.segment.seq == 1 + 3 * MSS).map(|s| s.at).collect();
    // New segments left after it in the same round trip; theirs are acknowledged at 70 ms.
    assert_eq!(sent, [at(30), at(50), at(70)]);
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.timeouts, stats.retransmits, stats.recoveries), (0, 2, 1));
    assert_eq!(pair.ends[0].received, u64::from(60 * MSS));
}

#[test]
fn every_third_segment_lost_is_repaired_without_the_timer() {
    // Repairs too: a recovery that sent more than has arrived must still replace the arrivals.
    let mut count = 0;
    let script = move |seen: &Seen| {
        count += u32::from(!seen.segment.payload.is_empty());
        let lost = !seen.segment.payload.is_empty() && count < 60 && count % 3 == 0;
        if lost { Verdict::Drop } else { Verdict::Deliver }
    };
    let config = Config { delayed_ack: Duration::ZERO, initial_window: 8, ..reno() };
    let mut pair = pair(config).with_script(script);
    pair.serve(60 * MSS);
    pair.run();
    assert_eq!(pair.tcp(Server).stats().timeouts, 0);
    assert_eq!(pair.ends[0].received, u64::from(60 * MSS));
}

#[test]
fn a_lost_tail_waits_for_the_timer_where_there_are_no_loss_probes() {
    let config = Config { delayed_ack: Duration::ZERO, ..without(&["tlp"]) };
    let mut pair = pair(config).with_script(drop_data(&[4]));
    pair.serve(5 * MSS);
    pair.run();
    let sent: Vec<_> = pair.data(Server).iter().map(|s| s.at).collect();
    // The last acknowledgement arrives at 50 ms; SRTT 20 ms + the floor of 200 ms.
    assert_eq!(sent[4..], [at(30), at(270)]);
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.timeouts, stats.retransmits, stats.recoveries), (1, 1, 0));
    // The window had not grown: five segments never filled it.
    assert_eq!(stats.ssthresh, u64::from(5 * MSS));
}

#[test]
fn retransmitting_the_oldest_segment_restarts_the_timer() {
    // The first is lost, the others arrive so late that their SACKs arrive 5 ms before the timer would expire.
    let mut first = true;
    let config = without(&["tlp"]);
    let mut pair = pair(config).with_script(move |seen| match (seen.segment.payload.is_empty(), seen.at) {
        (false, now) if now == at(30) && std::mem::take(&mut first) => Verdict::Drop,
        (false, now) if now == at(30) => Verdict::Late(ms(195)),
        _ => Verdict::Deliver,
    });
    pair.serve(10 * MSS);
    pair.run();
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.retransmits, stats.recoveries, stats.timeouts), (1, 1, 0));
}

#[test]
fn timeouts_double_until_an_answer_and_then_start_afresh() {
    let blackout = |seen: &Seen| match seen.at {
        now if now > at(40) && now < at(3000) => Verdict::Drop,
        _ => Verdict::Deliver,
    };
    let config = Config { delayed_ack: Duration::ZERO, ..without(&["tlp"]) };
    let mut pair = pair(config).with_script(blackout);
    pair.open();
    pair.run_until(at(100));
    pair.serve(3 * MSS);
    pair.run();
    let firsts: Vec<_> = pair.data(Server).iter().filter(|s| s.segment.seq == 1).map(|s| s.at).collect();
    let gaps: Vec<_> = firsts.windows(2).map(|w| (w[1] - w[0]).as_nanos() / 1_000_000).collect();
    assert_eq!(gaps, [220, 440, 880, 1760]);
    let stats = pair.tcp(Server).stats();
    assert_eq!(stats.timeouts, 4);
    assert_eq!(pair.ends[0].received, u64::from(3 * MSS));
    assert!(stats.rto < ms(300), "{:?}", stats.rto);
    // Repeated timeouts for the same data left the threshold alone.
    assert_eq!(stats.ssthresh, u64::from(5 * MSS));
}

#[test]
fn the_connection_gives_up_when_nobody_answers() {
    let mut pair = pair(Config { max_retries: 4, ..without(&["tlp"]) })
        .with_script(|seen| if seen.at > at(40) { Verdict::Drop } else { Verdict::Deliver });
    pair.open();
    pair.run_until(at(100));
    pair.serve(MSS);
    pair.run();
    // 220 * (1 + 2 + 4 + 8 + 16) ms after the first transmission.
    assert_eq!(
        pair.ends[1].events.last(),
        Some(&(at(100 + 220 * 31), ConnectionEvent::Closed(CloseReason::TimedOut)))
    );
    assert_eq!(pair.data(Server).len(), 5);
}

#[test]
fn an_idle_sender_restarts_from_a_smaller_window() {
    for (on, expected) in [(true, 10), (false, 40)] {
        let mechanisms = Mechanisms { idle_restart: on, ..Mechanisms::default() };
        let config = Config { mechanisms, delayed_ack: Duration::ZERO, ..reno() };
        let mut pair = pair(config);
        pair.serve(30 * MSS);
        pair.run_until(at(10_000));
        assert_eq!(pair.tcp(Server).stats().cwnd, u64::from(40 * MSS));
        pair.serve(60 * MSS);
        pair.settle();
        assert_eq!(sent_at(&pair, 10_000).len(), expected, "restart {on}");
        pair.run();
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // 20 ms apart, one short write each: the window never limits.
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, ..reno() });
    pair.open();
    for i in 0..200 {
        pair.run_until(at(40 + 20 * i));
        pair.serve(500);
        pair.settle();
    }
    pair.run();
    assert_eq!(pair.tcp(Server).stats().cwnd, u64::from(10 * MSS));
}

#[test]
fn reordering_by_less_than_three_segments_retransmits_nothing() {
    let mut count = 0;
    let mut pair = pair(reno()).with_script(move |seen| {
        count += u32::from(!seen.segment.payload.is_empty());
        // Past the next two segments at most: those of one burst are in the same instant.
        match count % 10 == 8 && !seen.segment.payload.is_empty() && seen.at == at(30) {
            true => Verdict::Late(Duration::from_nanos(1)),
            false => Verdict::Deliver,
        }
    });
    pair.serve(300 * MSS);
    pair.run();
    assert_eq!(pair.tcp(Server).stats().retransmits, 0);
    assert_eq!(pair.ends[0].received, u64::from(300 * MSS));
}
