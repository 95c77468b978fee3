//! Start lines and headers.

use std::fmt::{self, Display, Write};

/// The version of a message (RFC 9112 section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// HTTP/1.0: a connection ends with its first answer unless both sides declare otherwise.
    V1_0,
    /// HTTP/1.1.
    V1_1,
}

impl Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Version::V1_0 { "HTTP/1.0" } else { "HTTP/1.1" })
    }
}

/// Something that would not be read as it was meant: a line's end, a blank where there may be none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{what} {text:?} cannot stand in an HTTP message; write it in visible ASCII characters, others as %XX"
)]
pub struct Unwritable {
    what: &'static str,
    text: String,
}

/// Header fields in their order (RFC 9110 section 5). A value's bytes beyond ASCII are characters of ISO 8859-1.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HttpHeaders(Vec<(String, String)>);

impl HttpHeaders {
    /// Returns every field as it was written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the values of a field of that name, in any case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter().filter(move |(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the field's one value; `None` also if there are several.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.all(name);
        values.next().filter(|_| values.next().is_none())
    }

    /// Returns the field's value as one list: several are joined by commas (RFC 9110 section 5.3).
    pub fn list(&self, name: &str) -> Option<String> {
        let joined = self.all(name).collect::<Vec<_>>().join(", ");
        self.all(name).next().map(|_| joined)
    }

    /// Returns true if the field's list has this word, in any case.
    pub fn has(&self, name: &str, word: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
    }

    /// Adds a field. Panics if name or value would break the message: those from outside are parsed, and
    /// parsed ones can be written.
    pub fn add(&mut self, name: &str, value: impl Display) {
        let value = value.to_string();
        let is_name = !name.is_empty() && name.bytes().all(is_token);
        let is_value = value.trim_matches([' ', '\t']) == value && value.chars().all(is_of_value);
        assert!(is_name && is_value, "{name}: {value:?} is no header");
        self.0.push((name.into(), value));
    }

    /// Takes out every field of that name.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
    }

    /// Replaces every field of that name by this one.
    pub fn set(&mut self, name: &str, value: impl Display) {
        self.remove(name);
        self.add(name, value);
    }

    fn read(fields: &[httparse::Header<'_>]) -> Self {
        let unfolded = |byte: &u8| if matches!(byte, b'\r' | b'\n') { ' ' } else { char::from(*byte) };
        let value = |bytes: &[u8]| bytes.iter().map(unfolded).collect();
        HttpHeaders(fields.iter().map(|field| (field.name.into(), value(field.value))).collect())
    }

    fn write(&self, line: String) -> Vec<u8> {
        let mut text = line;
        for (name, value) in &self.0 {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
        // Characters are bytes here: none is above U+00FF.
        text.chars().map(|c| c as u8).collect()
    }
}

/// Returns whether a token may contain it (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns whether a field's value may contain it (RFC 9110 section 5.5).
fn is_of_value(c: char) -> bool {
    c == '\t' || (' '..='~').contains(&c) || ('\u{80}'..='\u{ff}').contains(&c)
}

/// A request without its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// `GET` (RFC 9110 section 9).
    pub method: String,
    /// The requested target, as in the message: `/clip.mp4` (RFC 9112 section 3.2).
    pub target: String,
    /// The message's version.
    pub version: Version,
    /// Its header fields.
    pub headers: HttpHeaders,
}

impl Request {
    /// Returns a request of HTTP/1.1 to `host`, without further headers.
    ///
    /// # Errors
    ///
    /// If one of the texts has a blank, a control character or something beyond ASCII.
    pub fn new(method: &str, target: &str, host: &str) -> Result<Self, Unwritable> {
        let wrong = |what, text: &str| Err(Unwritable { what, text: text.into() });
        if method.is_empty() || !method.bytes().all(is_token) {
            return wrong("the method", method);
        }
        if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("the target", target);
        }
        if !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("the host", host);
        }
        let mut headers = HttpHeaders::default();
        headers.add("Host", host);
        Ok(Request { method: method.into(), target: target.into(), version: Version::V1_1, headers })
    }

    /// Its path: the target without scheme, host, query and fragment. `*` for requests about the whole
    /// server.
    pub fn path(&self) -> &str {
        let after_scheme = self.target.split_once("://").filter(|(scheme, _)| !scheme.contains('/'));
        let target = match after_scheme {
            Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
            None => &self.target,
        };
        target.split(['?', '#']).next().unwrap_or_default()
    }

    /// Returns whether the connection may carry another request after this one (RFC 9112 section 9.3).
    pub fn keeps_alive(&self) -> bool {
        keeps_alive(self.version, &self.headers)
    }

    /// Its bytes.
    pub fn write(&self) -> Vec<u8> {
        self.headers.write(format!("{} {} {}\r\n", self.method, self.target, self.version))
    }

    pub(super) fn read(head: &[u8], most_headers: usize) -> Result<Option<Self>, httparse::Error> {
        let mut fields = vec![httparse::EMPTY_HEADER; most_headers];
        let mut parsed = httparse::Request::new(&mut fields);
        if !parsed.parse(head)?.is_complete() {
            return Ok(None);
        }
        let headers = HttpHeaders::read(parsed.headers);
        let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
            return Ok(None);
        };
        Ok(Some(Request {
            method: method.into(),
            target: target.into(),
            version: version_of(version),
            headers,
        }))
    }
}

/// A response without its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// Its status code, 100 to 999 (RFC 9110 section 15).
    pub status: u16,
    /// The text for people beside it.
    pub reason: String,
    /// The message's version.
    pub version: Version,
    /// Its header fields.
    pub headers: HttpHeaders,
}

impl Response {
    /// Returns a response of HTTP/1.1 without headers.
    pub fn new(status: u16) -> Self {
        let reason = reason(status).into();
        Response { status, reason, version: Version::V1_1, headers: HttpHeaders::default() }
    }

    /// Adds a header, as [`HttpHeaders::add`] does.
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.headers.add(name, value);
        self
    }

    /// Returns whether another response to the same request follows (RFC 9110 section 15.2).
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }

    /// Returns whether the connection may carry another request after this one (RFC 9112 section 9.3).
    pub fn keeps_alive(&self) -> bool {
        keeps_alive(self.version, &self.headers)
    }

    /// Its bytes.
    pub fn write(&self) -> Vec<u8> {
        self.headers.write(format!("{} {} {}\r\n", self.version, self.status, self.reason))
    }

    pub(super) fn read(head: &[u8], most_headers: usize) -> Result<Option<Self>, httparse::Error> {
        let mut fields = vec![httparse::EMPTY_HEADER; most_headers];
        let mut parsed = httparse::Response::new(&mut fields);
        // A client replaces the folds of old servers by blanks (RFC 9112 section 5.2).
        let mut config = httparse::ParserConfig::default();
        config.allow_obsolete_multiline_headers_in_responses(true);
        if !config.parse_response(&mut parsed, head)?.is_complete() {
            return Ok(None);
        }
        let headers = HttpHeaders::read(parsed.headers);
        let (Some(version), Some(status)) = (parsed.version, parsed.code) else { return Ok(None) };
        let reason = parsed.reason.unwrap_or_default().into();
        Ok(Some(Response { status, reason, version: version_of(version), headers }))
    }
}

fn version_of(minor: u8) -> Version {
    if minor == 0 { Version::V1_0 } else { Version::V1_1 }
}

fn keeps_alive(version: Version, headers: &HttpHeaders) -> bool {
    !headers.has("Connection", "close")
        && (version == Version::V1_1 || headers.has("Connection", "keep-alive"))
}

/// Returns the text for people beside a status code (RFC 9110 section 15, RFC 6585 section 5).
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
