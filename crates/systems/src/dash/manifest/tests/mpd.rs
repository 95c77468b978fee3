//! MPDs.

use super::*;

/// An MPD of one set of video, from its content.
fn mpd(attributes: &str, set: &str) -> String {
    format!(
        r#"<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {attributes}>
<Period><AdaptationSet mimeType="video/mp4">{set}</AdaptationSet></Period></MPD>"#
    )
}

const TEN_S: &str = r#"type="static" mediaPresentationDuration="PT10S""#;
const ONE: &str = r#"<Representation id="v0" bandwidth="500000"/>"#;

#[test]
fn numbers_go_on_from_the_first_and_end_with_the_presentation() {
    let text = mpd(
        TEN_S,
        r#"<SegmentTemplate timescale="1000" duration="4000" startNumber="7" initialization="$RepresentationID$/i.mp4"
            media="$RepresentationID$/$Bandwidth$-$Number%05d$.m4s"/>
        <Representation id="hi" bandwidth="2000000" width="1280" height="720" codecs="avc1.64001f"/>
        <Representation id="lo" bandwidth="500000"/>"#,
    );
    let manifest = read(&text);
    assert_eq!((manifest.duration, manifest.live), (Some(ms(10_000)), None));
    let [set] = &manifest.periods[0].sets[..] else { panic!("{manifest:?}") };
    assert_eq!(set.kind, MediaKind::Video);
    // From the lowest rate up.
    let [low, high] = &set.representations[..] else { panic!("{set:?}") };
    assert_eq!((low.id.as_str(), low.size, low.rate.as_bps()), ("lo", None, 500_000));
    assert_eq!((high.size, high.codecs.as_deref()), (Some((1280, 720)), Some("avc1.64001f")));
    let init = low.init.as_ref().map(|init| init.url.as_str());
    assert_eq!(init, Some("http://origin.example/films/a/lo/i.mp4"));
    let template = numbered(high);
    assert_eq!((template.first, template.count), (7, Some(3)));
    let segments: Vec<MediaSegment> = template.from(0).collect();
    let wanted = [
        (0, 4000, "/films/a/hi/2000000-00007.m4s"),
        (4000, 4000, "/films/a/hi/2000000-00008.m4s"),
        // The last one without the part beyond the presentation.
        (8000, 2000, "/films/a/hi/2000000-00009.m4s"),
    ];
    assert_eq!(told(&segments), wanted);
    assert_eq!((template.segment(6), template.segment(10)), (None, None));
    for (time, number) in [(0, 7), (3999, 7), (4000, 8), (11_999, 9)] {
        assert_eq!(template.number_at(ms(time)), number, "{time} ms");
    }
}

#[test]
fn inner_elements_tell_before_outer_ones() {
    let text = r#"<MPD type="static" mediaPresentationDuration="PT4S"><BaseURL>../b/</BaseURL>
<Period><SegmentTemplate timescale="10" media="$RepresentationID$-$Number$.m4s" initialization="i" startNumber="3"/>
<AdaptationSet contentType="audio"><BaseURL>snd/</BaseURL><SegmentTemplate duration="20"/>
<Representation id="a" bandwidth="1"/>
<Representation id="b" bandwidth="2"><BaseURL>http://cdn.example/x/</BaseURL><SegmentTemplate duration="40"
 startNumber="0"/></Representation>
</AdaptationSet></Period></MPD>"#;
    let manifest = read(text);
    assert_eq!(manifest.periods[0].sets[0].kind, MediaKind::Audio);
    let [a, b] = &manifest.periods[0].sets[0].representations[..] else { panic!("{manifest:?}") };
    assert_eq!(
        told(&numbered(a).from(0).collect::<Vec<_>>()),
        [(0, 2000, "/films/b/snd/a-3.m4s"), (2000, 2000, "/films/b/snd/a-4.m4s")]
    );
    let only = numbered(b).segment(0).unwrap();
    assert_eq!(only.address.url, "http://cdn.example/x/b-0.m4s");
    assert_eq!(numbered(b).segment(1), None);
}

#[test]
fn a_timeline_repeats_and_goes_on_to_the_next_and_to_the_end() {
    let timeline = |times: &str, more: &str| {
        let template = format!(
            r#"<SegmentTemplate timescale="1000" media="$Time$.m4s" {more}><SegmentTimeline>{times}</SegmentTimeline>
            </SegmentTemplate>{ONE}"#
        );
        read(&mpd(TEN_S, &template)).periods[0].sets.remove(0).representations.remove(0)
    };
    let usual = timeline(r#"<S t="0" d="2000" r="1"/><S d="6000"/>"#, "");
    let wanted =
        [(0, 2000, "/films/a/0.m4s"), (2000, 2000, "/films/a/2000.m4s"), (4000, 6000, "/films/a/4000.m4s")];
    assert_eq!(told(listed(&usual)), wanted);
    assert_eq!(listed(&usual).iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2, 3]);
    let open = timeline(r#"<S t="0" d="2000" r="-1"/><S t="6000" d="3000" r="-1"/>"#, "");
    assert_eq!(told(listed(&open)).iter().map(|one| one.0).collect::<Vec<_>>(), [0, 2000, 4000, 6000, 9000]);
    // The first time of the media is no time of the presentation.
    let offset = timeline(
        r#"<S t="88000" d="2000"/><S t="90000" d="2000" r="-1"/>"#,
        r#"presentationTimeOffset="90000" startNumber="5""#,
    );
    assert_eq!(told(listed(&offset)).first(), Some(&(0, 2000, "/films/a/90000.m4s")));
    assert_eq!((listed(&offset).len(), listed(&offset)[0].number), (5, 6));
    assert_eq!(offset.end(), Some(ms(10_000)));
}

#[test]
fn gaps_and_overlaps_are_told() {
    let with = |times: &str| {
        let template = format!(
            r#"<SegmentTemplate timescale="10" media="$Number$.m4s"><SegmentTimeline>{times}</SegmentTimeline>
            </SegmentTemplate>{ONE}"#
        );
        let flaws = read(&mpd(TEN_S, &template)).flaws();
        flaws.iter().map(Flaw::to_string).collect::<Vec<_>>()
    };
    assert_eq!(with(r#"<S t="0" d="20" r="3"/>"#), [""; 0]);
    assert_eq!(
        with(r#"<S t="0" d="20"/><S t="40" d="20"/><S t="50" d="20"/>"#),
        ["v0: segments missing between 2.000 s and 4.000 s", "v0: two segments between 5.000 s and 6.000 s"]
    );
}

#[test]
fn lists_and_ranges() {
    let text = mpd(
        TEN_S,
        r#"<Representation id="v0" bandwidth="1"><BaseURL>v.mp4</BaseURL><SegmentList timescale="2" duration="10">
        <Initialization range="0-99"/><SegmentURL mediaRange="100-199"/><SegmentURL mediaRange="200-299"/>
        </SegmentList></Representation>
        <Representation id="v1" bandwidth="2"><SegmentList><SegmentTimeline><S d="4"/><S d="6" r="9"/></SegmentTimeline>
        <Initialization sourceURL="i.mp4"/><SegmentURL media="1.m4s"/><SegmentURL media="s/2.m4s"/></SegmentList>
        </Representation>"#,
    );
    let manifest = read(&text);
    let [ranges, files] = &manifest.periods[0].sets[0].representations[..] else { panic!("{manifest:?}") };
    let url = "http://origin.example/films/a/v.mp4";
    assert_eq!(ranges.init, Some(Address { url: url.into(), range: Some((0, 99)) }));
    let addresses = listed(ranges).iter().map(|one| (one.address.url.as_str(), one.address.range));
    assert_eq!(addresses.collect::<Vec<_>>(), [(url, Some((100, 199))), (url, Some((200, 299)))]);
    assert_eq!(told(listed(files)), [(0, 4000, "/films/a/1.m4s"), (4000, 6000, "/films/a/s/2.m4s")]);
    assert_eq!(files.init.as_ref().map(|init| init.range), Some(None));
}

#[test]
fn one_file_has_an_index_or_is_one_segment() {
    let text = mpd(
        TEN_S,
        r#"<Representation id="v0" bandwidth="1"><BaseURL>v.mp4</BaseURL><SegmentBase indexRange="700-899">
        <Initialization range="0-699"/></SegmentBase></Representation>
        <Representation id="v1" bandwidth="2"><BaseURL>w.mp4</BaseURL><SegmentBase indexRange="70-89"/></Representation>
        <Representation id="v2" bandwidth="3"><BaseURL>x.mp4</BaseURL></Representation>"#,
    );
    let manifest = read(&text);
    let [told_init, found_init, whole] = &manifest.periods[0].sets[0].representations[..] else {
        panic!("{manifest:?}")
    };
    let address =
        |file: &str, range| Address { url: format!("http://origin.example/films/a/{file}.mp4"), range };
    let window = Window { start: Duration::ZERO, end: Some(ms(10_000)), offset: Duration::ZERO };
    assert_eq!(told_init.segments, Segments::Indexed { address: address("v", Some((700, 899))), window });
    assert_eq!(told_init.init, Some(address("v", Some((0, 699)))));
    assert_eq!(found_init.init, Some(address("w", Some((0, 69)))));
    assert_eq!(told(listed(whole)), [(0, 10_000, "/films/a/x.mp4")]);
}

#[test]
fn a_live_presentation_says_when_what_is_there() {
    let text = r#"<MPD type="dynamic" availabilityStartTime="1970-01-02T00:00:00Z" minimumUpdatePeriod="PT5S"
timeShiftBufferDepth="PT1M" suggestedPresentationDelay="PT6S"><Period start="PT10S"><AdaptationSet mimeType="video/mp4">
<BaseURL availabilityTimeOffset="0.5">v/</BaseURL>
<SegmentTemplate duration="2" media="$Number$.m4s" availabilityTimeOffset="1"/><Representation id="v" bandwidth="9"/>
</AdaptationSet></Period></MPD>"#;
    let manifest = read(text);
    let wanted = Live {
        starts: Some(Duration::from_secs(86_400)),
        update: Some(ms(5000)),
        delay: Some(ms(6000)),
        depth: Some(ms(60_000)),
        early: ms(1500),
    };
    assert_eq!((manifest.duration, manifest.live), (None, Some(wanted)));
    let template = numbered(&manifest.periods[0].sets[0].representations[0]);
    assert_eq!((template.count, template.number_at(ms(15_000))), (None, 3));
    // A run without an end is a pattern as well. With further runs after the first, its length is unknown.
    let timeline = |times: &str| {
        text.replace(
            r#"duration="2" media="$Number$.m4s" availabilityTimeOffset="1"/>"#,
            &format!(r#"media="$Time$.m4s"><SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>"#),
        )
    };
    let manifest = read(&timeline(r#"<S t="0" d="2" r="-1"/>"#));
    let template = numbered(&manifest.periods[0].sets[0].representations[0]);
    assert_eq!(
        template.segment(4).map(|one| (one.start, one.address.url)),
        Some((ms(16_000), "http://origin.example/films/a/v/6.m4s".into()))
    );
    assert!(refused(&timeline(r#"<S t="0" d="3"/><S d="2" r="-1"/>"#)).contains("without an end"));
    // A window without numbers: its times stay the same.
    let manifest = read(&timeline(r#"<S t="40" d="2" r="1"/>"#));
    let numbers: Vec<u64> =
        listed(&manifest.periods[0].sets[0].representations[0]).iter().map(|one| one.number).collect();
    assert_eq!(numbers, [40, 42]);
}

#[test]
fn dollars_are_what_they_are() {
    let with = |media: &str, id: &str| {
        let text = mpd(
            TEN_S,
            &format!(
                r#"<SegmentTemplate duration="5" media="{media}"/><Representation id="{id}" bandwidth="42"/>"#
            ),
        );
        let manifest = read(&text);
        numbered(&manifest.periods[0].sets[0].representations[0]).segment(2).unwrap().address.url
    };
    let at = |path: &str| format!("http://origin.example/{path}");
    assert_eq!(with("a$$b/$Number$", "v"), at("films/a/a$b/2"));
    assert_eq!(with("$RepresentationID$/$Number%03d$", "v$Number$"), at("films/a/v$Number$/002"));
    assert_eq!(with("/sgxq0q$Number$/$Bandwidth%04d$/$Number$", "v"), at("sgxq0q2/0042/2"));
    assert_eq!(with("../../../../$Number$", "v"), at("2"));
    assert_eq!(with("?n=$Number$", "v"), at("films/a/manifest?n=2"));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let template = |attributes: &str| mpd(TEN_S, &format!("\n<SegmentTemplate {attributes}/>{ONE}"));
    let timeline = |times: &str| {
        let inner = format!(
            r#"<SegmentTemplate media="$Time$"><SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>{ONE}"#
        );
        mpd(TEN_S, &inner)
    };
    for (text, wanted) in [
        ("<MPD/>".into(), "line 1: there is no Period"),
        ("<svg/>".into(), "line 1: the root is svg"),
        ("\n<!DOCTYPE HTML>\n<html></html>".into(), "a web page (HTML), perhaps a login"),
        ("<html/>".into(), "a web page (HTML), perhaps a login"),
        ("<MPD><Period/><Period/><Period/></MPD>".into(), "a Period without @start, and the one before"),
        (r#"<MPD><Period duration="PT2S"/><Period/></MPD>"#.into(), "the Period has no Representation"),
        (
            r#"<MPD><Period duration="PT0S"/></MPD>"#.into(),
            "no Period can be played: period of line 1: it ends where",
        ),
        ("<MPD><Period/></MPD>".into(), "no Representation"),
        ("<MPD".into(), "line 1: no XML that is read"),
        ("hello".into(), "neither an MPD nor an HLS playlist, for it begins with \"hello\""),
        (mpd(r#"type="vod""#, ONE), r#"line 2: MPD@type is "vod"; static or dynamic is wanted"#),
        (mpd(r#"type="dynamic""#, ONE), "without @availabilityStartTime"),
        (mpd(r#"mediaPresentationDuration="P1Y""#, ONE), "years and months must be 0"),
        (
            template(r#"timescale="0" duration="1" media="$Number$""#),
            r#"line 4: SegmentTemplate@timescale is "0""#,
        ),
        (template(r#"duration="0" media="$Number$""#), "@duration is 0"),
        (template(r#"duration="-1" media="$Number$""#), r#"@duration is "-1"; a number from 0 to 2^64"#),
        (template(r#"duration="1""#), "without @media"),
        (template(r#"media="$Number$""#), "neither @duration nor a SegmentTimeline"),
        (template(r#"duration="1" media="a.m4s""#), "one address for several segments"),
        (template(r#"duration="1" media="$Number""#), "a $ without its other one"),
        (template(r#"duration="1" media="$Number%x$""#), "not of the form %05d"),
        (template(r#"duration="1" media="$Number%0999d$""#), "not of the form %05d"),
        (template(r#"duration="1" media="$SubNumber$""#), "$SubNumber$ in a pattern, which is not supported"),
        (template(r#"duration="1" media="file:///etc/$Number$""#), "no address of http or https"),
        (template(r#"duration="1" media="$Number$" initialization="$Time$""#), "has $Number$ or $Time$"),
        (template(r#"timescale="1000000" duration="1" media="$Number$""#), "more than 1000000 segments"),
        (timeline(r#"<S t="0"/>"#), "an S without @d"),
        (timeline(r#"<S t="0" d="0"/>"#), r#"S@d is "0""#),
        (timeline(r#"<S t="4" d="2"/><S t="4" d="2"/>"#), "S number 2 begins before the last segment"),
        (timeline(r#"<S t="0" d="4" r="2"/><S t="7" d="4"/>"#), "S number 2 begins before the last segment"),
        (
            timeline(r#"<S t="0" d="1" r="999999999999"/>"#).replace("PT10S", "P20D"),
            "more than 1000000 segments",
        ),
        (
            timeline(""),
            "nothing can be played: representation of line 3 (v0): no segment of it lies in its period",
        ),
        (timeline(r#"<S t="18446744073709551615" d="1"/>"#), "a time beyond all bounds"),
        (timeline(r#"<S t="11" d="1"/>"#), "no segment of it lies in its period"),
        (timeline(r#"<S d="1" r="x"/>"#), "-1 or a number of repetitions"),
        (mpd("", ONE), "its duration is not given"),
    ] {
        let told = refused(&text);
        assert!(told.contains(wanted), "{told}\n{wanted}\n{text}");
    }
}

#[test]
fn what_costs_more_than_it_is_long_is_refused() {
    let bomb = r#"<!DOCTYPE MPD [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><MPD><Period id="&b;"/></MPD>"#;
    assert!(refused(bomb).contains("no XML that is read"));
    let deep = format!("<MPD>{}", "<a>".repeat(100_000));
    assert!(refused(&deep).contains("more than 32 elements within each other"));
    let wide = format!("<MPD {}/>", (0..100_000).map(|n| format!("a{n}=\"\" ")).collect::<String>());
    assert!(refused(&wide).contains("more than 100 attributes"));
    let spaces: String = (0..2_000).map(|n| format!("<a xmlns:n{n}='u'/>")).collect();
    assert!(refused(&format!("<MPD>{spaces}</MPD>")).contains("more than 1000 namespaces"));
    // A tag in a comment, in CDATA or in quotes is no element.
    let text = mpd(TEN_S, &format!("<!--{0}--><a b='{0}'/><![CDATA[{0}]]>{ONE}", ">".repeat(9)));
    assert!(refused(&text.replace(TEN_S, "")).contains("is not given"));
    // This many segments with so long an address each would take gigabytes.
    let long = format!(
        r#"<SegmentTemplate media="{}$Time$"><SegmentTimeline><S t="0" d="1" r="900000"/></SegmentTimeline>
        </SegmentTemplate>{ONE}"#,
        "x".repeat(10_000)
    );
    assert!(refused(&mpd(r#"mediaPresentationDuration="P20D""#, &long)).contains("addresses too long"));
    let large = vec![b' '; MOST_BYTES as usize + 1];
    assert_eq!(Manifest::read(&large, URL), Err(ManifestError::TooLong { bytes: MOST_BYTES + 1 }));
    for url in ["manifest.mpd", "file:///a.mpd", "data:text/plain,a", ""] {
        assert!(matches!(
            Manifest::read(b"<MPD/>", url),
            Err(ManifestError::Broken { .. } | ManifestError::Place { .. })
        ));
        assert!(matches!(read_playlist(b"#EXTM3U", url, &[]), Err(ManifestError::Place { .. })));
    }
}
