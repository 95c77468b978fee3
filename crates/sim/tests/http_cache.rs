//! Players of progressive download behind one cache.

mod common;

use common::*;
use streamgauge_base::{Duration, Outcome};
use streamgauge_path::spec::Limit;
use streamgauge_plan::{AppSpec, RelaySide, RelaySpec, TrialPlan};
use streamgauge_sim::simulate;
use streamgauge_systems::http::HttpSpec;
use streamgauge_systems::http_cache::HttpCacheSpec;
use streamgauge_systems::media::ClipSpec;
use streamgauge_systems::{Relay, System};

/// Makes a clip of 10 s at 400 kbit/s.
fn clip() -> ClipSpec {
    ClipSpec {
        name: "test".into(),
        duration: Duration::from_secs(10),
        frame_interval: ms(40),
        frame_bytes: vec![2000; 25].into(),
        key_frames: vec![0].into(),
        ..ClipSpec::default()
    }
}

/// Makes two viewings, at 0 s and at 30 s, over 1 Mbit/s.
fn viewings(cache: Option<HttpCacheSpec>, at: RelaySide) -> TrialPlan {
    let app = HttpSpec { clip: clip(), ..HttpSpec::usual() }.app();
    let mut first = flow("first", app.clone());
    let mut second = starting(flow("second", app), Duration::from_secs(30));
    (first.via, second.via) = (Some("home".into()), Some("home".into()));
    let mut plan = plan(path(1_000_000, Limit::Packets(50), 25), vec![first, second], 60, 1);
    plan.relays = vec![RelaySpec {
        name: "home".into(),
        at,
        app: cache.map_or_else(AppSpec::external, |cache| cache.app()),
    }];
    plan
}

/// Returns the bytes of payload by flow that crossed the bottleneck before 25 s and after.
fn crossed(rows: &Rows, flow: u16) -> [u64; 2] {
    let mut bytes = [0, 0];
    for (fate, info, _) in rows.at(flow, 0).filter(|(fate, ..)| fate.outcome == Outcome::Delivered) {
        let late = fate.at.as_nanos() > 25_000_000_000;
        bytes[usize::from(late)] += u64::from(info.payload_bytes);
    }
    bytes
}

#[test]
fn the_second_viewing_behind_a_cache_at_the_client_costs_the_path_nothing() {
    let (_, rows) = Rows::of(&viewings(Some(HttpCacheSpec::usual()), RelaySide::Client));
    let [first, second] = crossed(&rows, 2);
    assert!((500_000..600_000).contains(&first), "{first}");
    assert_eq!((second, crossed(&rows, 0), crossed(&rows, 1)), (0, [0, 0], [0, 0]));
    let shown = |flow| rows.named("frame_shown").iter().filter(|event| event.flow.unwrap().0 == flow).count();
    assert_eq!((shown(0), shown(1)), (250, 250));
    assert_eq!((rows.named("cache_miss").len(), rows.named("cache_hit").len()), (1, 1));
    assert_eq!(rows.named("cache_hit")[0].flow.unwrap().0, 2);
    assert!(rows.named("stall").is_empty());
}

#[test]
fn a_cache_at_the_server_or_that_stores_nothing_saves_the_path_nothing() {
    let (_, rows) = Rows::of(&viewings(Some(HttpCacheSpec::usual()), RelaySide::Server));
    assert!(crossed(&rows, 0)[0] > 500_000 && crossed(&rows, 1)[1] > 500_000);
    assert_eq!(crossed(&rows, 2), [0, 0]);
    let off = HttpCacheSpec { capacity_bytes: 0, ..HttpCacheSpec::usual() };
    let (_, rows) = Rows::of(&viewings(Some(off), RelaySide::Client));
    let [first, second] = crossed(&rows, 2);
    assert!(first > 500_000 && second > 500_000, "{first} {second}");
}

#[test]
fn a_record_with_a_relay_balances_and_is_the_same_again() {
    for at in [RelaySide::Client, RelaySide::Server] {
        let plan = viewings(Some(HttpCacheSpec::usual()), at);
        let folder =
            std::env::temp_dir().join(format!("streamgauge-http-cache-{}-{at:?}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [one, again] = [(); 2].map(|()| simulate(&plan, &folder).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(one.imbalance.is_empty(), "{:?}", one.imbalance);
        assert_eq!((one.packets_digest, one.events_digest), (again.packets_digest, again.events_digest));
        assert_eq!(one.relays.len(), 1);
    }
}
