//! Segments that leave together: a super-segment that waits for the acknowledgement with which it would be longer. The
//! peer is the script; its round trip is 20 ms.

mod common;

use common::script::Script;
use common::without;

/// Sends eight segments of a window of ten at 20 ms and one at `millis`; then the writer has twenty more. Returns the
/// segments sent from then on, with an acknowledgement of two at 40 ms.
fn sent(millis: u64, without_too: &[&str]) -> Vec<(u64, u32)> {
    let mut s = Script::open(without(without_too));
    s.write(8);
    s.until(millis);
    s.write(1);
    assert_eq!(s.sent().len(), 9);
    s.write(20);
    s.ack(40, 2, &[], 20);
    s.sent()
}

#[test]
fn a_single_segment_waits_if_an_acknowledgement_is_due() {
    // There is room for five at 40 ms, and the fifth waits again.
    assert_eq!(sent(39, &[]), [(40, 9), (40, 10), (40, 11), (40, 12)]);
    assert_eq!(sent(39, &["tso_defer"]), [(39, 9), (40, 10), (40, 11), (40, 12), (40, 13)]);
}

#[test]
fn it_does_not_wait_longer_than_a_millisecond() {
    assert_eq!(sent(38, &[])[0], (38, 9));
}

#[test]
fn it_does_not_wait_after_a_pause() {
    let mut s = Script::open(without(&[]));
    s.write(8);
    s.write(1);
    s.until(39);
    s.sent();
    s.write(20);
    assert_eq!(s.sent(), [(39, 9)]);
}

#[test]
fn two_segments_do_not_wait() {
    let mut s = Script::open(without(&[]));
    s.write(7);
    s.until(39);
    s.write(1);
    s.sent();
    s.write(20);
    assert_eq!(s.sent(), [(39, 8), (39, 9)]);
}

#[test]
fn repairing_does_not_wait() {
    let mut s = Script::open(without(&[]));
    s.write(30);
    for n in 2..=4 {
        s.ack(40, 0, &[(1, n)], 20);
    }
    assert_eq!(s.stats().recoveries, 1);
    s.sent();
    // From here on one segment is sent for about every second that arrives.
    for n in 5..=10 {
        s.ack(40, 0, &[(1, n)], 20);
    }
    assert!(s.sent().len() >= 2);
}
