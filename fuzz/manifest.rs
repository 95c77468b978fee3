//! What holds of every manifest that is read.

use streamgauge_systems::dash::manifest::{Address, MOST_SEGMENTS, Manifest, MediaSegment, Segments};

pub const URL: &str = "http://origin.example/films/a/manifest?x=1";

fn is_absolute(address: &Address) -> bool {
    address.url.starts_with("http") && address.range.is_none_or(|(first, last)| first <= last)
}

pub fn in_order(segments: &[MediaSegment]) {
    assert!(segments.len() as u64 <= MOST_SEGMENTS);
    assert!(segments.windows(2).all(|two| two[0].start <= two[1].start));
    assert!(segments.iter().all(|segment| is_absolute(&segment.address)));
}

pub fn holds_together(manifest: &Manifest) {
    manifest.flaws().iter().for_each(|flaw| drop(flaw.to_string()));
    for set in manifest.sets() {
        assert!(!set.representations.is_empty());
        assert!(set.representations.windows(2).all(|two| two[0].rate <= two[1].rate));
    }
    for one in manifest.sets().flat_map(|set| &set.representations) {
        one.end();
        assert!(one.init.iter().all(is_absolute));
        match &one.segments {
            Segments::Listed(segments) => in_order(segments),
            Segments::Numbered(template) => {
                assert!(template.count.is_none_or(|count| count <= MOST_SEGMENTS));
                for place in [0, 1, 1000, u64::MAX / 2] {
                    let Some(segment) = template.segment(template.first.saturating_add(place)) else { continue };
                    assert!(is_absolute(&segment.address));
                    template.number_at(segment.start);
                }
                in_order(&template.from(0).take(3).collect::<Vec<_>>());
            }
            Segments::Indexed { address, .. } | Segments::Playlist(address) => assert!(is_absolute(address)),
        }
    }
}
