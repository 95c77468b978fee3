//! RED against the paper's own formulae, computed the slow way, and the pattern of its drops.

mod common;

use std::collections::VecDeque;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Ecn, Item, Outcome, QueueDepth, RandomStream, StageId};
use streamgauge_path::spec::{
    BottleneckSpec, Layer, Limit, QueueSpec, RateSpec, RedSpec, ShaperSpec, StageKind, StageSpec,
};
use streamgauge_path::{Path, Queue, QueuedPacket, Red, TransmitState};

fn spec(min: u32, max: u32, limit: u32) -> RedSpec {
    RedSpec {
        min: Limit::Packets(min),
        max: Limit::Packets(max),
        limit: Limit::Packets(limit),
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        ecn: false,
        mean_packet: 1000,
    }
}

fn in_bytes(spec: &RedSpec) -> RedSpec {
    let bytes = |limit: Limit| match limit {
        Limit::Packets(packets) => Limit::Bytes(u64::from(packets) * 1000),
        other => other,
    };
    RedSpec { min: bytes(spec.min), max: bytes(spec.max), limit: bytes(spec.limit), ..spec.clone() }
}

fn link(spec: RedSpec, rate: u64) -> StageSpec {
    let (rate, queue) = (RateSpec::Constant(bps(rate)), QueueSpec::Red(spec));
    let spec = BottleneckSpec { rate, shaper: ShaperSpec::Serial, queue, layer: Layer::Ethernet };
    stage("bottleneck", StageKind::Bottleneck(spec))
}

fn packet(item: Item) -> QueuedPacket {
    QueuedPacket { item, t_in: at(0), queue: QueueDepth::default(), bytes: item.bytes, marked: false }
}

const RATE: u64 = 8_000_000; // 1000 B a millisecond

/// The queue by itself, driven as a bottleneck drives it: a packet on the line, the others in the queue.
struct Line {
    red: Red,
    sending: Option<QueuedPacket>,
}

impl Line {
    fn new(spec: &RedSpec) -> Self {
        Line { red: Red::new(spec, RandomStream::named(1, "down.bottleneck", "drop")), sending: None }
    }
    fn state(&self) -> TransmitState {
        let sending = self.sending.as_ref();
        TransmitState {
            rate: bps(RATE),
            sending_bytes: sending.map_or(0, |packet| packet.bytes),
            sending_packets: sending.map_or(0, |_| 1),
        }
    }
    /// Returns the fate of an arrival: `None` if it was accepted, else why not.
    fn arrive(&mut self, now: u64, item: Item) -> Option<Cause> {
        let (mut fate, state) = (None, self.state());
        self.red.push(at(now), packet(item), &state, &mut |_, cause| fate = Some(cause));
        if self.sending.is_none() {
            self.sending = self.red.pop(at(now), &state, &mut |_, _| {});
        }
        fate
    }
    /// The line is done with its packet, if it had one.
    fn depart(&mut self, now: u64) {
        if self.sending.take().is_some() {
            let state = self.state();
            self.sending = self.red.pop(at(now), &state, &mut |_, _| {});
        }
    }
}

/// The paper's figure 2, section 7 and the gentle slope, with a list of packets and no shortcut.
struct Paper {
    spec: RedSpec,
    average: f64,
    queue: VecDeque<u32>,
    empty_since: Option<u64>,
}

impl Paper {
    fn arrive(&mut self, now: u64) -> f64 {
        let w = self.spec.weight;
        let bytes = matches!(self.spec.min, Limit::Bytes(_));
        match self.empty_since {
            Some(since) => {
                let typical = u64::from(self.spec.mean_packet) * 8_000_000_000 / RATE;
                for _ in 0..(now - since) / typical {
                    self.average *= 1.0 - w;
                }
            }
            None => {
                let q: u32 = if bytes { self.queue.iter().sum() } else { self.queue.len() as u32 };
                self.average = (1.0 - w) * self.average + w * f64::from(q);
            }
        }
        let value = |limit: Limit| match limit {
            Limit::Bytes(bytes) => bytes as f64,
            Limit::Packets(packets) => f64::from(packets),
            Limit::Time(_) => unreachable!(),
        };
        let (min, max, most) = (value(self.spec.min), value(self.spec.max), self.spec.max_probability);
        match self.average {
            average if average < min => 0.0,
            average if average < max => most * (average - min) / (max - min),
            average if self.spec.gentle && average < 2.0 * max => most + (1.0 - most) * (average - max) / max,
            _ => 1.0,
        }
    }
    fn took(&mut self, bytes: u32) {
        self.queue.push_back(bytes);
        self.empty_since = None;
    }
    fn depart(&mut self, now: u64) {
        if self.queue.pop_front().is_some() && self.queue.is_empty() {
            self.empty_since = Some(now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn average_and_probability_are_the_papers_at_every_step(
        weight in prop_oneof![Just(0.002), 0.01..1.0f64],
        gentle: bool,
        by_bytes: bool,
        calls in prop::collection::vec((any::<bool>(), 0..3_000_000u64, 34..=1514u32), 1..400),
    ) {
        let mut spec = RedSpec { weight, gentle, ..spec(3, 9, 30) };
        if by_bytes {
            spec = in_bytes(&spec);
        }
        let mut line = Line::new(&spec);
        let mut paper = Paper { spec, average: 0.0, queue: VecDeque::new(), empty_since: Some(0) };
        let mut now = 0;
        for (id, (arrives, gap, bytes)) in calls.into_iter().enumerate() {
            now += gap;
            if arrives {
                let expected = paper.arrive(now);
                let rested = paper.empty_since;
                let fate = line.arrive(now, item(id as u64, bytes));
                // Squaring rounds otherwise than one multiplication after the other.
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
                prop_assert!(close(line.red.average(), paper.average), "{} {}", line.red.average(), paper.average);
                prop_assert!(close(line.red.probability(), expected));
                if expected == 0.0 {
                    prop_assert_ne!(fate, Some(Cause::Aqm));
                }
                if fate.is_none() {
                    paper.took(bytes);
                } else if rested.is_some() {
                    paper.empty_since = Some(now);
                }
            } else {
                line.depart(now);
                paper.depart(now);
            }
        }
    }

    #[test]
    fn the_buffer_keeps_its_limit_and_a_seed_repeats(
        by_bytes: bool, seed: u64, arrivals in prop::collection::vec((0..1_500_000u64, 34..=1514u32), 1..300),
    ) {
        let mut spec = RedSpec { weight: 0.2, ..spec(2, 6, 8) };
        if by_bytes {
            spec = in_bytes(&spec);
        }
        let limit = spec.limit;
        let run = || {
            let mut path = Path::new(&[link(spec.clone(), RATE)], StageId(0), seed, Direction::Down).unwrap();
            let (mut log, mut now, mut entered) = (Log::default(), 0, Vec::new());
            for (id, &(gap, bytes)) in arrivals.iter().enumerate() {
                now += gap;
                follow(&mut path, at(now), &mut log);
                entered.push(item(id as u64, bytes));
                path.enqueue(at(now), entered[id], &mut log);
            }
            follow(&mut path, at(1 << 60), &mut log);
            path.finish(at(1 << 60), &mut log);
            log.assert_conserved(&entered, 1);
            log
        };
        let log = run();
        prop_assert!(sent(&log).is_sorted_by_key(|sent| sent.0), "order is kept");
        for fate in &log.fates {
            let fits = match limit {
                Limit::Bytes(limit) => u64::from(fate.queue.bytes + fate.item.bytes) <= limit,
                Limit::Packets(limit) => fate.queue.packets < limit,
                Limit::Time(_) => unreachable!(),
            };
            prop_assert!(fits || fate.outcome == Outcome::Dropped);
            prop_assert!(!fits || fate.cause != Cause::QueueFull);
        }
        prop_assert_eq!(log.fates, run().fates);
    }
}

#[test]
fn gaps_between_drops_are_uniform() {
    // Weight 1 makes the average the queue itself, which holds the packets on the line alone: p = 0.1 * (25 - 20) / (45
    // - 20) = 1/50, so gaps are uniform on 1..=50.
    let spec = RedSpec { weight: 1.0, ..spec(20, 45, 100) };
    let mut red = Red::new(&spec, RandomStream::named(5, "down.bottleneck", "drop"));
    let state = TransmitState { rate: bps(RATE), sending_bytes: 25_000, sending_packets: 25 };
    let (mut counts, mut gap, mut hits) = ([0u32; 51], 0usize, 0u32);
    red.push(at(0), packet(item(0, 1000)), &state, &mut |_, _| {}); // ends the rest
    red.take();
    while hits < 50_000 {
        let mut dropped = false;
        red.push(at(0), packet(item(0, 1000)), &state, &mut |_, cause| dropped = cause == Cause::Aqm);
        red.take();
        gap += 1;
        if dropped {
            counts[gap] += 1; // a gap of more than 50 would be out of bounds
            (gap, hits) = (0, hits + 1);
        }
    }
    assert!((red.probability() - 0.02).abs() < 1e-12);
    let expected = 1000.0;
    let chi2: f64 = counts[1..].iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    // 49 degrees of freedom: mean 49, standard deviation 9.9; geometric gaps would give some 30,000.
    assert!(chi2 < 49.0 + 5.0 * 9.9, "{chi2}: {counts:?}");
}

#[test]
fn in_byte_mode_a_packet_is_hit_by_its_length() {
    // p = 1/50 for 1000 B: over many arrivals, 1500 B are hit three times as often as 500 B.
    let spec = in_bytes(&RedSpec { weight: 1.0, ..spec(20, 45, 100) });
    let mut red = Red::new(&spec, RandomStream::named(5, "down.bottleneck", "drop"));
    let state = TransmitState { rate: bps(RATE), sending_bytes: 25_000, sending_packets: 25 };
    red.push(at(0), packet(item(0, 1000)), &state, &mut |_, _| {});
    red.take();
    let mut hits = [0u32; 2];
    for id in 0..400_000 {
        let mut dropped = false;
        let bytes = [500, 1500][id as usize % 2];
        red.push(at(0), packet(item(id, bytes)), &state, &mut |_, cause| dropped = cause == Cause::Aqm);
        red.take();
        hits[id as usize % 2] += u32::from(dropped);
    }
    let ratio = f64::from(hits[1]) / f64::from(hits[0]);
    assert!((2.8..3.2).contains(&ratio), "{hits:?}");
    // A hit occurs every 25.5 mean packets on average: 400 MB / 25.5 kB.
    let total = f64::from(hits[0] + hits[1]);
    assert!((total / (400_000.0 / 25.5) - 1.0).abs() < 0.03, "{hits:?}");
}

#[test]
fn ecn_marks_where_a_drop_is_a_chance_and_drops_where_it_is_certain() {
    let spec = RedSpec { weight: 1.0, ecn: true, gentle: false, ..spec(2, 10, 40) };
    let mut path = Path::new(&[link(spec, RATE)], StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..2000 {
        follow(&mut path, at(id * 900_000), &mut log);
        path.enqueue(at(id * 900_000), Item { ecn: Ecn::Ect0, ..item(id, 1000) }, &mut log);
    }
    path.finish(at(1 << 60), &mut log);
    let marked = log.fates.iter().filter(|fate| fate.marked).count();
    assert!(marked > 50, "{marked}");
    for fate in &log.fates {
        assert_eq!(fate.marked, fate.item.ecn == Ecn::Ce);
        // The average is the queue itself here: certain from max on.
        assert_eq!(fate.outcome == Outcome::Dropped, fate.queue.packets >= 10, "{fate:?}");
        assert!(!fate.marked || fate.queue.packets >= 2);
    }
}

#[test]
fn what_says_ce_already_is_not_dropped_in_place_of_a_mark() {
    let spec = RedSpec { weight: 1.0, ecn: true, gentle: false, ..spec(2, 10, 40) };
    let mut path = Path::new(&[link(spec, RATE)], StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..2000 {
        follow(&mut path, at(id * 900_000), &mut log);
        path.enqueue(at(id * 900_000), Item { ecn: Ecn::Ce, ..item(id, 1000) }, &mut log);
    }
    path.finish(at(1 << 60), &mut log);
    for fate in &log.fates {
        assert!(!fate.marked, "it was marked before it came");
        assert_eq!(fate.outcome == Outcome::Dropped, fate.queue.packets >= 10, "{fate:?}");
    }
}

#[test]
fn what_red_cannot_be_is_refused() {
    let says = |spec: RedSpec| {
        Path::new(&[link(spec, RATE)], StageId(0), 1, Direction::Down).err().map(|error| error.to_string())
    };
    let good = spec(20, 40, 100);
    assert_eq!(says(good.clone()), None);
    assert_eq!(says(in_bytes(&good)), None);
    for (spec, expected) in [
        (
            spec(40, 40, 100),
            "the queue's min is Packets(40) beside a max of Packets(40); it must be less than max",
        ),
        (spec(0, 40, 100), "the queue's min is Packets(0)"),
        (spec(20, 101, 100), "the queue's max is Packets(101) with a limit of Packets(100)"),
        (
            RedSpec { min: Limit::Bytes(1000), ..good.clone() },
            "the queue's min is Bytes(1000) beside a max of",
        ),
        (
            RedSpec { max_probability: 0.0, ..good.clone() },
            "the queue's max_probability is 0; it must be above 0",
        ),
        (RedSpec { max_probability: 1.1, ..good.clone() }, "the queue's max_probability is 1.1"),
        (RedSpec { weight: f64::NAN, ..good.clone() }, "the queue's weight is NaN"),
        (RedSpec { mean_packet: 0, ..good.clone() }, "the queue's mean_packet is 0"),
    ] {
        let message = says(spec).unwrap();
        assert!(message.starts_with(&format!("path.down.bottleneck: {expected}")), "{message}");
    }
}
