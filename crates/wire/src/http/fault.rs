//! Faults of a connection's bytes.

/// Header lines that a message may have.
pub const MOST_HEADERS: usize = 128;

/// A fault of a peer's bytes. Nothing behind it can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Not even the first bytes are HTTP's.
    #[error("no HTTP: the bytes begin like no message of HTTP/1.0 or 1.1")]
    NotHttp,
    /// A head that is not as it should be.
    #[error("a malformed head: {0}")]
    Malformed(&'static str),
    /// Another version.
    #[error("HTTP of another version than 1.0 and 1.1")]
    Version,
    /// A head, or the data between chunks, exceeds the limit.
    #[error("a head of more than {limit} B or {MOST_HEADERS} header lines")]
    HeadTooLong {
        /// Bytes of a head.
        limit: usize,
    },
    /// Content-Length is no number, or several.
    #[error("Content-Length is not one number")]
    ContentLength,
    /// Content-Length beside Transfer-Encoding (RFC 9112 section 6.1).
    #[error("Content-Length and Transfer-Encoding in one message")]
    TwoLengths,
    /// Another transfer coding than chunked.
    #[error("a transfer coding other than chunked")]
    TransferCoding,
    /// Chunks that are none (RFC 9112 section 7.1).
    #[error("a malformed chunk")]
    Chunk,
    /// The connection ended within a head.
    #[error("the connection ended within a head")]
    HeadCut,
    /// The connection ended within a body.
    #[error("the connection ended before the body did{}", said(*.missing))]
    BodyCut {
        /// How many bytes of it did not come, if that is known.
        missing: Option<u64>,
    },
}

fn said(bytes: Option<u64>) -> String {
    bytes.map(|bytes| format!(": {bytes} B are missing")).unwrap_or_default()
}

impl Fault {
    /// Returns the status of a server's answer to such a request.
    pub fn status(&self) -> u16 {
        match self {
            Fault::Version => 505,
            Fault::HeadTooLong { .. } => 431,
            Fault::TransferCoding => 501,
            _ => 400,
        }
    }
}
