//! DRD's ramp, by counting.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Ecn, Item, Outcome, QueueDepth, RandomStream, StageId};
use streamgauge_path::spec::{
    BottleneckSpec, DrdSpec, Layer, Limit, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec,
};
use streamgauge_path::{Drd, Path, Queue, QueuedPacket, TransmitState};

const RATE: u64 = 8_000_000;

fn spec(min_packets: u32, max_packets: u32) -> DrdSpec {
    DrdSpec { min_packets, max_packets, congested_packets: None, limit: None, delay: ns(0) }
}

fn link(spec: DrdSpec) -> StageSpec {
    let (rate, queue) = (RateSpec::Constant(bps(RATE)), QueueSpec::Drd(spec));
    stage(
        "bottleneck",
        StageKind::Bottleneck(BottleneckSpec {
            rate,
            shaper: ShaperSpec::Serial,
            queue,
            layer: Layer::Ethernet,
        }),
    )
}

fn packet(item: Item) -> QueuedPacket {
    QueuedPacket { item, t_in: at(0), queue: QueueDepth::default(), bytes: item.bytes, marked: false }
}

/// Arrivals dropped of 40,000 that each find `held` packets.
fn dropped(held: u32) -> u32 {
    let mut drd = Drd::new(&spec(10, 30), RandomStream::named(u64::from(held), "down.bottleneck", "drop"));
    let state = TransmitState { rate: bps(RATE), sending_bytes: 1000 * held, sending_packets: held };
    let mut drops = 0;
    for id in 0..40_000 {
        drd.push(at(0), packet(item(id, 1000)), &state, &mut |_, cause| {
            assert_eq!(cause, Cause::Aqm);
            drops += 1;
        });
        drd.take();
    }
    drops
}

#[test]
fn the_ramp_is_linear_from_nothing_to_95_percent() {
    for (held, probability) in
        [(0, 0.0f64), (9, 0.0), (10, 0.0), (11, 0.0475), (15, 0.2375), (20, 0.475), (29, 0.9025)]
            .into_iter()
            .chain([(30, 0.95), (31, 0.95), (1000, 0.95)])
    {
        let (n, expected) = (40_000.0, 40_000.0 * probability);
        let deviation = (n * probability * (1.0 - probability)).sqrt();
        let drops = f64::from(dropped(held));
        assert!(
            (drops - expected).abs() <= 5.0 * deviation,
            "{held}: {drops}, expected {expected} +- {deviation}"
        );
    }
}

#[test]
fn congested_marks_what_can_be_marked_and_drops_none_of_it() {
    let spec = DrdSpec { congested_packets: Some(4), ..spec(10, 30) };
    let mut path = Path::new(&[link(spec)], StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..10 {
        let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        path.enqueue(at(0), Item { ecn, ..item(id, 1000) }, &mut log);
    }
    follow(&mut path, at(1 << 60), &mut log);
    assert_eq!(log.count(0, Outcome::Delivered), 10, "nothing is dropped up to drdmin");
    for fate in &log.fates {
        assert_eq!(fate.marked, fate.queue.packets >= 4 && fate.item.id.0 % 2 == 0);
        assert_eq!(fate.marked, fate.item.ecn == Ecn::Ce);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn conserves_keeps_order_and_its_limit_and_a_seed_repeats(
        seed: u64, limit in 6..12u32, arrivals in prop::collection::vec((0..1_500_000u64, 34..=1514u32), 1..300),
    ) {
        let spec = DrdSpec { limit: Some(Limit::Packets(limit)), delay: ns(3_000_000), ..spec(2, 6) };
        let run = || {
            let mut path = Path::new(&[link(spec.clone())], StageId(0), seed, Direction::Down).unwrap();
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
        prop_assert!(sent(&log).is_sorted_by_key(|sent| sent.0));
        for fate in &log.fates {
            prop_assert!(fate.queue.packets <= limit);
            prop_assert_eq!(fate.cause == Cause::QueueFull, fate.cause != Cause::Aqm && fate.queue.packets == limit);
        }
        prop_assert_eq!(&log.fates, &run().fates);
    }
}

#[test]
fn what_drd_cannot_be_is_refused() {
    let says = |spec: DrdSpec| {
        Path::new(&[link(spec)], StageId(0), 1, Direction::Down).err().map(|error| error.to_string())
    };
    assert_eq!(says(spec(0, 1)), None);
    for (spec, expected) in [
        (
            spec(30, 30),
            "the queue's min_packets is 30 beside a max_packets of 30; it must be less than max_packets",
        ),
        (DrdSpec { congested_packets: Some(0), ..spec(1, 2) }, "the queue's congested_packets is 0"),
        (
            DrdSpec { limit: Some(Limit::Packets(29)), ..spec(1, 30) },
            "the queue's max_packets is 30 with a limit of 29",
        ),
        (DrdSpec { limit: Some(Limit::Bytes(10)), ..spec(1, 30) }, "the queue's limit is 10 bytes"),
    ] {
        let message = says(spec).unwrap();
        assert!(message.starts_with(&format!("path.down.bottleneck: {expected}")), "{message}");
    }
}
