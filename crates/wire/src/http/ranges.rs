//! Ranges of bytes (RFC 9110 section 14).

use std::fmt::{self, Display};
use std::str::FromStr;

/// One range that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteRange {
    /// From the first on, to the last or to the end. Both count from 0 and are within the range.
    From(u64, Option<u64>),
    /// This many bytes at the end.
    Last(u64),
}

impl ByteRange {
    /// Its first and last byte of a representation of `length` bytes; `None` if it has nothing of it.
    pub fn within(self, length: u64) -> Option<(u64, u64)> {
        match self {
            ByteRange::From(first, last) if first < length => {
                Some((first, last.map_or(length - 1, |last| last.min(length - 1))))
            }
            ByteRange::Last(bytes) if bytes > 0 && length > 0 => {
                Some((length - bytes.min(length), length - 1))
            }
            _ => None,
        }
    }
}

impl Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ByteRange::From(first, None) => write!(f, "{first}-"),
            ByteRange::From(first, Some(last)) => write!(f, "{first}-{last}"),
            ByteRange::Last(bytes) => write!(f, "-{bytes}"),
        }
    }
}

/// The header Range, in bytes: one range or more. An unreadable range is ignored (section 14.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ranges(pub Vec<ByteRange>);

impl Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "bytes={}", ranges.join(","))
    }
}

/// A header's value that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a value of this header")]
pub struct NoValue;

pub fn number(text: &str) -> Result<u64, NoValue> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or(NoValue)
}

impl FromStr for Ranges {
    type Err = NoValue;

    fn from_str(text: &str) -> Result<Self, NoValue> {
        let (unit, set) = text.split_once('=').ok_or(NoValue)?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return Err(NoValue);
        }
        let one = |range: &str| match range.trim().split_once('-').ok_or(NoValue)? {
            ("", bytes) => Ok(ByteRange::Last(number(bytes)?)),
            (first, "") => Ok(ByteRange::From(number(first)?, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                if first <= last { Ok(ByteRange::From(first, Some(last))) } else { Err(NoValue) }
            }
        };
        let given = set.split(',').filter(|range| !range.trim().is_empty());
        let ranges = given.map(one).collect::<Result<Vec<_>, _>>()?;
        if ranges.is_empty() { Err(NoValue) } else { Ok(Ranges(ranges)) }
    }
}

/// The header Content-Range, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentRange {
    /// Place of the body within the whole.
    Part {
        /// Its first byte.
        first: u64,
        /// Its last byte.
        last: u64,
        /// Bytes of the whole, if the server has them.
        of: Option<u64>,
    },
    /// No requested byte is in the whole (status 416).
    Outside {
        /// Bytes of the whole.
        of: u64,
    },
}

impl Display for ContentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentRange::Part { first, last, of: Some(of) } => write!(f, "bytes {first}-{last}/{of}"),
            ContentRange::Part { first, last, of: None } => write!(f, "bytes {first}-{last}/*"),
            ContentRange::Outside { of } => write!(f, "bytes */{of}"),
        }
    }
}

impl FromStr for ContentRange {
    type Err = NoValue;

    fn from_str(text: &str) -> Result<Self, NoValue> {
        let (unit, rest) = text.trim().split_once(' ').ok_or(NoValue)?;
        let (range, of) = rest.split_once('/').ok_or(NoValue)?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return Err(NoValue);
        }
        if range == "*" {
            return Ok(ContentRange::Outside { of: number(of)? });
        }
        let (first, last) = range.split_once('-').ok_or(NoValue)?;
        let (first, last) = (number(first)?, number(last)?);
        let of = if of == "*" { None } else { Some(number(of)?) };
        // One more than the last byte is a number too.
        if first > last || last == u64::MAX || of.is_some_and(|of| last >= of) {
            return Err(NoValue);
        }
        Ok(ContentRange::Part { first, last, of })
    }
}
