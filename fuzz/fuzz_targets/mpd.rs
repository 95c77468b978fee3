//! Any bytes are a manifest or an error, and what is read holds together.
#![no_main]

#[path = "../manifest.rs"]
mod manifest;

use libfuzzer_sys::fuzz_target;
use streamgauge_systems::dash::manifest::Manifest;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = Manifest::read(bytes, manifest::URL) {
        manifest::holds_together(&read);
    }
});
