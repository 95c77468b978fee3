//! Segment by segment: what one end says at what time, on a link of 10 ms each way unless said otherwise.

mod common;

use common::{MSS, Pair, Seen, Side::*, Verdict, at, drop_data, ms};
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_transport::tcp::{
    CloseReason, Config, CongestionControl, Connection, ConnectionEvent, Mechanisms, flags,
};

fn reno() -> Config {
    Config { congestion: CongestionControl::Reno, coarse_timers: false, ..Config::default() }
}

fn without(names: &[&str]) -> Config {
    let mut config = reno();
    assert!(names.iter().all(|name| config.mechanisms.switch_off(name)));
    config
}

fn pair(config: Config) -> Pair {
    Pair::new(config.clone(), config, ms(10))
}

/// Segments' numbers within the stream, counted in MSS.
fn numbers<'a>(seen: impl IntoIterator<Item = &'a &'a Seen>) -> Vec<u32> {
    seen.into_iter().map(|seen| (seen.segment.seq - 1) / MSS).collect()
}

/// Data the server sent at `millis`, by number.
fn sent_at(pair: &Pair, millis: u64) -> Vec<u32> {
    numbers(pair.data(Server).iter().filter(|seen| seen.at == at(millis)))
}

#[test]
fn handshake() {
    let mut pair = pair(Config { initial_sequence: 700, ..Config::default() });
    pair.run();
    let said: Vec<_> =
        pair.log.iter().map(|s| (s.at, s.from, s.segment.flags, s.segment.seq, s.segment.ack)).collect();
    assert_eq!(
        said,
        [
            (at(0), Client, flags::SYN, 700, 0),
            (at(10), Server, flags::SYN | flags::ACK, 700, 701),
            (at(20), Client, flags::ACK, 701, 701),
        ]
    );
    assert_eq!(pair.ends[0].events, [(at(20), ConnectionEvent::Opened)]);
    assert_eq!(pair.ends[1].events, [(at(30), ConnectionEvent::Opened)]);
    assert_eq!(pair.tcp(Server).stats().srtt, Some(ms(20)));
    assert_eq!(pair.next_wakeup(), None);
}

#[test]
fn a_lost_syn_is_sent_again_after_1_s_then_2_s() {
    let mut pair = pair(Config::default()).with_script(|seen| match seen.at {
        now if now < at(3000) => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    pair.run();
    let syns: Vec<_> = pair.log.iter().filter(|s| s.segment.flags == flags::SYN).map(|s| s.at).collect();
    assert_eq!(syns, [at(0), at(1000), at(3000)]);
    assert!(pair.tcp(Client).is_open());
    // Two lost SYNs: a cautious start.
    assert_eq!(pair.tcp(Client).stats().cwnd, u64::from(MSS));
}

#[test]
fn an_unanswered_syn_gives_up() {
    let mut pair = pair(Config { max_syn_retries: 3, ..Config::default() }).with_script(|_| Verdict::Drop);
    pair.run();
    assert_eq!(pair.log.len(), 4);
    assert_eq!(pair.ends[0].events, [(at(15_000), ConnectionEvent::Closed(CloseReason::TimedOut))]);
}

#[test]
fn a_lost_last_ack_of_the_handshake_is_made_up_by_data() {
    let mut pair = pair(Config::default()).with_script(|seen| match seen.at {
        now if seen.from == Client && now == at(20) && seen.segment.payload.is_empty() => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    pair.end(Client).outbox.push_back(Chunk::bytes(*b"GET"));
    pair.run();
    assert_eq!(pair.ends[1].received, 3);
}

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
fn acknowledgements_come_for_every_segment_then_every_second_one() {
    let mut pair = pair(reno());
    pair.serve(100 * MSS);
    pair.run();
    let acks: Vec<_> = pair.acks(Client).iter().skip(1).map(|s| (s.segment.ack - 1) / MSS).collect();
    let steps: Vec<_> = std::iter::once(acks[0]).chain(acks.windows(2).map(|w| w[1] - w[0])).collect();
    // Sixteen quick ones, of which the handshake used none; then every second.
    assert_eq!(steps[..16], [1; 16]);
    assert!(steps[16..].iter().all(|&step| step == 2), "{steps:?}");
}

#[test]
fn a_delayed_acknowledgement_echoes_the_first_clock_it_answers() {
    let mut pair = pair(Config { quick_acks: 0, ..reno() });
    // A reader that drained the queue would acknowledge the end of what was written.
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
    let mut pair = pair(Config { quick_acks: 1, ..reno() });
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
    let mut pair = pair(Config { quick_acks: 1, ..reno() });
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
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, ..reno() }).with_script(move |seen| {
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
fn a_window_below_two_segments_is_filled_by_two_smaller_ones() {
    let client = Config { receive_window: 2_000, ..reno() };
    let mut pair = Pair::new(client, reno(), ms(10));
    pair.serve(10_000);
    pair.run();
    let sizes: Vec<_> = pair.data(Server).iter().map(|s| (s.at, s.len())).collect();
    assert_eq!(sizes[..2], [(at(30), 1_000), (at(30), 1_000)]);
    assert!(sizes.iter().all(|&(_, size)| size == 1_000));
    // No round trip waits for a timer.
    assert_eq!(sizes.last().unwrap().0, at(30 + 4 * 20));
}

#[test]
fn proportional_rate_reduction_halves_smoothly() {
    let mut pair = pair(Config { delayed_ack: Duration::ZERO, initial_window: 40, ..reno() })
        .with_script(drop_data(&[0]));
    pair.serve(400 * MSS);
    pair.run_until(at(55));
    // 40 in flight, 39 duplicates: the first two let out a new segment each, the rest about one for two.
    let flight = sent_at(&pair, 50);
    assert_eq!(flight[..3], [40, 41, 0]);
    assert!((20..=22).contains(&flight.len()), "{flight:?}");
    // By the end of recovery what is in flight has come down to the threshold.
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
    // Its SACK comes at 50 ms; a quarter of the round trip and 2 ms later it is no reordering.
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
    // Repairs too: a recovery in which more was sent than has arrived must still replace what arrives.
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
    // The last acknowledgement comes at 50 ms; SRTT 20 ms + the floor of 200 ms.
    assert_eq!(sent[4..], [at(30), at(270)]);
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.timeouts, stats.retransmits, stats.recoveries), (1, 1, 0));
    // The window had not grown: five segments never filled it.
    assert_eq!(stats.ssthresh, u64::from(5 * MSS));
}

#[test]
fn retransmitting_the_oldest_segment_restarts_the_timer() {
    // The first is lost, the others arrive so late that their SACKs come 5 ms before the timer would expire.
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
fn the_window_limits_what_is_outstanding() {
    let client = Config { receive_window: 16_384, delayed_ack: Duration::ZERO, ..reno() };
    let mut pair = Pair::new(client, reno(), ms(10));
    pair.serve(100 * MSS);
    pair.run();
    // Eleven whole segments fit in 16 kB; the rest of the window waits, for Nagle's sake.
    assert_eq!(sent_at(&pair, 30).len(), 10);
    assert_eq!(sent_at(&pair, 50).len(), 11);
    assert_eq!(sent_at(&pair, 70).len(), 11);
    assert!(pair.data(Server).iter().rev().skip(1).all(|s| s.len() == MSS));
}

#[test]
fn what_follows_a_closed_window_starts_with_a_fresh_timeout() {
    // What the reopened window lets out is lost, all of it.
    let script = |seen: &Seen| match (seen.segment.payload.is_empty(), seen.at) {
        (false, now) if now == at(5010) => Verdict::Drop,
        _ => Verdict::Deliver,
    };
    let client = Config { receive_window: u64::from(4 * MSS), ..reno() };
    let mut pair = Pair::new(client, without(&["tlp"]), ms(10)).with_script(script);
    pair.end(Client).reads = false;
    pair.serve(10 * MSS);
    pair.run_until(at(5000));
    assert!(pair.tcp(Server).stats().rto > ms(1000), "the probes have backed off");
    pair.end(Client).reads = true;
    pair.run();
    let sent: Vec<_> =
        pair.data(Server).iter().filter(|s| s.segment.seq == 4 * MSS + 1).map(|s| s.at).collect();
    let [first, again] = sent[..] else { panic!("{sent:?}") };
    assert_eq!(first, at(5010));
    // SRTT and the floor of 200 ms, as if nothing had been wrong: nothing was.
    assert!((200..=300).contains(&((again - first).as_nanos() / 1_000_000)), "{sent:?}");
}

#[test]
fn a_closed_window_is_probed_and_the_update_reopens_it() {
    let client = Config { receive_window: u64::from(4 * MSS), ..reno() };
    let mut pair = Pair::new(client, reno(), ms(10));
    pair.end(Client).reads = false;
    pair.serve(10 * MSS);
    pair.run_until(at(2000));
    assert_eq!(pair.data(Server).len(), 4);
    assert_eq!(pair.acks(Client).last().unwrap().segment.window, 0);
    // Probes are empty, one below the window, backed off, and answered.
    let probes: Vec<_> =
        pair.acks(Server).iter().filter(|s| s.segment.seq == 4 * MSS).map(|s| s.at).collect();
    assert!(probes.len() >= 3, "{probes:?}");
    let gaps: Vec<_> = probes.windows(2).map(|w| (w[1] - w[0]).as_nanos()).collect();
    // The backoff doubles, and counts from the answer, a round trip of 20 ms after the probe.
    let backoffs: Vec<_> = gaps.iter().map(|gap| gap - 20_000_000).collect();
    assert!(backoffs.windows(2).all(|w| w[1].abs_diff(2 * w[0]) < 2_000_000), "{gaps:?}");
    assert_eq!(pair.tcp(Server).stats().probes, probes.len() as u64);
    // The reader comes back; its window update goes out at once.
    pair.end(Client).reads = true;
    pair.settle();
    let update = pair.log.last().unwrap();
    assert_eq!((update.at, update.from, update.segment.window), (at(2000), Client, 4 * MSS));
    pair.run();
    assert_eq!(pair.ends[0].received, u64::from(10 * MSS));
    assert_eq!(pair.tcp(Server).stats().timeouts, 0);
}

#[test]
fn a_lost_window_update_is_made_up_by_a_probe() {
    let client = Config { receive_window: u64::from(4 * MSS), ..reno() };
    let mut pair = Pair::new(client, reno(), ms(10)).with_script(|seen| match seen.at {
        now if now == at(300) && seen.from == Client => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    pair.end(Client).reads = false;
    pair.serve(10 * MSS);
    pair.run_until(at(300));
    pair.end(Client).reads = true;
    pair.run();
    assert!(pair.log.iter().any(|s| s.dropped && s.segment.window == 4 * MSS));
    assert_eq!(pair.ends[0].received, u64::from(10 * MSS));
}

#[test]
fn small_reads_do_not_open_a_silly_window() {
    let client = Config { receive_window: u64::from(8 * MSS), ..reno() };
    let mut pair = Pair::new(client, reno(), ms(10));
    pair.end(Client).reads = false;
    pair.serve(100 * MSS);
    pair.run_until(at(500));
    for i in 0..100 {
        assert!(pair.end(Client).tcp.read(100).is_some());
        pair.run_until(at(510 + 10 * i));
    }
    assert!(pair.data(Server).iter().all(|s| s.len() == MSS));
}

#[test]
fn nagle_holds_a_second_short_segment_back() {
    for (no_delay, expected) in [(false, [30, 50].as_slice()), (true, &[30, 31, 32])] {
        let mut pair = pair(Config { no_delay, ..reno() });
        pair.open();
        for millis in [30, 31, 32] {
            pair.run_until(at(millis));
            pair.serve(100);
            pair.settle();
        }
        pair.run();
        let times: Vec<_> = pair.data(Server).iter().map(|s| s.at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, expected, "no_delay {no_delay}");
    }
}

#[test]
fn back_pressure_stops_a_writer_and_wakes_it() {
    let mut pair = pair(Config { send_buffer: 30_000, ..reno() });
    pair.serve(100_000);
    pair.run_until(at(31));
    assert_eq!((pair.ends[1].written, pair.tcp(Server).writable()), (30_000, 0));
    pair.run();
    assert_eq!(pair.ends[0].received, 100_000);
    let wakes = pair.ends[1].events.iter().filter(|(_, e)| *e == ConnectionEvent::Writable).count();
    // Each wake finds a third of the buffer free, so there are few.
    assert!((4..=10).contains(&wakes), "{wakes}");
}

#[test]
fn closing_sends_a_fin_with_the_last_data_and_both_ends_finish() {
    let mut pair = pair(reno());
    pair.serve(2 * MSS + 5);
    (pair.end(Server).close_after, pair.end(Client).close_after) = (true, false);
    pair.run();
    let last = *pair.data(Server).last().unwrap();
    assert!(last.segment.has(flags::FIN) && last.len() == 5);
    assert!(pair.ends[0].saw(ConnectionEvent::Closed(CloseReason::Finished)));
    assert_eq!(pair.ends[0].received, u64::from(2 * MSS + 5));
    // Half-closed: the other direction still carries data.
    assert!(!pair.tcp(Client).is_closed() && !pair.tcp(Server).is_closed());
    pair.end(Client).outbox.push_back(Chunk::filler(7));
    pair.end(Client).close_after = true;
    pair.run();
    assert_eq!(pair.ends[1].received, 7);
    assert!(pair.tcp(Client).is_closed() && pair.tcp(Server).is_closed());
    assert_eq!(pair.next_wakeup(), None);
    assert_eq!(pair.end(Server).tcp.write(Chunk::filler(1)), 0);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut lost = false;
    let mut pair = pair(reno()).with_script(move |seen| match seen.segment.has(flags::FIN) && !lost {
        true => {
            lost = true;
            Verdict::Drop
        }
        false => Verdict::Deliver,
    });
    pair.open();
    pair.end(Server).close_after = true;
    pair.run();
    let fins: Vec<_> = pair.log.iter().filter(|s| s.segment.has(flags::FIN)).map(|s| s.at).collect();
    assert_eq!(fins, [at(30), at(250)]);
    assert!(pair.ends[0].saw(ConnectionEvent::Closed(CloseReason::Finished)));
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = pair(reno());
    pair.serve(100 * MSS);
    pair.run_until(at(45));
    pair.end(Client).tcp.abort();
    pair.run();
    assert!(pair.ends[0].saw(ConnectionEvent::Closed(CloseReason::Aborted)));
    assert!(pair.ends[1].saw(ConnectionEvent::Closed(CloseReason::Reset)));
    assert_eq!(pair.next_wakeup(), None);
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

#[test]
fn timers_are_none_when_there_is_nothing_to_wait_for() {
    let mut connection = Connection::listen(Config::default());
    assert_eq!(connection.poll_timeout(), None);
    connection.handle_timeout(Instant::FAR_FUTURE);
    assert!(connection.poll_transmit(at(0)).is_none() && connection.poll_event().is_none());
}
