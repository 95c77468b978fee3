//! Presentations of made ladders.

use proptest::prelude::*;
use streamgauge_wire::http::EntityTag;

use super::*;

/// Every form lists the same segments, which have the same bytes.
fn agree(presentation: &Presentation) {
    let now = Instant::ZERO;
    for (number, kind) in [MediaKind::Video, MediaKind::Audio].into_iter().enumerate() {
        let levels: Vec<&Level> =
            presentation.levels().filter(|level| level.is_video == (kind == MediaKind::Video)).collect();
        for path in [MPD, TIMELINE_MPD, RANGES_MPD, MASTER, RANGES_MASTER] {
            let read = manifest(presentation, path, now);
            assert_eq!((read.flaws(), read.live), (Vec::new(), None), "{path}");
            let is_mpd = path.ends_with("mpd");
            assert_eq!(read.duration, is_mpd.then_some(presentation.duration), "{path}");
            let Some(set) = read.periods[0].sets.get(number) else {
                assert!(levels.is_empty(), "{path}");
                continue;
            };
            assert_eq!((set.kind, set.representations.len()), (kind, levels.len()), "{path}");
            for (level, one) in levels.iter().zip(&set.representations) {
                if is_mpd {
                    assert_eq!((one.id.as_str(), one.rate.as_bps()), (level.id.as_str(), level.rate_bps));
                    assert_eq!(one.codecs.as_deref(), Some(level.codecs.as_str()));
                }
                if kind == MediaKind::Video {
                    assert_eq!(one.size, Some(level.size));
                }
                let (init, segments) = told(presentation, one, now);
                assert_eq!(fetched(presentation, &init, now).as_ref(), Some(&level.init), "{path}");
                assert_eq!(segments.len(), level.segments(), "{path} {}", level.id);
                for (place, segment) in segments.iter().enumerate() {
                    let what = format!("{path} {} {place}", level.id);
                    let number = place as u64 + 1;
                    assert_eq!((segment.number, segment.start), (number, level.start(place)), "{what}");
                    let is_last = place + 1 == segments.len();
                    // A template does not show that the last is shorter; none is shown after the end.
                    let is_cut = is_mpd && segment.start + segment.duration == presentation.duration;
                    let is_other = is_last && (path == MPD || is_cut);
                    assert!(segment.duration == level.duration(place) || is_other, "{what}");
                    let bytes = fetched(presentation, &segment.address, now).unwrap();
                    assert_eq!(bytes.len() as u64, level.bytes(place), "{what}");
                    let by_number = format!("/{}/{number}.m4s", level.id);
                    assert_eq!(Some(bytes), fetched_in(presentation, &by_number, now, 777), "{what}");
                }
            }
        }
    }
}

/// A segment's boxes hold together, and their frames are those of the ladder.
fn boxes(presentation: &Presentation, spec: &LadderSpec) {
    let specs: Vec<&LevelSpec> = spec.levels().collect();
    for (level, spec) in presentation.levels.iter().zip(specs) {
        let pass = &spec.clip.frame_bytes;
        let count = spec.clip.duration.as_nanos().div_ceil(spec.clip.frame_interval.as_nanos()) as usize;
        let frames: u64 = (0..count).map(|frame| u64::from(pass[frame % pass.len()])).sum();
        let (mut headers, mut segments, mut file) = (0, 0, [&level.init[..], &level.index].concat());
        for segment in 0..level.segments() {
            let bytes = fetched_in(
                presentation,
                &format!("/{}/{}.m4s", level.id, segment + 1),
                Instant::ZERO,
                1 << 16,
            );
            let bytes = bytes.unwrap();
            let (moof, end) = crate::media::mp4::find(&bytes, b"moof").unwrap();
            let (media, last) = crate::media::mp4::find(&bytes, b"mdat").unwrap();
            assert_eq!((moof.len() + 8, last), (end, bytes.len()));
            // mfhd's number, and tfdt's time.
            assert_eq!(moof[12..16], (segment as u32 + 1).to_be_bytes());
            let at = moof.windows(4).position(|name| name == b"tfdt").unwrap() + 8;
            assert_eq!(moof[at..at + 8], level.ticks(segment).to_be_bytes());
            headers += (bytes.len() - media.len()) as u64;
            segments += bytes.len() as u64;
            file.extend(bytes);
        }
        assert_eq!(segments, headers + frames, "{}", level.id);
        let path = format!("/{}.mp4", level.id);
        assert_eq!(fetched_in(presentation, &path, Instant::ZERO, 999_983), Some(file));
    }
}

#[test]
fn all_forms_tell_of_the_same_segments() {
    let presentation = usual();
    assert_eq!((presentation.duration(), presentation.level_count()), (ms(22_000), 4));
    agree(&presentation);
    boxes(&presentation, &ladder(&[300_000, 1_000_000, 3_000_000], ms(4_000), ms(22_000), true));
    // Passes of 10 s in segments of 4 s: 0, 4, 8, 12, ... for a key frame is there each second.
    assert_eq!(presentation.segment_count(0), 6);
    assert_eq!((presentation.segment_count(3), presentation.segment_count(4)), (6, 0));
    let bytes = |number| presentation.segment_bytes(1, number);
    assert!(bytes(1) > 0 && bytes(6) < bytes(1));
    assert_eq!((bytes(0), bytes(7), presentation.segment_bytes(9, 1)), (0, 0, 0));
    assert_eq!(presentation.levels[0].codecs, "avc1.42c01e");
    assert_eq!(presentation.levels[3].codecs, "mp4a.40.2");
    assert_eq!(presentation.levels[3].timescale, 48_000);
}

#[test]
fn fragments_tell_when_b_frames_are_shown() {
    let mut spec = ladder(&[300_000], ms(2_000), ms(20_000), false);
    // Groups of 25: I0 P2 B1 P4 B3 ...
    let group = |n: u32| if n.is_multiple_of(2) { n.saturating_sub(1) } else { n + 1 };
    let order: Vec<u32> = (0..250).map(|n| n / 25 * 25 + group(n % 25)).collect();
    spec.video[0].clip.display_order = order.clone().into();
    let presentation = Presentation::of_ladder(&spec, &OriginSettings::default()).unwrap();
    agree(&presentation);
    boxes(&presentation, &spec);
    let bytes = fetched_in(&presentation, "/v0/2.m4s", Instant::ZERO, 1 << 16);
    let bytes = bytes.unwrap_or_else(|| panic!("{}", presentation.levels[0].id));
    let trun = bytes.windows(4).position(|name| name == b"trun").unwrap() + 4;
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    // Version 1: offsets are signed. Each frame's size, flags where key frames are elsewhere too, then its offset.
    assert_eq!((word(trun) >> 24, word(trun) & 0x800), (1, 0x800));
    let each = 2 + u32::from(word(trun) & 0x400 != 0);
    let first = trun + 12 + if word(trun) & 0x4 != 0 { 4 } else { 0 };
    for frame in 0..word(trun + 4) {
        let later = word(first + 4 * (frame * each + each - 1) as usize).cast_signed();
        let number = 50 + frame;
        let expected = (order[number as usize].cast_signed() - number.cast_signed()) * 3600;
        assert_eq!(later, expected, "frame {number}");
    }
}

#[test]
fn a_ladder_without_equal_segments_has_a_timeline_in_every_mpd() {
    // Passes of 2.4 s: a segment begins at 0, 4.4, 8.8 ... or where the next key frame is.
    let mut spec = ladder(&[300_000, 500_000], ms(2_000), ms(9_000), false);
    for level in &mut spec.video {
        let bytes: Vec<u32> = level.clip.frame_bytes.iter().take(60).copied().collect();
        (level.clip.frame_bytes, level.clip.key_frames) = (bytes.into(), vec![0].into());
    }
    let presentation = Presentation::of_ladder(&spec, &OriginSettings::default()).unwrap();
    agree(&presentation);
    boxes(&presentation, &spec);
    assert_eq!(presentation.segment_count(0), 4);
    spec.video[0].clip.key_frames = vec![0, 55].into();
    spec.video[1].clip.key_frames = vec![0, 55].into();
    agree(&Presentation::of_ladder(&spec, &OriginSettings::default()).unwrap());
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let refused =
        |spec: &LadderSpec| Presentation::of_ladder(spec, &OriginSettings::default()).err().unwrap();
    let mut spec = ladder(&[300_000, 500_000], ms(2_000), ms(9_000), true);
    spec.video[1].clip.key_frames = vec![0, 30].into();
    assert!(refused(&spec).starts_with("v1: no key frame at 2.000 s"));
    spec.video[1].clip.key_frames = vec![30].into();
    assert!(refused(&spec).contains("v1: it does not begin with a key frame"));
    spec.video.clear();
    assert!(refused(&spec).contains("no pictures"));
    let long = ladder(&[300_000], ms(1_000), Duration::from_secs(1 << 30), false);
    assert!(refused(&long).contains("at most 4194304 are cut"));
    let short = ladder(&[300_000], ms(1_000), Duration::from_secs(70_000), false);
    assert!(refused(&short).contains("at most 65535 are made"));
    let mut large = ladder(&[300_000], ms(4_000), ms(4_000), false);
    large.video[0].clip.frame_bytes = vec![u32::MAX; 25].into();
    assert!(refused(&large).contains("cut it shorter"));
}

#[test]
fn nothing_else_is_there() {
    let presentation = usual();
    for path in [
        "",
        "/",
        "/v0",
        "/v0/",
        "/v0/0.m4s",
        "/v0/7.m4s",
        "/v0/01.m4s",
        "/v0/+1.m4s",
        "/v0/t1.m4s",
        "/v0/t00.m4s",
        "/v9/1.m4s",
        "/v0/../v0/1.m4s",
        "/v0/18446744073709551616.m4s",
        "//v0.mp4",
        "/v0/init.mp4/",
        "/v0/a.mp4",
        "/manifest.mpd/",
        "manifest.mpd",
        "/v3.m3u8",
        "/.m3u8",
        "/.ranges.m3u8",
        "/v0.ranges.mp4",
    ] {
        assert!(presentation.find(path, Instant::ZERO).unwrap().is_none(), "{path}");
    }
}

#[test]
fn every_resource_has_a_strong_tag_of_its_own_and_a_media_type() {
    let tags = |presentation: &Presentation| {
        let paths = [
            MPD,
            TIMELINE_MPD,
            RANGES_MPD,
            MASTER,
            RANGES_MASTER,
            "/v0.m3u8",
            "/v0.ranges.m3u8",
            "/v0/init.mp4",
            "/v0/1.m4s",
            "/v0/2.m4s",
            "/v1/1.m4s",
            "/v0.mp4",
            "/a0/1.m4s",
        ];
        let found = paths.map(|path| {
            let resource = presentation.find(path, Instant::ZERO).unwrap().unwrap();
            let expected = match path.rsplit('.').next().unwrap() {
                "mpd" => "application/dash+xml",
                "m3u8" => "application/vnd.apple.mpegurl",
                _ if path.starts_with("/a0") => "audio/mp4",
                _ => "video/mp4",
            };
            assert_eq!((resource.content_type(), resource.tag().weak), (expected, false), "{path}");
            resource.tag()
        });
        let mut unique: Vec<String> = found.iter().map(EntityTag::to_string).collect();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), found.len());
        found
    };
    let usual_tags = tags(&usual());
    assert_eq!(tags(&usual()), usual_tags);
    // The same bytes a segment in another order are another version.
    let mut spec = ladder(&[300_000, 1_000_000, 3_000_000], ms(4_000), ms(22_000), true);
    let mut frames: Vec<u32> = spec.video[0].clip.frame_bytes.to_vec();
    frames.swap(1, 2);
    spec.video[0].clip.frame_bytes = frames.into();
    let other = tags(&Presentation::of_ladder(&spec, &OriginSettings::default()).unwrap());
    assert_ne!(other[8], usual_tags[8]);
    assert_eq!(other[10], usual_tags[10]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whatever_ladder(
        rates in prop::collection::btree_set(50_000u64..500_000, 1..4),
        segment in 1u64..50,
        frames in 1u64..700,
        interval in prop::sample::select(vec![40_000_000u64, 33_366_667, 41_708_333, 16_683_350, 20_000_000, 37_123_456]),
        has_sound: bool,
    ) {
        let rates: Vec<u64> = rates.into_iter().collect();
        let interval = Duration::from_nanos(interval);
        let mut spec = ladder(&rates, ms(segment * 100), interval * frames, has_sound);
        spec.video.iter_mut().for_each(|level| level.clip.frame_interval = interval);
        let presentation = Presentation::of_ladder(&spec, &OriginSettings::default()).unwrap();
        agree(&presentation);
        boxes(&presentation, &spec);
    }
}
