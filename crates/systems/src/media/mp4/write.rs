//! The head of an MP4 file (ISO/IEC 14496-12): everything before its samples, for frames of known sizes
//! without content. The moov box is in front, so that a player can begin before all has come.

use std::iter::once;

use super::super::asset::{Track, UnitKind};

/// Ticks of a second in all our times: RTP's unit for video, and a multiple of all usual frame rates.
const TIMESCALE: u64 = 90_000;

/// Samples that make up a chunk, about a second: where tracks would alternate.
const CHUNK_SAMPLES: usize = 25;

/// The element that does not fit the format.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// No frame.
    #[error("no frame to write")]
    Empty,
    /// Two frames so far apart that their distance does not fit 32 bits of ticks (13 hours).
    #[error("frames more than 13 hours apart")]
    FarApart,
}

/// Returns `ftyp`, `moov` and the header of `mdat` for the units of `track`, which follow it in their order,
/// as many bytes as they have. They are called H.264, without parameter sets.
///
/// # Errors
///
/// If there is no unit, or two of them are too far apart.
pub fn write_head(track: &Track) -> Result<Vec<u8>, WriteError> {
    let media_bytes = track.media_bytes();
    let ftyp = made(b"ftyp", [b"isom".as_slice(), &512u32.to_be_bytes(), b"isomiso2avc1mp41"].concat());
    let mdat = match u32::try_from(media_bytes + 8) {
        Ok(size) => [&size.to_be_bytes()[..], b"mdat"].concat(),
        Err(_) => [&1u32.to_be_bytes()[..], b"mdat", &(media_bytes + 16).to_be_bytes()].concat(),
    };
    // Where the samples begin does not change how long the tables are.
    let before = ftyp.len() + movie(track, 0)?.len() + mdat.len();
    Ok([ftyp, movie(track, before as u64)?, mdat].concat())
}

/// Returns a box with this content.
pub fn made(name: &[u8; 4], content: Vec<u8>) -> Vec<u8> {
    let size = u32::try_from(content.len() + 8).expect("tables of at most 2^22 samples are far below 4 GB");
    [&size.to_be_bytes()[..], name, &content].concat()
}

/// Returns a box with version and flags.
pub fn full(name: &[u8; 4], version: u8, flags: u32, content: Vec<u8>) -> Vec<u8> {
    made(name, [words([u32::from(version) << 24 | flags]), content].concat())
}

/// Numbers of 32 bits one after another.
pub fn words(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_be_bytes).collect()
}

/// The identity, in the fixed-point numbers of section 8.2.2.
pub const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

fn ticks(time: streamgauge_base::Duration) -> u64 {
    ((u128::from(time.as_nanos()) * u128::from(TIMESCALE) + 500_000_000) / 1_000_000_000) as u64
}

fn movie(track: &Track, samples_at: u64) -> Result<Vec<u8>, WriteError> {
    let lasts = ticks(track.end().ok_or(WriteError::Empty)?).to_be_bytes();
    // Created and changed at an unknown time.
    let times = [0; 16];
    let scale = TIMESCALE.to_be_bytes()[4..].to_vec();
    let rate_and_volume = [words([0x1_0000]), vec![1, 0], vec![0; 10]].concat();
    let next_track = [vec![0; 24], words([2])].concat();
    let mvhd =
        [times.to_vec(), scale.clone(), lasts.to_vec(), rate_and_volume, words(MATRIX), next_track].concat();
    let tkhd =
        [times.to_vec(), words([1, 0]), lasts.to_vec(), vec![0; 16], words(MATRIX), words([0, 0])].concat();
    // Language `und`, packed (section 8.4.2).
    let mdhd = [times.to_vec(), scale, lasts.to_vec(), vec![0x55, 0xc4, 0, 0]].concat();
    let hdlr = [words([0]), b"vide".to_vec(), vec![0; 12], b"video\0".to_vec()].concat();
    let data_is_here = full(b"url ", 0, 1, Vec::new());
    let dinf = made(b"dinf", full(b"dref", 0, 0, [words([1]), data_is_here].concat()));
    let minf = [full(b"vmhd", 0, 1, vec![0; 8]), dinf, made(b"stbl", tables(track, samples_at)?)].concat();
    let mdia = [full(b"mdhd", 1, 0, mdhd), full(b"hdlr", 0, 0, hdlr), made(b"minf", minf)].concat();
    let trak = [full(b"tkhd", 1, 3, tkhd), made(b"mdia", mdia)].concat();
    Ok(made(b"moov", [full(b"mvhd", 1, 0, mvhd), made(b"trak", trak)].concat()))
}

/// Runs of the same number: how many, and which.
fn runs(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((count, same)) if *same == number => *count += 1,
            _ => runs.push((1, number)),
        }
    }
    runs
}

fn table(name: &[u8; 4], entries: usize, numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    table_of(name, 0, entries, numbers)
}

fn table_of(name: &[u8; 4], version: u8, entries: usize, numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    full(name, version, 0, words(once(entries as u32).chain(numbers)))
}

fn tables(track: &Track, samples_at: u64) -> Result<Vec<u8>, WriteError> {
    let units = &track.units;
    let starts = units.iter().map(|unit| ticks(unit.at));
    let ends = units.iter().skip(1).map(|unit| ticks(unit.at)).chain(track.end().map(ticks));
    let deltas: Vec<u32> = starts
        .zip(ends)
        .map(|(start, end)| u32::try_from(end.saturating_sub(start)).map_err(|_| WriteError::FarApart))
        .collect::<Result<_, _>>()?;
    let times = runs(deltas.into_iter());
    let keys: Vec<u32> =
        (1..).zip(units).filter(|(_, unit)| unit.kind == UnitKind::Key).map(|(number, _)| number).collect();
    // Signed, as some frames may be shown before those decoded ahead of them (section 8.6.1.3).
    let later = units.iter().map(|unit| ticks(unit.shown).wrapping_sub(ticks(unit.at)) as u32);
    let later = Some(runs(later)).filter(|later| later.iter().any(|(_, ticks)| *ticks != 0));
    let ctts = later.map(|later| {
        table_of(b"ctts", 1, later.len(), later.iter().flat_map(|&(count, ticks)| [count, ticks]))
    });
    let mut at = samples_at;
    let mut chunks = Vec::new();
    for chunk in units.chunks(CHUNK_SAMPLES) {
        chunks.push(at);
        at += chunk.iter().map(|unit| u64::from(unit.bytes)).sum::<u64>();
    }
    // All chunks are full but the last.
    let rest = (units.len() % CHUNK_SAMPLES) as u32;
    let whole = (units.len() / CHUNK_SAMPLES) as u32;
    let full_ones = (whole > 0).then_some([1, CHUNK_SAMPLES as u32, 1]);
    let last_one = (rest > 0).then_some([whole + 1, rest, 1]);
    let chunk_runs: Vec<u32> = full_ones.into_iter().chain(last_one).flatten().collect();
    let stco = match u32::try_from(at) {
        Ok(_) => table(b"stco", chunks.len(), chunks.iter().map(|&at| at as u32)),
        Err(_) => {
            let halves = chunks.iter().flat_map(|at| [(at >> 32) as u32, *at as u32]);
            table(b"co64", chunks.len(), halves)
        }
    };
    let stsz = words([0, units.len() as u32].into_iter().chain(units.iter().map(|unit| unit.bytes)));
    Ok([
        full(b"stsd", 0, 0, [words([1]), sample_entry()].concat()),
        table(b"stts", times.len(), times.iter().flat_map(|&(count, delta)| [count, delta])),
        ctts.unwrap_or_default(),
        table(b"stss", keys.len(), keys.iter().copied()),
        table(b"stsc", chunk_runs.len() / 3, chunk_runs.iter().copied()),
        full(b"stsz", 0, 0, stsz),
        stco,
    ]
    .concat())
}

/// Returns H.264 of the baseline profile without parameter sets (ISO/IEC 14496-15 section 5.3.4), of no known
/// size.
fn sample_entry() -> Vec<u8> {
    let configuration = made(b"avcC", vec![1, 66, 0, 30, 0xff, 0xe0, 0]);
    let resolution = 72 << 16;
    let fixed = [
        vec![0, 0, 0, 0, 0, 0, 0, 1],
        vec![0; 20],
        words([resolution, resolution, 0]),
        vec![0, 1],
        vec![0; 32],
        // Depth and the end of the entry.
        vec![0, 24, 0xff, 0xff],
    ];
    made(b"avc1", [fixed.concat(), configuration].concat())
}
