//! NIST Net's drop-tail: its limit counts the delay behind it (W-27 in the Windows Streaming Media paper).

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{
    BottleneckSpec, Layer, NistnetSpec, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec,
};

fn link(rate: u64, packets: u32, delay_ns: u64) -> StageSpec {
    let queue = QueueSpec::Nistnet(NistnetSpec { packets, delay: ns(delay_ns) });
    let rate = RateSpec::Constant(bps(rate));
    let spec = BottleneckSpec { rate, shaper: ShaperSpec::Serial, queue, layer: Layer::Ethernet };
    stage("bottleneck", StageKind::Bottleneck(spec))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Counts, at each arrival, the packets that have arrived and have not left the delay.
    #[test]
    fn an_arrival_is_dropped_just_when_so_many_are_inside(
        packets in 1..30u32,
        delay in 0..100_000_000u64,
        arrivals in prop::collection::vec((0..20_000_000u64, 34..=1514u32), 1..150),
    ) {
        let mut now = 0;
        let arrivals: Vec<_> = arrivals.into_iter().map(|(gap, bytes)| { now += gap; (now, bytes) }).collect();
        let log = offer(&link(1_000_000, packets, delay), &arrivals);
        prop_assert!(sent(&log).is_sorted_by_key(|sent| sent.0), "order is kept");
        for (id, &(now, _)) in arrivals.iter().enumerate() {
            let before = |fate: &&streamgauge_base::Fate| fate.item.id.0 < id as u64;
            let left = |fate: &streamgauge_base::Fate| fate.t_out().map(|out| out.as_nanos() + delay);
            let inside = log.fates.iter().filter(before).filter(|fate| left(fate).is_some_and(|left| left > now));
            let fate = log.fates.iter().find(|fate| fate.item.id.0 == id as u64).unwrap();
            prop_assert_eq!(fate.cause == Cause::QueueFull, inside.count() as u32 >= packets);
            prop_assert_eq!(fate.outcome == Outcome::Dropped, fate.cause == Cause::QueueFull);
        }
    }
}

#[test]
fn the_longer_the_delay_the_less_is_left_for_a_queue() {
    // 725 kbit/s and 80 packets, of 1514 B: 1350 ms hold 80.8 of them, so that nothing is left (W-27); at 45 ms, 77.
    let queue = |delay_ms: u64| {
        let arrivals: Vec<_> = (0..2000).map(|index| (index * 8_000_000, 1514)).collect();
        let log = offer(&link(725_000, 80, delay_ms * 1_000_000), &arrivals);
        log.fates
            .iter()
            .filter(|fate| fate.t_in > at(8_000_000_000))
            .map(|fate| fate.queue.packets)
            .max()
            .unwrap()
    };
    assert_eq!(queue(0), 80);
    assert!((76..=78).contains(&queue(45)), "{}", queue(45));
    assert!((39..=42).contains(&queue(650)), "{}", queue(650));
    assert!(queue(1350) <= 2, "{}", queue(1350));
}

#[test]
fn a_limit_of_no_packets_is_refused() {
    let error = Path::new(&[link(1000, 0, 5)], StageId(0), 1, Direction::Down).unwrap_err();
    assert!(error.to_string().contains("the queue's limit is 0 packets"), "{error}");
}
