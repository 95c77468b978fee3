//! Explicit congestion notification (RFC 3168), as in Linux.

mod common;

use common::script::Script;
use common::{MSS, Pair, Seen, Side, Side::*, Verdict, ms};
use streamgauge_base::{Duration, Ecn, Instant};
use streamgauge_transport::tcp::{Config, CongestionControl, EcnMode, Segment, flags};

fn config(ecn: bool) -> Config {
    Config {
        ecn: if ecn { EcnMode::Classic } else { EcnMode::Off },
        congestion: CongestionControl::RENO,
        ..Config::default()
    }
}

fn pair(client: bool, server: bool) -> Pair {
    Pair::new(config(client), config(server), ms(10))
}

fn first(pair: &Pair, side: Side) -> &Segment {
    &pair.log.iter().find(|seen| seen.from == side).unwrap().segment
}

/// Marks the `n`th (from 0) segments with payload that the server sends.
fn mark(numbers: &'static [usize]) -> impl FnMut(&Seen) -> Verdict {
    let mut count = 0;
    move |seen| {
        if seen.from != Server || seen.segment.payload.is_empty() {
            return Verdict::Deliver;
        }
        count += 1;
        if numbers.contains(&(count - 1)) { Verdict::Mark } else { Verdict::Deliver }
    }
}

#[test]
fn it_is_agreed_on_in_the_handshake_or_not_at_all() {
    for (client, server) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut pair = pair(client, server);
        pair.serve(20 * MSS);
        pair.run();
        let asks = if client { flags::ECE | flags::CWR } else { 0 };
        let agrees = if client && server { flags::ECE } else { 0 };
        assert_eq!(first(&pair, Client).flags, flags::SYN | asks);
        assert_eq!(first(&pair, Server).flags, flags::SYN | flags::ACK | agrees);
        let both = client && server;
        for side in [Client, Server] {
            assert_eq!(pair.tcp(side).stats().ecn, both);
            assert_eq!(first(&pair, side).ecn, Ecn::NotEct, "no SYN is ECN-capable");
        }
        let field = if both { Ecn::Ect0 } else { Ecn::NotEct };
        assert!(pair.data(Server).iter().all(|seen| seen.segment.ecn == field));
        assert!(pair.acks(Client).iter().all(|seen| seen.segment.ecn == Ecn::NotEct));
    }
}

#[test]
fn a_syn_sent_again_does_not_ask() {
    let mut syns = 0;
    let mut pair = pair(true, true).with_script(move |seen| {
        syns += u32::from(seen.segment.has(flags::SYN));
        if syns == 1 { Verdict::Drop } else { Verdict::Deliver }
    });
    pair.serve(MSS);
    pair.run();
    let syns: Vec<_> = pair.log.iter().filter(|seen| seen.segment.has(flags::SYN)).collect();
    let flags: Vec<_> = syns.iter().map(|seen| seen.segment.flags).collect();
    let (syn, ack) = (flags::SYN, flags::ACK);
    assert_eq!(flags, [syn | flags::ECE | flags::CWR, syn, syn | ack]);
    assert!(!pair.tcp(Server).stats().ecn);
}

#[test]
fn a_mark_is_echoed_until_the_sender_says_that_it_has_slowed_down() {
    let mut pair = pair(true, true).with_script(mark(&[4]));
    pair.serve(60 * MSS);
    pair.run();
    let up: Vec<_> = pair.log.iter().filter(|s| s.from == Client && !s.segment.has(flags::SYN)).collect();
    let echoes: Vec<_> = up.iter().map(|seen| seen.segment.has(flags::ECE)).collect();
    let from = echoes.iter().position(|&echo| echo).unwrap();
    let to = echoes.iter().rposition(|&echo| echo).unwrap();
    assert!(echoes[from..=to].iter().all(|&echo| echo) && to > from, "{echoes:?}");
    let told: Vec<_> = pair.data(Server).into_iter().filter(|s| s.segment.has(flags::CWR)).collect();
    assert_eq!(told.len(), 1);
    // The answer reaches the receiver 10 ms later; the acknowledgement of it is the first without an echo.
    let last = up[to];
    assert!(last.at <= told[0].at + ms(10), "{:?} {:?}", last.at, told[0].at);
    assert_eq!(pair.tcp(Client).stats().marked_received, 1);
}

#[test]
fn a_mark_halves_the_window_once_per_round_trip_and_nothing_is_sent_again() {
    // Ten segments leave first, acknowledged one by one: the window is 20 when the echoes of two marks of the next
    // flight arrive.
    let mut pair = pair(true, true).with_script(mark(&[12, 15]));
    pair.serve(100 * MSS);
    pair.run_until(Instant::ZERO + ms(85));
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.ecn_reductions, stats.recoveries, stats.retransmits), (1, 0, 0));
    assert_eq!(pair.tcp(Client).stats().marked_received, 2);
    let segments = stats.ssthresh / u64::from(MSS);
    assert!((10..=11).contains(&segments), "{segments}");
    pair.run();
    let stats = pair.tcp(Server).stats();
    assert_eq!((stats.ecn_reductions, stats.retransmits), (1, 0));
    assert_eq!(pair.end(Client).received, 100 * u64::from(MSS));

    // Marks a round trip apart are two reductions.
    let mut pair = self::pair(true, true).with_script(mark(&[12, 60]));
    pair.serve(100 * MSS);
    pair.run();
    assert_eq!(pair.tcp(Server).stats().ecn_reductions, 2);
}

#[test]
fn the_window_comes_down_over_a_round_trip_not_at_once() {
    let mut pair = pair(true, true).with_script(mark(&[12]));
    pair.serve(400 * MSS);
    pair.run_until(Instant::ZERO + ms(70));
    let begun = pair.tcp(Server).stats();
    assert_eq!(begun.ecn_reductions, 1);
    assert!(begun.in_flight > begun.ssthresh, "{} {}", begun.in_flight, begun.ssthresh);
    // Segments still leave while it falls: there is no silence of half a round trip.
    let times: Vec<_> = pair.data(Server).iter().map(|seen| seen.at).collect();
    let during = times.iter().filter(|&&at| at == Instant::ZERO + ms(70)).count();
    assert!(during >= 4, "{during}");
}

#[test]
fn what_is_sent_again_is_not_ecn_capable() {
    let mut count = 0;
    let mut pair = pair(true, true).with_script(move |seen| {
        count += u32::from(seen.from == Server && !seen.segment.payload.is_empty());
        if count == 15 && seen.from == Server { Verdict::Drop } else { Verdict::Deliver }
    });
    pair.serve(60 * MSS);
    pair.run();
    let lost = pair.log.iter().find(|seen| seen.dropped && !seen.segment.payload.is_empty()).unwrap();
    let copies: Vec<_> =
        pair.data(Server).into_iter().filter(|s| s.segment.seq == lost.segment.seq && !s.dropped).collect();
    assert_eq!(copies.len(), 1);
    assert_eq!(copies[0].segment.ecn, Ecn::NotEct);
    // A recovery is a reduction too, and the peer is informed of it.
    assert_eq!(pair.data(Server).iter().filter(|s| s.segment.has(flags::CWR)).count(), 1);
}

#[test]
fn marks_in_place_of_losses_keep_the_link_full_without_a_retransmission() {
    // A queue that marks above 15 packets, at 10 Mbit/s.
    for congestion in [CongestionControl::RENO, CongestionControl::CUBIC] {
        let mut free = Instant::ZERO;
        let config = Config { congestion: congestion.clone(), ..config(true) };
        let mut pair = Pair::new(config.clone(), config, ms(10));
        pair.keep_log = false;
        let mut toggle = Duration::ZERO;
        pair.script = Box::new(move |seen| {
            if seen.from != Server {
                return Verdict::Deliver;
            }
            let backlog = free.saturating_since(seen.at);
            free = free.max(seen.at) + Duration::from_micros(1200);
            // Marking and queueing are two verdicts: mark one that waits a little less instead.
            toggle = if backlog > ms(18) { toggle + ms(1) } else { Duration::ZERO };
            if toggle == ms(1) { Verdict::Mark } else { Verdict::Late(free - seen.at) }
        });
        pair.serve(u32::MAX);
        pair.run_until(Instant::ZERO + ms(10_000));
        let stats = pair.tcp(Server).stats();
        assert!(stats.ecn_reductions > 3, "{congestion:?}: {stats:?}");
        let rate = pair.end(Client).received as f64 * 8.0 / 10.0;
        assert!(rate > 0.9 * 10e6 * 1448.0 / 1500.0, "{congestion:?}: {rate}");
        assert!(stats.cwnd < 60 * u64::from(MSS), "{stats:?}");
    }
}

#[test]
fn losses_that_were_none_do_not_take_back_what_marks_called_for() {
    for first in [1, 3] {
        // The mark arrives before the duplicates, or with the one that begins recovery.
        let mut s = Script::open(config(true));
        s.write(60);
        s.ack(40, 1, &[], 20);
        for n in 1..=3 {
            s.marked = n >= first;
            s.ack(40 + u64::from(n), 1, &[(2, 2 + n)], 20);
        }
        assert_eq!((s.stats().recoveries, s.stats().retransmits), (1, 1), "{first}");
        let reduced = s.ssthresh();
        assert!(reduced <= 6, "{reduced}");
        s.marked = false;
        // The first copy of segment 1 arrives after all.
        s.ack(44, 5, &[], 20);
        assert_eq!((s.stats().undos, s.ssthresh()), (1, reduced));
        assert!(s.cwnd() <= reduced + 1, "{}", s.cwnd());
    }
}

fn counting(mode: EcnMode, congestion: CongestionControl) -> Config {
    Config { ecn: mode, congestion, ..Config::default() }
}

/// Bits of the header from AE down, as RFC 9768 table 2 writes them.
fn ace(segment: &Segment) -> [bool; 3] {
    [segment.ae, segment.has(flags::CWR), segment.has(flags::ECE)]
}

/// RFC 9768 table 2, for SYNs that arrive without ECT.
#[test]
fn accurate_feedback_is_agreed_on_or_the_two_fall_back() {
    let modes = [EcnMode::Off, EcnMode::Classic, EcnMode::L4s];
    for (client, server) in modes.iter().flat_map(|&client| modes.map(|server| (client, server))) {
        let control =
            |mode| if mode == EcnMode::L4s { CongestionControl::PRAGUE } else { CongestionControl::RENO };
        let (asks, answers) = (counting(client, control(client)), counting(server, control(server)));
        let mut pair = Pair::new(asks, answers, ms(10));
        pair.serve(20 * MSS);
        pair.run();
        let asked = match client {
            EcnMode::Off => [false; 3],
            EcnMode::Classic => [false, true, true],
            EcnMode::L4s => [true; 3],
        };
        let (agreed, marks) = match (client, server) {
            (EcnMode::L4s, EcnMode::L4s) => ([false, true, false], Ecn::Ect1),
            (EcnMode::Off, _) | (_, EcnMode::Off) => ([false; 3], Ecn::NotEct),
            _ => ([false, false, true], Ecn::Ect0),
        };
        assert_eq!(ace(first(&pair, Client)), asked, "{client:?} {server:?}");
        assert_eq!(ace(first(&pair, Server)), agreed, "{client:?} {server:?}");
        let data = pair.log.iter().find(|seen| !seen.segment.payload.is_empty()).unwrap();
        assert_eq!(data.segment.ecn, marks, "{client:?} {server:?}");
    }
}

/// Each mark reaches the controller once, over lost acknowledgements and more marks than the field counts to.
#[test]
fn every_mark_is_counted_once() {
    use std::sync::{Arc, Mutex};
    use streamgauge_transport::tcp::congestion::{Ack, Controller, Factory, Start};

    type Counts = Arc<Mutex<(u64, u64)>>;

    #[derive(Debug)]
    struct Counter(Counts);
    impl Controller for Counter {
        fn on_ack(&mut self, ack: &Ack) {
            let mut counts = self.0.lock().unwrap();
            *counts = (counts.0 + u64::from(ack.segments), counts.1 + u64::from(ack.marked));
        }
        fn on_congestion_event(&mut self, _: Instant) {}
        fn on_timeout(&mut self, _: Instant, _: bool) {}
        fn on_idle(&mut self, _: Instant, _: Duration, _: Duration) {}
        fn window(&self) -> u64 {
            u64::from(20 * MSS)
        }
        fn ssthresh(&self) -> u64 {
            u64::MAX
        }
        fn governs_recovery(&self) -> bool {
            true
        }
    }
    #[derive(Debug)]
    struct Counters(Counts);
    impl Factory for Counters {
        fn name(&self) -> &str {
            "counter"
        }
        fn make(&self, _: &Start) -> Box<dyn Controller> {
            Box::new(Counter(self.0.clone()))
        }
    }

    let counts = Counts::default();
    let control = CongestionControl::of(Arc::new(Counters(counts.clone())));
    let pair =
        Pair::new(counting(EcnMode::L4s, CongestionControl::PRAGUE), counting(EcnMode::L4s, control), ms(10));
    let (mut data, mut acks) = (0u32, 0u32);
    let mut pair = pair.with_script(move |seen| {
        if seen.from == Server && !seen.segment.payload.is_empty() {
            data += 1;
            if data.is_multiple_of(3) || (100..130).contains(&data) {
                return Verdict::Mark;
            }
        } else if seen.from == Client && seen.segment.payload.is_empty() {
            acks += 1;
            if acks > 3 && acks.is_multiple_of(7) {
                return Verdict::Drop;
            }
        }
        Verdict::Deliver
    });
    pair.serve(400 * MSS);
    pair.run();
    let marked = pair.tcp(Client).stats().marked_received;
    let (segments, told) = *counts.lock().unwrap();
    assert_eq!((segments, told), (400, marked));
    assert!(marked > 130);
}
