//! FQ-CoDel against RFC 8290's algorithm, by its properties, and by published results.

mod common;

use std::collections::VecDeque;

use common::aqm::*;
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Ecn, RandomStream};
use streamgauge_path::spec::{CodelSpec, FqCodelSpec, Limit, QueueSpec};
use streamgauge_path::{Codel, FqCodel, Queue, QueuedPacket, TransmitState};

/// RFC 8290 sections 4.1 and 4.2 as they are written, over CoDel queues that have been tested by themselves.
/// Limits must be out of reach of `give_up`, which `an_overload_takes_half_of_the_longest_queue` tests.
struct Reference {
    queues: Vec<(Codel, i64)>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
    queue_of: Box<dyn Fn(u32) -> usize>,
}

impl Discipline for Reference {
    fn push(&mut self, now: u64, packet: QueuedPacket, link: &TransmitState, drops: &mut Drops) {
        let index = (self.queue_of)(packet.item.hash);
        self.queues[index].0.push(at(now), packet, link, &mut |packet, cause| drops.push((packet, cause)));
        if !self.new.contains(&index) && !self.old.contains(&index) {
            self.queues[index].1 = self.quantum;
            self.new.push_back(index);
        }
    }

    fn pop(&mut self, now: u64, link: &TransmitState, drops: &mut Drops) -> Option<QueuedPacket> {
        loop {
            let from_new = !self.new.is_empty();
            let index = if from_new { self.new[0] } else { *self.old.front()? };
            let (codel, credits) = &mut self.queues[index];
            if *credits <= 0 {
                *credits += self.quantum;
                if from_new {
                    self.new.pop_front()
                } else {
                    self.old.pop_front()
                };
                self.old.push_back(index);
                continue;
            }
            match codel.pop(at(now), link, &mut |packet, cause| drops.push((packet, cause))) {
                Some(packet) => {
                    *credits -= i64::from(packet.bytes);
                    return Some(packet);
                }
                None if from_new => {
                    self.new.pop_front();
                    self.old.push_back(index);
                }
                None => {
                    self.old.pop_front();
                }
            }
        }
    }
}

fn real(spec: &FqCodelSpec) -> Real<FqCodel> {
    Real(FqCodel::new(spec, RandomStream::named(1, "test", "hash")), |_| 0.0)
}

fn reference(spec: &FqCodelSpec) -> Reference {
    let FqCodelSpec { target, interval, limit, ecn, mtu, .. } = *spec;
    let codel = CodelSpec { target, interval, limit, ecn, mtu };
    let hashes = FqCodel::new(spec, RandomStream::named(1, "test", "hash"));
    Reference {
        queues: (0..spec.flows).map(|_| (Codel::new(&codel), 0)).collect(),
        new: VecDeque::new(),
        old: VecDeque::new(),
        quantum: spec.quantum.into(),
        queue_of: Box::new(move |hash| hashes.queue_of(hash)),
    }
}

fn specs() -> impl Strategy<Value = FqCodelSpec> {
    let flows = prop_oneof![Just(1024u32), 1..6u32];
    (flows, prop_oneof![Just(1514u32), 256..6000u32], any::<bool>())
        .prop_map(|(flows, quantum, ecn)| FqCodelSpec { flows, quantum, ecn, ..FqCodelSpec::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decides_as_the_rfc(spec in specs(), arrivals in loads()) {
        let ours = lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals);
        prop_assert_eq!(ours, lockstep(&mut reference(&spec), NS_PER_BYTE, &arrivals));
    }

    #[test]
    fn is_sound(spec in specs(), limit in 1..200u32, arrivals in loads(), seed in any::<u64>()) {
        assert_sound(&QueueSpec::FqCodel(FqCodelSpec { limit: Limit::Packets(limit), ..spec }), seed, &arrivals);
    }

    #[test]
    fn hashes_spread_evenly(seed in any::<u64>(), first in any::<u32>()) {
        let queue = FqCodel::new(&FqCodelSpec { flows: 8, ..FqCodelSpec::default() }, RandomStream::named(seed, "a", "b"));
        let mut counts = [0u32; 8];
        (0..8_000u32).for_each(|n| counts[queue.queue_of(first.wrapping_add(n))] += 1);
        // 1000 each, 7 standard deviations of a binomial.
        prop_assert!(counts.iter().all(|&count| (793..=1207).contains(&count)), "{:?}", counts);
    }
}

/// Makes `packets` of `bytes` at `gap` ns.
fn flow(hash: u32, packets: u64, gap: u64, bytes: u32) -> impl Iterator<Item = Arrival> {
    (0..packets).map(move |n| Arrival { at: n * gap, bytes, hash, ecn: Ecn::NotEct })
}

fn merged(mut arrivals: Vec<Arrival>) -> Vec<Arrival> {
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

#[test]
fn a_sparse_flow_never_waits_behind_a_bulk_flow() {
    // 8 Mbit/s; the bulk flow offers twice that, the sparse one, from 100 ms on, 100 bytes every 20 ms.
    let mut arrivals: Vec<_> = flow(1, 20_000, 500_000, 1000).collect();
    arrivals.extend(
        flow(2, 490, 20_000_000, 100).map(|sparse| Arrival { at: sparse.at + 100_123_457, ..sparse }),
    );
    let arrivals = merged(arrivals);
    let verdicts = lockstep(&mut real(&FqCodelSpec::default()), NS_PER_BYTE, &arrivals);
    let sparse = || verdicts.iter().filter(|verdict| verdict.bytes == 100);
    assert_eq!(sparse().filter(|verdict| verdict.cause == Cause::None).count(), 490);
    // One packet of the other flow may be on the link: 1 ms, and 0.1 ms for its own transmission.
    let worst = sparse().max_by_key(|verdict| verdict.at - verdict.t_in).unwrap();
    assert!(worst.at - worst.t_in <= 1_100_000, "{worst:?}");
    // The same arrivals through one CoDel queue: tens of ms.
    let codel = CodelSpec { limit: Limit::Packets(10_240), ..CodelSpec::default() };
    let single = lockstep(&mut Real(Codel::new(&codel), |_| 0.0), NS_PER_BYTE, &arrivals);
    let worst =
        single.iter().filter(|verdict| verdict.bytes == 100).map(|verdict| verdict.at - verdict.t_in).max();
    assert!(worst > Some(50_000_000), "{worst:?}");
}

#[test]
fn bulk_flows_get_equal_bytes_whatever_their_packets() {
    let mut arrivals: Vec<_> = flow(1, 20_000, 500_000, 1514).collect();
    arrivals.extend(flow(2, 60_000, 160_000, 400));
    arrivals.extend(flow(3, 20_000, 500_000, 1000));
    let spec = FqCodelSpec { limit: Limit::Packets(1_000_000), ..FqCodelSpec::default() };
    let verdicts = lockstep(&mut real(&spec), NS_PER_BYTE, &merged(arrivals));
    let sent = |bytes: u32| -> u64 {
        let of_flow =
            verdicts.iter().filter(|verdict| verdict.cause == Cause::None && verdict.at < 9_000_000_000);
        of_flow.filter(|verdict| verdict.bytes == bytes).map(|verdict| u64::from(verdict.bytes)).sum()
    };
    let shares = [sent(1514), sent(400), sent(1000)];
    // Deficit round robin: never further apart than a quantum and a packet (Shreedhar and Varghese 1996).
    assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 2 * (1514 + 1514), "{shares:?}");
    assert!((8_990_000..=9_000_000).contains(&shares.iter().sum::<u64>()), "{shares:?}");
}

#[test]
fn an_overload_takes_half_of_the_longest_queue_from_its_head() {
    let spec = FqCodelSpec { limit: Limit::Packets(41), ..FqCodelSpec::default() };
    // 0 is being sent, 1 to 30 of that flow wait, then 10 of another arrive, and one too many.
    let mut arrivals: Vec<_> = flow(1, 31, 0, 1000).collect();
    arrivals.extend(flow(2, 11, 0, 1000));
    let verdicts = lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals);
    let full: Vec<_> = verdicts.iter().filter(|verdict| verdict.cause == Cause::QueueFull).collect();
    assert_eq!(full.iter().map(|verdict| verdict.id).collect::<Vec<_>>(), (1..=15).collect::<Vec<_>>());
    // At most 64 packets at once.
    let spec = FqCodelSpec { limit: Limit::Packets(400), ..FqCodelSpec::default() };
    let verdicts = lockstep(&mut real(&spec), NS_PER_BYTE, &flow(1, 401, 0, 1000).collect::<Vec<_>>());
    assert_eq!(verdicts.iter().filter(|verdict| verdict.cause == Cause::QueueFull).count(), 64);
    // Bytes count, not packets: the queue of few long packets yields.
    let spec = FqCodelSpec { limit: Limit::Bytes(20_000), ..FqCodelSpec::default() };
    let mut arrivals: Vec<_> = flow(1, 10, 0, 1514).collect();
    arrivals.extend(flow(2, 60, 0, 100));
    let verdicts = lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals);
    let mut full = verdicts.iter().filter(|verdict| verdict.cause == Cause::QueueFull);
    assert!(full.all(|verdict| verdict.bytes == 1514));
}

#[test]
fn another_seed_hashes_otherwise() {
    let queue =
        |seed| FqCodel::new(&FqCodelSpec::default(), RandomStream::named(seed, "down.bottleneck", "hash"));
    let (a, b) = (queue(1), queue(2));
    assert!((0..100).filter(|&hash| a.queue_of(hash) == b.queue_of(hash)).count() < 5);
}
