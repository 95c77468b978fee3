//! The segment index of a file (`sidx`, ISO/IEC 14496-12 section 8.16.3).

use super::fault::ManifestError;
use super::place::Place;
use super::time::of_ticks;
use super::{Address, MediaSegment, Window};
use crate::media::mp4;
use streamgauge_base::Duration;

/// A file's pictures may be shown so long after its media begin (composition offsets): that is no gap.
const COMPOSITION: Duration = Duration::from_millis(500);

/// The segments of the file at `url` that lie in `window`. `bytes` begin at byte `first_byte` of the file and hold its
/// `sidx`. Numbers count from the file's first segment, which has number 1.
///
/// # Errors
///
/// No index, half of one, one that leads to further indices, or one that leaves its file.
pub fn read_index(
    bytes: &[u8],
    first_byte: u64,
    url: &str,
    window: &Window,
) -> Result<Vec<MediaSegment>, ManifestError> {
    let url = Place::of(url)?.url().to_owned();
    let wrong = |what: &str| ManifestError::Index { what: what.into() };
    let found = mp4::find(bytes, b"sidx");
    let (content, end) = found.ok_or_else(|| wrong("there is no whole one in these bytes"))?;
    let cut = || wrong("it is cut short");
    let mut rest = content;
    let mut take = |bytes: usize| {
        let (taken, after) = rest.split_at_checked(bytes)?;
        rest = after;
        Some(taken.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)))
    };
    let version = take(1).ok_or_else(cut)?;
    // Flags and reference_ID.
    take(3 + 4).ok_or_else(cut)?;
    let timescale = take(4).ok_or_else(cut)?;
    if timescale == 0 {
        return Err(wrong("its timescale is 0"));
    }
    let wide = if version == 0 { 4 } else { 8 };
    let earliest = of_ticks(take(wide).ok_or_else(cut)?, timescale);
    let is_composed = earliest >= window.offset && earliest.saturating_sub(window.offset) < COMPOSITION;
    let earliest = if is_composed { window.offset } else { earliest };
    let first_offset = take(wide).ok_or_else(cut)?;
    let count = take(2 + 2).ok_or_else(cut)? & 0xffff;
    let out = || wrong("it leads beyond all bytes");
    let anchor = first_byte.checked_add(end as u64).and_then(|end| end.checked_add(first_offset));
    let mut at = anchor.ok_or_else(out)?;
    let mut ticks: u64 = 0;
    let mut segments = Vec::with_capacity(count.min(1 << 16) as usize);
    for number in 1..=count {
        let reference = take(4).ok_or_else(cut)?;
        let length = take(4).ok_or_else(cut)?;
        // Access points.
        take(4).ok_or_else(cut)?;
        let bytes = reference & 0x7fff_ffff;
        if reference != bytes {
            let what = format!("entry {number} leads to another index, which is not supported");
            return Err(ManifestError::Index { what });
        }
        if bytes == 0 {
            return Err(ManifestError::Index { what: format!("entry {number} has no bytes") });
        }
        let end = at.checked_add(bytes).ok_or_else(out)?;
        let from = of_ticks(ticks, timescale);
        ticks = ticks.checked_add(length).ok_or_else(out)?;
        let [from, to] = [from, of_ticks(ticks, timescale)].map(|time| time + earliest);
        let address = Address { url: url.clone(), range: Some((at, end - 1)) };
        segments.extend(window.fit(number, address, from, to));
        at = end;
    }
    Ok(segments)
}
