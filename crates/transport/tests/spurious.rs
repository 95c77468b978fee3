//! Reductions that were for nothing, and how they are found out: F-RTO, timestamps, duplicates reported. The peer is the
//! script; its round trip is 20 ms.

mod common;

use common::script::Script;
use common::{reno, without};

/// Returns a script after a timeout: ten segments were sent at 20 ms; nothing was answered, and the timer expired at
/// 240 ms: the first was sent again.
fn timed_out(without_too: &[&str]) -> Script {
    let mut s = Script::open(without(&[&["tlp"], without_too].concat()));
    s.write(10);
    s.write(20);
    assert_eq!(s.sent().len(), 10);
    s.until(245);
    assert_eq!(s.sent(), [(240, 0)]);
    assert_eq!((s.cwnd(), s.ssthresh()), (1, 5));
    s
}

#[test]
fn f_rto_undoes_a_timeout_when_what_was_sent_once_is_acknowledged_after_new_data() {
    // Without timestamps and duplicates as evidence: the clock echoed is that of the copy.
    let mut s = timed_out(&[]);
    s.ack(250, 1, &[], 240);
    assert_eq!(s.sent(), [(250, 10), (250, 11)], "new data first");
    assert_eq!(s.stats().undos, 0);
    s.ack(251, 2, &[], 240);
    assert_eq!((s.stats().undos, s.cwnd()), (1, 11));
    assert_eq!(s.stats().ssthresh, u64::MAX);
    assert_eq!(s.stats().retransmits, 1);
}

#[test]
fn f_rto_goes_on_repairing_when_only_the_new_data_is_acknowledged() {
    let mut s = timed_out(&[]);
    s.ack(260, 1, &[], 240);
    assert_eq!(s.sent(), [(260, 10), (260, 11)]);
    s.ack(280, 1, &[(10, 11)], 260);
    assert_eq!(s.sent(), [(280, 1)]);
    s.ack(281, 1, &[(10, 12)], 260);
    assert_eq!(s.stats().undos, 0);
    assert_eq!((s.ssthresh(), s.stats().timeouts), (5, 1));
    assert_eq!(s.sent(), [(281, 2)]);
}

#[test]
fn without_f_rto_a_late_answer_costs_copies() {
    let mut s = timed_out(&["frto", "undo"]);
    s.ack(250, 1, &[], 240);
    assert_eq!(s.sent(), [(250, 1), (250, 2)]);
}

#[test]
fn a_timestamp_from_before_the_timeout_undoes_it_at_once() {
    let mut s = timed_out(&["frto"]);
    s.ack(250, 1, &[], 20);
    assert_eq!((s.stats().undos, s.cwnd(), s.stats().ssthresh), (1, 11, u64::MAX));
    // Nothing is lost any more.
    assert_eq!(s.sent().first(), Some(&(250, 10)));
    assert_eq!(s.stats().retransmits, 1);
}

/// Returns a script where segments 1, 2 and 3 of ten overtook segment 0, which was sent again at 42 ms.
fn fast_retransmit(without_too: &[&str]) -> Script {
    // With it the second duplicate's segment would wait for the third.
    let mut s = Script::open(without(&[&["tso_defer"], without_too].concat()));
    s.write(60);
    s.ack(40, 0, &[(1, 2)], 20);
    s.ack(41, 0, &[(1, 3)], 20);
    assert_eq!(s.sent().len(), 12);
    s.ack(42, 0, &[(1, 4)], 20);
    assert_eq!(s.sent(), [(42, 0)]);
    assert_eq!((s.ssthresh(), s.stats().recoveries), (5, 1));
    s
}

#[test]
fn a_timestamp_from_before_the_fast_retransmit_undoes_it_when_no_copy_is_out_any_more() {
    let mut s = fast_retransmit(&[]);
    // The first copy arrives after all. As long as the second is on the way, only new data may follow.
    s.ack(43, 4, &[], 20);
    assert_eq!(s.stats().undos, 1);
    assert_eq!((s.cwnd(), s.stats().ssthresh), (11, u64::MAX));
    assert_eq!(s.stats().retransmits, 1);
}

#[test]
fn a_duplicate_reported_for_every_copy_undoes_a_recovery_even_after_its_end() {
    let mut s = fast_retransmit(&[]);
    // The echo shows nothing: as if the clocks were coarse.
    s.ack(43, 12, &[], 42);
    assert_eq!((s.stats().undos, s.ssthresh()), (0, 5));
    let before = s.cwnd();
    s.ack(62, 12, &[(0, 1)], 42);
    assert_eq!((s.stats().undos, s.stats().ssthresh), (1, u64::MAX));
    assert!(s.cwnd() > before && s.cwnd() >= 10, "{}", s.cwnd());
}

#[test]
fn without_undo_the_reduction_stays() {
    let mut s = fast_retransmit(&["undo"]);
    s.ack(43, 12, &[], 20);
    s.ack(62, 12, &[(0, 1)], 42);
    assert_eq!((s.stats().undos, s.ssthresh()), (0, 5));
}

#[test]
fn duplicates_of_what_was_never_sent_again_undo_nothing() {
    let mut s = fast_retransmit(&[]);
    // The network copied two segments: the peer reports more duplicates than there were retransmissions.
    s.ack(43, 0, &[(1, 2), (1, 5)], 20);
    s.ack(44, 0, &[(2, 3), (1, 6)], 20);
    s.ack(64, 12, &[], 42);
    assert_eq!((s.stats().undos, s.ssthresh()), (0, 5));
}

#[test]
fn a_timeout_during_fast_recovery_does_not_halve_again() {
    let mut s = fast_retransmit(&[]);
    s.until(1_000);
    assert!(s.stats().timeouts >= 1);
    assert_eq!((s.ssthresh(), s.cwnd()), (5, 1));
}

#[test]
fn reordering_seen_makes_later_gaps_wait_a_quarter_of_the_round_trip() {
    let mut s = Script::open(reno());
    s.write(60);
    // Segment 0 arrives after 1 and 2: reordering, and no loss.
    s.ack(40, 0, &[(1, 2)], 20);
    s.ack(41, 0, &[(1, 3)], 20);
    s.ack(41, 3, &[], 20);
    assert_eq!(s.stats().retransmits, 0);
    // Now segment 3 is overtaken by many: only 5 ms after its time is it lost.
    for n in 5..9 {
        s.ack(41, 3, &[(4, n)], 20);
    }
    assert_eq!(s.stats().retransmits, 0);
    s.until(43);
    assert_eq!(s.stats().retransmits, 0);
    s.until(60);
    assert_eq!((s.stats().retransmits, s.stats().recoveries), (1, 1));
    let mut s = Script::open(without(&["rack_reordering"]));
    s.write(60);
    s.ack(40, 0, &[(1, 2)], 20);
    s.ack(41, 0, &[(1, 3)], 20);
    s.ack(41, 3, &[], 20);
    for n in 5..8 {
        s.ack(41, 3, &[(4, n)], 20);
    }
    assert_eq!(s.stats().retransmits, 1, "without the mechanism the third is enough");
}

#[test]
fn a_receiver_that_reneges_gets_everything_again() {
    let mut s = Script::open(reno());
    s.write(10);
    s.ack(40, 0, &[(1, 4)], 20);
    s.ack(41, 0, &[(1, 5)], 20);
    assert_eq!(s.sent().last(), Some(&(40, 0)));
    // Segment 0 arrived; the peer no longer reports 1 to 4, which it had reported.
    s.ack(60, 1, &[], 40);
    let none = s.sent();
    assert!(none.is_empty(), "{none:?}");
    // Half a round trip later it is believed: from segment 1 on.
    s.until(75);
    assert_eq!(s.sent(), [(70, 1)]);
    assert_eq!(s.stats().timeouts, 1);
    s.ack(90, 2, &[], 70);
    assert_eq!(s.sent(), [(90, 2), (90, 3)]);
}

/// Returns when segment 13 was sent again. With 12 it was sent at 40 ms, 14 was at 50 ms. One acknowledgement at 70 ms
/// covers 12 and reports 14.
fn resent_after_a_mixed_acknowledgement(without_too: &[&str]) -> Vec<(u64, u32)> {
    let mut s = Script::open(without(without_too));
    s.write(60);
    s.ack(40, 2, &[], 20);
    s.ack(50, 4, &[], 20);
    assert_eq!(s.sent()[10..], [40, 40, 40, 40, 50, 50, 50, 50].into_iter().zip(10..18).collect::<Vec<_>>());
    s.ack(70, 13, &[(14, 15)], 50);
    s.until(80);
    s.sent().into_iter().filter(|&(_, number)| number == 13).collect()
}

#[test]
fn the_round_trip_of_what_is_acknowledged_judges_what_was_sent_with_it() {
    // 13 has been on its way no longer than 12 was: it is lost a quarter of the least round trip later, and 2 ms.
    assert_eq!(resent_after_a_mixed_acknowledgement(&[]), [(77, 13)]);
    // By the round trip of 14 it should have arrived at 60 ms.
    assert_eq!(resent_after_a_mixed_acknowledgement(&["rack_last"]), [(70, 13)]);
}
