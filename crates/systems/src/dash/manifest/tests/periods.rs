//! Periods: their times, their media, and segments that are cut at their ends.

use super::*;

fn set(inner: &str) -> String {
    format!(
        r#"<AdaptationSet mimeType="video/mp4">{inner}<Representation id="v" bandwidth="1"/></AdaptationSet>"#
    )
}

fn timeline(attributes: &str, times: &str) -> String {
    let template = format!(r#"<SegmentTemplate timescale="1000" media="$Number$" {attributes}>"#);
    set(&format!("{template}<SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>"))
}

fn numbers(attributes: &str) -> String {
    set(&format!(r#"<SegmentTemplate duration="2" media="$Number$" {attributes}/>"#))
}

fn mpd(attributes: &str, periods: &str) -> String {
    format!("<MPD {attributes}>{periods}</MPD>")
}

/// Start, duration and address of each segment of a period.
fn segments(manifest: &Manifest, period: usize) -> Vec<(u64, u64, String)> {
    let one = &manifest.periods[period].sets[0].representations[0];
    let all: Vec<MediaSegment> = match &one.segments {
        Segments::Listed(segments) => segments.clone(),
        Segments::Numbered(template) => template.from(0).take(20).collect(),
        other => panic!("{other:?}"),
    };
    told(&all).into_iter().map(|(start, duration, path)| (start, duration, path[9..].to_owned())).collect()
}

fn of(all: &[(u64, u64, &str)]) -> Vec<(u64, u64, String)> {
    all.iter().map(|(start, duration, path)| (*start, *duration, (*path).to_owned())).collect()
}

#[test]
fn segments_end_with_their_period() {
    let listed = timeline("", r#"<S t="0" d="2000" r="9"/>"#);
    let three = of(&[(0, 2000, "1"), (2000, 2000, "2"), (4000, 2000, "3")]);
    let manifest = read(&mpd("", &format!(r#"<Period duration="PT6S">{listed}</Period>"#)));
    assert_eq!((segments(&manifest, 0), manifest.duration), (three.clone(), Some(ms(6000))));
    // In the middle of a segment, for each way to give an end.
    for (attributes, period, next) in [
        ("", r#"duration="PT5S""#, ""),
        (r#"mediaPresentationDuration="PT5S""#, "", ""),
        (r#"mediaPresentationDuration="PT5S""#, r#"duration="PT9S""#, ""),
        ("", r#"duration="PT9S""#, r#"<Period start="PT5S" duration="PT1S"/>"#),
    ] {
        for media in [&listed, &numbers(""), &numbers(r#"endNumber="9""#)] {
            let manifest = read(&mpd(attributes, &format!("<Period {period}>{media}</Period>{next}")));
            let cut = of(&[(0, 2000, "1"), (2000, 2000, "2"), (4000, 1000, "3")]);
            assert_eq!(segments(&manifest, 0), cut, "{attributes} {period}");
        }
    }
    // Fewer than would fit.
    let manifest =
        read(&mpd("", &format!(r#"<Period duration="PT9S">{}</Period>"#, numbers(r#"endNumber="3""#))));
    assert_eq!(segments(&manifest, 0), three);
}

#[test]
fn a_period_begins_in_a_segment() {
    let offset = r#"presentationTimeOffset="10000""#;
    let manifest = read(&mpd(
        r#"mediaPresentationDuration="PT11S""#,
        &format!("<Period>{}</Period>", timeline(offset, r#"<S t="9000" d="2000" r="5"/>"#)),
    ));
    let found = segments(&manifest, 0);
    assert_eq!(found[..2], of(&[(0, 1000, "1"), (1000, 2000, "2")]));
    assert_eq!((found.len(), found[5].0 + found[5].1), (6, 11_000));
    let one = &listed(&manifest.periods[0].sets[0].representations[0])[0];
    assert_eq!((one.outside.before, one.outside.after), (ms(1000), ms(0)));
    // Before the beginning, and one that ends less than a millisecond behind it.
    let times = r#"<S t="6000" d="2000" r="1"/><S t="10000" d="2000"/>"#;
    let manifest =
        read(&mpd("", &format!(r#"<Period duration="PT2S">{}</Period>"#, timeline(offset, times))));
    assert_eq!(segments(&manifest, 0), of(&[(0, 2000, "3")]));
    let rounded = timeline(r#"presentationTimeOffset="9999""#, times).replace(r#"e="1000""#, r#"e="10000""#);
    let manifest = read(&mpd("", &format!(r#"<Period duration="PT0.2S">{rounded}</Period>"#)));
    assert_eq!(segments(&manifest, 0)[0].2, "3");
    // One segment has both ends outside.
    let both = timeline(offset, r#"<S t="9000" d="4000"/>"#);
    let manifest = read(&mpd("", &format!(r#"<Period duration="PT2S">{both}</Period>"#)));
    let one = &listed(&manifest.periods[0].sets[0].representations[0])[0];
    assert_eq!((one.outside.before, one.duration, one.outside.after), (ms(1000), ms(2000), ms(1000)));
}

#[test]
fn an_index_is_cut_as_well() {
    let url = "http://origin.example/v.mp4";
    let index = super::index::sidx(0, &[(100, 2000), (100, 2000), (100, 2000)]);
    let window = Window { start: ms(20_000), end: Some(ms(22_500)), offset: ms(1040) };
    let found = read_index(&index, 0, url, &window).unwrap();
    // Its media begin at 40 ms.
    assert_eq!(told(&found), [(20_000, 1000, "/v.mp4"), (21_000, 1500, "/v.mp4")]);
    assert_eq!((found[0].outside.before, found[1].outside.after, found[1].number), (ms(1000), ms(500), 2));
}

#[test]
fn periods_follow_each_other() {
    let text = mpd(
        r#"mediaPresentationDuration="PT12S""#,
        &format!(
            r#"<Period id="a" duration="PT4S"><BaseURL>a/</BaseURL>{}</Period><Period id="b" duration="PT3S">
            <AdaptationSet mimeType="audio/mp4"><SegmentTemplate duration="2" media="s$Number$"/>
            <Representation id="s" bandwidth="1"/></AdaptationSet></Period><Period id="c">{}</Period>"#,
            numbers(""),
            timeline(r#"presentationTimeOffset="4000""#, r#"<S t="4000" d="2500" r="-1"/>"#)
        ),
    );
    let manifest = read(&text);
    let times: Vec<_> = manifest.periods.iter().map(|one| (one.id.as_str(), one.start, one.end)).collect();
    let ends = [("a", 0, 4000), ("b", 4000, 7000), ("c", 7000, 12_000)];
    assert_eq!(times, ends.map(|(id, start, end)| (id, ms(start), Some(ms(end)))));
    assert_eq!(segments(&manifest, 0), of(&[(0, 2000, "a/1"), (2000, 2000, "a/2")]));
    assert_eq!(segments(&manifest, 1), of(&[(4000, 2000, "s1"), (6000, 1000, "s2")]));
    assert_eq!(segments(&manifest, 2), of(&[(7000, 2500, "1"), (9500, 2500, "2")]));
    assert_eq!((manifest.duration, manifest.left_out.len()), (Some(ms(12_000)), 0));
}

#[test]
fn periods_that_have_nothing_are_named() {
    let text = mpd(
        "",
        &format!(
            "<Period start=\"PT0S\">{0}</Period>\n<Period start=\"PT2S\" id=\"ad\" \
            xmlns:xlink=\"http://www.w3.org/1999/xlink\" xlink:href=\"http://ads.example/1\"/>\n\
            <Period start=\"PT4S\">{0}</Period>\n<Period start=\"PT4S\" duration=\"PT2S\">{0}</Period>\n\
            <Period duration=\"PT1S\"/>\n<Period xmlns:xlink=\"http://www.w3.org/1999/xlink\" duration=\"PT1S\" \
            xlink:href=\"urn:mpeg:dash:resolve-to-zero:2013\"/>",
            numbers("")
        ),
    );
    let manifest = read(&text);
    assert_eq!(manifest.periods.iter().map(|one| one.start).collect::<Vec<_>>(), [ms(0), ms(4000)]);
    assert_eq!(
        manifest.left_out,
        [
            "period of line 2 (ad): it is in another file (xlink:href http://ads.example/1)",
            "period of line 3: it ends where it begins",
            "period of line 5: it has nothing to play",
        ]
    );
    let only = "<MPD><Period duration=\"PT2S\" href=\"http://ads.example/1\"/></MPD>";
    assert!(refused(only).contains("no Period can be played: period of line 1: it is in another file"));
}

#[test]
fn periods_of_a_live_presentation() {
    let text = mpd(
        r#"type="dynamic" availabilityStartTime="1970-01-02T00:00:00Z" minimumUpdatePeriod="PT2S""#,
        &format!(
            r#"<Period id="a" start="PT100S">{}</Period><Period id="b" start="PT104S">{}</Period><Period id="c"/>"#,
            timeline(r#"presentationTimeOffset="7000""#, r#"<S t="7000" d="2000" r="1"/>"#),
            timeline("", r#"<S t="0" d="2000"/>"#),
        ),
    );
    let manifest = read(&text);
    assert_eq!((manifest.duration, manifest.goes_on(), manifest.periods.len()), (None, true, 2));
    assert_eq!(segments(&manifest, 0), of(&[(100_000, 2000, "1"), (102_000, 2000, "2")]));
    assert_eq!(segments(&manifest, 1), of(&[(104_000, 2000, "1")]));
    assert_eq!((manifest.periods[0].end, manifest.periods[1].end), (Some(ms(104_000)), None));
    assert_eq!(manifest.left_out, ["period of line 1 (c): its start is not known yet"]);
}

#[test]
fn durations_that_packagers_write() {
    for text in ["P0Y0M0DT0H0M4.000S", " PT4S ", "PT0H0M4S", "P0DT4S", "PT0.0666666M"] {
        let manifest = read(&mpd(
            &format!(r#"mediaPresentationDuration="{text}""#),
            &format!("<Period start=\"P0Y0M0DT0S\">{}</Period>", numbers("")),
        ));
        assert_eq!(segments(&manifest, 0).len(), 2, "{text}");
    }
    let text = mpd("mediaPresentationDuration=\"P1M\"", &format!("\n<Period>{}</Period>", numbers("")));
    let told = refused(&text);
    assert!(told.starts_with("line 1: MPD@mediaPresentationDuration is \"P1M\"; write a duration"), "{told}");
}
