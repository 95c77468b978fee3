//! A track's samples from its tables (ISO/IEC 14496-12 section 8.6 and 8.7).

use mp4parse::TimeOffsetVersion;

use super::{MOST_UNITS, MediaError, broken};

/// One sample. Times from the start of the presentation, which edits may put after the first sample.
pub struct Sample {
    pub at_ns: i64,
    pub shown_ns: i64,
    pub offset: u64,
    pub bytes: u32,
    pub sync: bool,
}

/// Returns the samples of `track`, number `number` of the file; those without bytes left out. `movie_scale`
/// is in ticks per second, as the edit list's durations are.
pub fn read(
    track: &mp4parse::Track,
    number: usize,
    movie_scale: u64,
    file_bytes: u64,
) -> Result<Vec<Sample>, MediaError> {
    let (Some(scale), Some(stts), Some(stsc), Some(stsz), Some(stco)) =
        (track.timescale.as_ref(), &track.stts, &track.stsc, &track.stsz, &track.stco)
    else {
        return Err(broken(number, "a table of its samples is missing"));
    };
    let scale = scale.0.max(1);
    let nanos = |ticks: i64, per_second: u64| {
        i64::try_from(i128::from(ticks) * 1_000_000_000 / i128::from(per_second))
            .map_err(|_| broken(number, "a time is out of all bounds"))
    };
    let ticks = |of: u64| i64::try_from(of).map_err(|_| broken(number, "a time is out of all bounds"));
    // The presentation begins after an empty edit, with the media's time that the next edit names.
    let empty = track.empty_duration.as_ref().map_or(Ok(0), |time| nanos(ticks(time.0)?, movie_scale))?;
    let skipped = track.media_time.as_ref().map_or(Ok(0), |time| nanos(ticks(time.0)?, scale))?;
    let origin = empty.saturating_sub(skipped);

    let mut sizes = stsz.sample_sizes.iter().copied();
    let mut size = || if stsz.sample_size > 0 { Some(stsz.sample_size) } else { sizes.next() };
    let mut deltas = stts.samples.iter().flat_map(|run| (0..run.sample_count).map(|_| run.sample_delta));
    let mut offsets = track.ctts.iter().flat_map(|table| table.samples.iter()).flat_map(|run| {
        let offset = match run.time_offset {
            // Also in version 0 writers put negative ones.
            TimeOffsetVersion::Version0(offset) => offset.cast_signed(),
            TimeOffsetVersion::Version1(offset) => offset,
        };
        (0..run.sample_count).map(move |_| offset)
    });
    let mut syncs = track.stss.as_ref().map(|table| table.samples.iter().copied().peekable());

    let mut samples = Vec::new();
    let mut count: u32 = 0;
    let mut decoded: i64 = 0;
    let mut media_bytes: u64 = 0;
    let mut runs = stsc.samples.iter().peekable();
    let mut per_chunk = 0;
    for (chunk, &start) in (1u32..).zip(stco.offsets.iter()) {
        while let Some(run) = runs.next_if(|run| run.first_chunk <= chunk) {
            per_chunk = run.samples_per_chunk;
        }
        let mut offset = start;
        for _ in 0..per_chunk {
            let Some(bytes) = size() else { return Ok(samples) };
            count += 1;
            let end = offset.saturating_add(u64::from(bytes));
            let at = decoded;
            decoded = decoded.saturating_add(i64::from(deltas.next().unwrap_or(0)));
            let shown = at.saturating_add(offsets.next().map_or(0, i64::from));
            let sync = syncs.as_mut().is_none_or(|numbers| {
                while numbers.next_if(|&sync| sync < count).is_some() {}
                numbers.next_if_eq(&count).is_some()
            });
            if end > file_bytes {
                return Err(MediaError::Outside {
                    track: number + 1,
                    sample: count as usize,
                    end,
                    file: file_bytes,
                });
            }
            media_bytes += u64::from(bytes);
            // Samples that lie on each other would make of a small file as much as one likes.
            if media_bytes > file_bytes || samples.len() >= MOST_UNITS {
                return Err(broken(number, "more samples than the file can hold"));
            }
            if bytes > 0 {
                let (at_ns, shown_ns) = (nanos(at, scale)?, nanos(shown, scale)?);
                samples.push(Sample {
                    at_ns: at_ns.saturating_add(origin),
                    shown_ns: shown_ns.saturating_add(origin),
                    offset,
                    bytes,
                    sync,
                });
            }
            offset = end;
        }
    }
    Ok(samples)
}
