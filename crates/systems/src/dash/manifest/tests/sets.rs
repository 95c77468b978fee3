//! The sets of an MPD that are played, and the notes on the others.

use super::*;

const TRICK: &str = r#"schemeIdUri="http://dashif.org/guidelines/trickmode" value="1""#;

fn mpd(sets: &str) -> String {
    format!(
        "<MPD mediaPresentationDuration=\"PT4S\"><Period><SegmentTemplate duration=\"2\" media=\"$RepresentationID$-$Number$\"/>\n{sets}</Period></MPD>"
    )
}

fn set(id: &str, kind: &str, attributes: &str, inner: &str) -> String {
    format!(
        "<AdaptationSet id=\"{id}\" contentType=\"{kind}\" {attributes}>{inner}<Representation id=\"{id}\" bandwidth=\"{}\"/></AdaptationSet>\n",
        id.len()
    )
}

/// The played representations, and the parts that are left out.
fn chosen(sets: &[String]) -> (Vec<String>, Vec<String>) {
    let manifest = read(&mpd(&sets.concat()));
    let all = manifest.sets().flat_map(|set| &set.representations);
    (all.map(|one| one.id.clone()).collect(), manifest.left_out)
}

#[test]
fn a_trick_mode_is_not_the_main_set() {
    for property in ["EssentialProperty", "SupplementalProperty"] {
        let trick = format!("<{property} {TRICK}/>");
        let (played, left) = chosen(&[set("t", "video", "", &trick), set("v", "video", "", "")]);
        assert_eq!(
            (played, left),
            (vec!["v".to_owned()], vec!["pictures of line 2: pictures of a trick mode".to_owned()])
        );
        // From any representation.
        let one = format!("<Representation id=\"t\" bandwidth=\"1\"><{property} {TRICK}/></Representation>");
        let (played, left) = chosen(&[set("v", "video", "", &one)]);
        assert_eq!(played, ["v"]);
        assert_eq!(left, ["representation of line 2 (t): pictures of a trick mode"]);
        let told = refused(&mpd(&set("t", "video", "", &trick)));
        assert!(
            told.contains("nothing can be played: pictures of line 2: pictures of a trick mode"),
            "{told}"
        );
    }
}

#[test]
fn the_main_sound_is_played() {
    let role = |value: &str| format!(r#"<Role schemeIdUri="urn:mpeg:dash:role:2011" value="{value}"/>"#);
    let (played, left) = chosen(&[
        set("v", "video", "", ""),
        set("c", "audio", r#"lang="en""#, &role("commentary")),
        set(
            "d",
            "audio",
            r#"lang="en""#,
            &format!("<Accessibility schemeIdUri=\"x\" value=\"1\"/>{}", role("description")),
        ),
        set("fr", "audio", r#"lang="fr""#, &role("dub")),
        set("en", "audio", r#"lang="en""#, &role("main")),
    ]);
    assert_eq!(played, ["v", "en"]);
    assert_eq!(
        left,
        [
            "sound of line 3 (en, commentary): other sound is played",
            "sound of line 4 (en, description): other sound is played",
            "sound of line 5 (fr, dub): other sound is played",
        ]
    );
    // Without roles the first, except one that the viewer has to choose.
    assert_eq!(chosen(&[set("a", "audio", "", ""), set("b", "audio", "", "")]).0, ["a"]);
    let wanted = r#"selectionPriority="5""#;
    assert_eq!(chosen(&[set("a", "audio", "", ""), set("b", "audio", wanted, "")]).0, ["b"]);
    assert_eq!(chosen(&[set("a", "audio", "", &role("commentary")), set("b", "audio", "", "")]).0, ["b"]);
}

#[test]
fn text_and_thumbnails_are_named() {
    let (played, left) = chosen(&[
        set("i", "image", "", ""),
        set("t", "text", r#"lang="en""#, ""),
        set("v", "video", "", ""),
        "<AdaptationSet mimeType=\"application/ttml+xml\"><Representation id=\"x\"/></AdaptationSet>\n"
            .into(),
        "<AdaptationSet href=\"http://elsewhere.example\"/>".into(),
    ]);
    assert_eq!(played, ["v"]);
    assert_eq!(
        left,
        [
            "thumbnails of line 2: only pictures and sound are played",
            "text of line 3 (en): only pictures and sound are played",
            "text of line 5: only pictures and sound are played",
            "set of line 6: it is in another file (xlink:href http://elsewhere.example)",
        ]
    );
    assert!(refused(&mpd(&set("t", "text", "", ""))).contains("nothing can be played: text of line 2"));
}

#[test]
fn sets_that_may_be_switched_between_are_levels_of_one() {
    let switching = |ids: &str| {
        format!(
            r#"<SupplementalProperty schemeIdUri="urn:mpeg:dash:adaptation-set-switching:2016" value="{ids}"/>"#
        )
    };
    let avc = r#"codecs="avc1.64001f""#;
    let (played, left) = chosen(&[
        set("1", "video", avc, &switching("22, 333")),
        set("22", "video", avc, &switching("1,333")),
        set("333", "video", r#"codecs="hvc1.1""#, &switching("1,22")),
    ]);
    assert_eq!(played, ["1", "22"]);
    assert_eq!(left, ["pictures of line 4: other pictures are played"]);
}

#[test]
fn what_play_does_not_need_is_unknown() {
    let text = r#"<MPD type="static" mediaPresentationDuration="PT4S" minBufferTime="x" suggestedPresentationDelay="P1Y"
        timeShiftBufferDepth="soon"><Period><AdaptationSet contentType="video" width="320.5" frameRate="25.0" maxWidth="x">
        <BaseURL availabilityTimeOffset="x">v/</BaseURL>
        <SegmentTemplate timescale="1.0" duration="2.000" startNumber="1.0" media="$Number%d$" availabilityTimeOffset="-1"/>
        <Representation id="lo" bandwidth="99999.5" width="x" height="180" selectionPriority="no" qualityRanking="-"/>
        <Representation id="hi" bandwidth="200000.0" width="640" height="360"/>
        <Representation id="no" height="360"/><Representation id="odd" bandwidth="much"/></AdaptationSet></Period></MPD>"#;
    let manifest = read(text);
    let [low, high] = &manifest.periods[0].sets[0].representations[..] else { panic!("{manifest:?}") };
    assert_eq!((low.rate.as_bps(), low.size), (100_000, None));
    assert_eq!((high.rate.as_bps(), high.size), (200_000, Some((640, 360))));
    assert_eq!(numbered(high).segment(2).unwrap().start, ms(2000));
    assert_eq!(manifest.left_out.len(), 2);
    assert!(manifest.left_out[1].ends_with("(odd): no @bandwidth tells its place among the levels"));
    // A single level needs no rate.
    let only = mpd("<AdaptationSet contentType=\"video\"><Representation id=\"v\"/></AdaptationSet>");
    assert_eq!(read(&only).periods[0].sets[0].representations[0].rate.as_bps(), 0);
}

#[test]
fn names_may_have_prefixes() {
    let text =
        mpd(&set("v", "video", "", "")).replace("</", "</d:").replace("<", "<d:").replace("<d:/d:", "</d:");
    let text = text.replace("<d:MPD", r#"<d:MPD xmlns:d="urn:mpeg:dash:schema:mpd:2011""#);
    assert_eq!(read(&text).periods[0].sets[0].representations[0].id, "v");
}
