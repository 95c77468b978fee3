//! Any text is a description or an error; what its codecs make of any payloads grows no further than they do. The text
//! ends at the first zero, and the payloads, of 100 B each, are behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_systems::media::{assemble, begins_unit, preamble, sdp};

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (text, payloads) = (String::from_utf8_lossy(&bytes[..end]), bytes.get(end + 1..).unwrap_or_default());
    let Ok(presentation) = sdp::read(&text) else { return };
    for codec in presentation.tracks.iter().filter_map(|track| track.codec.as_ref()) {
        assert!(preamble(codec).len() <= 2 * text.len());
        for payload in payloads.chunks(100) {
            begins_unit(codec, payload);
        }
        let unit = assemble(codec, payloads.chunks(100));
        assert!(unit.len() <= 8 * (payloads.len() + payloads.chunks(100).count()));
    }
});
