//! The faults of a manifest, and their places.

/// Longer manifests are not read: one of a day in segments of a second has some 10 MB.
pub const MOST_BYTES: u64 = 16 << 20;

/// More segments than this, of all representations together, are not read: 23 days of 2 s at one rate.
pub const MOST_SEGMENTS: u64 = 1_000_000;

/// All segments' addresses have no more bytes than this.
const MOST_ADDRESS_BYTES: u64 = 256 << 20;

/// Why there is no manifest, playlist or index.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is longer than anybody's is.
    #[error("a manifest of {bytes} B; at most {MOST_BYTES} are read")]
    TooLong {
        /// Its length.
        bytes: u64,
    },
    /// It is something else.
    #[error("neither an MPD nor an HLS playlist, for it begins with {begins:?}")]
    Unknown {
        /// Its first letters.
        begins: String,
    },
    /// It is a page for people.
    #[error("a web page (HTML), perhaps a login or error, and no MPD or HLS playlist")]
    Page,
    /// It contradicts its format or itself.
    #[error("line {line}: {what}")]
    Broken {
        /// Counted from 1.
        line: u32,
        /// The fault.
        what: String,
    },
    /// The manifest may be right, but needs a feature that is not implemented here.
    #[error("line {line}: {what}, which is not supported")]
    Unsupported {
        /// Counted from 1.
        line: u32,
        /// The feature.
        what: String,
    },
    /// Its media are encrypted.
    #[error("line {line}: {what}; encrypted media are not played: name a clear presentation")]
    Encrypted {
        /// Counted from 1.
        line: u32,
        /// The encrypted part, and its scheme.
        what: String,
    },
    /// It has more segments than are taken.
    #[error(
        "line {line}: with {what} there are more than {MOST_SEGMENTS} segments, or addresses too long for so many"
    )]
    TooMany {
        /// Counted from 1.
        line: u32,
        /// Their source.
        what: String,
    },
    /// Its own URL is none that others can be relative to.
    #[error("{url:?} is no address of a manifest: {why}")]
    Place {
        /// As it was given.
        url: String,
        /// The fault.
        why: String,
    },
    /// A segment index that does not hold together.
    #[error("the segment index (sidx): {what}")]
    Index {
        /// The fault.
        what: String,
    },
}

pub(super) fn broken(line: u32, what: impl Into<String>) -> ManifestError {
    ManifestError::Broken { line, what: what.into() }
}

pub(super) fn unsupported(line: u32, what: impl Into<String>) -> ManifestError {
    ManifestError::Unsupported { line, what: what.into() }
}

pub(super) fn encrypted(line: u32, what: impl Into<String>) -> ManifestError {
    ManifestError::Encrypted { line, what: what.into() }
}

/// Rejects a text that is too long to parse. A caller that knows the length before the bytes calls this first.
///
/// # Errors
///
/// [`ManifestError::TooLong`].
pub fn check_length(bytes: u64) -> Result<(), ManifestError> {
    if bytes > MOST_BYTES { Err(ManifestError::TooLong { bytes }) } else { Ok(()) }
}

/// The number of a manifest's segments that may still be read.
pub(super) struct Room {
    segments: u64,
    address_bytes: u64,
}

impl Room {
    pub fn new() -> Self {
        Room { segments: MOST_SEGMENTS, address_bytes: MOST_ADDRESS_BYTES }
    }

    /// Takes room for so many segments with addresses of so many bytes each, before any of them is made.
    pub fn take(
        &mut self,
        segments: u64,
        bytes_each: usize,
        line: u32,
        what: &str,
    ) -> Result<(), ManifestError> {
        let bytes = segments.saturating_mul(bytes_each as u64);
        match (self.segments.checked_sub(segments), self.address_bytes.checked_sub(bytes)) {
            (Some(segments), Some(address_bytes)) => {
                *self = Room { segments, address_bytes };
                Ok(())
            }
            _ => Err(ManifestError::TooMany { line, what: what.into() }),
        }
    }
}
