//! Content that a plan names by its digest.

use serde_json::{Value, json};
use streamgauge_base::Duration;

use super::super::{ClipSpec, Content, ContentRef, Contents};

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
    assert!(refused(named(0), &contents(&irregular)).1.contains("times of their own"));
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
