//! BBR over a bottleneck, from handshake to steady state, against its authors' publications.

mod common;

use common::{Pair, Seen, Side::*, Verdict, ms};
use streamgauge_base::{Duration, Instant};
use streamgauge_transport::tcp::{Config, CongestionControl};

/// Bytes/s of the bottleneck: 10 Mbit/s.
const RATE: u64 = 1_250_000;
const IP_BYTES: u64 = 1500;

/// Serialises the server's segments at `RATE`, behind at most `limit` bytes.
fn bottleneck(limit: u64) -> impl FnMut(&Seen) -> Verdict {
    let mut free = Instant::ZERO;
    move |seen| {
        if seen.from != Server {
            return Verdict::Deliver;
        }
        let time = |bytes: u64| Duration::from_nanos(bytes * 1_000_000_000 / RATE);
        let backlog = free.saturating_since(seen.at);
        if backlog > time(limit) {
            return Verdict::Drop;
        }
        free = free.max(seen.at) + time(u64::from(seen.segment.ip_bytes()));
        Verdict::Late(free - seen.at)
    }
}

/// Runs a greedy flow of `congestion` through a bottleneck with a queue of `limit` bytes; 20 ms round trip.
fn flow(congestion: CongestionControl, limit: u64, seed: u64) -> Pair {
    let config = Config { congestion, seed, ..Config::default() };
    let mut pair = Pair::new(config.clone(), config, ms(10)).with_script(bottleneck(limit));
    pair.serve(u32::MAX);
    pair
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Returns the payload bytes that the client reads from `from` to `to` ms.
fn goodput(pair: &mut Pair, from: u64, to: u64) -> f64 {
    pair.run_until(at(from));
    let before = pair.end(Client).received;
    pair.run_until(at(to));
    (pair.end(Client).received - before) as f64 / ((to - from) as f64 / 1e3)
}

#[test]
fn it_fills_the_link_and_leaves_the_queue_short() {
    for seed in 0..4 {
        let mut pair = flow(CongestionControl::BBR, 250_000, seed);
        let rate = goodput(&mut pair, 2_000, 9_000);
        assert!(rate > 0.93 * RATE as f64 * 1448.0 / 1500.0, "{rate}");
        let stats = pair.tcp(Server).stats();
        assert_eq!(stats.retransmits, 0);
        // Twice the product is the ceiling; the queue stays well below it.
        let srtt = stats.srtt.unwrap();
        assert!(srtt < ms(32), "{srtt:?}");
        assert!(stats.min_rtt.unwrap() < ms(23));
        let product = RATE * 1448 / 1500 * stats.min_rtt.unwrap().as_nanos() / 1_000_000_000;
        assert!((2 * product..2 * product + 14 * 1448).contains(&stats.cwnd), "{} {product}", stats.cwnd);
    }
}

#[test]
fn once_in_ten_seconds_it_empties_the_queue_for_200_ms() {
    let mut pair = flow(CongestionControl::BBR, 250_000, 1);
    let mut small = 0;
    for t in 2_000..13_000 {
        pair.run_until(at(t));
        small += u32::from(pair.tcp(Server).stats().cwnd <= 4 * 1448);
    }
    assert!((200..=260).contains(&small), "{small} ms with four segments");
}

#[test]
fn segments_leave_at_the_pacing_rate_and_two_at_a_time() {
    let mut pair = flow(CongestionControl::BBR, 250_000, 1);
    pair.run_until(at(5_000));
    let times: Vec<u64> =
        pair.data(Server).iter().map(|seen| seen.at.as_nanos()).filter(|&t| t > 4_000_000_000).collect();
    let bursts: Vec<&[u64]> = times.chunk_by(|a, b| a == b).collect();
    assert!(bursts.iter().all(|burst| burst.len() <= 2), "{:?}", bursts.iter().map(|b| b.len()).max());
    // Two segments at the bandwidth last 2.4 ms; the phases' gains are 5/4, 3/4 and 1.
    let gaps: Vec<u64> = bursts.windows(2).map(|pair| pair[1][0] - pair[0][0]).collect();
    let cruise = gaps.iter().filter(|&&gap| (2_350_000..2_500_000).contains(&gap)).count();
    assert!(cruise > gaps.len() / 2, "{cruise} of {}", gaps.len());
}

#[test]
fn without_pacing_a_window_leaves_in_bursts() {
    let mut config = Config { congestion: CongestionControl::BBR, ..Config::default() };
    config.mechanisms.pacing = false;
    let mut pair = Pair::new(config.clone(), config, ms(10)).with_script(bottleneck(250_000));
    pair.serve(400_000);
    pair.run_until(at(3_000));
    assert_eq!(pair.tcp(Server).stats().pacing_rate, None);
    let times: Vec<u64> = pair.data(Server).iter().map(|seen| seen.at.as_nanos()).collect();
    assert!(times.chunk_by(|a, b| a == b).any(|burst| burst.len() >= 6));
}

#[test]
fn random_loss_of_a_per_cent_hardly_slows_it_where_cubic_collapses() {
    let rate = |congestion| {
        let mut pair = flow(congestion, 4_500, 1);
        let (mut link, mut count) = (bottleneck(250_000), 0u64);
        pair.script = Box::new(move |seen| {
            count += u64::from(seen.from == Server);
            if seen.from == Server && count.is_multiple_of(101) { Verdict::Drop } else { link(seen) }
        });
        goodput(&mut pair, 2_000, 12_000)
    };
    let (bbr, cubic) = (rate(CongestionControl::BBR), rate(CongestionControl::CUBIC));
    assert!(bbr > 0.85 * RATE as f64, "{bbr}");
    assert!(cubic < 0.85 * bbr, "{cubic} {bbr}");
}

#[test]
fn a_writer_with_less_to_say_does_not_make_it_forget_the_bandwidth() {
    let mut pair = flow(CongestionControl::BBR, 250_000, 1);
    pair.end(Server).outbox.clear();
    pair.serve(2_000_000);
    pair.run_until(at(4_000));
    let before = pair.tcp(Server).stats().pacing_rate.unwrap();
    // A segment every 50 ms for three seconds, then a burst.
    for n in 0..60 {
        pair.serve(1448);
        pair.run_until(at(4_000 + 50 * (n + 1)));
    }
    let after = pair.tcp(Server).stats().pacing_rate.unwrap();
    assert!(after > before * 7 / 10, "{before} {after}");
    let sent = pair.end(Client).received;
    pair.serve(1_000_000);
    pair.run_until(at(8_000));
    assert_eq!(pair.end(Client).received - sent, 1_000_000, "a second at 8 Mbit/s");
}

#[test]
fn its_start_does_not_lose_where_the_queue_holds_what_it_makes() {
    // The gain of start-up makes two products of queue in a round trip after the pipe is full.
    let mut pair = flow(CongestionControl::BBR, 20 * IP_BYTES * 3, 1);
    pair.run_until(at(1_500));
    assert_eq!(pair.tcp(Server).stats().retransmits, 0);
    assert!(pair.tcp(Server).stats().ssthresh < 40 * 1448, "start-up is over");
}

#[test]
fn version_3_fills_the_link_and_probes_the_round_trip_at_half_the_product() {
    let mut pair = flow(CongestionControl::BBR3, 250_000, 1);
    let (mut queued, mut times) = (Duration::ZERO, 0);
    let rate = goodput(&mut pair, 2_000, 3_000);
    assert!(rate > 0.9 * RATE as f64 * 1448.0 / 1500.0, "{rate}");
    for t in 3_000..4_900 {
        pair.run_until(at(t));
        queued += pair.tcp(Server).stats().srtt.unwrap().saturating_sub(ms(21));
        times += 1;
    }
    assert!(queued < ms(10) * times, "{queued:?} in {times} samples");
    assert_eq!(pair.tcp(Server).stats().retransmits, 0);
    let mut small = 0;
    for t in 4_900..9_500 {
        pair.run_until(at(t));
        let cwnd = pair.tcp(Server).stats().cwnd;
        small += u32::from((8 * 1448..=12 * 1448).contains(&cwnd));
    }
    assert!((200..=260).contains(&small), "{small} ms at about half of 17 to 20 segments");
}

#[test]
fn version_3_loses_less_than_version_1_where_the_queue_is_short() {
    // Three segments.
    let lost = |congestion: CongestionControl| {
        let mut pair = flow(congestion.clone(), 4_500, 1);
        pair.run_until(at(3_000));
        let before = pair.tcp(Server).stats().retransmits;
        let rate = goodput(&mut pair, 3_000, 13_000);
        assert!(rate > 0.8 * RATE as f64, "{congestion:?}: {rate}");
        pair.tcp(Server).stats().retransmits - before
    };
    let (first, third) = (lost(CongestionControl::BBR), lost(CongestionControl::BBR3));
    assert!(3 * third < first, "{third} of version 3, {first} of version 1");
}
