//! The protocols on a TCP connection: text of RTSP and HTTP, RTP interleaved with RTSP (RFC 2326 section 10.12), and
//! protocols that their first bytes show.

use crate::manifests::Manifests;
use crate::packet::Packet;
use crate::rtp::RtpHeader;
use crate::rtp::RtpSource;

/// Requests that are kept of one connection.
const MOST_REQUESTS: usize = 1000;
/// Bytes of a target that are kept.
const LONGEST_TARGET: usize = 200;
const MOST_STREAMS: usize = 16;
/// `$`, channel, length, and RTP's header behind them.
const INTERLEAVED_HEAD: usize = 16;

const HTTP_METHODS: [&str; 7] = ["GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH "];
const RTSP_METHODS: [&str; 9] = [
    "OPTIONS ",
    "DESCRIBE ",
    "SETUP ",
    "PLAY ",
    "PAUSE ",
    "TEARDOWN ",
    "GET_PARAMETER ",
    "SET_PARAMETER ",
    "ANNOUNCE ",
];

/// A request with its answer, as far as they were seen.
#[derive(Clone, Debug)]
pub struct Request {
    /// When the request passed the capture (ns).
    pub at_ns: i64,
    /// Its method.
    pub method: String,
    /// Its target, at most 200 bytes.
    pub target: String,
    /// The answer's code.
    pub status: Option<u16>,
    /// When the answer began (ns).
    pub answered_ns: Option<i64>,
    /// Length of the answer's body, if its head has it.
    pub body_bytes: Option<u64>,
    /// When its last byte passed (ns).
    pub done_ns: Option<i64>,
    /// Content type, at most 60 bytes.
    pub content_type: String,
    /// Sequence number behind the body.
    end: Option<u32>,
}

/// The purpose of a port, by RTSP or SDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hint {
    /// The destination's or source's UDP port carries RTP.
    RtpPort(u16),
    /// It carries RDT.
    RdtPort(u16),
    /// The clock rate of a dynamic payload type.
    Rate(u8, u32),
}

/// The protocols on one connection.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// The protocol by name.
    pub protocol: Option<&'static str>,
    /// Requests in order; further ones are counted in `more_requests`.
    pub requests: Vec<Request>,
    /// Requests that are not kept.
    pub more_requests: u64,
    answered: usize,
    /// Interleaved RTP, by direction.
    pub rtp: [Vec<RtpSource>; 2],
    /// Frames of RDT or others that are no RTP.
    pub other_frames: u64,
    /// Places where the frames' lengths did not lead to the next frame: bytes that were not captured.
    pub lost_place: u64,
    next_frame: [Option<u32>; 2],
    carry: [Vec<u8>; 2],
    first: [bool; 2],
    /// Manifests in its answers.
    pub manifests: Manifests,
}

fn text_line(bytes: &[u8]) -> Option<&str> {
    let end = bytes
        .iter()
        .take(2048)
        .position(|&byte| byte == b'\r' || byte == b'\n')
        .unwrap_or(bytes.len().min(2048));
    std::str::from_utf8(&bytes[..end]).ok()
}

fn head_of(bytes: &[u8]) -> (&[u8], bool) {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    (&bytes[..end.map_or(bytes.len(), |end| end + 4)], end.is_some())
}

/// The value of a field in a head of text.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn clipped(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}

/// The hints in a Transport header (RFC 2326 section 12.39) or a session description (RFC 8866).
pub fn hints(text: &str) -> Vec<Hint> {
    let mut found = Vec::new();
    for line in text.lines().take(400) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("m=") {
            let mut parts = rest.split(' ');
            let port = parts.nth(1).and_then(|port| port.split('/').next()?.parse().ok());
            if let Some(port) = port.filter(|&port| port > 0)
                && parts.next().is_some_and(|profile| profile.contains("RTP"))
            {
                found.push(Hint::RtpPort(port));
            }
        } else if let Some(rest) = line.strip_prefix("a=rtpmap:") {
            let (kind, coding) = rest.split_once(' ').unwrap_or_default();
            let rate = coding.split('/').nth(1).and_then(|rate| rate.parse().ok());
            if let (Ok(kind), Some(rate)) = (kind.parse(), rate.filter(|&rate: &u32| rate > 0)) {
                found.push(Hint::Rate(kind, rate));
            }
        } else if line.get(..10).is_some_and(|name| name.eq_ignore_ascii_case("transport:")) {
            let is_rdt = line.contains("x-real-rdt") || line.contains("x-pn-tng");
            for part in line.split([';', ',']) {
                let ports =
                    part.trim().strip_prefix("client_port=").or(part.trim().strip_prefix("server_port="));
                let port = ports.and_then(|ports| ports.split('-').next()?.parse().ok());
                if let Some(port) = port {
                    found.push(if is_rdt { Hint::RdtPort(port) } else { Hint::RtpPort(port) });
                }
            }
        }
    }
    found
}

impl Streams {
    /// Takes the payload of a segment that was not seen before, from end `from`, beginning at `seq`. `arrived` is the
    /// sequence number behind all bytes of that end so far. Returns hints for other flows.
    pub fn take(&mut self, from: usize, seq: u32, arrived: u32, packet: &Packet<'_>) -> Vec<Hint> {
        let bytes = packet.payload;
        self.progress(arrived, packet.at_ns);
        if bytes.is_empty() {
            return Vec::new();
        }
        if !self.first[from] {
            self.first[from] = true;
            self.recognise(bytes, packet);
        }
        let mut found = Vec::new();
        let is_text = bytes[0].is_ascii_uppercase();
        if is_text && self.is_message(bytes) {
            found = self.message(from, seq, packet);
        }
        self.manifests.take(from, seq, bytes);
        if self.protocol == Some("rtsp") {
            self.interleaved(from, seq, packet);
        }
        found
    }

    fn recognise(&mut self, bytes: &[u8], packet: &Packet<'_>) {
        let ports = [packet.source.port, packet.destination.port];
        let found = match bytes {
            [0x16, 0x03, 0..=4, ..] => "tls",
            [1, 0, 0, 0, 0xce, 0xfa, 0x0b, 0xb0, ..] => "mms",
            [3, ..] if ports.contains(&1935) => "rtmp",
            [0x05 | 0x06 | 0x64, ..] if ports.contains(&6363) => "ndn",
            _ => return,
        };
        self.protocol.get_or_insert(found);
    }

    fn is_message(&self, bytes: &[u8]) -> bool {
        let Some(line) = text_line(bytes) else { return false };
        line.starts_with("HTTP/1.")
            || line.starts_with("RTSP/")
            || HTTP_METHODS.iter().chain(&RTSP_METHODS).any(|method| line.starts_with(method))
                && (line.contains(" HTTP/1.") || line.contains(" RTSP/") || line.len() >= 1000)
    }

    fn message(&mut self, from: usize, seq: u32, packet: &Packet<'_>) -> Vec<Hint> {
        let bytes = packet.payload;
        let line = text_line(bytes).unwrap_or_default();
        let is_rtsp = line.contains("RTSP/");
        self.protocol = Some(if is_rtsp { "rtsp" } else { self.protocol.unwrap_or("http") });
        let (head, is_whole) = head_of(bytes);
        let text = String::from_utf8_lossy(head);
        if line.starts_with("HTTP/") || line.starts_with("RTSP/") {
            let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
            if let Some(request) = self.requests.get_mut(self.answered) {
                // 1xx is not the final answer (RFC 9110 section 15.2).
                if status.is_none_or(|status| status >= 200) {
                    self.answered += 1;
                }
                request.status = status;
                request.answered_ns = Some(packet.at_ns);
                request.content_type = clipped(field(&text, "content-type").unwrap_or_default(), 60);
                let has_none = request.method == "HEAD" || matches!(status, Some(204 | 304));
                let length = if has_none {
                    Some(0)
                } else {
                    field(&text, "content-length").and_then(|v| v.parse().ok())
                };
                request.body_bytes = length;
                if is_whole {
                    let body = seq.wrapping_add(head.len() as u32);
                    self.manifests.begin(&request.content_type, from, body, length);
                }
                if is_whole && let Some(length) = length {
                    let behind = seq.wrapping_add(head.len() as u32).wrapping_add(length as u32);
                    request.end = (length < 1 << 31).then_some(behind);
                    let in_segment = seq.wrapping_add(packet.payload_bytes);
                    if !crate::tcp::before(in_segment, behind) {
                        request.done_ns = Some(packet.at_ns);
                    }
                }
            }
        } else if self.requests.len() < MOST_REQUESTS {
            let mut parts = line.split(' ');
            self.requests.push(Request {
                at_ns: packet.at_ns,
                method: clipped(parts.next().unwrap_or_default(), 20),
                target: clipped(parts.next().unwrap_or_default(), LONGEST_TARGET),
                status: None,
                answered_ns: None,
                body_bytes: None,
                done_ns: None,
                content_type: String::new(),
                end: None,
            });
        } else {
            self.more_requests += 1;
        }
        if is_rtsp { hints(&String::from_utf8_lossy(bytes)) } else { Vec::new() }
    }

    /// Notes when bodies are complete.
    fn progress(&mut self, arrived: u32, at_ns: i64) {
        let from = self.answered.saturating_sub(1);
        for request in self.requests.iter_mut().skip(from).take(2) {
            if request.done_ns.is_none()
                && request.end.is_some_and(|end| arrived.wrapping_sub(end).cast_signed() >= 0)
            {
                request.done_ns = Some(at_ns);
            }
        }
    }

    /// Reads the frames that begin in a segment.
    fn interleaved(&mut self, from: usize, seq: u32, packet: &Packet<'_>) {
        let mut joined;
        let mut bytes = packet.payload;
        let mut begin = seq;
        if !self.carry[from].is_empty() {
            let carry = std::mem::take(&mut self.carry[from]);
            if self.next_frame[from] == Some(seq.wrapping_sub(carry.len() as u32)) {
                begin = seq.wrapping_sub(carry.len() as u32);
                joined = carry;
                joined.extend_from_slice(bytes);
                bytes = &joined;
            }
        }
        let end = begin
            .wrapping_add(packet.payload_bytes)
            .wrapping_add((bytes.len() - packet.payload.len()) as u32);
        let mut at = match self.next_frame[from] {
            Some(next) => {
                let ahead = next.wrapping_sub(begin).cast_signed();
                if ahead < 0 {
                    // Bytes between were not seen: a frame's start is needed.
                    self.lost_place += 1;
                    0
                } else {
                    ahead as usize
                }
            }
            None => 0,
        };
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if rest[0] == b'$' {
                if rest.len() < INTERLEAVED_HEAD {
                    if end.wrapping_sub(begin) as usize > bytes.len() {
                        self.lost_place += 1;
                        self.next_frame[from] = None;
                        return;
                    }
                    self.carry[from] = rest.to_vec();
                    break;
                }
                let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
                self.frame(from, &rest[4..(4 + length).min(rest.len())], length as u32, packet.at_ns);
                at += 4 + length;
            } else {
                let (head, is_whole) = head_of(rest);
                if !is_whole || !rest[0].is_ascii_uppercase() {
                    self.next_frame[from] = None;
                    return;
                }
                let text = String::from_utf8_lossy(head);
                let body = field(&text, "content-length").and_then(|v| v.parse::<usize>().ok()).unwrap_or(0);
                at += head.len() + body.min(1 << 20);
            }
        }
        self.next_frame[from] = Some(begin.wrapping_add(at as u32));
    }

    fn frame(&mut self, from: usize, bytes: &[u8], length: u32, at_ns: i64) {
        let Some(header) = RtpHeader::read(bytes) else {
            self.other_frames += 1;
            return;
        };
        let streams = &mut self.rtp[from];
        match streams.iter().position(|stream| stream.ssrc == header.ssrc) {
            Some(at) => {
                streams[at].take(&header, at_ns, length);
            }
            None if streams.len() < MOST_STREAMS => {
                streams.push(RtpSource::new(&header, at_ns, length, None));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_of_any_text() {
        let found = hints(
            "m=audio 4000 RTP/AVP 96\na=rtpmap:96 H264/90000\nTransport: RTP/AVP;client_port=6000-6001",
        );
        assert_eq!(found, [Hint::RtpPort(4000), Hint::Rate(96, 90_000), Hint::RtpPort(6000)]);
        // A damaged byte becomes a character of three.
        assert_eq!(hints("a=T38F\u{fffd}\u{fffd}t\ntranspor\u{fffd}: client_port=1"), []);
    }
}
