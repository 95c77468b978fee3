//! Samples of movie fragments (ISO/IEC 14496-12 section 8.8), by the track that they are of.

use std::collections::{BTreeMap, BTreeSet};

use super::{Counted, MovieTrack, Pictures, TrackKind};
use crate::media::mp4::{contents, find};

/// A box that is read is no longer: a fragment of a million samples with all their fields is 16 MB.
const MOST_BOX: u64 = 16 << 20;

/// No segment has more pictures.
const MOST_SAMPLES: u32 = 1 << 20;

/// Tracks of one movie.
const MOST_TRACKS: usize = 64;

enum Place {
    /// In a box's header; these bytes of it are here.
    Header(Vec<u8>),
    /// In a box that is passed over; `None` to the end.
    Skipped(Option<u64>),
    /// In one that is read, and the number of its missing bytes.
    Read { kind: [u8; 4], content: Vec<u8>, missing: u64 },
}

/// Boxes of a segment as they come.
pub struct Fragments {
    place: Place,
    movie: Vec<MovieTrack>,
    /// Samples by track.
    samples: BTreeMap<u32, u32>,
    /// The element that cannot be read.
    fault: Option<String>,
}

impl Fragments {
    /// Returns the counter of a movie with these tracks; without any a moov box in the segment names them.
    pub fn new(movie: Vec<MovieTrack>) -> Self {
        Fragments { place: Place::Header(Vec::new()), movie, samples: BTreeMap::new(), fault: None }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.place {
                Place::Header(header) => {
                    let needed = header_bytes(header).saturating_sub(header.len());
                    let (now, rest) = bytes.split_at(needed.min(bytes.len()));
                    header.extend(now);
                    bytes = rest;
                    if header.len() == header_bytes(header) {
                        let header = std::mem::take(header);
                        self.begin(&header);
                    }
                }
                Place::Skipped(None) => return,
                Place::Skipped(Some(left)) => {
                    let now = (*left).min(bytes.len() as u64);
                    bytes = &bytes[now as usize..];
                    *left -= now;
                    if *left == 0 {
                        self.place = Place::Header(Vec::new());
                    }
                }
                Place::Read { content, missing, .. } => {
                    let now = (*missing).min(bytes.len() as u64);
                    content.extend(&bytes[..now as usize]);
                    bytes = &bytes[now as usize..];
                    *missing -= now;
                    if *missing == 0 {
                        self.end_box();
                    }
                }
            }
        }
    }

    /// Skips that many bytes that were not received.
    pub fn skip(&mut self, mut bytes: u64) {
        while bytes > 0 {
            if let Place::Skipped(left) = &mut self.place {
                let Some(left) = left else { return };
                let now = (*left).min(bytes);
                (*left, bytes) = (*left - now, bytes - now);
                if *left == 0 {
                    self.place = Place::Header(Vec::new());
                }
                continue;
            }
            // Filler in place of a box reads as zeros.
            let now = bytes.min(4_096);
            self.push(&[0; 4_096][..now as usize]);
            bytes -= now;
        }
    }

    fn begin(&mut self, header: &[u8]) {
        let number =
            |at: usize| header[at..at + 4].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let kind = [header[4], header[5], header[6], header[7]];
        let size = match number(0) {
            0 => None,
            1 => Some(number(8) << 32 | number(12)),
            size => Some(size),
        };
        let left = size.map(|size| size.checked_sub(header.len() as u64));
        self.place = match left {
            Some(None) => {
                self.fault.get_or_insert("boxes that contradict themselves".into());
                Place::Skipped(None)
            }
            None => Place::Skipped(None),
            Some(Some(0)) => Place::Header(Vec::new()),
            Some(Some(left)) if &kind == b"moof" || &kind == b"moov" => {
                if left > MOST_BOX {
                    let kind = String::from_utf8_lossy(&kind);
                    self.fault.get_or_insert(format!("a {kind} box of {left} B"));
                    Place::Skipped(Some(left))
                } else {
                    Place::Read { kind, content: Vec::new(), missing: left }
                }
            }
            Some(Some(left)) => Place::Skipped(Some(left)),
        };
    }

    fn end_box(&mut self) {
        let place = std::mem::replace(&mut self.place, Place::Header(Vec::new()));
        let Place::Read { kind, content, .. } = place else { return };
        if &kind == b"moov" {
            self.movie = tracks(&content);
            return;
        }
        for (_, traf) in contents(&content).filter(|(kind, _)| kind == b"traf") {
            let Some(id) = find(traf, b"tfhd").and_then(|(tfhd, _)| word(tfhd, 4)) else { continue };
            let runs = contents(traf).filter(|(kind, _)| kind == b"trun");
            let mut count = 0u32;
            for (_, trun) in runs {
                match samples_of(trun) {
                    Ok(more) => count = count.saturating_add(more),
                    Err(fault) => _ = self.fault.get_or_insert(fault),
                }
            }
            if count > 0 && (self.samples.len() < MOST_TRACKS || self.samples.contains_key(&id)) {
                let known = self.samples.entry(id).or_default();
                *known = known.saturating_add(count);
            }
        }
    }

    /// Returns the counts, and the movie's tracks.
    pub fn finish(self) -> (Counted, Vec<MovieTrack>) {
        let is_cut = match &self.place {
            Place::Header(header) => !header.is_empty(),
            Place::Skipped(left) => left.is_some(),
            Place::Read { .. } => true,
        };
        let mut left_out = BTreeSet::new();
        let pictures = match self.fault {
            Some(fault) => Pictures::Unknown(fault),
            None => pictures(&self.movie, &self.samples, &mut left_out),
        };
        let is_media = matches!(pictures, Pictures::Unknown(_))
            || self
                .samples
                .keys()
                .any(|id| self.movie.iter().all(|track| track.id != *id || track.kind != TrackKind::Other));
        (Counted { pictures, is_media, left_out, is_cut }, self.movie)
    }
}

/// Returns the bytes of a box's header, as far as its beginning states them.
fn header_bytes(header: &[u8]) -> usize {
    if header.len() >= 8 && header[..4] == [0, 0, 0, 1] { 16 } else { 8 }
}

/// Samples of a track fragment run (ISO/IEC 14496-12 section 8.8.8). Returns an error in words if it has no
/// room for its declared number.
fn samples_of(trun: &[u8]) -> Result<u32, String> {
    let (Some(flags), Some(count)) = (word(trun, 0), word(trun, 4)) else {
        return Err("a run of samples that is cut".into());
    };
    if count > MOST_SAMPLES {
        return Err(format!("a run of {count} samples"));
    }
    let fields = |mask: u32| 4 * u64::from((flags & mask).count_ones());
    // data_offset and first_sample_flags once; duration, size, flags and time offset of each sample.
    let needed = 8 + fields(0x5) + u64::from(count) * fields(0xf00);
    if needed > trun.len() as u64 {
        return Err(format!("a run of {count} samples in {} B", trun.len()));
    }
    Ok(count)
}

fn word(content: &[u8], at: usize) -> Option<u32> {
    content.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Pictures are those of the movie's first track of pictures. Without a movie the only track has the
/// manifest's name.
fn pictures(movie: &[MovieTrack], samples: &BTreeMap<u32, u32>, left_out: &mut BTreeSet<String>) -> Pictures {
    let counted = |count| Pictures::Counted { count, times: Vec::new() };
    if movie.is_empty() {
        return match samples.len() {
            0 => counted(0),
            1 => counted(samples.values().copied().next().unwrap_or(0)),
            several => {
                Pictures::Unknown(format!("{several} tracks, and no initialisation segment that names them"))
            }
        };
    }
    let mut found = None;
    for (id, count) in samples {
        let Some(track) = movie.iter().find(|track| track.id == *id) else {
            return Pictures::Unknown(format!("track {id}, which the initialisation segment does not name"));
        };
        match track.kind {
            TrackKind::Pictures if found.is_none() => found = Some(*count),
            TrackKind::Pictures => {
                _ = left_out.insert(format!("a second track of pictures ({})", track.format))
            }
            TrackKind::Other => _ = left_out.insert(format!("a track of {}", track.format)),
            TrackKind::Sound => {}
        }
    }
    counted(found.unwrap_or(0))
}

/// Returns the tracks of a moov box.
fn tracks(moov: &[u8]) -> Vec<MovieTrack> {
    let traks = contents(moov).filter(|(kind, _)| kind == b"trak");
    traks.filter_map(|(_, trak)| track(trak)).take(MOST_TRACKS).collect()
}

fn track(trak: &[u8]) -> Option<MovieTrack> {
    let (tkhd, _) = find(trak, b"tkhd")?;
    // Version 1 has times of eight bytes.
    let id = word(tkhd, if tkhd.first() == Some(&1) { 20 } else { 12 })?;
    let (mdia, _) = find(trak, b"mdia")?;
    let (hdlr, _) = find(mdia, b"hdlr")?;
    let kind = match hdlr.get(8..12)? {
        b"vide" => TrackKind::Pictures,
        b"soun" => TrackKind::Sound,
        _ => TrackKind::Other,
    };
    let entries = find(mdia, b"minf").and_then(|(minf, _)| find(minf, b"stbl"));
    let entries = entries.and_then(|(stbl, _)| find(stbl, b"stsd")).map(|(stsd, _)| stsd);
    let format = entries.and_then(|stsd| contents(stsd.get(8..)?).next());
    let format = format
        .map_or("unknown".into(), |(name, _)| String::from_utf8_lossy(&name).escape_debug().to_string());
    Some(MovieTrack { id, kind, format })
}
