//! Messages out of one direction of a connection, however its bytes are cut.

use std::collections::VecDeque;

use streamgauge_base::Chunk;

use super::body::{Framing, Next};
use super::fault::{Fault, MOST_HEADERS};
use super::head::{Request, Response};
use crate::incoming::Incoming;

/// Default limit of a head in bytes: nginx's and Apache's limit of a line, with room for many.
const HEAD_BYTES: usize = 16 << 10;

/// Items of a connection. After each head come the body's bytes, if there are any, and then `End`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HttpItem {
    /// A request's head.
    Request(Request),
    /// A response's head. Interim ones (status 1xx) are handed on as well; they have no body.
    Response(Response),
    /// Bytes of a body, chunked or not. Filler stays filler.
    Body(Chunk),
    /// The message is whole.
    End,
}

/// Reads requests, or responses. It is an iterator that may continue after `None`: push arriving data, then
/// take items until there is none. It keeps at most one head, and pushed data not yet taken. Filler in heads
/// reads as zeros.
#[derive(Clone, Debug)]
pub struct Reader {
    is_server: bool,
    head_bytes: usize,
    incoming: Incoming,
    state: State,
    /// For each unanswered request, in order: whether it was HEAD.
    expected: VecDeque<bool>,
    fault: Option<Fault>,
}

#[derive(Clone, Debug)]
enum State {
    /// Lines as far as they are here; `line` begins the last. Empty between messages.
    Head {
        text: Vec<u8>,
        line: usize,
    },
    Body(Framing),
}

impl Default for State {
    fn default() -> Self {
        State::Head { text: Vec::new(), line: 0 }
    }
}

impl Reader {
    /// Reads requests, as a server does.
    pub fn of_requests() -> Self {
        Reader {
            is_server: true,
            head_bytes: HEAD_BYTES,
            incoming: Incoming::default(),
            state: State::default(),
            expected: VecDeque::new(),
            fault: None,
        }
    }

    /// Reads responses, as a client does; [`Reader::expect`] names their requests.
    pub fn of_responses() -> Self {
        Reader { is_server: false, ..Reader::of_requests() }
    }

    /// Sets another limit of a head's bytes than 16 kB.
    pub fn with_limit(mut self, head_bytes: usize) -> Self {
        self.head_bytes = head_bytes;
        self
    }

    /// Notes a sent request; its response follows. Where none was, a response is taken for that of a GET.
    pub fn expect(&mut self, request: &Request) {
        self.expected.push_back(request.method == "HEAD");
    }

    /// Takes the connection's next bytes.
    pub fn push(&mut self, chunk: Chunk) {
        if self.fault.is_none() {
            self.incoming.push(chunk);
        }
    }

    /// Returns whether the reader is between messages, as far as it has been read: the connection may end
    /// here.
    pub fn is_between_messages(&self) -> bool {
        matches!(&self.state, State::Head { text, .. } if text.is_empty())
    }

    /// Returns the bytes of the body still to be received, if it declares its length.
    pub fn body_left(&self) -> Option<u64> {
        match self.state {
            State::Body(Framing::Length(left)) => Some(left),
            _ => None,
        }
    }

    /// Notes that the connection has ended, and that everything before was read. `End` if that is the end of
    /// a body; nothing between messages.
    pub fn finish(&mut self) -> Option<Result<HttpItem, Fault>> {
        if self.fault.is_some() || self.is_between_messages() {
            return None;
        }
        match std::mem::take(&mut self.state) {
            State::Head { .. } => Some(Err(self.fail(Fault::HeadCut))),
            State::Body(Framing::UntilClose) => Some(Ok(HttpItem::End)),
            State::Body(Framing::Length(left)) => {
                Some(Err(self.fail(Fault::BodyCut { missing: Some(left) })))
            }
            State::Body(Framing::Chunked(_)) => Some(Err(self.fail(Fault::BodyCut { missing: None }))),
        }
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.fault = Some(fault);
        self.incoming.clear();
        self.state = State::default();
        fault
    }

    /// Returns a whole head.
    fn head(&mut self, text: &[u8]) -> Result<HttpItem, Fault> {
        if self.is_server {
            let request = Request::read(text, MOST_HEADERS).map_err(|error| self.named(error))?;
            let request = request.ok_or(Fault::Malformed("it ends early"))?;
            // RFC 3986 section 2: others are percent-encoded.
            if !request.target.is_ascii() {
                return Err(Fault::Malformed("a target beyond ASCII"));
            }
            self.state = State::Body(Framing::of_request(&request)?);
            return Ok(HttpItem::Request(request));
        }
        let response = Response::read(text, MOST_HEADERS).map_err(|error| self.named(error))?;
        let response = response.ok_or(Fault::Malformed("it ends early"))?;
        if !(100..=999).contains(&response.status) {
            return Err(Fault::Malformed("invalid response status"));
        }
        let to_head = match response.is_interim() {
            true => false,
            false => self.expected.pop_front().unwrap_or(false),
        };
        self.state = State::Body(Framing::of_response(&response, to_head)?);
        Ok(HttpItem::Response(response))
    }

    fn named(&self, error: httparse::Error) -> Fault {
        match error {
            httparse::Error::TooManyHeaders => Fault::HeadTooLong { limit: self.head_bytes },
            httparse::Error::Version => Fault::Version,
            httparse::Error::HeaderName => Fault::Malformed("invalid header name"),
            httparse::Error::HeaderValue => Fault::Malformed("invalid header value"),
            httparse::Error::NewLine => Fault::Malformed("invalid line end"),
            httparse::Error::Status => Fault::Malformed("invalid response status"),
            httparse::Error::Token => Fault::Malformed("invalid start line"),
        }
    }

    /// Returns whether the first bytes of a message can be the beginning of one.
    fn can_begin(&self, text: &[u8]) -> bool {
        const RESPONSE: &[u8] = b"HTTP/";
        match (self.is_server, text.last()) {
            (true, Some(byte)) if text.len() <= 1 => byte.is_ascii_graphic() && !b"<({\"".contains(byte),
            (false, Some(byte)) => RESPONSE.get(text.len() - 1).is_none_or(|right| right == byte),
            _ => true,
        }
    }
}

impl Iterator for Reader {
    type Item = Result<HttpItem, Fault>;

    /// Returns the next item; `None` until more is pushed, and for ever after a fault.
    fn next(&mut self) -> Option<Self::Item> {
        while self.fault.is_none() {
            match &mut self.state {
                State::Head { text, line } => {
                    let byte = self.incoming.byte()?;
                    // Empty lines before a message are no part of it (RFC 9112 section 2.2).
                    if text.is_empty() && matches!(byte, b'\r' | b'\n') {
                        continue;
                    }
                    text.push(byte);
                    let is_blank = byte == b'\n' && matches!(&text[*line..], b"\n" | b"\r\n");
                    if byte == b'\n' {
                        *line = text.len();
                    }
                    let State::Head { text, .. } = &self.state else { unreachable!("it is matched above") };
                    if !self.can_begin(text) {
                        return Some(Err(self.fail(Fault::NotHttp)));
                    }
                    if text.len() > self.head_bytes {
                        return Some(Err(self.fail(Fault::HeadTooLong { limit: self.head_bytes })));
                    }
                    if is_blank {
                        let State::Head { text, .. } = std::mem::take(&mut self.state) else { continue };
                        let read = self.head(&text);
                        return Some(read.map_err(|fault| self.fail(fault)));
                    }
                }
                State::Body(Framing::Length(0)) => {
                    self.state = State::default();
                    return Some(Ok(HttpItem::End));
                }
                State::Body(Framing::Length(left)) => {
                    let chunk = self.incoming.chunk(*left)?;
                    *left -= chunk.len() as u64;
                    return Some(Ok(HttpItem::Body(chunk)));
                }
                State::Body(Framing::UntilClose) => {
                    return self.incoming.chunk(u64::MAX).map(|chunk| Ok(HttpItem::Body(chunk)));
                }
                State::Body(Framing::Chunked(chunked)) => {
                    match chunked.next(&mut self.incoming, self.head_bytes)? {
                        Ok(Next::Data(most)) => {
                            let chunk = self.incoming.chunk(most)?;
                            chunked.took(chunk.len() as u64);
                            return Some(Ok(HttpItem::Body(chunk)));
                        }
                        Ok(Next::End) => {
                            self.state = State::default();
                            return Some(Ok(HttpItem::End));
                        }
                        Err(fault) => return Some(Err(self.fail(fault))),
                    }
                }
            }
        }
        None
    }
}
