//! Content that a plan names by its digest.

use serde_json::{Value, json};
use streamgauge_base::Duration;

use super::super::mp4::{read_head, write_head};
use super::super::{Asset, ClipSpec, Content, ContentRef, Contents, LadderSpec, LevelSpec};

const DIGEST: &str = "0123456789abcdef0123456789abcdef";

fn stored() -> Value {
    let frames = |sizes: [u32; 3]| json!({"span_ns": 120, "frame_bytes": sizes, "key_frames": [0, 2], "interval_ns": 40_000_000});
    let encoding = |name: &str, sizes| json!({"name": name, "bit_rate_bps": 1, "codec": "h264", "frames": frames(sizes)});
    let video = json!({"kind": "video", "encodings": [encoding("low", [30, 10, 20]), encoding("high", [60, 20, 40])]});
    let sound = json!({"kind": "audio", "encodings": [encoding("audio", [5, 5, 5])]});
    json!({"schema": "streamgauge.content/1", "name": "test", "duration_ns": 120, "segment_ns": 2, "tracks": [video, sound]})
}

fn contents(stored: &Value) -> Contents {
    Contents::from_iter([(DIGEST.to_owned(), Content::read(&stored.to_string()).unwrap())])
}

fn clip(plays: Value) -> ClipSpec {
    let mut whole = json!({"name": "test", "duration": 1_000_000_000});
    whole.as_object_mut().unwrap().extend(plays.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn named(encoding: u32) -> ClipSpec {
    clip(json!({"content": {"digest": DIGEST, "encoding": encoding}}))
}

#[test]
fn a_clip_plays_the_encoding_that_its_plan_names() {
    let contents = contents(&stored());
    for (encoding, sizes) in [(0, [30, 10, 20]), (1, [60, 20, 40]), (2, [5, 5, 5])] {
        let mut named = named(encoding);
        assert!(named.check().is_err(), "nobody has looked it up yet");
        named.resolve(&contents).unwrap();
        let written = clip(json!({"frame_interval": 40_000_000, "frame_bytes": sizes, "key_frames": [0, 2]}));
        assert_eq!((&named, named.check()), (&written, Ok(())));
    }
}

/// I0 P3 B1 B2 in a round.
fn reordered(rounds: u64) -> ClipSpec {
    clip(json!({
        "duration": rounds * 160_000_000, "frame_interval": 40_000_000,
        "frame_bytes": [30, 10, 5, 5], "key_frames": [0], "display_order": [0, 3, 1, 2],
    }))
}

#[test]
fn b_frames_are_decoded_in_another_order_than_shown() {
    let mut with_order = stored();
    let frames = with_order.pointer_mut("/tracks/0/encodings/0/frames").unwrap().as_object_mut().unwrap();
    frames.remove("interval_ns");
    frames.insert("times_ns".into(), json!([0, 80_000_000, 40_000_000]));
    let mut named = named(0);
    named.resolve(&contents(&with_order)).unwrap();
    assert_eq!((&*named.display_order, named.frame_interval), (&[0, 2, 1][..], Duration::from_millis(40)));

    let clip = reordered(2);
    assert_eq!(clip.check(), Ok(()));
    let places: Vec<u64> = (0..8).map(|frame| clip.shown_place(frame)).collect();
    assert_eq!(places, [0, 3, 1, 2, 4, 7, 5, 6]);
    assert_eq!((clip.decoding_delay(), clip.decoded_ahead()), (1, 2));
    let units = &Asset::of_clip(&clip).tracks[0].units;
    let times: Vec<_> = units.iter().map(|unit| (unit.at, unit.shown)).collect();
    let ms = |ms| Duration::from_millis(ms);
    assert_eq!(times[..4], [(ms(0), ms(40)), (ms(40), ms(160)), (ms(80), ms(80)), (ms(120), ms(120))]);
    assert!(times.iter().all(|(at, shown)| at <= shown), "each is decoded by the time at which it is shown");
}

#[test]
fn a_made_file_tells_when_b_frames_are_shown() {
    let asset = Asset::of_clip(&reordered(5));
    let head = write_head(&asset.tracks[0]).unwrap();
    let length = head.len() as u64 + asset.tracks[0].media_bytes();
    let read = read_head("", &head, length).unwrap();
    let times = |asset: &Asset| asset.tracks[0].units.iter().map(|u| (u.at, u.shown)).collect::<Vec<_>>();
    assert_eq!(times(&read), times(&asset));
}

#[test]
fn an_order_of_showing_that_is_none_is_refused() {
    let refused = |change: fn(&mut ClipSpec)| {
        let mut clip = reordered(2);
        change(&mut clip);
        clip.check().unwrap_err()
    };
    for wrong in [
        refused(|clip| clip.display_order = vec![0, 1].into()),
        refused(|clip| clip.display_order = vec![0, 3, 3, 2].into()),
        refused(|clip| clip.display_order = vec![0, 4, 1, 2].into()),
    ] {
        assert_eq!(wrong, ("display_order", "give each place from 0 to 3 once".into()));
    }
    let (_, why) = refused(|clip| clip.duration = Duration::from_millis(200));
    assert_eq!(why, "it plays 5 frames; play whole rounds of 4");
    let level = LevelSpec { bit_rate_bps: 1, size: (1, 1), clip: reordered(1) };
    let ladder = LadderSpec { video: vec![level], ..LadderSpec::default() };
    assert!(ladder.check_in_order().unwrap_err().1.contains("test has B-frames"));
}

#[test]
fn those_who_play_the_same_share_its_frames() {
    let contents = contents(&stored());
    let [first, second] = [named(1), named(1)].map(|mut clip| {
        clip.resolve(&contents).unwrap();
        clip
    });
    assert!(std::ptr::eq(&*first.frame_bytes, &*second.frame_bytes));
}

#[test]
fn frames_that_are_written_in_need_no_content() {
    let text = r#"{"name":"test","duration":120000000,"frame_interval":40000000,"frame_bytes":[30,10,20],"key_frames":[0,2]}"#;
    let mut old: ClipSpec = serde_json::from_str(text).unwrap();
    old.resolve(&Contents::NONE).unwrap();
    assert_eq!((serde_json::to_string(&old).unwrap(), old.check()), (text.to_owned(), Ok(())));
}

#[test]
fn what_cannot_be_played_is_refused_with_what_to_do() {
    let refused = |mut clip: ClipSpec, contents: &Contents| clip.resolve(contents).unwrap_err();
    let (field, why) = refused(named(0), &Contents::NONE);
    assert!(field == "content" && why.contains(DIGEST) && why.contains("give the plan with"), "{why}");
    let (_, why) = refused(named(3), &contents(&stored()));
    assert!(why.contains("no encoding 3; give 0 to 2"), "{why}");
    let both = ClipSpec { frame_bytes: vec![1].into(), frame_interval: Duration::from_secs(1), ..named(0) };
    assert!(refused(both, &contents(&stored())).1.contains("give one of the two"));
    let mut irregular = stored();
    let frames = irregular.pointer_mut("/tracks/0/encodings/0/frames").unwrap().as_object_mut().unwrap();
    frames.remove("interval_ns");
    frames.insert("times_ns".into(), json!([0, 1, 5]));
    assert!(refused(named(0), &contents(&irregular)).1.contains("unevenly spaced"));
    let reference = ContentRef { digest: DIGEST.into(), encoding: 0 };
    assert_eq!(named(0).content, Some(reference));
}

#[test]
fn content_of_another_form_is_refused() {
    let read = |key: &str, value: Value| {
        let mut changed = stored();
        changed[key] = value;
        Content::read(&changed.to_string()).unwrap_err()
    };
    assert!(
        read("schema", json!("streamgauge.content/2")).contains("this version reads streamgauge.content/1")
    );
    assert!(read("tracks", json!([{"kind": "video"}])).contains("missing field `encodings`"));
    assert!(Content::read("{").unwrap_err().starts_with("it does not read: "));
}
