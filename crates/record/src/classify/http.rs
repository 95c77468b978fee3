//! HTTP/1.0 and 1.1 on a TCP connection (RFC 9112).
//!
//! A segment that consists of heads, of requests or of answers, is signalling, in either direction. One that has any
//! byte of a body, with or without the head before it, carries payload. Encrypted content of TLS is payload.

use streamgauge_base::PacketKind;

use super::messages::{Grammar, Messages, is_request};
use super::reader::{Say, Segment, StreamReader};

/// RFC 9110 section 9.3, and PATCH of RFC 5789.
const METHODS: [&[u8]; 9] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"TRACE ", b"PATCH "];

const GRAMMAR: Grammar = Grammar { begins, version: b"HTTP/", with_body: false };

fn begins(head: &[u8]) -> bool {
    is_answer(head) || is_request(head, &METHODS, b" HTTP/1.")
}

/// Returns whether it begins as `HTTP/1.1 200 ` (RFC 9112 section 4).
fn is_answer(head: &[u8]) -> bool {
    let Some([b'1', b'.', b'0'..=b'9', b' ', code @ ..]) = head.strip_prefix(b"HTTP/") else { return false };
    code.len() >= 3 && code[..3].iter().all(u8::is_ascii_digit)
}

/// The HTTP of one flow.
#[derive(Default)]
pub struct Http(Messages);

impl StreamReader for Http {
    fn read(&mut self, segment: &Segment<'_>, say: &mut Say<'_>) -> Option<PacketKind> {
        self.0.fill(GRAMMAR, segment, say).then_some(PacketKind::Signalling)
    }
}
