//! Any text is a list of what a player tells of itself or an error; what is read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::http::{Cmcd, HttpItem, Reader};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = String::from_utf8_lossy(bytes).parse::<Cmcd>() {
        assert_eq!(read.to_string().parse(), Ok(read.clone()));
        assert!(read.buffer_s().is_none_or(|buffer| buffer >= 0.0 && buffer.is_finite()));
    }
    let head = [b"GET /1.m4s?CMCD=", bytes, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    let mut reader = Reader::of_requests();
    reader.push(Chunk::bytes(head));
    if let Some(Ok(HttpItem::Request(request))) = reader.next() {
        drop(Cmcd::of_request(&request));
    }
});
