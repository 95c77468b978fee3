//! Any input is a manifest or an error, and a manifest that was read is consistent.

use proptest::prelude::*;

use super::*;

/// Properties of every manifest that was read.
pub fn holds_together(manifest: &Manifest) {
    manifest.flaws();
    let all: Vec<&Representation> = manifest.sets().flat_map(|set| &set.representations).collect();
    assert!(manifest.sets().all(|set| set.representations.windows(2).all(|two| two[0].rate <= two[1].rate)));
    for one in all {
        one.end();
        let is_absolute = |address: &Address| address.url.starts_with("http");
        assert!(one.init.iter().all(is_absolute));
        match &one.segments {
            Segments::Listed(segments) => {
                assert!(segments.windows(2).all(|two| two[0].start <= two[1].start));
                assert!(segments.iter().all(|segment| is_absolute(&segment.address)));
            }
            Segments::Numbered(template) => {
                for place in [0, 1, 1000, u64::MAX / 2] {
                    let Some(segment) = template.segment(template.first.saturating_add(place)) else {
                        continue;
                    };
                    assert!(is_absolute(&segment.address));
                    template.number_at(segment.start);
                }
                assert!(template.from(0).take(3).count() <= 3);
            }
            Segments::Indexed { address, .. } | Segments::Playlist(address) => assert!(is_absolute(address)),
        }
    }
}

/// Something near an MPD.
fn near_mpd() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "Period",
        "AdaptationSet",
        "Representation",
        "SegmentTemplate",
        "SegmentTimeline",
        "S",
        "SegmentList",
        "SegmentURL",
        "SegmentBase",
        "Initialization",
        "BaseURL",
        "ContentProtection",
        "Role",
        "SupplementalProperty",
    ]);
    let attribute = prop::sample::select(vec![
        "t",
        "d",
        "r",
        "media",
        "duration",
        "timescale",
        "startNumber",
        "presentationTimeOffset",
        "bandwidth",
        "id",
        "indexRange",
        "mediaRange",
        "range",
        "initialization",
        "width",
        "start",
        "endNumber",
        "availabilityTimeOffset",
        "schemeIdUri",
        "value",
        "contentType",
    ]);
    let value = prop::sample::select(vec![
        "",
        "0",
        "1",
        "-1",
        "4000",
        "18446744073709551615",
        "9223372036854775807",
        "$Number$",
        "$Time%09d$",
        "$$$Bandwidth$",
        "0-1",
        "9-1",
        "../a",
        "http://h/$Number$",
        "INF",
        "PT2S",
        "x",
        "//h",
        "?$Time$",
        "video",
        "main",
        "http://dashif.org/guidelines/trickmode",
        "urn:mpeg:dash:adaptation-set-switching:2016",
        "P0Y0M1DT1.5S",
    ]);
    let attributes = prop::collection::vec((attribute, value), 0..5);
    let begun = (name, attributes, 0u8..3).prop_map(|(name, attributes, way)| {
        let mut seen = Vec::new();
        let mut text = format!("<{name}");
        for (attribute, value) in attributes {
            if !seen.contains(&attribute) {
                text += &format!(" {attribute}=\"{value}\"");
                seen.push(attribute);
            }
        }
        (text, name, way)
    });
    let ways = prop::sample::select(vec!["static", "dynamic"]);
    (prop::collection::vec(begun, 0..14), ways).prop_map(|(elements, way)| {
        let mut text = format!(
            "<MPD type=\"{way}\" availabilityStartTime=\"2026-01-01T00:00:00Z\"><Period duration=\"PT9S\"><AdaptationSet>"
        );
        let mut open = vec!["MPD", "Period", "AdaptationSet"];
        for (begun, name, way) in elements {
            text += &begun;
            if way == 0 {
                text += "/>";
            } else {
                text += ">";
                open.push(name);
            }
            if way == 2 && open.len() > 3 {
                text += &format!("</{}>", open.pop().unwrap_or_default());
            }
        }
        open.iter().rev().for_each(|name| text += &format!("</{name}>"));
        text
    })
}

/// Something near a playlist.
fn near_playlist() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "#EXTINF:4.004,",
        "#EXTINF:99999999999,",
        "#EXTINF:0,",
        "a.m4s",
        "../b.m4s?x",
        "//h/c",
        "",
        "#EXT-X-TARGETDURATION:4",
        "#EXT-X-MEDIA-SEQUENCE:18446744073709551615",
        "#EXT-X-MEDIA-SEQUENCE:3",
        "#EXT-X-BYTERANGE:5@3",
        "#EXT-X-BYTERANGE:18446744073709551615@1",
        "#EXT-X-BYTERANGE:7",
        "#EXT-X-ENDLIST",
        "#EXT-X-MAP:URI=\"i\",BYTERANGE=\"9@0\"",
        "#EXT-X-STREAM-INF:BANDWIDTH=7,CODECS=\"mp4a.40.2\"",
        "#EXT-X-STREAM-INF:BANDWIDTH=7,RESOLUTION=1x2",
        "#EXT-X-MEDIA:TYPE=AUDIO,URI=\"a\"",
        "#EXT-X-GAP",
        "#EXT-X-KEY:METHOD=NONE",
        "#EXT-X-KEY:METHOD=AES-128",
        "#EXT-X-PLAYLIST-TYPE:VOD",
        "#EXT-X-STREAM-INF:BANDWIDTH=7,AUDIO=\"a\",PATHWAY-ID=\"2\"",
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",URI=\"b\"",
        "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"",
        "{$a}",
        "# a",
    ]);
    prop::collection::vec(line, 0..20).prop_map(|lines| format!("#EXTM3U\n{}", lines.join("\n")))
}

fn take(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::read(bytes, URL) {
        holds_together(&manifest);
    }
    if let Ok(playlist) = read_playlist(bytes, URL, &[]) {
        playlist.flaws("v");
        assert!(playlist.segments.windows(2).all(|two| two[0].number < two[1].number));
    }
    if let Ok(segments) = read_index(bytes, 7, URL, &Window::default()) {
        let ranges =
            segments.windows(2).map(|two| (two[0].address.range.unwrap(), two[1].address.range.unwrap()));
        ranges.for_each(|(one, next)| assert_eq!(one.1 + 1, next.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        take(&bytes);
        take(&[b"#EXTM3U\n", &bytes[..]].concat());
        take(&[b"<MPD>", &bytes[..]].concat());
    }

    #[test]
    fn nearly_an_mpd(text in near_mpd()) {
        take(text.as_bytes());
    }

    #[test]
    fn nearly_a_playlist(text in near_playlist()) {
        take(text.as_bytes());
    }

    #[test]
    fn nearly_an_index(length in 0u32..80, rest in prop::collection::vec(any::<u8>(), 0..80)) {
        take(&[&length.to_be_bytes()[..], b"sidx", &rest].concat());
    }
}
