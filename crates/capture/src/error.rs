//! The faults of a capture.

use thiserror::Error;

/// Why a capture cannot be analysed at all. Damage behind the first packet is no error: the analysis then covers the
/// part before it, and [`CaptureEnding`](crate::CaptureEnding) holds the reason.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file cannot be opened or read.
    #[error("{file}: cannot be read: {source}")]
    Io {
        /// Its name.
        file: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The bytes are no capture.
    #[error("{file}: no capture: {what}")]
    NoCapture {
        /// Its name.
        file: String,
        /// The reason, with the remedy where there is one.
        what: String,
    },
    /// Two captures have too little in common.
    #[error("{0}")]
    NoMatch(String),
    /// Nothing shows which capture is the sender's.
    #[error("{0}")]
    NoSide(String),
}
