//! Canonical text is a fixed point.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_record::canonical_json;

fuzz_target!(|text: &str| {
    if let Ok(once) = canonical_json(text) {
        assert_eq!(canonical_json(&once).as_ref(), Ok(&once));
    }
});
