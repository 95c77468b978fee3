//! The peer's window, window probes, Nagle's algorithm and back-pressure, segment by segment, on a link of 10 ms each
//! way.

mod common;

use common::{MSS, Pair, Seen, Side::*, Verdict, at, ms, pair, reno, sent_at, without};
use streamgauge_base::Duration;
use streamgauge_transport::tcp::{Config, ConnectionEvent};

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
fn without_whole_segments_what_the_window_has_left_leaves_too_and_a_block_ends_where_it_would() {
    // Eleven segments and 144 B; blocks of half of that, five segments, behind the initial window's ten.
    let client = Config { receive_window: 16_072, delayed_ack: Duration::ZERO, ..reno() };
    let sizes = |server: Config| {
        let mut pair = Pair::new(client.clone(), server, ms(10));
        pair.serve(40 * MSS);
        pair.run();
        pair.data(Server).iter().take(30).map(|s| (s.at, s.len())).collect::<Vec<_>>()
    };
    assert!(sizes(reno()).iter().all(|&(_, size)| size == MSS));
    let cut = sizes(without(&["whole_segments"]));
    let first = cut.iter().position(|&(_, size)| size < MSS).expect("something is cut");
    // It leaves with the segment before it, and the block ends with the twenty-fifth one.
    assert_eq!((first, cut[first - 1].0), (21, cut[first].0));
    let then: Vec<_> = cut[first..].iter().map(|&(_, size)| size).take(5).collect();
    assert_eq!(then, [144, MSS, MSS, MSS, MSS - 144]);
}

#[test]
fn a_window_of_twelve_segments_keeps_twelve_under_way() {
    // Windows 2000's over Ethernet, where a segment waits for the reader as its acknowledgement leaves.
    let client = Config { receive_window: 17_520, ..reno() };
    let mut pair = Pair::new(client, reno(), ms(500));
    pair.serve(400 * MSS);
    pair.run();
    let sent: Vec<_> = pair.data(Server).iter().map(|s| s.at).collect();
    let within = |from: u64| {
        sent.iter().filter(|&&at| at >= common::at(from) && at < common::at(from + 1_000)).count()
    };
    assert_eq!([within(8_000), within(12_000), within(20_000)], [12; 3]);
}

#[test]
fn what_follows_a_closed_window_starts_with_a_fresh_timeout() {
    // All that the reopened window lets out is lost.
    let script = |seen: &Seen| match (seen.segment.payload.is_empty(), seen.at) {
        (false, now) if now == at(5010) => Verdict::Drop,
        _ => Verdict::Deliver,
    };
    let client = Config { receive_window: u64::from(4 * MSS), ..reno() };
    let mut pair = Pair::new(client, without(&["tlp"]), ms(10)).with_script(script);
    pair.end(Client).reads = false;
    pair.serve(11 * MSS);
    pair.run_until(at(5000));
    assert!(pair.tcp(Server).stats().rto > ms(1000), "the probes have backed off");
    pair.end(Client).reads = true;
    pair.run();
    let sent: Vec<_> =
        pair.data(Server).iter().filter(|s| s.segment.seq == 5 * MSS + 1).map(|s| s.at).collect();
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
    // A buffer for four segments holds five.
    assert_eq!(pair.data(Server).len(), 5);
    assert_eq!(pair.acks(Client).last().unwrap().segment.window, 0);
    // Probes are empty, one below the window, backed off, and answered.
    let probes: Vec<_> =
        pair.acks(Server).iter().filter(|s| s.segment.seq == 5 * MSS).map(|s| s.at).collect();
    assert!(probes.len() >= 3, "{probes:?}");
    let gaps: Vec<_> = probes.windows(2).map(|w| (w[1] - w[0]).as_nanos()).collect();
    // The backoff doubles, and counts from the answer, a round trip of 20 ms after the probe.
    let backoffs: Vec<_> = gaps.iter().map(|gap| gap - 20_000_000).collect();
    assert!(backoffs.windows(2).all(|w| w[1].abs_diff(2 * w[0]) < 2_000_000), "{gaps:?}");
    assert_eq!(pair.tcp(Server).stats().probes, probes.len() as u64);
    // The reader returns; its window update is sent at once.
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
    let mut pair = pair(Config { send_buffer: Some(30_000), ..reno() });
    pair.serve(100_000);
    pair.run_until(at(31));
    assert_eq!((pair.ends[1].written, pair.tcp(Server).writable()), (30_000, 0));
    pair.run();
    assert_eq!(pair.ends[0].received, 100_000);
    let wakes = pair.ends[1].events.iter().filter(|(_, e)| *e == ConnectionEvent::Writable).count();
    // Each wake finds a third of the buffer free, so there are few.
    assert!((4..=10).contains(&wakes), "{wakes}");
}
