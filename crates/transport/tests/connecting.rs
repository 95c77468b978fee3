//! Opening and closing, segment by segment, on a link of 10 ms each way.

mod common;

use common::{MSS, Side::*, Verdict, at, ms, pair, reno};
use streamgauge_base::{Chunk, Instant};
use streamgauge_transport::tcp::{CloseReason, Config, Connection, ConnectionEvent, flags};

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
fn timers_are_none_when_there_is_nothing_to_wait_for() {
    let mut connection = Connection::listen(Config::default());
    assert_eq!(connection.poll_timeout(), None);
    connection.handle_timeout(Instant::FAR_FUTURE);
    assert!(connection.poll_transmit(at(0)).is_none() && connection.poll_event().is_none());
}
