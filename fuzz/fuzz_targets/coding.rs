//! Any bytes are a coded body that is undone in bounded pieces, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_wire::http::{Decoder, HttpHeaders};

fuzz_target!(|bytes: &[u8]| {
    for coding in ["gzip", "deflate"] {
        let mut headers = HttpHeaders::default();
        headers.add("Content-Encoding", coding);
        let mut decoder = Decoder::of(&headers).expect("it is read").expect("it is coded");
        let mut made = 0;
        let all = bytes.chunks(700).try_for_each(|piece| decoder.push(piece, |part| made += part.len()));
        assert!(made <= (8 << 20) + 200 * bytes.len());
        if all.is_ok() {
            let _ = decoder.finish();
        }
    }
});
