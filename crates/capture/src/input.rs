//! Bytes of a capture: a file or standard input, perhaps compressed with gzip or zstd.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use crate::error::CaptureError;

/// Bytes that are read before the format is chosen. The section header of a pcapng file must fit into them.
const PREFIX: usize = 1 << 16;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The name of standard input.
pub const STANDARD_INPUT: &str = "-";

/// A source of bytes, decompressed.
pub type Bytes = Box<dyn Read + Send>;

/// Opens `path`, or standard input for `-`.
///
/// # Errors
/// The operating system's, and a damaged start of compressed data.
pub fn open(path: &Path) -> Result<Bytes, CaptureError> {
    let name = path.display().to_string();
    let failed = |source| CaptureError::Io { file: name.clone(), source };
    let raw: Bytes = if name == STANDARD_INPUT {
        Box::new(io::stdin())
    } else {
        if path.is_dir() {
            return Err(failed(io::Error::other("it is a folder")));
        }
        Box::new(File::open(path).map_err(failed)?)
    };
    decompressed(raw).map_err(failed)
}

/// The bytes of `raw`, without the compression that their first bytes show.
pub fn decompressed(raw: impl Read + Send + 'static) -> io::Result<Bytes> {
    let (prefix, rest) = prefix_of(raw)?;
    let is_gzip = prefix.starts_with(GZIP);
    let is_zstd = prefix.starts_with(ZSTD);
    let whole = Cursor::new(prefix).chain(rest);
    let buffered = |whole| BufReader::with_capacity(PREFIX, whole);
    let plain: Bytes = if is_gzip {
        Box::new(flate2::bufread::MultiGzDecoder::new(buffered(whole)))
    } else if is_zstd {
        Box::new(zstd::stream::read::Decoder::with_buffer(buffered(whole))?)
    } else {
        return Ok(Box::new(whole));
    };
    // A decoder returns few bytes at a time, and the first read must hold a whole section header.
    let (prefix, rest) = prefix_of(plain)?;
    Ok(Box::new(Cursor::new(prefix).chain(rest)))
}

fn prefix_of<R: Read>(mut from: R) -> io::Result<(Vec<u8>, R)> {
    let mut prefix = Vec::with_capacity(PREFIX);
    from.by_ref().take(PREFIX as u64).read_to_end(&mut prefix)?;
    Ok((prefix, from))
}
