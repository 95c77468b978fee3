//! The answer to a client when a server is full.

use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::{Reader, Response, RtspItem, StatusCode, Version, names, write_response};

/// Answers the first request with 503 (RFC 2326 section 11).
pub fn no_room() -> impl FnMut(Chunk) -> Option<Vec<u8>> {
    let mut reader = Reader::default();
    move |came| {
        reader.push(came);
        let mut response = Response::builder(Version::V1_0, StatusCode::ServiceUnavailable);
        if let Ok(RtspItem::Request(request)) = reader.next()?
            && let Some(cseq) = request.header(&names::CSEQ)
        {
            response = response.header(names::CSEQ, cseq.as_str());
        }
        Some(write_response(&response.header(names::CONNECTION, "close").build(Vec::new())))
    }
}
