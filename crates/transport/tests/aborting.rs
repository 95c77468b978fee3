//! Ending a connection at once (RFC 9293 section 3.10.5), and the answers of an end that no longer has a connection
//! (sections 3.5.2 and 3.10.7.1), on a link of 10 ms each way.

mod common;

use common::{MSS, Pair, Seen, Side::*, Verdict, at, ms, pair, reno};
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_transport::tcp::{
    CloseReason, Config, Connection, ConnectionEvent, Segment, Timestamps, flags,
};

const RESET: u8 = flags::RST;

fn resets(pair: &Pair, side: common::Side) -> Vec<&Seen> {
    pair.log.iter().filter(|seen| seen.from == side && seen.segment.has(RESET)).collect()
}

fn closed(segment: Segment) -> Option<Segment> {
    let mut connection = Connection::connect(Config::default(), Instant::ZERO);
    connection.abort();
    connection.handle(at(1), &segment);
    let answer = connection.poll_transmit(at(1));
    assert!(connection.poll_transmit(at(1)).is_none() && connection.poll_timeout().is_none());
    answer
}

#[test]
fn a_reader_that_aborts_ends_the_flow_within_a_round_trip() {
    let mut pair = pair(reno());
    pair.serve(1000 * MSS);
    pair.run_until(at(105));
    assert!(pair.tcp(Server).stats().in_flight > 0);
    pair.end(Client).tcp.abort();
    pair.run();
    // One at once, and one for every segment that was on its way and arrives where there is no connection.
    let resets = resets(&pair, Client);
    assert_eq!(resets[0].at, at(105));
    assert!(pair.log.iter().all(|seen| seen.from == Server || seen.at < at(105) || seen.segment.has(RESET)));
    // The server's last segment left before the reset arrived, 10 ms later, and the answers end 10 ms after that.
    let last = pair.data(Server).last().unwrap().at;
    assert!(last <= at(115), "{last:?}");
    let answered = pair.data(Server).iter().filter(|seen| seen.at + ms(10) >= at(105)).count();
    assert_eq!(resets.len(), 1 + answered);
    assert!(pair.ends[1].saw(ConnectionEvent::Closed(CloseReason::Reset)));
    assert_eq!((pair.tcp(Server).poll_timeout(), pair.next_wakeup()), (None, None));
}

#[test]
fn a_writer_that_aborts_sends_nothing_of_what_waits() {
    let mut pair = pair(reno());
    pair.serve(1000 * MSS);
    pair.run_until(at(105));
    let data = pair.data(Server);
    let next = data.last().map(|seen| seen.segment.seq.wrapping_add(seen.len())).unwrap();
    pair.end(Server).tcp.abort();
    pair.run();
    let after: Vec<_> = pair.log.iter().filter(|s| s.from == Server && s.at >= at(105)).collect();
    // <SEQ=SND.NXT><CTL=RST>; it acknowledges too, as Linux's does. The rest answers acknowledgements.
    assert_eq!((after[0].segment.seq, after[0].segment.flags), (next, RESET | flags::ACK));
    assert!(after[0].segment.payload.is_empty());
    assert!(after.iter().all(|seen| seen.segment.has(RESET) && seen.segment.payload.is_empty()));
    assert!(pair.ends[0].saw(ConnectionEvent::Closed(CloseReason::Reset)));
    assert_eq!(pair.ends[1].tcp.write(Chunk::filler(1)), 0);
}

#[test]
fn a_lost_reset_is_made_up_for_by_the_next_segment_that_arrives() {
    let mut pair = pair(reno()).with_script(|seen| match seen.segment.has(RESET) && seen.at == at(45) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    pair.serve(1000 * MSS);
    pair.run_until(at(45));
    pair.end(Client).tcp.abort();
    pair.run();
    assert!(resets(&pair, Client)[0].dropped);
    assert!(pair.ends[1].saw(ConnectionEvent::Closed(CloseReason::Reset)));
    assert!(pair.data(Server).last().unwrap().at < at(100));
}

#[test]
fn before_the_handshake_there_is_nobody_to_reset() {
    // LISTEN, and SYN-SENT.
    let mut listening = Connection::listen(Config::default());
    listening.abort();
    assert!(listening.poll_transmit(at(0)).is_none());
    let mut pair = pair(reno());
    pair.settle();
    pair.end(Client).tcp.abort();
    pair.run();
    assert_eq!(pair.ends[0].events, [(at(0), ConnectionEvent::Closed(CloseReason::Aborted))]);
    // The answer to its SYN finds no connection.
    let said: Vec<_> = pair.log.iter().map(|s| (s.at, s.from, s.segment.flags, s.segment.seq)).collect();
    let syn_ack = pair.log[1].segment.ack;
    let answered = flags::SYN | flags::ACK;
    let server = pair.log[1].segment.seq;
    assert_eq!(
        said,
        [
            (at(0), Client, flags::SYN, server),
            (at(10), Server, answered, server),
            (at(20), Client, RESET, syn_ack)
        ]
    );
    assert!(pair.ends[1].saw(ConnectionEvent::Closed(CloseReason::Reset)));
}

#[test]
fn when_both_have_finished_an_abort_is_silent() {
    // Both close at once: at 40 ms each has the other's FIN (CLOSING).
    let mut pair = pair(reno());
    pair.open();
    (pair.end(Client).close_after, pair.end(Server).close_after) = (true, true);
    pair.run_until(at(42));
    assert!(pair.log.iter().filter(|seen| seen.segment.has(flags::FIN)).count() == 2);
    pair.end(Server).tcp.abort();
    pair.settle();
    assert!(resets(&pair, Server).is_empty());
}

/// RFC 9293 section 3.10.7.1: "if the ACK bit is off, sequence number zero is used", otherwise that of the
/// segment's acknowledgement.
#[test]
fn what_arrives_where_there_is_no_connection_is_answered_by_the_book() {
    let data = Segment {
        seq: 1000,
        ack: 77,
        flags: flags::ACK | flags::PSH,
        payload: Chunk::filler(500),
        ..Segment::default()
    };
    let answer = closed(data).unwrap();
    assert_eq!((answer.flags, answer.seq, answer.ack), (RESET, 77, 0));
    // Linux's answers carry no options.
    assert_eq!((answer.ip_bytes(), answer.timestamps), (40, Timestamps::default()));
    let syn = Segment { seq: 1000, flags: flags::SYN, ..Segment::default() };
    let answer = closed(syn).unwrap();
    assert_eq!((answer.flags, answer.seq, answer.ack), (RESET | flags::ACK, 0, 1001));
    assert_eq!(answer.ip_bytes(), 40);
    let fin = Segment { seq: 1000, ack: 5, flags: flags::FIN | flags::ACK, ..Segment::default() };
    assert_eq!(closed(fin).unwrap().seq, 5);
    let reset = Segment { seq: 1000, ack: 5, flags: RESET | flags::ACK, ..Segment::default() };
    assert_eq!(closed(reset), None);
}

#[test]
fn an_abort_is_told_once_and_leaves_no_timer() {
    let mut pair = pair(reno());
    pair.serve(1000 * MSS);
    pair.run_until(at(45));
    pair.end(Server).tcp.abort();
    pair.end(Server).tcp.abort();
    pair.run_until(at(45) + Duration::from_secs(300));
    let told = pair.ends[1].events.iter().filter(|(_, e)| matches!(e, ConnectionEvent::Closed(_))).count();
    assert_eq!(told, 1);
    assert!(pair.tcp(Server).is_closed());
}
