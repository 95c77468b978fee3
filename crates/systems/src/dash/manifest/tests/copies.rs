//! Several places of one thing: BaseURLs of an MPD, equal variants of HLS.

use std::collections::BTreeSet;

use super::*;

/// The address of the first segment, or of the playlist, and the copy that may be given up.
fn first(text: &str, failed: &[&str]) -> (String, Option<String>) {
    let failed: BTreeSet<String> = failed.iter().map(|copy| at(copy)).collect();
    let manifest = Manifest::read_without(text.as_bytes(), URL, &failed).unwrap();
    let one = &manifest.periods[0].sets[0].representations[0];
    let url = match &one.segments {
        Segments::Numbered(template) => template.segment(template.first).unwrap().address.url,
        Segments::Playlist(address) => address.url.clone(),
        other => panic!("{other:?}"),
    };
    (url, one.copy.clone())
}

fn at(path: &str) -> String {
    if path.starts_with("http") { path.into() } else { format!("http://origin.example/films/a/{path}") }
}

fn mpd(outer: &str, period: &str, set: &str, one: &str) -> String {
    format!(
        r#"<MPD mediaPresentationDuration="PT4S" xmlns:dvb="urn:dvb:dash:dash-extensions:2014-1">{outer}<Period>{period}
        <AdaptationSet mimeType="video/mp4">{set}<SegmentTemplate duration="2" media="$Number$"/>
        <Representation id="v" bandwidth="1">{one}</Representation></AdaptationSet></Period></MPD>"#
    )
}

#[test]
fn the_next_base_url_is_named_when_one_has_failed() {
    const TWO: &str = "<BaseURL>x/</BaseURL><BaseURL>y/</BaseURL>";
    for place in 0..4 {
        let mut levels = [""; 4];
        levels[place] = TWO;
        let text = mpd(levels[0], levels[1], levels[2], levels[3]);
        assert_eq!(first(&text, &[]), (at("x/1"), Some(at("x/"))), "{place}");
        assert_eq!(first(&text, &["x/"]), (at("y/1"), None), "{place}");
        // All have failed: the first is asked for again, and there is nothing to give up for another one.
        assert_eq!(first(&text, &["x/", "y/"]), (at("x/1"), None), "{place}");
    }
    // One within the other.
    let text = mpd(TWO, "", "<BaseURL>v/</BaseURL>", "");
    assert_eq!(first(&text, &[]), (at("x/v/1"), Some(at("x/"))));
    assert_eq!(first(&text, &["x/"]).0, at("y/v/1"));
    let text = mpd(TWO, "", "<BaseURL>a/</BaseURL><BaseURL>b/</BaseURL>", "");
    assert_eq!(first(&text, &["x/a/"]).0, at("x/b/1"));
    assert_eq!(first(&text, &["x/a/", "x/b/"]).0, at("y/a/1"));
    assert_eq!(first(&mpd("<BaseURL>x/</BaseURL>", "", "", ""), &[]), (at("x/1"), None));
}

#[test]
fn priority_and_weight_of_dvb_come_before_the_order() {
    let text = mpd(
        r#"<BaseURL dvb:priority="2">x/</BaseURL><BaseURL dvb:priority="1" dvb:weight="10">y/</BaseURL>
        <BaseURL dvb:priority="1" dvb:weight="90">z/</BaseURL>"#,
        "",
        "",
        "",
    );
    assert_eq!(first(&text, &[]).0, at("z/1"));
    assert_eq!(first(&text, &["z/"]).0, at("y/1"));
    assert_eq!(first(&text, &["z/", "y/"]).0, at("x/1"));
}

#[test]
fn a_base_url_that_is_none_is_left_out_beside_others() {
    let text = mpd("<BaseURL>ftp://h/</BaseURL><BaseURL>y/</BaseURL>", "", "", "");
    assert_eq!(first(&text, &[]).0, at("y/1"));
    assert_eq!(read(&text).left_out, ["BaseURL ftp://h/ of line 1: no address of http or https"]);
    assert!(refused(&mpd("<BaseURL>ftp://h/</BaseURL>", "", "", "")).contains("no address of http or https"));
}

#[test]
fn equal_variants_are_copies() {
    let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"avc1.4\",AUDIO=\"a\"\nx.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"avc1.4\",AUDIO=\"a\"\nhttp://other.example/x.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=20,CODECS=\"avc1.4\",AUDIO=\"a\"\ny.m3u8\n";
    let set = &read(text).periods[0].sets[0];
    assert_eq!(set.representations.len(), 2);
    assert_eq!(first(text, &[]), (at("x.m3u8"), Some(at("x.m3u8"))));
    assert_eq!(first(text, &["x.m3u8"]), ("http://other.example/x.m3u8".into(), None));
    // From another pathway, with that pathway's sound.
    let text = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a1\",NAME=\"en\",DEFAULT=YES,URI=\"1/a.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a2\",NAME=\"en\",DEFAULT=YES,URI=\"2/a.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=9,PATHWAY-ID=\"1\",AUDIO=\"a1\"\n1/v.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=9,PATHWAY-ID=\"2\",AUDIO=\"a2\"\n2/v.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=8,PATHWAY-ID=\"2\",AUDIO=\"a2\"\n2/w.m3u8\n";
    let manifest = read(text);
    assert_eq!(manifest.periods[0].sets[0].representations.len(), 1);
    assert_eq!(first(text, &["1/v.m3u8"]).0, at("2/v.m3u8"));
    let sound = &manifest.periods[0].sets[1].representations[0];
    assert_eq!((sound.id.as_str(), sound.copy.as_deref()), ("en", Some(at("1/a.m3u8").as_str())));
    assert_eq!(
        manifest.left_out,
        ["variant of line 8 (0 kbit/s): another PATHWAY-ID, without an equal of the first one's"]
    );
}
