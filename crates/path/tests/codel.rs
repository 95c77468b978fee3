//! CoDel against RFC 8289's pseudo-code, by its properties, and by published results.

mod common;

use std::collections::VecDeque;

use common::aqm::*;
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Ecn};
use streamgauge_path::spec::{CodelSpec, Limit, QueueSpec};
use streamgauge_path::{Codel, QueuedPacket, TransmitState};

/// RFC 8289 section 5 as it is written, times in ns and 0 for never.
struct Reference {
    target: u64,
    interval: u64,
    maxpacket: u64,
    limit: usize,
    ecn: bool,
    queue: VecDeque<QueuedPacket>,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl Reference {
    fn new(spec: &CodelSpec) -> Self {
        let Limit::Packets(limit) = spec.limit else { panic!("in packets") };
        Reference {
            target: spec.target.as_nanos(),
            interval: spec.interval.as_nanos(),
            maxpacket: spec.mtu.into(),
            limit: limit as usize,
            ecn: spec.ecn,
            queue: VecDeque::new(),
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    fn control_law(&self, t: u64) -> u64 {
        t + (self.interval as f64 / f64::sqrt(self.count as f64)) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<QueuedPacket>, bool) {
        let mut ok_to_drop = false;
        let packet = self.queue.pop_front();
        match packet {
            None => self.first_above_time = 0,
            Some(p) => {
                let sojourn_time = now - p.t_in.as_nanos();
                let bytes: u64 = self.queue.iter().map(|p| u64::from(p.bytes)).sum();
                if sojourn_time < self.target || bytes <= self.maxpacket {
                    self.first_above_time = 0;
                } else if self.first_above_time == 0 {
                    self.first_above_time = now + self.interval;
                } else if now >= self.first_above_time {
                    ok_to_drop = true;
                }
            }
        }
        (packet, ok_to_drop)
    }

    /// Marks in place of dropping, if that can be.
    fn marks(&self, packet: &mut QueuedPacket) -> bool {
        if !self.ecn || packet.item.ecn == Ecn::NotEct {
            return false;
        }
        packet.marked = packet.item.ecn != Ecn::Ce;
        packet.item.ecn = Ecn::Ce;
        true
    }
}

impl Discipline for Reference {
    fn push(&mut self, _: u64, packet: QueuedPacket, link: &TransmitState, drops: &mut Drops) {
        if self.queue.len() + link.sending_packets as usize >= self.limit {
            drops.push((packet, Cause::QueueFull));
        } else {
            self.queue.push_back(packet);
        }
    }

    fn pop(&mut self, now: u64, _: &TransmitState, drops: &mut Drops) -> Option<QueuedPacket> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                let mut p = packet.expect("it may be dropped");
                self.count += 1;
                if self.marks(&mut p) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(p);
                }
                drops.push((p, Cause::Aqm));
                (packet, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            let mut p = packet.expect("it may be dropped");
            if self.marks(&mut p) {
                packet = Some(p);
            } else {
                drops.push((p, Cause::Aqm));
                (packet, _) = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * self.interval as i64 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        packet
    }
}

fn real(spec: &CodelSpec) -> Real<Codel> {
    Real(Codel::new(spec), |_| 0.0)
}

fn specs() -> impl Strategy<Value = CodelSpec> {
    let limit = prop_oneof![Just(1000u32), 3..60u32];
    (any::<bool>(), limit, prop_oneof![Just((5, 100)), Just((2, 20)), Just((1, 500))]).prop_map(
        |(ecn, limit, (target, interval))| CodelSpec {
            target: ms(target),
            interval: ms(interval),
            limit: Limit::Packets(limit),
            ecn,
            ..CodelSpec::default()
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
        assert_sound(&QueueSpec::Codel(spec), seed, &arrivals);
    }
}

/// Makes `packets` at `gap` ns from `from` on, each 1 ms long on the link.
fn steady(from: u64, packets: u64, gap: u64, ecn: Ecn) -> impl Iterator<Item = Arrival> {
    (0..packets).map(move |n| Arrival { at: from + n * gap, bytes: 1000, hash: 0, ecn })
}

fn drops(verdicts: &[Verdict]) -> Vec<u64> {
    verdicts.iter().filter(|verdict| verdict.cause == Cause::Aqm).map(|verdict| verdict.at).collect()
}

#[test]
fn drops_come_closer_by_the_inverse_of_the_square_root() {
    let spec = CodelSpec { limit: Limit::Packets(100_000), ..CodelSpec::default() };
    let arrivals: Vec<_> = steady(0, 10_000, 500_000, Ecn::NotEct).collect();
    let drops = drops(&lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals));
    // Packet n leaves the queue n ms on and has waited n / 2 ms: 5 ms are seen at 10 ms, an interval later it
    // drops.
    assert_eq!(drops[0], 110_000_000);
    // 100 ms, 100 / sqrt 2 = 70.7 ms, 57.7 ms, 50 ms ... after one another, each at the next departure.
    let mut expected = drops[0] as f64;
    for (count, &drop) in (1..).zip(&drops[1..100]) {
        expected += 100e6 / f64::from(count).sqrt();
        let late = drop as f64 - expected;
        assert!((-100.0..1_000_001.0).contains(&late), "drop {count}: {late} ns after its time");
    }
}

#[test]
fn a_queue_that_comes_back_soon_meets_the_rate_that_controlled_it() {
    // Overload for a second, too little load for `rest`, overload again.
    let gap_between_first_drops = |rest: u64| {
        let mut arrivals: Vec<_> = steady(0, 2_000, 500_000, Ecn::NotEct).collect();
        let again = 2_500_000_000 + rest;
        arrivals.extend(steady(again, 2_000, 500_000, Ecn::NotEct));
        let spec = CodelSpec { limit: Limit::Packets(100_000), ..CodelSpec::default() };
        let all = drops(&lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals));
        let later: Vec<_> = all.into_iter().filter(|&drop| drop >= again).collect();
        later[1] - later[0]
    };
    assert!(gap_between_first_drops(100_000_000) < 40_000_000, "16 intervals are 1.6 s");
    assert_eq!(gap_between_first_drops(3_000_000_000), 100_000_000);
}

#[test]
fn marks_take_the_place_of_drops() {
    let spec = CodelSpec { limit: Limit::Packets(100_000), ecn: true, ..CodelSpec::default() };
    let of = |ecn| {
        let arrivals: Vec<_> = steady(0, 2_000, 500_000, ecn).collect();
        lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals)
    };
    let marked = of(Ecn::Ect0);
    assert_eq!(drops(&marked), []);
    let first = marked.iter().find(|verdict| verdict.marked).expect("a mark");
    assert_eq!(
        (first.at, first.ecn),
        (111_000_000, Ecn::Ce),
        "sent when the first drop would have been decided"
    );
    assert!(!drops(&of(Ecn::NotEct)).is_empty());
    assert!(of(Ecn::Ce).iter().all(|verdict| !verdict.marked && verdict.cause == Cause::None));
}

#[test]
fn one_packet_that_waits_is_no_standing_queue() {
    // Two at a time every 24 ms: the second waits for 12 ms, longer than the target, for ever.
    let arrivals: Vec<_> = (0..2_000)
        .map(|n| Arrival { at: n / 2 * 24_000_000, bytes: 1500, hash: 0, ecn: Ecn::NotEct })
        .collect();
    assert_eq!(drops(&lockstep(&mut real(&CodelSpec::default()), 8_000, &arrivals)), []);
    // Four at a time every 48 ms: those behind wait for up to 36 ms, but the queue is empty in between.
    let arrivals: Vec<_> = (0..2_000)
        .map(|n| Arrival { at: n / 4 * 48_000_000, bytes: 1500, hash: 0, ecn: Ecn::NotEct })
        .collect();
    assert_eq!(drops(&lockstep(&mut real(&CodelSpec::default()), 8_000, &arrivals)), []);
}
