//! Periods, initializations and copies: the whole presentation is played, and unplayed parts are named.

use super::*;
use crate::http::{Busy, Resource};

/// Segments of a ladder, and manifests of these texts.
struct Written {
    inner: Presentation,
    texts: Vec<(&'static str, String)>,
}

impl Library for Written {
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        // Whichever copy: the last folders name the segment.
        let path = path.strip_prefix("/copy").unwrap_or(path);
        match self.texts.iter().find(|(own, _)| *own == path) {
            Some((_, text)) => Ok(Some(Arc::new(Words(text.clone())))),
            None => self.inner.find(path, now),
        }
    }
}

struct Played {
    events: Vec<Event>,
    left_out: Vec<String>,
    is_unplayable: bool,
}

/// Keeps the pair's traffic for a test.
struct Watched(DashPlayer, Arc<std::sync::Mutex<(Vec<String>, bool)>>);

impl App for Watched {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.0.handle(now, input, io);
        *self.1.lock().unwrap() = (self.0.left_out().to_vec(), self.0.is_unplayable());
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
}

fn played_by(settings: DashPlayerSettings, target: &str, texts: Vec<(&'static str, String)>) -> Played {
    let inner = presented(&with_sound(ladder(&[200_000, 400_000, 800_000], 20), 20));
    let told = Arc::default();
    let player = Watched(DashPlayer::new(settings, source(target), 1), Arc::clone(&told));
    let mut pair = Pair::new(serving(Written { inner, texts }), Box::new(player), pipe(8_000_000));
    pair.run(at(300));
    let (left_out, is_unplayable) = told.lock().unwrap().clone();
    Played { events: pair.events, left_out, is_unplayable }
}

fn played(target: &'static str, text: &str) -> Played {
    played_by(fixed(0), target, vec![(target, text.to_owned())])
}

fn asked(events: &[Event]) -> Vec<&str> {
    named(events, "http_request").iter().map(|event| &*event.reason).collect()
}

fn set(levels: &[(&str, u64)], template: &str) -> String {
    let kind = if levels[0].0 == "a0" { "audio" } else { "video" };
    let all: String = levels
        .iter()
        .map(|(id, rate)| format!(r#"<Representation id="{id}" bandwidth="{rate}"/>"#))
        .collect();
    format!(
        r#"<AdaptationSet contentType="{kind}"><SegmentTemplate timescale="1000"
        initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number$.m4s" {template}</AdaptationSet>"#
    ) .replace("</AdaptationSet>", &format!("{all}</AdaptationSet>"))
}

const EACH_2_S: &str = r#"duration="2000"/>"#;
const LOW: [(&str, u64); 1] = [("v0", 200_000)];
const SOUND: [(&str, u64); 1] = [("a0", 64_000)];

fn mpd(periods: &str) -> String {
    format!(r#"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011">{periods}</MPD>"#)
}

#[test]
fn all_periods_are_played_each_with_its_levels() {
    let periods = format!(
        r#"<Period duration="PT4S">{}{sound}</Period><Period duration="PT3S">{}{sound}</Period>
        <Period duration="PT4S"><BaseURL>/copy/</BaseURL>{}{sound}</Period>"#,
        set(&LOW, EACH_2_S),
        set(&[("v1", 400_000), ("v2", 800_000)], EACH_2_S),
        set(&LOW, r#"duration="2000" startNumber="3"/>"#),
        sound = set(&SOUND, EACH_2_S),
    );
    for rule in ["fixed", "dashjs-dynamic", "l2a", "lolp", "bola-e", "mpc", "hlsjs", "shaka", "vlc-3"] {
        let settings = DashPlayerSettings { rule: rule.into(), ..fixed(0) };
        let Played { events, left_out, .. } = played_by(settings, MPD, vec![(MPD, mpd(&periods))]);
        assert_eq!((ended(&events), left_out.len()), ("played to the end", 0), "{rule}");
        // 4 s, of the second 3 s, and 4 s, 25 pictures each.
        let shown = values(&events, "frame_shown");
        assert_eq!(shown.len(), 275, "{rule}");
        assert!(shown.windows(2).all(|two| two[1] == two[0] + 1.0), "{rule}");
        assert!(named(&events, "stall").is_empty() && named(&events, "gap_jumped").is_empty(), "{rule}");
        let asked = asked(&events);
        for wanted in ["/v0/init.mp4", "/v0/2.m4s", "/copy/v0/3.m4s", "/copy/v0/4.m4s", "/copy/v0/init.mp4"] {
            assert_eq!(asked.iter().filter(|one| **one == wanted).count(), 1, "{rule}: {wanted} {asked:?}");
        }
        assert!(asked.contains(&"/v1/1.m4s") || asked.contains(&"/v2/1.m4s"), "{rule}");
        let rates = values(&events, "segment_shown");
        assert_eq!((rates.len(), rates[0], rates[4]), (6, 200_000.0, 200_000.0), "{rule}");
        assert!(rates[2] > 300_000.0 && rates[3] > 300_000.0, "{rule}: {rates:?}");
    }
}

#[test]
fn a_period_without_sound_or_pictures_is_played_with_what_it_has() {
    for parts in [["v", "va", "v"], ["va", "v", "va"], ["va", "a", "va"]] {
        let of = |kinds: &str| {
            let video = if kinds.contains('v') { set(&LOW, EACH_2_S) } else { String::new() };
            let sound = if kinds.contains('a') { set(&SOUND, EACH_2_S) } else { String::new() };
            format!(r#"<Period duration="PT4S">{video}{sound}</Period>"#)
        };
        let Played { events, .. } = played(MPD, &mpd(&parts.map(of).concat()));
        assert_eq!(ended(&events), "played to the end", "{parts:?}");
        assert!(named(&events, "gap_jumped").is_empty() && named(&events, "stall").is_empty(), "{parts:?}");
        let wanted = 100 * parts.iter().filter(|kinds| kinds.contains('v')).count();
        assert_eq!(values(&events, "frame_shown").len(), wanted, "{parts:?}");
        let end = named(&events, MEDIA_END)[0].at;
        assert!(end >= at(12) && end < at(13), "{parts:?}: {end:?}");
    }
}

#[test]
fn pictures_outside_of_the_period_are_not_shown() {
    // It begins in the middle of a segment, and ends in one: by a timeline and by numbers.
    let timeline = r#"presentationTimeOffset="1000"><SegmentTimeline><S t="0" d="2000" r="9"/></SegmentTimeline>
        </SegmentTemplate>"#;
    for (template, pictures) in
        [(timeline, 175), (EACH_2_S, 175), (r#"duration="2000" endNumber="9"/>"#, 175)]
    {
        let period = format!(r#"<Period duration="PT7S">{}</Period>"#, set(&LOW, template));
        let Played { events, .. } = played(MPD, &mpd(&period));
        assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", pictures));
        assert_eq!(asked(&events).len(), 2 + 4, "{:?}", asked(&events));
    }
    // A template's last segment may itself be as short as its shown part.
    let period = format!(r#"<Period duration="PT20S">{}</Period>"#, set(&LOW, r#"duration="3000"/>"#));
    let Played { events, .. } = played(MPD, &mpd(&period));
    assert_eq!(values(&events, "frame_shown").len(), 7 * 50);
}

#[test]
fn each_initialization_of_a_playlist_is_fetched_before_its_segments() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"v0/init.mp4\"\n#EXTINF:2,\nv0/1.m4s\n\
        #EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"v1/init.mp4\"\n#EXTINF:2,\nv1/1.m4s\n#EXTINF:2,\nv1/2.m4s\n\
        #EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"v0/init.mp4\"\n#EXTINF:2,\nv0/2.m4s\n#EXT-X-ENDLIST\n";
    let Played { events, .. } = played("/x.m3u8", text);
    assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", 200));
    let wanted =
        ["/x.m3u8", "/v0/init.mp4", "/v0/1.m4s", "/v1/init.mp4", "/v1/1.m4s", "/v1/2.m4s", "/v0/2.m4s"];
    assert_eq!(asked(&events), wanted);
}

#[test]
fn another_copy_is_asked_for_when_one_fails() {
    let text = mpd(&format!(
        "<BaseURL>/nowhere/</BaseURL><BaseURL>/copy/</BaseURL><Period duration=\"PT8S\">{}{}</Period>",
        set(&LOW, EACH_2_S),
        set(&SOUND, EACH_2_S)
    ));
    let Played { events, left_out, .. } = played(MPD, &text);
    assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", 200));
    assert!(named(&events, "segment_skipped").is_empty());
    let failed = asked(&events).iter().filter(|one| one.starts_with("/nowhere")).count();
    // Each track may have sent a request before the first answer.
    assert!((1..=2).contains(&failed), "{:?}", asked(&events));
    assert_eq!(left_out[0], "http://server/nowhere/: it failed, another copy is asked for");
    // One at another server is passed over.
    let elsewhere = text.replace("/nowhere/", "http://elsewhere/");
    let Played { events, left_out, .. } = played(MPD, &elsewhere);
    assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", 200));
    assert_eq!(left_out, ["http://elsewhere/: it is at another server, another copy is asked for"]);
    // An index at another copy. If all fail, the last is tried as often as allowed.
    let list = r#"<Representation id="v" bandwidth="1"><BaseURL>/nowhere/v0.mp4</BaseURL><BaseURL>/copy/v0.mp4</BaseURL>
        <SegmentBase indexRange="RANGE"><Initialization range="0-699"/></SegmentBase></Representation>"#;
    let index = presented(&with_sound(ladder(&[200_000, 400_000, 800_000], 20), 20));
    let manifest = index.find("/ranges.mpd", Instant::ZERO).unwrap().unwrap();
    let bytes = manifest.read(0, manifest.length()).unwrap();
    let range = String::from_utf8_lossy(bytes.head()).split("indexRange=\"").nth(1).unwrap().to_owned();
    let range = range.split('"').next().unwrap();
    let text = mpd(&format!(
        r#"<Period duration="PT20S"><AdaptationSet contentType="video">{}</AdaptationSet></Period>"#,
        list.replace("RANGE", range)
    ));
    let Played { events, .. } = played(MPD, &text);
    assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", 500));
    let none = mpd(&format!(
        "<BaseURL>/no/</BaseURL><BaseURL>/nor/</BaseURL><Period duration=\"PT8S\">{}</Period>",
        set(&LOW, EACH_2_S)
    ));
    let Played { events, .. } = played(MPD, &none);
    assert!(ended(&events).contains("/nor/v0/init.mp4 did not come in 4 attempts"), "{}", ended(&events));
    assert!(asked(&events).contains(&"/no/v0/init.mp4"));
}

#[test]
fn an_equal_variant_is_asked_for_when_one_fails() {
    let media = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"/v0/init.mp4\"\n#EXTINF:2,\n/v0/1.m4s\n\
        #EXTINF:2,\nSECOND\n#EXT-X-ENDLIST\n";
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=200000\n/first.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=200000\n/second.m3u8\n";
    for first in [None, Some(("/first.m3u8", media.replace("SECOND", "/nowhere.m4s")))] {
        let mut texts =
            vec![("/x.m3u8", main.to_owned()), ("/second.m3u8", media.replace("SECOND", "/v0/2.m4s"))];
        texts.extend(first);
        let Played { events, left_out, .. } = played_by(fixed(0), "/x.m3u8", texts);
        assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", 100));
        assert!(asked(&events).contains(&"/second.m3u8") && named(&events, "segment_skipped").is_empty());
        assert_eq!(left_out, ["http://server/first.m3u8: it failed, another copy is asked for"]);
    }
}

#[test]
fn an_encrypted_level_or_track_is_left_out_and_the_rest_played() {
    let media = |id: &str, key: &str| {
        format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n{key}#EXT-X-MAP:URI=\"/{id}/init.mp4\"\n#EXTINF:2,\n/{id}/1.m4s\n\
            #EXTINF:2,\n/{id}/2.m4s\n#EXT-X-ENDLIST\n"
        )
    };
    let key = "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n";
    let main = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",DEFAULT=YES,URI=\"/a.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=200000,AUDIO=\"a\"\n/v0.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=400000,AUDIO=\"a\"\n/v1.m3u8\n";
    let of = |keys: [&str; 3]| {
        let [a, v0, v1] = keys;
        let texts = vec![
            ("/x.m3u8", main.to_owned()),
            ("/a.m3u8", media("a0", a)),
            ("/v0.m3u8", media("v0", v0)),
            ("/v1.m3u8", media("v1", v1)),
        ];
        played_by(fixed(0), "/x.m3u8", texts)
    };
    for (keys, named) in [([key, "", ""], "sound en: "), (["", key, ""], "pictures 200000: ")] {
        let Played { events, left_out, is_unplayable } = of(keys);
        assert_eq!(
            (ended(&events), values(&events, "frame_shown").len()),
            ("played to the end", 100),
            "{named}"
        );
        assert!(left_out[0].starts_with(named) && !is_unplayable, "{left_out:?}");
        assert!(
            left_out[0].contains("line 3: segments from line 5 on are encrypted with SAMPLE-AES"),
            "{left_out:?}"
        );
    }
    // The sound alone is clear, and nothing.
    let Played { events, left_out, .. } = of(["", key, key]);
    assert_eq!((ended(&events), left_out.len()), ("played to the end", 2), "{left_out:?}");
    let Played { events, is_unplayable, .. } = of([key, key, key]);
    assert!(is_unplayable && ended(&events).contains("are encrypted with SAMPLE-AES"), "{}", ended(&events));
}

#[test]
fn what_has_no_segments_ends() {
    let empty = format!(
        r#"<Period duration="PT8S">{}</Period>"#,
        set(&LOW, "><SegmentTimeline></SegmentTimeline></SegmentTemplate>")
    );
    let Played { events, is_unplayable, .. } = played(MPD, &mpd(&empty));
    assert!(
        ended(&events).contains("no segment of it lies in its period") && is_unplayable,
        "{}",
        ended(&events)
    );
    // All that there is stays away.
    let one =
        format!(r#"<Period duration="PT2S">{}</Period>"#, set(&LOW, r#"duration="2000" startNumber="99"/>"#));
    let Played { events, .. } = played(MPD, &mpd(&one));
    assert_eq!(ended(&events), "no segment came that could be played");
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-ENDLIST\n";
    assert!(ended(&played("/x.m3u8", text).events).contains("without a segment to play"));
    // A live one that is never fetched again ends with its list.
    let live = format!(
        r#"<MPD type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z"><Period start="PT0S">{}</Period></MPD>"#,
        set(&LOW, r#"><SegmentTimeline><S t="0" d="2000" r="1"/></SegmentTimeline></SegmentTemplate>"#)
    );
    let Played { events, .. } = played(MPD, &live);
    assert_eq!(ended(&events), "played to the end");
}

/// Ticks of a second of the ladder's pictures.
const SCALE: u64 = 90_000;

/// A manifest that is another one each second.
struct Growing {
    inner: Presentation,
    text: fn(u64) -> String,
}

impl Library for Growing {
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        match path {
            MPD => Ok(Some(Arc::new(Words((self.text)(now.as_secs_f64() as u64))))),
            _ => self.inner.find(path, now),
        }
    }
}

/// The manifest of a live presentation that began at the session's start.
fn live(text: fn(u64) -> String) -> Vec<Event> {
    let inner = presented(&ladder(&[200_000, 400_000], 20));
    let settings = DashPlayerSettings { live_delay: Some(ms(6_000)), ..fixed(0) };
    let player = DashPlayer::new(settings, source(MPD), 1).with_server_clock(Duration::from_secs(1000));
    let mut pair = Pair::new(serving(Growing { inner, text }), Box::new(player), pipe(8_000_000));
    pair.run(at(60));
    pair.events
}

fn dynamic(now: u64, ends: u64, periods: &str) -> String {
    let kind = match now < ends {
        true => r#"type="dynamic" minimumUpdatePeriod="PT1S""#.to_owned(),
        false => format!(r#"type="static" mediaPresentationDuration="PT{ends}S""#),
    };
    format!(r#"<MPD {kind} availabilityStartTime="1970-01-01T00:16:40Z">{periods}</MPD>"#)
}

#[test]
fn a_period_that_is_added_to_a_live_presentation_is_played() {
    let events = live(|now| {
        let list = |from: u64, to: u64| {
            let times = match (now.min(to) - from.min(now)) / 2 {
                0 => String::new(),
                count => format!(r#"<S t="0" d="2000" r="{}"/>"#, count - 1),
            };
            format!(r#"startNumber="1"><SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>"#)
        };
        let first = format!(r#"<Period id="a" start="PT0S">{}</Period>"#, set(&LOW, &list(0, 8)));
        let second = set(&[("v1", 400_000)], &list(8, 16));
        let second = format!(r#"<Period id="b" start="PT8S">{second}</Period>"#);
        dynamic(now, 18, &if now < 8 { first } else { first + &second }).replace("PT18S", "PT16S")
    });
    assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", 400));
    assert_eq!(values(&events, "level_changed"), [200_000.0, 400_000.0]);
    assert!(named(&events, "gap_jumped").is_empty(), "{:?}", named(&events, "gap_jumped"));
}

#[test]
fn times_alone_tell_the_segments_of_a_live_window() {
    // Each is listed for 8 s, without numbers.
    let events = live(|now| {
        let complete = (now.min(20)) / 2;
        let first = complete.saturating_sub(4);
        let times: String = (first..complete)
            .map(|number| format!(r#"<S t="{}" d="{}"/>"#, number * 2 * SCALE, 2 * SCALE))
            .collect();
        let list = format!(
            r#"<AdaptationSet contentType="video"><SegmentTemplate timescale="{SCALE}" initialization="v0/init.mp4"
            media="v0/t$Time$.m4s"><SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>
            <Representation id="v0" bandwidth="200000"/></AdaptationSet>"#
        );
        dynamic(now, 22, &format!(r#"<Period start="PT0S">{list}</Period>"#)).replace("PT22S", "PT20S")
    });
    let asked: Vec<&str> = asked(&events).into_iter().filter(|one| one.contains("/t")).collect();
    let wanted: Vec<String> = (0..10).map(|number| format!("/v0/t{}.m4s", number * 2 * SCALE)).collect();
    assert_eq!(asked, wanted);
    assert_eq!((ended(&events), values(&events, "frame_shown").len()), ("played to the end", 500));
}
