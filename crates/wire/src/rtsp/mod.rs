//! RTSP 1.0 (RFC 2326): messages and interleaved frames out of a stream of bytes, and the headers that we use.
//!
//! Messages are those of `rtsp-types`, and so are the headers that RFC 7826 left as they were. The others are here.

mod apple;
mod clashes;
mod decimal;
mod headers;
mod mended;
pub(crate) mod parts;
mod reader;
mod real;
mod transport;
pub mod windows;

pub use apple::{
    DynamicRate, Prebuffer, Retransmit, TransportOptions, X_ACCEPT_DYNAMIC_RATE, X_ACCEPT_RETRANSMIT,
    X_DYNAMIC_RATE, X_PREBUFFER, X_RETRANSMIT, X_TRANSPORT_OPTIONS,
};
pub use headers::{Range, RtpInfo, Speed, StreamInfo, name};
pub use reader::{Fault, Limits, Problem, Reader, RtspItem};
pub use real::{
    DeliveryBandwidth, REAL_CHALLENGE_1, REAL_CHALLENGE_2, REAL_CHALLENGE_3, RealChallenge1, RealChallenge2,
    RealChallenge3, RealProtocol, RealTransport, RealTransports, SET_DELIVERY_BANDWIDTH, SUBSCRIBE,
    StreamRule, Subscribe, UNSUBSCRIBE, Unsubscribe,
};
pub use rtsp_types::headers::{self as names, HeaderName, HeaderParseError, HeaderValue, TypedHeader};
pub use rtsp_types::headers::{Allow, CSeq, ContentType, Public, Session};
pub use rtsp_types::{Empty, Method, Request, RequestBuilder, Response, StatusCode, Url, Version};
pub use transport::{Lower, Mode, Transport, Transports};

use streamgauge_base::Chunk;

/// The first byte of an interleaved frame.
const MAGIC: u8 = b'$';

/// Bytes before an interleaved packet: `$`, channel, length (RFC 2326 section 10.12).
pub const INTERLEAVED_HEADER_BYTES: usize = 4;

/// Returns `packet` as a frame of `channel` between messages (RFC 2326 section 10.12). Panics if it is above
/// 65535 B, which no RTP or RTCP packet is.
pub fn interleave(channel: u8, packet: &Chunk) -> Chunk {
    let [high, low] = u16::try_from(packet.len()).expect("packets are far below 64 kB").to_be_bytes();
    let head = [&[MAGIC, channel, high, low], packet.head()].concat();
    Chunk::with_filler(head, (packet.len() - packet.head().len()) as u32)
}

/// Returns the bytes of a request.
pub fn write_request<B: AsRef<[u8]>>(request: &Request<B>) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.write(&mut bytes).expect("a vector takes everything");
    bytes
}

/// Returns the bytes of a response.
pub fn write_response<B: AsRef<[u8]>>(response: &Response<B>) -> Vec<u8> {
    let mut bytes = Vec::new();
    response.write(&mut bytes).expect("a vector takes everything");
    bytes
}

#[cfg(test)]
mod tests;
