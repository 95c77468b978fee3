//! IP fragmentation: sizes, offsets, reassembly, and packets that may not be cut up.

mod common;

use std::collections::HashMap;

use common::any::packet;
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Fragment, Item, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{MtuSpec, StageKind, StageSpec};

fn mtu(bytes: u32, switches: &[(u64, bool)]) -> StageSpec {
    let switches = switches.iter().map(|&(at, on)| (ns(at), on)).collect();
    stage(&format!("mtu{bytes}"), StageKind::Mtu(MtuSpec { bytes, switches }))
}

fn whole(id: u64, ip_bytes: u32) -> Item {
    item(id, ip_bytes + 14)
}

/// Returns the departures of items that arrive one a microsecond.
fn run(stages: &[StageSpec], items: &[Item]) -> (Vec<Item>, Log) {
    let mut path = Path::new(stages, StageId(0), 1, Direction::Down).unwrap();
    let (mut log, mut left) = (Log::default(), Vec::new());
    for (index, &item) in items.iter().enumerate() {
        let now = at(index as u64 * 1_000);
        path.enqueue(now, item, &mut log);
        left.extend(drain(&mut path, now, &mut log));
        assert!(left.iter().all(|left| left.at <= now));
    }
    log.assert_conserved(items, stages.len() as u8);
    (left.iter().map(|left| left.item).collect(), log)
}

/// Returns (offset in bytes, payload bytes, more) of a fragment.
fn extent(item: &Item) -> (u32, u32, bool) {
    (u32::from(item.fragment.offset()) * 8, item.ip_bytes - 20, item.fragment.more())
}

#[test]
fn a_datagram_is_cut_into_multiples_of_eight_bytes() {
    // 4,000 bytes of payload through Ethernet: 185 * 8 = 1,480 a fragment.
    let (left, log) = run(&[mtu(1500, &[])], &[whole(0, 4_020)]);
    let extents: Vec<_> = left.iter().map(extent).collect();
    assert_eq!(extents, [(0, 1480, true), (1480, 1480, true), (2960, 1040, false)]);
    assert!(left.iter().all(|item| item.bytes == item.ip_bytes + 14));
    assert_eq!(left.iter().map(|item| item.bytes).sum::<u32>(), 4_034 + 2 * 34, "headers of their own");
    assert_eq!(log.made.len(), 2);
    assert!(log.made.iter().all(|(_, from, _)| *from == whole(0, 4_020)), "as it came in");
    // An MTU that is no multiple of eight above its header carries the multiple below.
    let (left, _) = run(&[mtu(1006, &[])], &[whole(0, 1_500)]);
    let extents: Vec<_> = left.iter().map(extent).collect();
    assert_eq!(extents, [(0, 984, true), (984, 496, false)]);
}

#[test]
fn what_just_fits_passes_whole() {
    let (left, log) = run(&[mtu(1000, &[])], &[whole(0, 1_000), whole(1, 1_001)]);
    assert_eq!(left[0], whole(0, 1_000));
    assert_eq!((left.len(), log.made.len()), (3, 1));
}

#[test]
fn a_fragment_is_cut_up_again() {
    let (left, _) = run(&[mtu(1500, &[]), mtu(576, &[])], &[whole(0, 3_020)]);
    let extents: Vec<_> = left.iter().map(extent).collect();
    // 1480 = 552 + 552 + 376, 1480 likewise, and 40 fits; the last of a middle fragment has more behind it.
    let expected = [
        (0, 552, true),
        (552, 552, true),
        (1104, 376, true),
        (1480, 552, true),
        (2032, 552, true),
        (2584, 376, true),
        (2960, 40, false),
    ];
    assert_eq!(extents, expected);
}

#[test]
fn one_wrong_bit_goes_with_one_fragment() {
    let broken = Item { corrupted: true, ..whole(0, 3_020) };
    let (left, _) = run(&[mtu(1500, &[]), mtu(576, &[])], &[broken, whole(1, 3_020)]);
    let corrupted: Vec<_> =
        left.iter().filter(|item| item.corrupted).map(|item| (item.id, extent(item).0)).collect();
    assert_eq!(corrupted, [(broken.id, 0)]);
}

#[test]
fn what_may_not_be_cut_up_is_dropped_with_its_cause() {
    let fixed = |id, bytes| Item { fragment: Fragment::WHOLE_DF, ..whole(id, bytes) };
    let (left, log) = run(&[mtu(1400, &[])], &[fixed(0, 1_401), fixed(1, 1_400)]);
    assert_eq!(left, [fixed(1, 1_400)]);
    let fate = log.fates.iter().find(|fate| fate.item.id.0 == 0).unwrap();
    assert_eq!((fate.outcome, fate.cause, fate.at), (Outcome::Dropped, Cause::TooBig, fate.t_in));
}

#[test]
fn switches_take_effect_at_their_exact_time() {
    let items: Vec<Item> = (0..4).map(|id| whole(id, 1_500)).collect();
    let (left, log) = run(&[mtu(1400, &[(1_000, false), (3_000, true)])], &items);
    let ids: Vec<u64> = left.iter().map(|item| item.id.0).collect();
    assert_eq!(ids, [0, 0, 1, 2, 3, 3]);
    let changes: Vec<_> =
        log.changes.iter().map(|change| (change.1.as_nanos(), change.2, change.3)).collect();
    assert_eq!(changes, [(0, "mtu", 1400.0), (1_000, "mtu", 65_535.0), (3_000, "mtu", 1400.0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn fragments_make_up_the_datagram_again(
        mtus in prop::collection::btree_set(68..1600u32, 1..4), sizes in prop::collection::vec(34..9_000u32, 1..20),
    ) {
        // From wide to narrow, so that each stage has something to do.
        let stages: Vec<_> = mtus.iter().rev().map(|&bytes| mtu(bytes, &[])).collect();
        let items: Vec<Item> = sizes.iter().enumerate().map(|(id, &bytes)| packet(id as u64, bytes)).collect();
        let (left, log) = run(&stages, &items);
        let narrow = *mtus.first().unwrap();
        prop_assert!(left.iter().all(|item| item.ip_bytes <= narrow));
        let mut parts: HashMap<u64, Vec<Item>> = HashMap::new();
        for item in left {
            parts.entry(item.id.0).or_default().push(item);
        }
        for item in &items {
            let Some(parts) = parts.get(&item.id.0) else {
                prop_assert!(item.fragment.dont_fragment() && item.ip_bytes > narrow);
                continue;
            };
            let mut next = 0;
            for (index, part) in parts.iter().enumerate() {
                let (offset, payload, more) = extent(part);
                prop_assert_eq!(offset, next);
                prop_assert_eq!(more, index + 1 < parts.len());
                prop_assert!(!more || payload % 8 == 0);
                prop_assert_eq!((part.protocol, part.flow, part.hash), (item.protocol, item.flow, item.hash));
                next += payload;
            }
            prop_assert_eq!(next, item.ip_bytes - 20);
        }
        prop_assert!(log.fates.iter().all(|fate| fate.outcome != Outcome::Dropped || fate.cause == Cause::TooBig));
    }
}
