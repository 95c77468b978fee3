//! The bounded class: its rate, its bursts and the loss of its average.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{CbqSpec, Limit, RateSpec, ShaperSpec, StageSpec};

const NO_LIMIT: Limit = Limit::Packets(u32::MAX);

fn class(rate: RateSpec, spec: CbqSpec, limit: Limit) -> StageSpec {
    shaped(rate, ShaperSpec::Cbq(spec), limit)
}

fn megabit(spec: CbqSpec, limit: Limit) -> StageSpec {
    class(RateSpec::Constant(bps(1_000_000)), spec, limit)
}

/// Lengths of the runs of packets that leave at the device's speed.
fn runs(times: &[u64], device_gap: u64) -> Vec<usize> {
    times.chunk_by(|a, b| b - a <= device_gap).map(<[u64]>::len).collect()
}

#[test]
fn after_its_burst_packets_of_one_length_leave_at_the_rate_exactly() {
    // 1000 B: 80 us on the device, 8 ms at the class's rate.
    let log = offer(&megabit(CbqSpec::default(), NO_LIMIT), &[(0, 1000); 200]);
    let times: Vec<_> = sent(&log).iter().map(|sent| sent.1).collect();
    assert_eq!(times[0], 80_000, "a packet takes the device's time");
    let burst = runs(&times, 80_000)[0];
    // maxburst 20: the average's credit lasts for twenty, and a half-open inequality decides about one more.
    assert!((20..=21).contains(&burst), "{burst}");
    assert!(times[burst..].windows(2).all(|pair| pair[1] - pair[0] == 8_000_000));
}

#[test]
fn a_class_with_maxburst_of_one_has_almost_no_burst() {
    let spec = CbqSpec { max_burst_packets: 1, ..CbqSpec::default() };
    let times: Vec<_> =
        sent(&offer(&megabit(spec, NO_LIMIT), &[(0, 1000); 50])).iter().map(|sent| sent.1).collect();
    assert!(runs(&times, 80_000)[0] <= 2);
}

#[test]
fn a_rest_restores_the_burst() {
    let mut arrivals = vec![(0, 1000); 60];
    arrivals.extend([(60_000_000_000, 1000); 60]);
    let times: Vec<_> =
        sent(&offer(&megabit(CbqSpec::default(), NO_LIMIT), &arrivals)).iter().map(|s| s.1).collect();
    // At time zero the first packet arrives without a rest before it, so it uses its share of the credit.
    assert_eq!(runs(&times[60..], 80_000)[0], runs(&times[..60], 80_000)[0] + 1);
}

#[test]
fn minburst_makes_it_wait_and_send_several_together() {
    for packets in [2, 4, 8] {
        let spec = CbqSpec { min_burst_packets: packets, ..CbqSpec::default() };
        let times: Vec<_> =
            sent(&offer(&megabit(spec, NO_LIMIT), &[(0, 1000); 400])).iter().map(|sent| sent.1).collect();
        let bursts = runs(&times, 80_000);
        let inner = &bursts[1..bursts.len() - 1];
        let (least, most) = (packets as usize, packets as usize + 1);
        assert!(inner.iter().all(|run| (least..=most).contains(run)), "{packets}: {inner:?}");
        // A lump's credit shrinks by w = 1/32 with each packet of it, so the rate is less by about w/2 per packet.
        let lumps = &times[bursts[0]..times.len() - bursts[bursts.len() - 1]];
        let rate = (lumps.len() - 1) as f64 * 8000.0 * 1e9 / (lumps[lumps.len() - 1] - lumps[0]) as f64;
        let least = 1e6 * (1.0 - f64::from(packets) / 64.0);
        assert!((least..1e6).contains(&rate), "{packets}: {rate}");
    }
}

#[test]
fn a_change_of_rate_counts_for_the_packets_that_follow() {
    let rate = RateSpec::Steps(vec![(ns(0), bps(1_000_000)), (ns(1_000_000_000), bps(500_000))]);
    let times: Vec<_> = sent(&offer(&class(rate, CbqSpec::default(), NO_LIMIT), &[(0, 1000); 400]))
        .iter()
        .map(|s| s.1)
        .collect();
    let gaps = |from: u64, to: u64| {
        let inside: Vec<u64> = times.iter().copied().filter(|time| (from..to).contains(time)).collect();
        inside.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    };
    assert!(gaps(100_000_000, 999_000_000).iter().all(|&gap| gap == 8_000_000));
    assert!(gaps(1_500_000_000, 2_500_000_000).iter().all(|&gap| gap == 16_000_000));
    assert!(gaps(1_500_000_000, 2_500_000_000).len() >= 61);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// From the recurrence: the sum of idle over n packets is at least -(maxidle + one packet) - n w (one packet), all
    /// scaled; so a window of n packets lasts at least their time at the rate, less those.
    #[test]
    fn no_window_carries_more_than_the_estimator_allows(
        rate in 50_000..20_000_000u64,
        max_burst_packets in 1..40u32,
        lump in 0..10u32,
        ewma_log in 2..8u8,
        arrivals in prop::collection::vec((prop_oneof![3 => Just(0u64), 1 => 0..80_000_000u64], 34..=1514u32), 1..150),
    ) {
        let min_burst_packets = lump.min(max_burst_packets);
        let spec = CbqSpec { max_burst_packets, min_burst_packets, ewma_log, ..CbqSpec::default() };
        let mut now = 0;
        let arrivals: Vec<_> = arrivals.into_iter().map(|(gap, bytes)| { now += gap; (now, bytes) }).collect();
        let log = offer(&class(RateSpec::Constant(bps(rate)), spec, NO_LIMIT), &arrivals);
        let sent = sent(&log);
        prop_assert!(sent.is_sorted_by_key(|sent| (sent.1, sent.0)), "order is kept");
        prop_assert!(sent.windows(2).all(|pair| pair[1].1 - pair[0].1 >= u64::from(pair[1].2) * 80), "the device's rate");
        let takes = |bytes: u32| f64::from(bytes) * 8e9 / rate as f64;
        let w = 0.5f64.powi(i32::from(ewma_log));
        let g = 1.0 - w;
        let power = g.powi(max_burst_packets as i32);
        let maxidle = (takes(1000) - 80_000.0).max(0.0) * (1.0 - power) / power / w;
        for first in 0..sent.len() {
            let mut needed = -maxidle - takes(1514);
            for &(_, end, bytes) in &sent[first + 1..] {
                needed += takes(bytes) - w * takes(1514);
                prop_assert!((end - sent[first].1) as f64 >= needed - 1e3);
            }
        }
    }

    #[test]
    fn the_queue_keeps_its_limit_and_a_seed_changes_nothing(
        packets in 1..20u32, arrivals in prop::collection::vec((0..20_000_000u64, 34..=1514u32), 1..100),
    ) {
        let mut now = 0;
        let arrivals: Vec<_> = arrivals.into_iter().map(|(gap, bytes)| { now += gap; (now, bytes) }).collect();
        let stage = megabit(CbqSpec::default(), Limit::Packets(packets));
        let log = offer(&stage, &arrivals);
        for fate in &log.fates {
            prop_assert_eq!(fate.outcome == Outcome::Dropped, fate.queue.packets >= packets);
        }
        prop_assert_eq!(log.fates, offer(&stage, &arrivals).fates);
    }
}

#[test]
fn what_a_class_cannot_be_is_refused() {
    let error = |rate: u64, spec: CbqSpec| {
        let stage = class(RateSpec::Constant(bps(rate)), spec, NO_LIMIT);
        Path::new(&[stage], StageId(0), 1, Direction::Down).err().map(|error| error.to_string())
    };
    let spec = CbqSpec::default();
    assert_eq!(error(99_999_999, spec), None);
    assert_eq!(
        error(100_000_000, spec).unwrap(),
        "path.down.bottleneck: rate: 100000000 bit/s (shaper cbq); expected a rate above 0 and below the device's, \
         100000000 bit/s"
    );
    for (spec, key) in [
        (CbqSpec { average_packet: 0, ..spec }, "average_packet: 0"),
        (CbqSpec { max_burst_packets: 0, ..spec }, "max_burst_packets: 0"),
        (CbqSpec { min_burst_packets: 21, ..spec }, "min_burst_packets: 21"),
        (CbqSpec { ewma_log: 0, ..spec }, "ewma_log: 0"),
        (CbqSpec { ewma_log: 32, ..spec }, "ewma_log: 32"),
    ] {
        let message = error(1_000_000, spec).unwrap();
        assert!(message.contains(&format!("shaper.cbq.{key}; expected")), "{message}");
    }
    let zero = RateSpec::Steps(vec![(ns(0), bps(1000)), (ns(1), bps(0))]);
    assert!(Path::new(&[class(zero, spec, NO_LIMIT)], StageId(0), 1, Direction::Down).is_err());
    assert_eq!(serde_json::from_str::<ShaperSpec>(r#"{"cbq": {}}"#).unwrap(), ShaperSpec::Cbq(spec));
}
