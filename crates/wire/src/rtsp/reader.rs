//! Messages and interleaved packets out of a connection's bytes, however they are cut.

use rtsp_types::{Message, Request, Response, StatusCode, Version};
use streamgauge_base::Chunk;

use super::clashes::without_clashes;
use super::mended::mended;
use super::{INTERLEAVED_HEADER_BYTES, MAGIC};
use crate::incoming::{Incoming, Run};

/// How much a peer may make us keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a message's start line and headers.
    pub head_bytes: usize,
    /// Bytes of a message's body.
    pub body_bytes: usize,
}

impl Default for Limits {
    /// Ten times the size of players' requests, and room for any SDP.
    fn default() -> Self {
        Limits { head_bytes: 16 << 10, body_bytes: 64 << 10 }
    }
}

/// Items of a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum RtspItem {
    /// A request; clients and servers send them.
    Request(Request<Vec<u8>>),
    /// A response.
    Response(Response<Vec<u8>>),
    /// A packet between messages (RFC 2326 section 10.12).
    Interleaved {
        /// Its channel.
        channel: u8,
        /// Filler stays filler as far as nothing real is behind it.
        packet: Chunk,
    },
}

/// Faults of a peer's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// A message with a clear end and malformed text. Later data can be read.
    #[error("not a well-formed RTSP message")]
    Malformed,
    /// As `Malformed`, for a version other than 1.0.
    #[error("RTSP of another version than 1.0")]
    Version,
    /// Start line and headers go beyond the limit.
    #[error("headers beyond the limit")]
    HeadTooLong,
    /// The body exceeds the limit.
    #[error("a body beyond the limit")]
    BodyTooLong,
    /// Neither a message nor a frame begins here, or its end cannot be found.
    #[error("no RTSP")]
    NotRtsp,
}

/// A fault and its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{fault}")]
pub struct Problem {
    /// The fault.
    pub fault: Fault,
    /// The message's CSeq, as far as it could be read.
    pub cseq: Option<u32>,
}

impl Problem {
    /// Returns whether the start of the next message is lost with this one; the reader has ended.
    pub fn is_fatal(&self) -> bool {
        !matches!(self.fault, Fault::Malformed | Fault::Version)
    }

    /// Returns the status of a server's answer.
    pub fn status(&self) -> StatusCode {
        match self.fault {
            Fault::Malformed | Fault::NotRtsp | Fault::HeadTooLong => StatusCode::BadRequest,
            Fault::Version => StatusCode::RTSPVersionNotSupported,
            Fault::BodyTooLong => StatusCode::RequestMessageBodyTooLarge,
        }
    }
}

/// Reads one direction of a connection. It is an iterator that may continue after `None`: push arriving data,
/// then take items until there is none. It keeps at most one message or packet, and pushed data not yet
/// taken. Filler outside of packets reads as zeros.
#[derive(Debug, Default)]
pub struct Reader {
    limits: Limits,
    incoming: Incoming,
    state: State,
    ended: bool,
}

#[derive(Debug)]
enum State {
    /// Lines with CRLF as far as they are here; `line` begins the last. Empty between messages.
    Head { text: Vec<u8>, line: usize },
    /// Start line and headers, which take `head` bytes, and the body.
    Body { message: Vec<u8>, head: usize, left: usize },
    /// An interleaved frame's header.
    Frame { header: [u8; INTERLEAVED_HEADER_BYTES], have: usize },
    /// An interleaved frame's packet.
    Packet { channel: u8, left: usize, real: Vec<u8>, filler: usize },
}

impl Default for State {
    fn default() -> Self {
        State::Head { text: Vec::new(), line: 0 }
    }
}

impl Reader {
    /// Reads within `limits`.
    pub fn new(limits: Limits) -> Self {
        Reader { limits, ..Reader::default() }
    }

    /// Takes the connection's next bytes.
    pub fn push(&mut self, chunk: Chunk) {
        if !self.ended {
            self.incoming.push(chunk);
        }
    }

    /// Returns whether the reader is between messages, as far as it has been read.
    pub fn is_between_messages(&self) -> bool {
        self.ended || matches!(&self.state, State::Head { text, .. } if text.is_empty())
    }

    fn end(&mut self, fault: Fault, cseq: Option<u32>) -> Problem {
        self.ended = true;
        self.incoming.clear();
        self.state = State::default();
        Problem { fault, cseq }
    }
}

impl Iterator for Reader {
    type Item = Result<RtspItem, Problem>;

    /// Returns the next message or packet; `None` until more is pushed, and for ever after a fatal problem.
    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let incoming = &mut self.incoming;
            match &mut self.state {
                State::Head { text, line } => {
                    let byte = incoming.byte()?;
                    if text.is_empty() {
                        match byte {
                            MAGIC => self.state = State::Frame { header: [MAGIC, 0, 0, 0], have: 1 },
                            // Blank lines between messages.
                            b'\r' | b'\n' => {}
                            b'A'..=b'Z' | b'a'..=b'z' => text.push(byte),
                            _ => return Some(Err(self.end(Fault::NotRtsp, None))),
                        }
                        continue;
                    }
                    text.push(byte);
                    if text.len() > self.limits.head_bytes {
                        let cseq = cseq(text);
                        return Some(Err(self.end(Fault::HeadTooLong, cseq)));
                    }
                    if byte != b'\n' {
                        continue;
                    }
                    // RFC 2326 section 4: a receiver takes a lone line feed as a line's end too.
                    text.pop();
                    text.pop_if(|byte| *byte == b'\r');
                    let is_blank = text.len() == *line;
                    text.extend(b"\r\n");
                    *line = text.len();
                    if is_blank {
                        let message = std::mem::take(text);
                        let left = match body_bytes(&message) {
                            Some(left) if left <= self.limits.body_bytes => left,
                            wrong => {
                                let fault = if wrong.is_some() { Fault::BodyTooLong } else { Fault::NotRtsp };
                                return Some(Err(self.end(fault, cseq(&message))));
                            }
                        };
                        self.state = State::Body { head: message.len(), message, left };
                    }
                }
                State::Body { message, head, left } => {
                    if *left > 0 {
                        let before = message.len();
                        match incoming.run(*left)? {
                            Run::Real(bytes) => message.extend(bytes),
                            Run::Filler(bytes) => message.resize(before + bytes, 0),
                        }
                        *left -= message.len() - before;
                    }
                    if *left == 0 {
                        let (message, head) = (std::mem::take(message), *head);
                        self.state = State::default();
                        return Some(read(&message, head));
                    }
                }
                State::Frame { header, have } => {
                    header[*have] = incoming.byte()?;
                    *have += 1;
                    if *have == INTERLEAVED_HEADER_BYTES {
                        let left = usize::from(u16::from_be_bytes([header[2], header[3]]));
                        self.state = State::Packet { channel: header[1], left, real: Vec::new(), filler: 0 };
                    }
                }
                State::Packet { channel, left, real, filler } => {
                    if *left > 0 {
                        let more = match incoming.run(*left)? {
                            Run::Real(bytes) => {
                                real.resize(real.len() + std::mem::take(filler), 0);
                                real.extend(bytes);
                                bytes.len()
                            }
                            Run::Filler(bytes) => {
                                *filler += bytes;
                                bytes
                            }
                        };
                        *left -= more;
                    }
                    if *left == 0 {
                        let packet = Chunk::with_filler(std::mem::take(real), *filler as u32);
                        let channel = *channel;
                        self.state = State::default();
                        return Some(Ok(RtspItem::Interleaved { channel, packet }));
                    }
                }
            }
        }
        None
    }
}

/// Returns the values of a header in lines that end with CRLF, without their continuation lines.
fn values<'a>(head: &'a [u8], name: &'static str) -> impl Iterator<Item = &'a str> {
    head.split(|&byte| byte == b'\n').skip(1).filter_map(move |line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let is_it = line[..colon].trim_ascii_end().eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| std::str::from_utf8(&line[colon + 1..]).unwrap_or_default().trim())
    })
}

fn cseq(head: &[u8]) -> Option<u32> {
    values(head, "cseq").next().and_then(|value| value.parse().ok())
}

/// Returns whether it is a server's answer. Cameras write text that no server may accept; a player passes
/// over the faulty lines.
fn is_response(head: &[u8]) -> bool {
    head.starts_with(b"RTSP/")
}

/// Returns `None` if the header is no number, or there more than once; in a response it may be repeated.
fn body_bytes(head: &[u8]) -> Option<usize> {
    let mut values = values(head, "content-length");
    let Some(first) = values.next() else { return Some(0) };
    let agrees = |other: &str| is_response(head) && other == first;
    first.parse().ok().filter(|_| values.all(agrees))
}

/// Reads a whole message with start line and headers in its first `head` bytes.
fn read(message: &[u8], head: usize) -> Result<RtspItem, Problem> {
    let problem = |fault| Err(Problem { fault, cseq: cseq(&message[..head]) });
    let mended = is_response(message).then(|| mended(&message[..head]));
    let sound = without_clashes(mended.as_deref().unwrap_or(&message[..head]));
    let message = &[&sound, &message[head..]].concat();
    match Message::parse(message) {
        Ok((Message::Request(request), length)) if length == message.len() => match request.version() {
            Version::V1_0 => Ok(RtspItem::Request(request)),
            Version::V2_0 => problem(Fault::Version),
        },
        Ok((Message::Response(response), length)) if length == message.len() => match response.version() {
            // Written, it would have fewer digits than it was read from.
            Version::V1_0 if u16::from(response.status()) < 100 => problem(Fault::Malformed),
            Version::V1_0 => Ok(RtspItem::Response(response)),
            Version::V2_0 => problem(Fault::Version),
        },
        _ if is_of_another_version(message) => problem(Fault::Version),
        _ => problem(Fault::Malformed),
    }
}

/// Returns whether a request's line ends with `RTSP/` and something else than 1.0.
fn is_of_another_version(message: &[u8]) -> bool {
    let line = message.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let version = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    version.starts_with(b"RTSP/") && version != b"RTSP/1.0"
}
