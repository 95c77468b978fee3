//! Properties that hold on any network.

mod common;

use common::{MSS, Pair, Seen, Side, Side::*, Verdict, ms};
use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Instant, RandomStream};
use streamgauge_transport::tcp::{
    CloseReason, Config, CongestionControl, ConnectionEvent, Mechanisms, flags,
};

/// A network's habits, in per mille.
#[derive(Clone, Copy, Debug)]
struct Weather {
    loss: u64,
    late: u64,
    twice: u64,
    seed: u64,
}

impl Weather {
    fn script(self) -> impl FnMut(&Seen) -> Verdict {
        let mut random = RandomStream::named(self.seed, "link", "weather");
        move |_| {
            let roll = random.below(1000);
            let extra = Duration::from_micros(random.below(30_000));
            if roll < self.loss {
                Verdict::Drop
            } else if roll < self.loss + self.late {
                Verdict::Late(extra)
            } else if roll < self.loss + self.late + self.twice {
                Verdict::Twice(extra)
            } else {
                Verdict::Deliver
            }
        }
    }
}

fn weather() -> impl Strategy<Value = Weather> {
    (0u64..300, 0u64..200, 0u64..200, any::<u64>()).prop_map(|(loss, late, twice, seed)| Weather {
        loss,
        late,
        twice,
        seed,
    })
}

fn config() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(CongestionControl::BUILT_IN),
        prop_oneof![Just(536u32), Just(MSS)],
        prop_oneof![700u64..5_000, 5_000u64..200_000, 213_000u64..400_000],
        prop_oneof![Just(None), (1u64..5_000).prop_map(Some), (5_000u64..200_000).prop_map(Some)],
        prop_oneof![Just(0u32), Just(u32::MAX - 20_000), any::<u32>()],
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(congestion, mss, receive_window, send_buffer, initial_sequence, no_delay, newest)| {
                Config {
                    congestion,
                    mss,
                    receive_window,
                    send_buffer,
                    initial_sequence,
                    no_delay,
                    mechanisms: Mechanisms {
                        whole_segments: newest,
                        early_growth: newest,
                        scaling_ratio: newest,
                        fine_bandwidth: newest,
                        ..Mechanisms::default()
                    },
                    // A patient end: no trial of this length may end in a time-out.
                    max_retries: 100,
                    max_syn_retries: 100,
                    max_rto: Duration::from_secs(4),
                    ..Config::default()
                }
            },
        )
}

/// Draws an application's writes: (real bytes, filler) each.
fn writes() -> impl Strategy<Value = Vec<(u16, u16)>> {
    prop::collection::vec((prop_oneof![Just(0u16), 0u16..40, 0u16..3_000], 0u16..6_000), 1..60)
}

fn chunks(writes: &[(u16, u16)]) -> (Vec<Chunk>, Vec<u8>) {
    let mut flat = Vec::new();
    let mut counter = 0u8;
    let chunks = writes.iter().map(|&(real, filler)| {
        let head: Vec<u8> = (0..real)
            .map(|_| {
                counter = counter.wrapping_add(7) | 1;
                counter
            })
            .collect();
        flat.extend_from_slice(&head);
        flat.resize(flat.len() + usize::from(filler), 0);
        Chunk::with_filler(head, u32::from(filler))
    });
    let chunks = chunks.collect();
    (chunks, flat)
}

/// Makes both ends write, close, and read until nothing happens any more.
fn exchange(configs: &(Config, Config), down: &[(u16, u16)], up: &[(u16, u16)], weather: Weather) -> Pair {
    let mut pair = Pair::new(configs.0.clone(), configs.1.clone(), ms(10)).with_script(weather.script());
    for (side, writes) in [(Server, down), (Client, up)] {
        let end = pair.end(side);
        end.outbox = chunks(writes).0.into();
        (end.keep, end.close_after) = (true, true);
    }
    pair.run();
    pair
}

fn sent_payload(pair: &Pair, side: Side) -> u64 {
    pair.data(side).iter().map(|seen| u64::from(seen.len())).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every byte arrives once and in order, both ways; nothing stalls; both ends close; the counts balance.
    /// (The pair itself asserts windows and send buffers for every segment.)
    #[test]
    fn every_byte_arrives_once_and_in_order(
        configs in (config(), config()), down in writes(), up in writes(), weather in weather(),
    ) {
        let pair = exchange(&configs, &down, &up, weather);
        for (side, writes) in [(Server, &down), (Client, &up)] {
            let (_, expected) = chunks(writes);
            let reader = &pair.ends[side.peer() as usize];
            let counts = (reader.inbox.len(), expected.len());
            prop_assert!(reader.inbox == expected, "{counts:?} bytes, or other ones");
            prop_assert!(reader.saw(ConnectionEvent::Closed(CloseReason::Finished)), "{:?}", reader.events);
            prop_assert!(pair.tcp(side).is_closed());
            let stats = pair.tcp(side).stats();
            prop_assert_eq!(stats.bytes, sent_payload(&pair, side));
            prop_assert_eq!(stats.bytes - stats.retransmitted_bytes, expected.len() as u64);
            prop_assert_eq!(stats.in_flight, 0);
        }
        let [sent, dropped, copied, arrived] = pair.bytes;
        prop_assert_eq!(sent + copied, arrived + dropped);
    }

    /// Without loss and reordering nothing is sent twice, even if segments are duplicated or late as a whole.
    #[test]
    fn no_retransmission_without_cause(
        configs in (config(), config()), down in writes(), up in writes(),
        twice in 0u64..300, seed in any::<u64>(),
    ) {
        let mut random = RandomStream::named(seed, "link", "twice");
        let mut pair = Pair::new(configs.0.clone(), configs.1.clone(), ms(10));
        pair.script = Box::new(move |_| {
            if random.below(1000) < twice { Verdict::Twice(Duration::ZERO) } else { Verdict::Deliver }
        });
        for (side, writes) in [(Server, &down), (Client, &up)] {
            pair.end(side).outbox = chunks(writes).0.into();
            pair.end(side).close_after = true;
        }
        pair.run();
        for side in [Client, Server] {
            let stats = pair.tcp(side).stats();
            prop_assert_eq!((stats.retransmits, stats.timeouts, stats.recoveries), (0, 0, 0));
            prop_assert!(pair.tcp(side).is_closed());
        }
    }

    /// An end that aborts sends nothing but resets from then on, on any input; the sent bytes balance; and the other
    /// end, if it has data to send, detects it.
    #[test]
    fn after_an_abort_nothing_but_resets_is_sent(
        configs in (config(), config()), down in writes(), up in writes(), weather in weather(),
        when in 0u64..2_000, by_server in any::<bool>(),
    ) {
        let mut pair = Pair::new(configs.0.clone(), configs.1.clone(), ms(10)).with_script(weather.script());
        for (side, writes) in [(Server, &down), (Client, &up)] {
            pair.end(side).outbox = chunks(writes).0.into();
            pair.end(side).close_after = true;
        }
        pair.run_until(Instant::ZERO + ms(when));
        let side = if by_server { Server } else { Client };
        let said = pair.log.len();
        pair.end(side).tcp.abort();
        pair.run();
        let after = || pair.log[said..].iter().filter(|seen| seen.from == side);
        prop_assert!(after().all(|seen| seen.segment.has(flags::RST) && seen.segment.payload.is_empty()));
        prop_assert!(pair.tcp(side).is_closed() && pair.tcp(side).poll_timeout().is_none());
        let [sent, dropped, copied, arrived] = pair.bytes;
        prop_assert_eq!(sent + copied, arrived + dropped);
        // Unacknowledged data is repeated until something answers.
        let peer = &pair.ends[side.peer() as usize];
        let waits = peer.tcp.is_open() && peer.tcp.stats().in_flight > 0;
        prop_assert!(!waits, "{:?}", peer.tcp.stats());
    }

    /// The same inputs give the same segments at the same times.
    #[test]
    fn runs_are_repeatable(
        configs in (config(), config()), down in writes(), up in writes(), weather in weather(),
    ) {
        let first = exchange(&configs, &down, &up, weather);
        let second = exchange(&configs, &down, &up, weather);
        prop_assert_eq!(first.log.len(), second.log.len());
        for (a, b) in first.log.iter().zip(&second.log) {
            prop_assert_eq!((a.at, a.from, &a.segment), (b.at, b.from, &b.segment));
        }
    }

    /// A reader that sleeps closes the window; once it reads, everything arrives, even if updates are lost.
    #[test]
    fn a_slow_reader_stalls_nothing_for_good(
        configs in (config(), config()), down in writes(), weather in weather(),
        pauses in prop::collection::vec(1u64..900, 1..20),
    ) {
        let mut pair = Pair::new(configs.0.clone(), configs.1.clone(), ms(10)).with_script(weather.script());
        let (data, expected) = chunks(&down);
        pair.end(Server).outbox = data.into();
        (pair.end(Server).close_after, pair.end(Client).close_after) = (true, true);
        (pair.end(Client).keep, pair.end(Client).reads) = (true, false);
        for pause in pauses {
            let until = pair.now + ms(pause);
            pair.run_until(until);
            let most = configs.0.receive_window + configs.0.receive_window / 4;
            prop_assert!(pair.tcp(Client).readable() as u64 <= most);
            pair.end(Client).read();
        }
        pair.end(Client).reads = true;
        pair.run();
        prop_assert!(pair.ends[0].inbox == expected);
    }

    /// Segments that overtake others cost few copies, and no rate: a reduction for nothing is undone.
    #[test]
    fn reordering_alone_costs_few_copies_and_they_are_undone(
        congestion in prop::sample::select(CongestionControl::BUILT_IN),
        late in 1u64..100, by_us in 1u64..9_000, seed in any::<u64>(),
    ) {
        let mut random = RandomStream::named(seed, "link", "late");
        let config = Config { congestion, receive_window: 200_000, ..Config::default() };
        let mut pair = Pair::new(config.clone(), config, ms(10)).with_script(move |seen| {
            let is_late = seen.len() > 0 && random.below(1000) < late;
            if is_late { Verdict::Late(Duration::from_micros(by_us)) } else { Verdict::Deliver }
        });
        pair.serve(1_000 * MSS);
        pair.run();
        let stats = pair.tcp(Server).stats();
        prop_assert_eq!(pair.ends[0].received, u64::from(1_000 * MSS));
        prop_assert_eq!(stats.timeouts, 0);
        prop_assert!(stats.retransmits <= 100, "{} copies", stats.retransmits);
        // The last may have been too late for any evidence of it.
        prop_assert!(stats.recoveries <= stats.undos + 1, "{} of {}", stats.undos, stats.recoveries);
    }

    /// Without answers, the timeout doubles, and nothing is sent in between.
    #[test]
    fn timeouts_double_while_nobody_answers(
        congestion in prop::sample::select(CongestionControl::BUILT_IN),
        segments in 1u32..30, probes in any::<bool>(), coarse in any::<bool>(),
    ) {
        let mut config = Config { congestion, coarse_timers: coarse, max_retries: 6, ..Config::default() };
        (config.mechanisms.tlp, config.mechanisms.pacing) = (probes, false);
        let silence = Instant::ZERO + ms(100);
        let mut pair = Pair::new(config.clone(), config, ms(10))
            .with_script(move |seen| if seen.at >= silence { Verdict::Drop } else { Verdict::Deliver });
        pair.run_until(silence);
        pair.serve(segments * MSS);
        pair.run();
        let mut times: Vec<_> = pair.data(Server).iter().map(|seen| seen.at).filter(|&at| at > silence).collect();
        times.dedup();
        let stats = pair.tcp(Server).stats();
        prop_assert_eq!(stats.timeouts, 6);
        prop_assert_eq!(times.len() as u64, stats.timeouts + stats.loss_probes);
        let backoffs: Vec<_> = times.windows(2).map(|w| (w[1] - w[0]).as_nanos() / 1_000_000).collect();
        for pair in backoffs[usize::from(stats.loss_probes > 0)..].windows(2) {
            // Timers on ticks are up to an eighth late.
            let slack = if coarse { pair[1] / 7 + 8 } else { 1 };
            prop_assert!(pair[1].abs_diff(2 * pair[0]) <= 2 * slack, "{backoffs:?}");
        }
    }
}
