//! The state of TCP, sampled into the record.

mod common;

use common::*;
use streamgauge_base::{Duration, Event, Instant};
use streamgauge_path::spec::{Limit, PathSpec};
use streamgauge_plan::{FlowSpec, Keep, TrialPlan};
use streamgauge_sim::{EndedBy, SimError, run};

/// Makes a trial at 5 Mbit/s with a queue of 30 kB and random loss, 30 ms there and back.
fn lossy(flows: Vec<FlowSpec>, sample: Option<Duration>) -> TrialPlan {
    let down = vec![loss(0.003), bottleneck(5_000_000, Limit::Bytes(30_000)), delay(15)];
    let mut plan = plan(PathSpec { down, up: vec![delay(15)] }, flows, 20, 7);
    plan.host_jitter = Duration::from_micros(200);
    plan.tcp_sample = sample;
    plan
}

fn samples(record: &Rows) -> impl Iterator<Item = &Event> {
    record.events.iter().filter(|event| event.name.starts_with("tcp_"))
}

/// Values of `name` of flow 0 by time.
fn series(record: &Rows, name: &str) -> Vec<(Instant, f64)> {
    let of_flow = |e: &&&Event| e.flow.is_some_and(|flow| flow.0 == 0);
    record.named(name).iter().filter(of_flow).map(|e| (e.at, e.value.unwrap())).collect()
}

#[test]
fn sampling_changes_nothing_but_adds_samples() {
    let flows = || {
        let mut stream = rtp("stream", 15, Some(tcp("cubic", 128 << 10)));
        stream.start = ms(500);
        vec![bulk("ftp", "reno", 1 << 20), stream, cbr("noise", 100.0, 500, &[]), ping("ping", 50, 56)]
    };
    let (without, bare) = Rows::of(&lossy(flows(), None));
    assert_eq!(samples(&bare).count(), 0);
    // Neither intervals that beat with the events nor ones finer than a packet change a packet.
    for sample in [ms(100), Duration::from_nanos(777_777), ms(7_000), Duration::from_secs(30)] {
        let (with, sampled) = Rows::of(&lossy(flows(), Some(sample)));
        assert_eq!(bare.rows, sampled.rows, "{sample:?}");
        assert_eq!(without, with, "{sample:?}");
        let others: Vec<_> = sampled.events.iter().filter(|e| !e.name.starts_with("tcp_")).collect();
        assert_eq!(bare.events.iter().collect::<Vec<_>>(), others, "{sample:?}");
        assert_eq!(samples(&sampled).count() > 0, sample < Duration::from_secs(20), "{sample:?}");
    }
}

#[test]
fn samples_are_taken_at_multiples_of_the_interval_while_the_connection_is_open() {
    let mut ftp = starting(bulk("ftp", "reno", 1 << 20), ms(2_030));
    ftp.actions = vec![(Duration::from_secs(8), streamgauge_plan::Action::Stop)];
    let (summary, record) = Rows::of(&lossy(vec![ftp], Some(ms(100))));
    assert_eq!(summary.ended_by, EndedBy::Duration);
    let cwnd = series(&record, "tcp_cwnd");
    let times: Vec<u64> = cwnd.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
    // The handshake lasts 30 ms and up to three host's jitters; a step of the grid is not passed over.
    assert_eq!(times.first(), Some(&2_100));
    assert!(times.windows(2).all(|pair| pair[1] == pair[0] + 100), "{times:?}");
    assert!(cwnd.iter().all(|(at, _)| at.as_nanos() % 100_000_000 == 0));
    assert_eq!(times.last(), Some(&8_000), "the server is reset 15 ms later");
    let (_, record) = Rows::of(&lossy(vec![bulk("ftp", "reno", 1 << 20)], Some(ms(100))));
    let last = series(&record, "tcp_cwnd").last().map(|(at, _)| at.as_nanos() / 1_000_000);
    assert_eq!(last, Some(19_900), "a sample at the very end is no sample of the trial");
}

#[test]
fn the_connection_on_which_the_ends_agree_has_no_samples() {
    let (_, record) = Rows::of(&lossy(vec![bulk_agreed("ftp", "reno", 1 << 20)], Some(ms(100))));
    let cwnd = series(&record, "tcp_cwnd");
    assert!(cwnd.windows(2).all(|pair| pair[1].0 > pair[0].0), "one connection at a time");
    // The exchange needs 120 ms and the time of the server's program.
    assert_eq!(cwnd.first().map(|(at, _)| at.as_nanos()), Some(200_000_000));
    assert!(samples(&record).all(|event| event.reason.starts_with("reno 5201:")), "the data's");
    // The other's would stay at 30 ms: it measured before the queue filled.
    let srtt = series(&record, "tcp_srtt");
    let late = srtt.iter().filter(|(at, _)| at.as_nanos() > 2_000_000_000);
    assert!(late.clone().count() > 100 && late.clone().all(|&(_, s)| s > 0.032), "{srtt:?}");
}

#[test]
fn samples_say_what_the_sender_is_doing() {
    let (summary, record) = Rows::of(&lossy(vec![bulk("ftp", "reno", 1 << 20)], Some(ms(100))));
    let [cwnd, ssthresh, srtt, retransmits, in_flight] =
        ["tcp_cwnd", "tcp_ssthresh", "tcp_srtt", "tcp_retransmits", "tcp_in_flight"]
            .map(|name| series(&record, name));
    let last = summary.flows[0].tcp.clone().unwrap();
    assert!(last.retransmits > 10, "{last:?}");
    // The path's 30 ms, its queue's 48 ms, the hosts' jitter and the greatest delay of an acknowledgement.
    assert!(srtt.iter().all(|&(_, s)| (0.030..0.125).contains(&s)), "{srtt:?}");
    assert!(retransmits.is_sorted_by_key(|&(_, n)| n as u64));
    let behind = last.retransmits - retransmits.last().unwrap().1 as u64;
    assert!(behind <= 5, "{behind} of {} in the last 100 ms", last.retransmits);
    // The sender fills its window, except for the part that a recovery holds back, and does not exceed it by more than
    // one segment.
    let fill = |(&(_, w), &(_, p)): (&(Instant, f64), &(Instant, f64))| p / w;
    assert!(cwnd.iter().zip(&in_flight).all(|pair| fill(pair) < 1.0 + 1448.0 / pair.0.1));
    let full = cwnd.iter().zip(&in_flight).filter(|&pair| fill(pair) > 0.9).count();
    assert!(full * 10 > cwnd.len() * 6, "{full} of {}", cwnd.len());
    // The threshold is infinite, and absent, until the first loss.
    assert!(ssthresh.len() < cwnd.len() && ssthresh.len() * 10 > cwnd.len() * 8, "{}", ssthresh.len());
    let units = |name: &str| record.named(name)[0].unit.clone();
    assert_eq!(["tcp_cwnd", "tcp_srtt", "tcp_retransmits"].map(units), ["B", "s", "1"]);
    assert!(samples(&record).all(|event| event.reason == "reno"));
    assert!(record.named("tcp_pacing_rate").is_empty(), "Reno does not pace");
}

#[test]
fn only_flows_over_tcp_have_samples() {
    let flows = vec![rtp("video", 15, None), cbr("noise", 100.0, 500, &[]), bulk("ftp", "cubic", 1 << 20)];
    let (_, record) = Rows::of(&lossy(flows, Some(ms(100))));
    assert!(samples(&record).count() > 500);
    assert!(samples(&record).all(|event| event.flow.is_some_and(|flow| flow.0 == 2)));
}

#[test]
fn an_interval_of_nothing_is_refused() {
    let plan = lossy(vec![bulk("ftp", "reno", 1 << 20)], Some(Duration::ZERO));
    let Err(SimError::Plan { key, .. }) = run(&TrialPlan { keep: Keep::Metrics, ..plan }, ()) else {
        panic!("taken");
    };
    assert_eq!(key, "tcp_sample");
}
