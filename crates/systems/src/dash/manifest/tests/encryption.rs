//! Encrypted media are refused by name and line, or left out where others are clear.

use super::*;

fn media(rest: &str) -> String {
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{rest}\n#EXT-X-ENDLIST\n")
}

#[test]
fn keys_of_a_playlist() {
    let key = |method: &str| format!("#EXT-X-KEY:METHOD={method},URI=\"k\"\n#EXTINF:2,\na.m4s");
    for method in ["AES-128", "SAMPLE-AES", "SAMPLE-AES-CTR", "AES-256-GCM"] {
        let told = refused(&media(&key(method)));
        let wanted = format!("line 3: segments from line 4 on are encrypted with {method} (#EXT-X-KEY)");
        assert!(told.starts_with(&wanted), "{told}");
    }
    assert!(refused(&media("#EXT-X-KEY:URI=\"k\"\n#EXTINF:2,\na")).contains("encrypted with without METHOD"));
    // From the middle on, and a key that is taken back before any segment.
    let told = refused(&media(&format!("#EXTINF:2,\nad.m4s\n{}", key("AES-128"))));
    assert!(told.starts_with("line 5: segments from line 6 on"), "{told}");
    for clear in [
        "#EXT-X-KEY:METHOD=NONE\n#EXTINF:2,\na".to_owned(),
        "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:2,\na".into(),
        "#EXTINF:2,\na\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"".into(),
        format!("#EXT-X-GAP\n{}\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:2,\nb", key("AES-128")),
    ] {
        assert_eq!(read(&media(&clear)).periods[0].sets.len(), 1, "{clear}");
    }
    // The initialization alone is encrypted.
    let map =
        "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-MAP:URI=\"i\"\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:2,\na";
    assert!(refused(&media(map)).starts_with("line 3: "));
}

#[test]
fn a_session_key() {
    let text = "#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\na\n";
    let told = refused(text);
    assert!(
        told.starts_with("line 2: the variants are encrypted with SAMPLE-AES (#EXT-X-SESSION-KEY)"),
        "{told}"
    );
    assert_eq!(read(&text.replace("SAMPLE-AES", "NONE")).periods.len(), 1);
}

/// Pictures and sound, with this in each place of an MPD.
fn mpd(places: [&str; 6]) -> String {
    let [all, period, video, low, high, audio] = places;
    format!(
        "<MPD mediaPresentationDuration=\"PT4S\">{all}\n<Period>{period}\n<SegmentTemplate duration=\"2\" media=\"$Number$\"/>\n\
        <AdaptationSet contentType=\"video\">{video}\n<Representation id=\"lo\" bandwidth=\"1\">{low}</Representation>\n\
        <Representation id=\"hi\" bandwidth=\"2\">{high}</Representation>\n</AdaptationSet>\n\
        <AdaptationSet contentType=\"audio\">{audio}<Representation id=\"a\" bandwidth=\"1\"/></AdaptationSet>\n\
        </Period></MPD>"
    )
}

const CENC: &str = r#"<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cbcs"/>"#;
const WIDEVINE: &str = r#"<ContentProtection schemeIdUri="urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"><x/></ContentProtection>"#;
const UNKNOWN: &str = r#"<ContentProtection schemeIdUri="urn:nobody"/>"#;

#[test]
fn all_of_an_mpd_is_encrypted() {
    let both = format!("{CENC}{WIDEVINE}");
    for (places, line, how) in [
        ([&both, "", "", "", "", ""], 1, "cbcs, Widevine"),
        (["", CENC, "", "", "", ""], 2, "cbcs"),
        (["", "", WIDEVINE, "", "", CENC], 4, "Widevine"),
        (["", "", "", CENC, UNKNOWN, CENC], 5, "cbcs"),
        (["", "", UNKNOWN, "", "", CENC], 4, "scheme urn:nobody"),
    ] {
        let told = refused(&mpd(places));
        assert!(told.starts_with(&format!("line {line}: ")), "{told}");
        assert!(told.contains(&format!("encrypted with {how} (ContentProtection, line {line})")), "{told}");
    }
}

#[test]
fn what_is_clear_is_played() {
    let manifest = read(&mpd(["", "", "", "", "", WIDEVINE]));
    assert_eq!(manifest.sets().map(|set| set.kind).collect::<Vec<_>>(), [MediaKind::Video]);
    assert_eq!(manifest.left_out, ["sound of line 8: encrypted with Widevine (ContentProtection, line 8)"]);
    let manifest = read(&mpd(["", "", "", "", CENC, ""]));
    let [video, _] = &manifest.periods[0].sets[..] else { panic!("{manifest:?}") };
    assert_eq!(video.representations.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["lo"]);
    assert_eq!(
        manifest.left_out,
        ["representation of line 6 (hi): encrypted with cbcs (ContentProtection, line 6)"]
    );
    let manifest = read(&mpd(["", "", CENC, "", "", ""]));
    assert_eq!(manifest.sets().map(|set| set.kind).collect::<Vec<_>>(), [MediaKind::Audio]);
}
