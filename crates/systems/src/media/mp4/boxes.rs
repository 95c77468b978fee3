//! The tree of boxes, as far as it must be looked at before the demuxer is: where the movie is, that its tables fit
//! their boxes, and how its tracks' formats are called.

use super::MediaError;

/// A box: its type and its content.
struct Found<'a> {
    name: [u8; 4],
    whole: &'a [u8],
    content: &'a [u8],
    /// Its declared end is past the end of its parent.
    cut: bool,
}

/// Returns the boxes of `bytes`, up to the first that cannot be one.
fn boxes(mut bytes: &[u8]) -> impl Iterator<Item = Found<'_>> {
    std::iter::from_fn(move || {
        let (&[a, b, c, d, ref name @ ..], _) = bytes.split_first_chunk::<8>()?;
        let (header, size) = match u32::from_be_bytes([a, b, c, d]) {
            // To the end (ISO/IEC 14496-12 section 4.2).
            0 => (8, bytes.len() as u64),
            1 => (16, u64::from_be_bytes(bytes.get(8..16)?.try_into().ok()?)),
            size => (8, u64::from(size)),
        };
        if size < header {
            return None;
        }
        let cut = size > bytes.len() as u64;
        let (whole, rest) = bytes.split_at(bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX)));
        bytes = rest;
        Some(Found { name: *name, whole, content: &whole[header as usize..], cut })
    })
}

/// Returns the content of the first box of this name directly in `bytes`, and the end of that box there;
/// `None` also for one that extends beyond them.
pub fn find<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<(&'a [u8], usize)> {
    let mut end = 0;
    let mut found = boxes(bytes).inspect(|found| end += found.whole.len());
    let found = found.find(|found| &found.name == name)?;
    (!found.cut).then_some((found.content, end))
}

/// Returns the boxes right in `bytes` by name and content, the last one as far as it is there.
pub fn contents(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    boxes(bytes).map(|found| (found.name, found.content))
}

/// Usual first boxes of files.
const USUAL: [&[u8; 4]; 8] = [b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid"];

/// Returns where the moov box ends, of a file that begins with `head`; `None` if that is not known yet.
pub fn movie_end(head: &[u8]) -> Result<Option<u64>, MediaError> {
    let mut at: u64 = 0;
    loop {
        let Some(rest) = head.get(at as usize..) else { return Ok(None) };
        let Some(&[a, b, c, d, ref name @ ..]) = rest.first_chunk::<8>() else {
            // A text is recognised before eight bytes of it are there.
            let is_usual = |name: &&[u8; 4]| rest.get(4..).is_none_or(|begun| name.starts_with(begun));
            return if at > 0 || USUAL.iter().any(is_usual) { Ok(None) } else { Err(MediaError::NotMp4) };
        };
        if at == 0 && !USUAL.contains(&name) {
            return Err(MediaError::NotMp4);
        }
        if name == b"mdat" {
            return Err(MediaError::MovieLast);
        }
        let (header, size) = match u32::from_be_bytes([a, b, c, d]) {
            1 => match rest.get(8..16) {
                None => return Ok(None),
                Some(large) => (16, u64::from_be_bytes(large.try_into().unwrap_or_default())),
            },
            size => (8, u64::from(size)),
        };
        // One that extends to the end of the file has no movie behind it, and waiting for one is useless.
        let Some(end) = at.checked_add(size).filter(|_| size >= header) else {
            return Err(MediaError::NoMovie);
        };
        if name == b"moov" {
            return Ok(Some(end));
        }
        at = end;
    }
}

/// Returns the file's moov box.
pub fn movie(file: &[u8]) -> Result<&[u8], MediaError> {
    let first = boxes(file).next().ok_or(MediaError::NotMp4)?;
    if !USUAL.contains(&&first.name) {
        return Err(MediaError::NotMp4);
    }
    let movie = boxes(file).find(|found| &found.name == b"moov").ok_or(MediaError::NoMovie)?;
    if movie.cut {
        return Err(MediaError::NoMovie);
    }
    tables(movie.content, 0)?;
    Ok(movie.whole)
}

/// Boxes that hold boxes, on the way to the tables.
fn is_container(name: &[u8; 4]) -> bool {
    matches!(name, b"trak" | b"mdia" | b"minf" | b"stbl" | b"edts")
}

/// Returns the bytes before the number of a table's entries, and bytes of the least entry.
fn table(name: &[u8; 4]) -> Option<(usize, u64)> {
    Some(match name {
        b"stts" | b"ctts" | b"co64" => (4, 8),
        b"stsc" => (4, 12),
        b"stco" | b"stss" => (4, 4),
        b"stsz" => (8, 4),
        b"elst" => (4, 12),
        _ => return None,
    })
}

/// Refuses a table with more declared entries than fit its box: memory is allocated by that number.
fn tables(bytes: &[u8], depth: usize) -> Result<(), MediaError> {
    for found in boxes(bytes) {
        if is_container(&found.name) && depth < 8 {
            tables(found.content, depth + 1)?;
        }
        let Some((before, entry_bytes)) = table(&found.name) else { continue };
        let number = |at: usize| {
            let bytes = found.content.get(at..at + 4)?;
            Some(u64::from(u32::from_be_bytes(bytes.try_into().ok()?)))
        };
        // Sizes that are all the same are no table.
        if &found.name == b"stsz" && number(4) != Some(0) {
            continue;
        }
        let room = found.content.len().saturating_sub(before + 4) as u64;
        if number(before).is_none_or(|entries| entries * entry_bytes > room) {
            let name = String::from_utf8_lossy(&found.name);
            return Err(MediaError::Broken(format!("{name} has more entries than its box has room for")));
        }
    }
    Ok(())
}

/// A track's own description: the kind of its media and the format of its samples, by their four letters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Named {
    /// `vide` or `soun`, mostly.
    pub handler: String,
    /// The format of its first description.
    pub format: String,
}

/// Returns the names of all tracks in order.
pub fn tracks(movie: &[u8]) -> Vec<Named> {
    fn gather(bytes: &[u8], depth: usize, named: &mut Named) {
        for found in boxes(bytes) {
            if is_container(&found.name) && depth < 8 {
                gather(found.content, depth + 1, named);
            }
            let letters = |four: &[u8]| String::from_utf8_lossy(four).escape_debug().to_string();
            match &found.name {
                // The first of QuickTime's two handlers is the media's.
                b"hdlr" if named.handler.is_empty() => {
                    named.handler = found.content.get(8..12).map(letters).unwrap_or_default();
                }
                b"stsd" => {
                    let entry = found.content.get(8..).and_then(|entries| boxes(entries).next());
                    named.format = entry.map(|entry| letters(&entry.name)).unwrap_or_default();
                }
                _ => {}
            }
        }
    }
    let movie = boxes(movie).find(|found| &found.name == b"moov");
    let tracks = movie.iter().flat_map(|movie| boxes(movie.content)).filter(|found| &found.name == b"trak");
    let named = tracks.map(|track| {
        let mut named = Named::default();
        gather(track.content, 0, &mut named);
        named
    });
    named.collect()
}
