//! Presentations that go on while they are played.

use super::*;

fn live(change: impl FnOnce(&mut OriginSettings)) -> Presentation {
    let mut settings = OriginSettings {
        live: true,
        live_window: ms(8_000),
        delay: Some(ms(6_000)),
        begins: at(10_000),
        ..OriginSettings::default()
    };
    change(&mut settings);
    Presentation::of_ladder(&ladder(&[300_000, 500_000], ms(4_000), ms(22_000), true), &settings).unwrap()
}

/// The numbers of a level's segments in the manifest at `path`.
fn numbers(presentation: &Presentation, path: &str, set: usize, now: Instant) -> Vec<u64> {
    let read = manifest(presentation, path, now);
    let (_, segments) = told(presentation, &read.periods[0].sets[set].representations[0], now);
    for segment in &segments {
        // A listed segment is available.
        assert!(fetched(presentation, &segment.address, now).is_some(), "{path} {segment:?} at {now:?}");
    }
    segments.iter().map(|segment| segment.number).collect()
}

fn has(presentation: &Presentation, path: &str, now: Instant) -> bool {
    presentation.find(path, now).unwrap().is_some()
}

#[test]
fn a_segment_is_there_once_it_has_ended_and_until_it_is_forgotten() {
    let presentation = live(|_| {});
    let there = |number: u64, now: u64| {
        let found = ["v0", "v1", "a0"].map(|id| has(&presentation, &format!("/{id}/{number}.m4s"), at(now)));
        assert!(found.iter().all(|one| *one == found[0]), "{number} at {now}");
        found[0]
    };
    assert!(!there(1, 0) && !there(1, 13_999) && there(1, 14_000) && !there(2, 14_000));
    assert!(there(6, 32_000) && !there(6, 31_999) && !there(7, 100_000));
    // Its end, its length, and two windows.
    assert!(there(1, 34_000) && !there(1, 34_001));
    assert!(has(&presentation, "/v0/t0.m4s", at(14_000)) && !has(&presentation, "/v0/t0.m4s", at(13_000)));
    assert!(has(&presentation, "/v0/init.mp4", at(0)));
    for path in [RANGES_MPD, RANGES_MASTER, "/v0.mp4", "/v0.ranges.m3u8"] {
        assert!(!has(&presentation, path, at(20_000)), "{path}");
    }
    let early = live(|settings| settings.early = ms(1_500));
    assert!(has(&early, "/v0/1.m4s", at(12_500)) && !has(&early, "/v0/1.m4s", at(12_499)));
    let on_air = live(|settings| settings.on_air = ms(9_000));
    assert!(!has(&on_air, "/v0/2.m4s", at(8_999)) && has(&on_air, "/v0/2.m4s", at(9_000)));
}

#[test]
fn manifests_by_numbers_never_change_and_those_with_lists_do() {
    let presentation = live(|_| {});
    let bytes = |path, now| fetched_in(&presentation, path, at(now), 1 << 20).unwrap();
    assert_eq!(bytes(MPD, 0), bytes(MPD, 100_000));
    let read = manifest(&presentation, MPD, at(0));
    let expected = crate::dash::manifest::Live {
        starts: Some(EPOCH + ms(10_000)),
        update: None,
        delay: Some(ms(6_000)),
        depth: Some(ms(8_000)),
        early: Duration::ZERO,
    };
    assert_eq!((read.live, read.duration), (Some(expected), Some(ms(22_000))));
    for set in read.sets() {
        let Segments::Numbered(template) = &set.representations[0].segments else { panic!("{set:?}") };
        assert_eq!((template.count, template.segment(2).unwrap().start), (Some(6), ms(4_000)));
    }
    for (now, wanted) in [
        (0, vec![]),
        (13_000, vec![]),
        (14_000, vec![1]),
        (18_000, vec![1, 2]),
        // The window is 8 s: segments that ended before are listed no more.
        (23_000, vec![2, 3]),
        (33_000, vec![4, 5, 6]),
    ] {
        for path in [TIMELINE_MPD, MASTER] {
            for set in [0, 1] {
                assert_eq!(numbers(&presentation, path, set, at(now)), wanted, "{path} {set} at {now}");
            }
        }
    }
    let timeline = |now| manifest(&presentation, TIMELINE_MPD, at(now));
    assert_eq!(timeline(20_000).live.unwrap().update, Some(ms(2_000)));
    assert_eq!((timeline(20_000).duration, timeline(32_000).duration), (None, Some(ms(22_000))));
    assert_eq!(timeline(32_000).live.unwrap().update, None);
    // The playlist ends with the content.
    let playlist = |now| read_playlist(&bytes("/v0.m3u8", now), "http://server/v0.m3u8", &[]).unwrap();
    assert_eq!((playlist(31_999).is_ended, playlist(32_000).is_ended), (false, true));
    assert_eq!((playlist(20_000).target, playlist(20_000).hold_back), (ms(4_000), Some(ms(12_000))));
    let text = String::from_utf8(bytes("/v0.m3u8", 23_000)).unwrap();
    assert!(text.contains("#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:14Z\n"), "{text}");
}

#[test]
fn caches_are_told_what_changes() {
    let presentation = live(|_| {});
    let age = |path| presentation.find(path, at(20_000)).unwrap().unwrap().max_age_s(3_600);
    assert_eq!([MPD, MASTER, "/v0/1.m4s", TIMELINE_MPD, "/a0.m3u8"].map(age), [3_600, 3_600, 3_600, 0, 0]);
    let tag = |now| presentation.find("/v0.m3u8", at(now)).unwrap().unwrap().tag();
    assert!(tag(14_000) == tag(15_000) && tag(14_000) != tag(18_000));
}

#[test]
fn what_is_on_air_since_before_1970_is_refused() {
    let settings =
        OriginSettings { live: true, on_air: ms(1), epoch: Duration::ZERO, ..OriginSettings::default() };
    let spec = ladder(&[300_000], ms(2_000), ms(4_000), false);
    assert!(Presentation::of_ladder(&spec, &settings).err().unwrap().contains("give a later epoch"));
}
