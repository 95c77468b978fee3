//! The variants and renditions of HLS that are played, and the notes on the others.

use super::*;

fn ids(set: &AdaptationSet) -> Vec<(&str, u64, &str)> {
    set.representations
        .iter()
        .map(|one| {
            let Segments::Playlist(address) = &one.segments else { panic!("{one:?}") };
            (one.id.as_str(), one.rate.as_bps(), address.url.rsplit('/').next().unwrap_or_default())
        })
        .collect()
}

#[test]
fn the_default_sound_of_the_group_is_played() {
    let text = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"Commentary, director's\",LANGUAGE=\"en\",URI=\"com.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES,AUTOSELECT=YES,URI=\"en.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",NAME=\"English\",LANGUAGE=\"de\",DEFAULT=YES,URI=\"b.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"x\",URI=\"s.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"c\",NAME=\"cc\",INSTREAM-ID=\"CC1\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=300000,AUDIO=\"a\"\nx.m3u8\n";
    let manifest = read(text);
    let [video, audio] = &manifest.periods[0].sets[..] else { panic!("{manifest:?}") };
    assert_eq!(
        (ids(video), ids(audio)),
        (vec![("300000", 300_000, "x.m3u8")], vec![("English", 0, "en.m3u8")])
    );
    assert_eq!(
        manifest.left_out,
        [
            "sound of line 2 (en, Commentary, director's): other sound is played",
            "sound of line 4 (de, English): no variant that is played names its group",
            "subtitles of line 5 (x): only pictures and sound are played",
        ]
    );
    // Without a default, a rendition that may be chosen; without that, the first.
    let free = text.replace("DEFAULT=YES,AUTOSELECT=YES", "AUTOSELECT=YES");
    assert_eq!(ids(&read(&free).periods[0].sets[1])[0].2, "en.m3u8");
    let none = text.replace("DEFAULT=YES,AUTOSELECT=YES,", "");
    assert_eq!(ids(&read(&none).periods[0].sets[1])[0].2, "com.m3u8");
    // It is in the variant itself.
    let within = text.replace(",URI=\"en.m3u8\"", "");
    assert_eq!(read(&within).periods[0].sets.len(), 1);
    // The second group is the variant's.
    let other = text.replace("AUDIO=\"a\"", "AUDIO=\"b\"");
    assert_eq!(ids(&read(&other).periods[0].sets[1])[0].2, "b.m3u8");
    assert_eq!(read(&text.replace(",AUDIO=\"a\"", "")).periods[0].sets.len(), 1);
}

#[test]
fn variants_with_other_sound_are_no_levels() {
    let text = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"en\",DEFAULT=YES,URI=\"aac.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"ac3\",NAME=\"en 5.1\",DEFAULT=YES,URI=\"ac3.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2200000,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720,AUDIO=\"aac\"\nv1.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2400000,CODECS=\"avc1.64001f,ac-3\",RESOLUTION=1280x720,AUDIO=\"ac3\"\nv1.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=600000,CODECS=\"avc1.64001e,ac-3\",RESOLUTION=640x360,AUDIO=\"ac3\"\nv0.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS=\"avc1.64001e,mp4a.40.2\",RESOLUTION=640x360,AUDIO=\"aac\"\nv0.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS=\"avc1.64001e,ac-3\",RESOLUTION=640x360,AUDIO=\"ac3\"\nv0b.m3u8\n";
    let manifest = read(text);
    let [video, audio] = &manifest.periods[0].sets[..] else { panic!("{manifest:?}") };
    // Each at the rate with the sound that is played.
    assert_eq!(ids(video), [("500000", 500_000, "v0.m3u8"), ("2200000", 2_200_000, "v1.m3u8")]);
    assert_eq!(ids(audio), [("en", 0, "aac.m3u8")]);
    assert_eq!(
        manifest.left_out,
        [
            "variant of line 12 (500 kbit/s): the same rate with other sound",
            "sound of line 3 (en 5.1): no variant that is played names its group",
        ]
    );
}

#[test]
fn other_codecs_and_ranges_and_stills_are_left_out() {
    let text = "#EXTM3U\n\
        #EXT-X-STREAM-INF:BANDWIDTH=200000,CODECS=\"avc1.64001f,mp4a.40.2\"\nv0.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=400000,CODECS=\"avc3.64001f,mp4a.40.2\"\nv1.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=150000,CODECS=\"hvc1.2.4,mp4a.40.2\"\nh0.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=300000,CODECS=\"avc1.64001f\",VIDEO-RANGE=PQ\np0.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\na.m3u8\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=50000,URI=\"i0.m3u8\"\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=60000,URI=\"i1.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID=\"v\",NAME=\"Angle 2\",URI=\"angle.m3u8\"\n";
    let manifest = read(text);
    assert_eq!(
        ids(&manifest.periods[0].sets[0]).iter().map(|one| one.2).collect::<Vec<_>>(),
        ["v0.m3u8", "v1.m3u8"]
    );
    assert_eq!(
        manifest.left_out,
        [
            "variant of line 6 (150 kbit/s): another codec than that of the first variant",
            "variant of line 8 (300 kbit/s): another VIDEO-RANGE than that of the first variant",
            "variant of line 10 (64 kbit/s): sound alone",
            "pictures of line 14 (Angle 2): the variants' own pictures are played",
            "2 playlists of key frames or images, lines 12 to 13: for looking for a place",
        ]
    );
}

#[test]
fn what_play_does_not_need_is_unknown() {
    let one = |list: &str| {
        let manifest = read(&format!("#EXTM3U\n#EXT-X-STREAM-INF:{list}\nx.m3u8\n"));
        let one = &manifest.periods[0].sets[0].representations[0];
        (one.rate.as_bps(), one.size)
    };
    assert_eq!(one("BANDWIDTH=300000,RESOLUTION=320.0x180.0"), (300_000, None));
    assert_eq!(one("BANDWIDTH=300000.5,RESOLUTION=320X180,FRAME-RATE=25,0"), (300_001, Some((320, 180))));
    assert_eq!(one("AVERAGE-BANDWIDTH=250000,RESOLUTION=auto,FRAME-RATE=x"), (250_000, None));
    assert_eq!(one("BANDWIDTH=much"), (0, None));
    let two = "#EXTM3U\n#EXT-X-STREAM-INF:RESOLUTION=1x1\nx.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=9\ny.m3u8\n";
    assert_eq!(
        read(two).left_out,
        ["variant of line 2 (unknown rate): no BANDWIDTH tells its place among the levels"]
    );
}
