//! HTTP/1.0 and 1.1 (RFC 9110, RFC 9112): messages out of a stream of bytes and back, and the values of the headers
//! that streaming uses.
//!
//! `httparse` parses the heads; the boundaries of messages, and the headers of ranges and caches, are here.
//! Bodies are handed on as they come and kept nowhere.

mod body;
mod caching;
mod cmcd;
mod coding;
mod fault;
mod head;
mod ranges;
mod reader;

pub use caching::{CacheControl, EntityTag, TagCondition};
pub use cmcd::{CMCD_HEADERS, Cmcd, CmcdValue, NoCmcd};
pub use coding::{CodingFault, Decoder};
pub use fault::{Fault, MOST_HEADERS};
pub use head::{HttpHeaders, Request, Response, Unwritable, Version, reason};
pub use ranges::{ByteRange, ContentRange, NoValue, Ranges};
pub use reader::{HttpItem, Reader};

#[cfg(test)]
mod tests;
