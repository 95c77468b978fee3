//! Any bytes behind the magic are a playlist or an error, of either kind, and what is read holds together.
#![no_main]

#[path = "../manifest.rs"]
mod manifest;

use libfuzzer_sys::fuzz_target;
use streamgauge_systems::dash::manifest::{Manifest, read_playlist};

fuzz_target!(|bytes: &[u8]| {
    let bytes = [b"#EXTM3U\n", bytes].concat();
    if let Ok(read) = Manifest::read(&bytes, manifest::URL) {
        manifest::holds_together(&read);
    }
    if let Ok(playlist) = read_playlist(&bytes, manifest::URL, &[]) {
        playlist.flaws("v").iter().for_each(|flaw| drop(flaw.to_string()));
        manifest::in_order(&playlist.segments);
        assert!(playlist.segments.windows(2).all(|two| two[0].number < two[1].number));
        assert!(playlist.segments.iter().all(|segment| segment.number >= playlist.sequence));
        playlist.duration();
    }
});
