//! Any bytes are an index or an error; its segments follow each other in the file and in time.
#![no_main]

#[path = "../manifest.rs"]
#[allow(dead_code, reason = "an index is no manifest")]
mod manifest;

use libfuzzer_sys::fuzz_target;
use streamgauge_systems::dash::manifest::{Window, read_index};

fuzz_target!(|bytes: &[u8]| {
    for first in [0, 1000, u64::MAX - 100] {
        let Ok(segments) = read_index(bytes, first, manifest::URL, &Window::default()) else { continue };
        manifest::in_order(&segments);
        for two in segments.windows(2) {
            let [one, next] = [&two[0], &two[1]].map(|segment| segment.address.range.expect("a range"));
            assert_eq!(one.1 + 1, next.0);
        }
    }
});
