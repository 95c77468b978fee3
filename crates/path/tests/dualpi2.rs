//! DualPI2 against RFC 9332's appendix A, by its properties, and by published results.

mod common;

use std::collections::VecDeque;

use common::aqm::*;
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Ecn, FlowId, Item, PacketId, QueueDepth, RandomStream};
use streamgauge_path::spec::{DualScheduler, Dualpi2Spec, L4sMarking, Limit, QueueSpec};
use streamgauge_path::{Dualpi2, Queue, QueuedPacket, TransmitState};

/// RFC 9332 appendix A.1 and A.2 as they are written. Times in seconds.
struct Reference {
    spec: Dualpi2Spec,
    limit: usize,
    lq: VecDeque<QueuedPacket>,
    cq: VecDeque<QueuedPacket>,
    lq_count: f64,
    cq_count: f64,
    updates: u64,
    p: f64,
    prevq: f64,
    /// Hundredths of a byte that the L queue has had beyond its weight.
    credit: i64,
}

fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

fn mark(packet: &mut QueuedPacket) {
    packet.marked = packet.item.ecn != Ecn::Ce;
    packet.item.ecn = Ecn::Ce;
}

impl Reference {
    fn new(spec: &Dualpi2Spec) -> Self {
        let Limit::Packets(limit) = spec.limit else { panic!("in packets") };
        Reference {
            spec: spec.clone(),
            limit: limit as usize,
            lq: VecDeque::new(),
            cq: VecDeque::new(),
            lq_count: 0.0,
            cq_count: 0.0,
            updates: 0,
            p: 0.0,
            prevq: 0.0,
            credit: 0,
        }
    }

    fn timer(&mut self, now: u64) {
        while (self.updates + 1) * self.spec.update.as_nanos() <= now {
            self.updates += 1;
            let at = self.updates * self.spec.update.as_nanos();
            let time = |queue: &VecDeque<QueuedPacket>| {
                queue.front().map_or(0.0, |head| (at - head.t_in.as_nanos()) as f64 / 1e9)
            };
            let curq = f64::max(time(&self.cq), time(&self.lq));
            let p = self.p
                + (self.spec.alpha * (curq - self.spec.target.as_secs_f64())
                    + self.spec.beta * (curq - self.prevq));
            self.p = p.clamp(0.0, 1.0);
            self.prevq = curq;
        }
    }

    fn laqm(&self, sojourn: u64) -> f64 {
        if self.lq.len() < self.spec.l4s_packets as usize {
            return 0.0;
        }
        match self.spec.l4s {
            L4sMarking::Step(step) if sojourn >= step.as_nanos() => 1.0,
            L4sMarking::Step(_) => 0.0,
            L4sMarking::Ramp { min, range } => {
                let (min, range) = (min.as_nanos(), range.as_nanos());
                if sojourn >= min + range {
                    1.0
                } else if sojourn > min {
                    (sojourn - min) as f64 / range as f64
                } else {
                    0.0
                }
            }
        }
    }

    fn lq_is_next(&self) -> bool {
        if self.lq.is_empty() || self.cq.is_empty() {
            return !self.lq.is_empty();
        }
        match self.spec.scheduler {
            DualScheduler::Weighted { .. } => self.credit <= 0,
            DualScheduler::TimeShifted { shift } => {
                self.lq[0].t_in.as_nanos() <= self.cq[0].t_in.as_nanos() + shift.as_nanos()
            }
        }
    }

    fn account(&mut self, from_lq: bool, bytes: u32) {
        if let DualScheduler::Weighted { classic_percent } = self.spec.scheduler {
            let (wc, wl) = (i64::from(classic_percent), 100 - i64::from(classic_percent));
            self.credit += if from_lq { wc * i64::from(bytes) } else { -wl * i64::from(bytes) };
            if self.lq.is_empty() || self.cq.is_empty() {
                self.credit = 0;
            }
        }
    }
}

impl Discipline for Reference {
    fn push(&mut self, now: u64, packet: QueuedPacket, link: &TransmitState, drops: &mut Drops) {
        self.timer(now);
        if self.lq.len() + self.cq.len() + link.sending_packets as usize >= self.limit {
            drops.push((packet, Cause::QueueFull));
        } else if packet.item.ecn as u8 % 2 == 1 {
            self.lq.push_back(packet);
        } else {
            self.cq.push_back(packet);
        }
    }

    fn pop(&mut self, now: u64, _: &TransmitState, drops: &mut Drops) -> Option<QueuedPacket> {
        self.timer(now);
        let k = self.spec.coupling;
        let (p_c, p_cl) = (self.p * self.p, k * self.p);
        let p_cmax = f64::min(1.0 / (k * k), 1.0);
        while self.lq.len() + self.cq.len() > 0 {
            let mut packet;
            if self.lq_is_next() {
                packet = self.lq.pop_front()?;
                if p_cl < 1.0 {
                    let p_l = f64::max(self.laqm(now - packet.t_in.as_nanos()), p_cl);
                    if recur(&mut self.lq_count, p_l) {
                        mark(&mut packet);
                    }
                } else {
                    if recur(&mut self.lq_count, p_c) {
                        drops.push((packet, Cause::Aqm));
                        continue;
                    }
                    if recur(&mut self.lq_count, p_cl.min(1.0)) {
                        mark(&mut packet);
                    }
                }
                self.account(true, packet.bytes);
            } else {
                packet = self.cq.pop_front()?;
                if recur(&mut self.cq_count, p_c) {
                    if packet.item.ecn == Ecn::NotEct || !self.spec.ecn || p_c >= p_cmax {
                        drops.push((packet, Cause::Aqm));
                        continue;
                    }
                    mark(&mut packet);
                }
                self.account(false, packet.bytes);
            }
            return Some(packet);
        }
        None
    }

    fn probability(&self) -> f64 {
        self.p
    }
}

fn real(spec: &Dualpi2Spec) -> Real<Dualpi2> {
    Real(Dualpi2::new(spec), Dualpi2::base_probability)
}

fn specs() -> impl Strategy<Value = Dualpi2Spec> {
    let limit = prop_oneof![Just(1000u32), 3..100u32];
    let l4s = prop_oneof![
        Just(L4sMarking::default()),
        Just(L4sMarking::Step(ms(1))),
        Just(L4sMarking::Ramp { min: ms(2), range: ms(7) })
    ];
    let scheduler = prop_oneof![
        2 => (1..99u8).prop_map(|classic_percent| DualScheduler::Weighted { classic_percent }),
        1 => (0..100u64).prop_map(|shift| DualScheduler::TimeShifted { shift: ms(shift) }),
    ];
    let coupling = prop_oneof![Just(2.0), 0.5..4.0f64];
    (limit, l4s, scheduler, coupling, 0..3u32, any::<bool>()).prop_map(
        |(limit, l4s, scheduler, coupling, l4s_packets, ecn)| Dualpi2Spec {
            limit: Limit::Packets(limit),
            l4s,
            l4s_packets,
            scheduler,
            coupling,
            ecn,
            ..Dualpi2Spec::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decides_as_the_rfc(spec in specs(), arrivals in loads()) {
        let ours = lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals);
        prop_assert_eq!(ours, lockstep(&mut Reference::new(&spec), NS_PER_BYTE, &arrivals));
    }

    #[test]
    fn is_sound(spec in specs(), arrivals in loads(), seed in any::<u64>()) {
        assert_sound(&QueueSpec::Dualpi2(spec), seed, &arrivals);
    }
}

fn in_packets() -> Dualpi2Spec {
    Dualpi2Spec { limit: Limit::Packets(100_000), ..Dualpi2Spec::default() }
}

/// Makes packets of 100 bytes that arrive at `load` times the rate of a link that needs 1 us a byte, from `from` ns on.
fn steady(load: f64, seconds: u64, ecn: Ecn) -> Vec<Arrival> {
    let gap = (100e3 / load) as u64;
    let mut random = RandomStream::named(7, "steady", "test");
    (0..seconds * 1_000_000_000 / gap)
        .map(|n| Arrival { at: n * gap + random.below(gap), bytes: 100, hash: 0, ecn })
        .collect()
}

#[test]
fn classic_drops_are_the_square_of_half_the_coupled_marks() {
    // A tenth too much classic traffic steers p'; a little L4S traffic shows the coupled probability.
    for excess in [1.05, 1.1, 1.2] {
        let mut arrivals = steady(excess - 0.05, 60, Ecn::NotEct);
        arrivals.extend(steady(0.05, 60, Ecn::Ect1));
        arrivals.sort_by_key(|arrival| arrival.at);
        let verdicts = lockstep(&mut real(&in_packets()), NS_PER_BYTE, &arrivals);
        let later: Vec<_> = verdicts.iter().filter(|verdict| verdict.at > 30_000_000_000).collect();
        let share = |l4s: bool, signalled: fn(&Verdict) -> bool| {
            let of: Vec<_> = later.iter().filter(|verdict| (verdict.ecn != Ecn::NotEct) == l4s).collect();
            of.iter().filter(|verdict| signalled(verdict)).count() as f64 / of.len() as f64
        };
        let dropped = share(false, |verdict| verdict.cause == Cause::Aqm);
        let marked = share(true, |verdict| verdict.marked);
        let squared = (marked / 2.0) * (marked / 2.0);
        assert!((dropped / squared - 1.0).abs() < 0.1, "{excess}: dropped {dropped}, marked {marked}");
        assert!(dropped > 0.02, "{dropped}");
        let delay = later.iter().filter(|verdict| verdict.ecn == Ecn::NotEct && verdict.cause == Cause::None);
        let delays: Vec<_> = delay.map(|verdict| (verdict.at - verdict.t_in) as f64 / 1e6).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!((12.0..18.0).contains(&mean), "classic delay {mean} ms");
    }
}

#[test]
fn l4s_that_answers_marks_waits_for_about_a_millisecond() {
    // A scalable source (its rate falls by half of the share marked, and rises by a constant, once a
    // round-trip time of 10 ms) alone on 80 Mbit/s: 100 ns a byte.
    let ns_per_byte = 100;
    let mut queue = Dualpi2::new(&in_packets());
    let link = TransmitState { rate: bps(80_000_000), sending_bytes: 0, sending_packets: 0 };
    let (mut rate, mut free, mut sent, mut marked, mut delays) = (2e6, 0u64, 0u64, 0u64, Vec::new());
    let (mut now, mut round, mut alpha) = (0u64, 10_000_000, 0.0);
    let mut busy = 0u64;
    for id in 0..200_000u64 {
        now += (1000.0 / rate * 1e9) as u64;
        let mut departs = |until: u64, queue: &mut Dualpi2, force: bool| {
            while free <= until {
                let Some(packet) = queue.pop(at(free), &link, &mut |_, _| panic!("a drop")) else {
                    break;
                };
                let waited = free - packet.t_in.as_nanos();
                free += 1000 * ns_per_byte;
                busy += 1000 * ns_per_byte;
                sent += 1;
                marked += u64::from(packet.marked);
                delays.push((free, waited as f64 / 1e6));
                if force {
                    break;
                }
            }
        };
        departs(now, &mut queue, false);
        let item = Item { ecn: Ecn::Ect1, ..Item::new(PacketId(id), FlowId(0), 986) };
        let packet =
            QueuedPacket { item, t_in: at(now), queue: QueueDepth::default(), bytes: 1000, marked: false };
        queue.push(at(now), packet, &link, &mut |_, _| panic!("a drop"));
        if free < now {
            free = now;
        }
        if now >= round {
            round += 10_000_000;
            let share = if sent == 0 { 0.0 } else { marked as f64 / sent as f64 };
            alpha += (share - alpha) / 16.0;
            rate = if marked > 0 { rate * (1.0 - alpha / 2.0) } else { rate } + 100_000.0;
            (sent, marked) = (0, 0);
        }
    }
    let later: Vec<_> = delays.iter().filter(|(at, _)| *at > now / 2).map(|(_, delay)| *delay).collect();
    let mean = later.iter().sum::<f64>() / later.len() as f64;
    assert!((0.2..1.5).contains(&mean), "{mean} ms");
    assert!(busy as f64 > 0.9 * now as f64, "utilisation {}", busy as f64 / now as f64);
}

#[test]
fn l4s_that_ignores_marks_is_dropped_like_classic() {
    let verdicts = lockstep(&mut real(&in_packets()), NS_PER_BYTE, &steady(1.5, 60, Ecn::Ect1));
    let later: Vec<_> = verdicts.iter().filter(|verdict| verdict.at > 30_000_000_000).collect();
    let dropped =
        later.iter().filter(|verdict| verdict.cause == Cause::Aqm).count() as f64 / later.len() as f64;
    assert!((dropped - 1.0 / 3.0).abs() < 0.03, "{dropped}");
    // All passing packets are marked.
    let marked = later.iter().filter(|verdict| verdict.marked).count() as f64;
    assert!(marked / later.len() as f64 > 1.0 - dropped - 0.01);
}

#[test]
fn overload_takes_the_mark_from_classic_packets_too() {
    let verdicts = lockstep(&mut real(&in_packets()), NS_PER_BYTE, &steady(1.5, 60, Ecn::Ect0));
    for verdict in &verdicts {
        // p_C = p'^2 and p_Cmax = 1/4.
        assert!(verdict.cause != Cause::Aqm || verdict.probability >= 0.5, "{verdict:?}");
        assert!(!verdict.marked || verdict.cause == Cause::None);
    }
    assert!(verdicts.iter().any(|verdict| verdict.cause == Cause::Aqm));
    assert!(verdicts.iter().any(|verdict| verdict.marked));
}

#[test]
fn the_classic_queue_has_its_tenth_under_an_l4s_flood() {
    let mut arrivals = steady(3.0, 5, Ecn::Ect1);
    arrivals.extend(steady(3.0, 5, Ecn::NotEct));
    arrivals.sort_by_key(|arrival| arrival.at);
    // Gains so low that nothing is dropped: the scheduler alone.
    let spec = Dualpi2Spec { alpha: 1e-12, beta: 1e-12, ..in_packets() };
    let verdicts = lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals);
    let sent: Vec<_> = verdicts
        .iter()
        .filter(|verdict| verdict.cause == Cause::None && verdict.at < 5_000_000_000)
        .collect();
    let classic = sent.iter().filter(|verdict| verdict.ecn == Ecn::NotEct).count() as f64 / sent.len() as f64;
    assert!((classic - 0.1).abs() < 0.001, "{classic}");
}

#[test]
fn the_time_shifted_fifo_gives_a_head_start() {
    let arrivals: Vec<_> = (0..4)
        .map(|n| Arrival {
            at: n * 10_000,
            bytes: 1000,
            hash: 0,
            ecn: if n == 3 { Ecn::Ect1 } else { Ecn::NotEct },
        })
        .collect();
    let order = |shift| {
        let scheduler = DualScheduler::TimeShifted { shift: ns(shift) };
        let verdicts =
            lockstep(&mut real(&Dualpi2Spec { scheduler, ..in_packets() }), NS_PER_BYTE, &arrivals);
        verdicts.iter().map(|verdict| verdict.id).collect::<Vec<_>>()
    };
    // 3 arrives 20 us after 1 and 10 us after 2.
    assert_eq!(order(50_000), [0, 3, 1, 2]);
    assert_eq!(order(15_000), [0, 1, 3, 2]);
    assert_eq!(order(5_000), [0, 1, 2, 3]);
}
