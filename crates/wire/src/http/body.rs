//! How long a body is (RFC 9112 section 6.3), and the chunked coding (section 7.1).

use super::fault::Fault;
use super::head::{HttpHeaders, Request, Response};
use crate::incoming::Incoming;

/// How a body ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Framing {
    /// After this many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked(Chunked),
    /// With the connection.
    UntilClose,
}

impl Framing {
    pub fn of_request(request: &Request) -> Result<Self, Fault> {
        if let Some(coding) = coding(&request.headers)? {
            return if coding == Coding::Chunked { Ok(chunked()) } else { Err(Fault::TransferCoding) };
        }
        Ok(Framing::Length(content_length(&request.headers)?.unwrap_or(0)))
    }

    /// Returns the body of a response, to a HEAD request or another.
    pub fn of_response(response: &Response, to_head: bool) -> Result<Self, Fault> {
        if to_head || response.is_interim() || matches!(response.status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        match coding(&response.headers)? {
            Some(Coding::Chunked) => Ok(chunked()),
            // This module decodes no other transfer coding.
            Some(Coding::Other) => Err(Fault::TransferCoding),
            None => Ok(content_length(&response.headers)?.map_or(Framing::UntilClose, Framing::Length)),
        }
    }
}

fn chunked() -> Framing {
    Framing::Chunked(Chunked::default())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    Chunked,
    Other,
}

fn coding(headers: &HttpHeaders) -> Result<Option<Coding>, Fault> {
    let Some(codings) = headers.list("Transfer-Encoding") else { return Ok(None) };
    // A reader that uses one while another uses the other takes a body for a message (section 6.1).
    if headers.all("Content-Length").next().is_some() {
        return Err(Fault::TwoLengths);
    }
    let is_chunked = codings.trim().eq_ignore_ascii_case("chunked");
    Ok(Some(if is_chunked { Coding::Chunked } else { Coding::Other }))
}

/// Returns the length; the same number several times is that number.
fn content_length(headers: &HttpHeaders) -> Result<Option<u64>, Fault> {
    let mut found = None;
    for value in headers.all("Content-Length").flat_map(|value| value.split(',')) {
        let digits = value.trim();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| is_number).ok_or(Fault::ContentLength)?;
        if found.is_some_and(|before| before != number) {
            return Err(Fault::ContentLength);
        }
        found = Some(number);
    }
    Ok(found)
}

/// Where in a chunked body a reader is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chunked {
    part: Part,
    /// Bytes of size lines and trailers since the last data.
    overhead: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// The chunk's size so far, and whether it has a digit.
    Size(u64, bool),
    /// Behind the size: an extension, or blanks.
    Extension(u64),
    Data(u64),
    /// CR or LF behind the data.
    DataEnd,
    /// A line of the trailers; true as long as nothing is in it.
    Trailer(bool),
}

impl Default for Part {
    fn default() -> Self {
        Part::Size(0, false)
    }
}

/// The next element of a chunked body.
pub enum Next {
    /// This many bytes of data.
    Data(u64),
    /// Nothing: it has ended.
    End,
}

impl Chunked {
    /// Notes that this many bytes of data were taken.
    pub fn took(&mut self, bytes: u64) {
        if let Part::Data(left) = &mut self.part {
            *left -= bytes;
            if *left == 0 {
                self.part = Part::DataEnd;
            }
        }
    }

    /// Reads up to the next data; `None` if more bytes must come before.
    pub fn next(&mut self, incoming: &mut Incoming, limit: usize) -> Option<Result<Next, Fault>> {
        loop {
            if let Part::Data(left) = self.part {
                self.overhead = 0;
                return Some(Ok(Next::Data(left)));
            }
            let byte = incoming.byte()?;
            self.overhead += 1;
            if self.overhead > limit {
                return Some(Err(Fault::HeadTooLong { limit }));
            }
            self.part = match (self.part, byte) {
                (Part::Size(size, _), digit) if digit.is_ascii_hexdigit() => {
                    let value = u64::from(char::from(digit).to_digit(16).unwrap_or(0));
                    match size.checked_mul(16).and_then(|size| size.checked_add(value)) {
                        Some(size) => Part::Size(size, true),
                        None => return Some(Err(Fault::Chunk)),
                    }
                }
                (Part::Size(size, true) | Part::Extension(size), b'\n') => {
                    if size == 0 {
                        Part::Trailer(true)
                    } else {
                        Part::Data(size)
                    }
                }
                (Part::Size(size, true), b';' | b' ' | b'\t' | b'\r') | (Part::Extension(size), _) => {
                    Part::Extension(size)
                }
                (Part::DataEnd, b'\r') => Part::DataEnd,
                (Part::DataEnd, b'\n') => Part::Size(0, false),
                (Part::Trailer(true), b'\n') => return Some(Ok(Next::End)),
                (Part::Trailer(_), b'\n') => Part::Trailer(true),
                (Part::Trailer(empty), b'\r') => Part::Trailer(empty),
                (Part::Trailer(_), _) => Part::Trailer(false),
                _ => return Some(Err(Fault::Chunk)),
            };
        }
    }
}
