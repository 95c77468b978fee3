//! Tail loss probes (RFC 8985 section 7). The peer is the script; its round trip is 20 ms.

mod common;

use common::script::Script;
use common::{reno, without};

#[test]
fn the_last_segment_goes_out_again_after_two_round_trips() {
    let mut s = Script::open(reno());
    s.write(5);
    s.sent();
    s.until(100);
    // 2 * 20 ms and 2 ms for the rounding of timers after 20 ms.
    assert_eq!(s.sent(), [(62, 4)]);
    assert_eq!((s.stats().loss_probes, s.stats().timeouts), (1, 0));
    // One probe an episode; then the timeout of 220 ms, which restarts with the probe.
    s.until(400);
    assert_eq!(s.sent(), [(282, 0)]);
    assert_eq!((s.stats().loss_probes, s.stats().timeouts), (1, 1));
}

#[test]
fn a_lone_segment_is_probed_no_earlier_than_its_timeout() {
    let mut s = Script::open(reno());
    s.write(1);
    s.sent();
    s.until(300);
    assert_eq!(s.sent(), [(240, 0)]);
    assert_eq!((s.stats().loss_probes, s.stats().timeouts), (1, 0));
    s.until(500);
    assert_eq!((s.sent(), s.stats().timeouts), (vec![(460, 0)], 1));
}

#[test]
fn a_probe_brings_the_gap_to_light() {
    // The last three of ten are lost, the last of them is probed.
    let mut s = Script::open(reno());
    s.write(10);
    s.ack(40, 7, &[], 20);
    s.sent();
    s.until(83);
    assert_eq!(s.sent(), [(82, 9)]);
    s.ack(102, 7, &[(9, 10)], 82);
    assert_eq!(s.sent(), [(102, 7)]);
    assert_eq!((s.stats().recoveries, s.stats().timeouts), (1, 0));
}

#[test]
fn new_data_is_the_better_probe_and_does_not_ask_the_window() {
    let mut s = Script::open(reno());
    s.write(30);
    assert_eq!(s.sent().len(), 10);
    s.until(70);
    assert_eq!(s.sent(), [(62, 10)]);
    assert_eq!((s.stats().loss_probes, s.stats().retransmits), (1, 0));
}

#[test]
fn a_loss_that_the_probe_repaired_is_a_congestion_event() {
    let mut s = Script::open(reno());
    s.write(10);
    s.ack(40, 9, &[], 20);
    s.sent();
    s.until(280);
    // Segment 9 alone: its probe waits as for a delayed acknowledgement, until the timeout.
    assert_eq!(s.sent(), [(260, 9)]);
    s.ack(280, 10, &[], 260);
    assert_eq!(s.stats().ssthresh, u64::MAX, "the answer may be to either copy");
    let cwnd = s.cwnd();
    s.write(2);
    s.ack(300, 11, &[], 280);
    // No duplicate was reported: one of the two was lost.
    assert_eq!(s.ssthresh(), cwnd / 2);
    assert_eq!(s.stats().timeouts, 0);
}

#[test]
fn a_probe_that_the_peer_reports_as_duplicate_costs_nothing() {
    let mut s = Script::open(reno());
    s.write(10);
    s.ack(40, 9, &[], 20);
    s.until(280);
    s.ack(281, 10, &[], 20);
    s.ack(282, 10, &[(9, 10)], 260);
    s.write(2);
    s.ack(302, 12, &[], 282);
    assert_eq!((s.stats().ssthresh, s.stats().loss_probes), (u64::MAX, 1));
}

#[test]
fn without_probes_the_timeout_does_it() {
    let mut s = Script::open(without(&["tlp"]));
    s.write(5);
    s.sent();
    s.until(300);
    assert_eq!((s.sent(), s.stats().timeouts), (vec![(240, 0)], 1));
}
