//! The program that sleeps: it wakes at ticks alone, never early, and each packet costs the ticks that it should.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{Direction, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{Limit, RateSpec, ShaperSpec, SleepingSpec, StageSpec};

const NO_LIMIT: Limit = Limit::Packets(u32::MAX);
const MS: u64 = 1_000_000;

fn sleeping(rate: u64, tick: u64, late: u32) -> StageSpec {
    shaped(
        RateSpec::Constant(bps(rate)),
        ShaperSpec::Sleeping(SleepingSpec { tick: ns(tick), late }),
        NO_LIMIT,
    )
}

/// Returns when each of `arrivals` leaves.
fn leave(stage: &StageSpec, arrivals: &[(u64, u32)]) -> Vec<u64> {
    sent(&offer(stage, arrivals)).iter().map(|sent| sent.1).collect()
}

#[test]
fn a_busy_program_takes_whole_ticks_for_each_packet() {
    // 1000 B at 1 Mbit/s are 8 ms, 1100 B are 8.8 ms.
    assert_eq!(leave(&sleeping(1_000_000, 4 * MS, 0), &[(0, 1000); 3]), [8 * MS, 16 * MS, 24 * MS]);
    assert_eq!(leave(&sleeping(1_000_000, 4 * MS, 0), &[(0, 1100); 3]), [12 * MS, 24 * MS, 36 * MS]);
    assert_eq!(leave(&sleeping(1_000_000, 4 * MS, 1), &[(0, 1000); 3]), [12 * MS, 24 * MS, 36 * MS]);
    assert_eq!(leave(&sleeping(1_000_000, 4 * MS, 1), &[(0, 1100); 2]), [16 * MS, 32 * MS]);
}

#[test]
fn an_idle_program_begins_when_a_packet_comes_and_wakes_with_the_clock() {
    let arrivals = [(MS, 1000), (31 * MS, 1000)];
    assert_eq!(leave(&sleeping(1_000_000, 4 * MS, 0), &arrivals), [12 * MS, 40 * MS]);
    // From the tick before: two ticks of sleep and one to be sure.
    assert_eq!(leave(&sleeping(1_000_000, 4 * MS, 1), &arrivals), [12 * MS, 40 * MS]);
}

#[test]
fn a_new_rate_does_not_wake_it() {
    let rate = RateSpec::Steps(vec![(ns(0), bps(1_000_000)), (ms(1), bps(100_000_000))]);
    let stage = shaped(rate, ShaperSpec::Sleeping(SleepingSpec { tick: ms(4), late: 0 }), NO_LIMIT);
    assert_eq!(leave(&stage, &[(0, 1000); 3]), [8 * MS, 12 * MS, 16 * MS]);
}

#[test]
fn what_it_cannot_work_with_is_refused() {
    let error = |rate: u64, tick: u64, late: u32| {
        let stage = sleeping(rate, tick, late);
        Path::new(&[stage], StageId(0), 1, Direction::Down).expect_err("no such program").to_string()
    };
    let outage = RateSpec::Steps(vec![(ns(0), bps(1000)), (ms(1), bps(0))]);
    let stage = shaped(outage, ShaperSpec::Sleeping(SleepingSpec { tick: ms(4), late: 0 }), NO_LIMIT);
    let message =
        Path::new(&[stage], StageId(0), 1, Direction::Down).expect_err("asleep for ever").to_string();
    assert!(message.contains("rate: 0 bit/s (shaper sleeping)"), "{message}");
    for (rate, tick, late, said) in [
        (1000, 0, 0, "shaper.sleeping.tick: "),
        (1000, 1001 * MS, 0, "shaper.sleeping.tick: "),
        (1000, MS, 1001, "shaper.sleeping.late: 1001; expected at most 1000"),
    ] {
        let message = error(rate, tick, late);
        assert!(message.contains(said), "{message}");
    }
    let spec: ShaperSpec = serde_json::from_str(r#"{"sleeping": {"tick": 4000000}}"#).unwrap();
    assert_eq!(spec, ShaperSpec::Sleeping(SleepingSpec { tick: ms(4), late: 0 }));
}

proptest! {
    #[test]
    fn each_packet_takes_its_time_and_at_most_so_many_ticks_more(
        rate in 10_000u64..20_000_000, tick in 1_000u64..12_000_000, late in 0u32..4,
        gaps in prop::collection::vec((prop_oneof![Just(0u64), 0..40_000_000u64], 34..1515u32), 1..60),
    ) {
        let mut now = 0;
        let arrivals: Vec<_> = gaps.into_iter().map(|(gap, bytes)| {
            now += gap;
            (now, bytes)
        }).collect();
        let left = leave(&sleeping(rate, tick, late), &arrivals);
        prop_assert_eq!(left.len(), arrivals.len());
        let mut free = 0;
        for (&at, &(came, bytes)) in left.iter().zip(&arrivals) {
            let begun = free.max(came);
            let asked = u64::from(bytes) * 8_000_000_000 / rate;
            prop_assert_eq!(at % tick, 0);
            prop_assert!(at - begun >= asked, "never early");
            prop_assert!(at - begun <= asked + (u64::from(late) + 1) * tick, "{} {}", at - begun, asked);
            free = at;
        }
    }
}
