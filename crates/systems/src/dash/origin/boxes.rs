//! Boxes of fragmented MP4 (ISO/IEC 14496-12 section 8.8, ISO/IEC 23000-19): the bytes before a level's frames, and
//! before each segment's.

use crate::media::mp4::{MATRIX, full, made, words};

/// Sample flags (section 8.8.3.1): depends on no other.
pub const KEY: u32 = 0x0200_0000;
/// Depends on others, and is no place to begin.
pub const PREDICTED: u32 = 0x0101_0000;

/// The data of a level's track, for its initialization.
pub struct TrackFacts<'a> {
    pub is_video: bool,
    pub timescale: u32,
    /// The whole length in ticks; 0 to leave it out.
    pub duration: u64,
    pub size: (u32, u32),
    /// Its sample entry.
    pub entry: &'a [u8],
}

/// `ftyp` and `moov` of a track without samples.
pub fn init(track: &TrackFacts<'_>) -> Vec<u8> {
    let ftyp = made(b"ftyp", [b"iso6".as_slice(), &0u32.to_be_bytes(), b"iso6cmfcdashmp41"].concat());
    [ftyp, movie(track)].concat()
}

fn movie(track: &TrackFacts<'_>) -> Vec<u8> {
    let (scale, matrix) = (words([track.timescale]), words(MATRIX));
    // Created and changed at no time that anybody knows; how long it plays is in the fragments.
    let rate_and_volume = [words([0x1_0000]), vec![1, 0], vec![0; 10]].concat();
    let next_track = [vec![0; 24], words([2])].concat();
    let mvhd = [vec![0; 8], scale.clone(), vec![0; 4], rate_and_volume, matrix.clone(), next_track].concat();
    let volume = if track.is_video { [0, 0] } else { [1, 0] };
    let place = [vec![0; 12], volume.to_vec(), vec![0; 2]].concat();
    let sides = words([track.size.0 << 16, track.size.1 << 16]);
    let tkhd = [vec![0; 8], words([1, 0, 0]), place, matrix, sides].concat();
    // Language `und`, packed (section 8.4.2).
    let mdhd = [vec![0; 8], scale, vec![0; 4], vec![0x55, 0xc4, 0, 0]].concat();
    let (handler, header): (&[u8; 4], _) = match track.is_video {
        true => (b"vide", full(b"vmhd", 0, 1, vec![0; 8])),
        false => (b"soun", full(b"smhd", 0, 0, vec![0; 4])),
    };
    let hdlr = [words([0]), handler.to_vec(), vec![0; 12], b"media\0".to_vec()].concat();
    let dinf = made(b"dinf", full(b"dref", 0, 0, [words([1]), full(b"url ", 0, 1, Vec::new())].concat()));
    let stbl = [
        full(b"stsd", 0, 0, [&words([1]), track.entry].concat()),
        full(b"stts", 0, 0, words([0])),
        full(b"stsc", 0, 0, words([0])),
        full(b"stsz", 0, 0, words([0, 0])),
        full(b"stco", 0, 0, words([0])),
    ];
    let minf = [header, dinf, made(b"stbl", stbl.concat())].concat();
    let mdia = [full(b"mdhd", 0, 0, mdhd), full(b"hdlr", 0, 0, hdlr), made(b"minf", minf)].concat();
    let trak = made(b"trak", [full(b"tkhd", 0, 3, tkhd), made(b"mdia", mdia)].concat());
    let mehd = full(b"mehd", 1, 0, track.duration.to_be_bytes().to_vec());
    let trex = full(b"trex", 0, 0, words([1, 1, 0, 0, 0]));
    let mvex = if track.duration > 0 { [mehd, trex].concat() } else { trex };
    made(b"moov", [full(b"mvhd", 0, 0, mvhd), trak, made(b"mvex", mvex)].concat())
}

/// The header's data for each frame of a level's segments, beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// All frames last so long; `None`: each its own time.
    pub duration: Option<u32>,
    /// Each has flags; else the first alone is a key frame, or all are.
    pub flags: bool,
    /// Frames are shown in another order than decoded.
    pub shown: bool,
    /// Every frame is a key frame.
    pub all_keys: bool,
}

/// A frame in a segment's header.
pub struct FrameFacts {
    pub duration: u32,
    pub bytes: u32,
    pub is_key: bool,
    /// Shown so much later than decoded, or earlier.
    pub later: i32,
}

impl Layout {
    fn first_flags(self) -> bool {
        !self.flags && !self.all_keys
    }

    /// Bytes before the frames of a segment of `frames`: `moof`, and the header of `mdat`.
    pub fn head_bytes(self, frames: u64) -> u64 {
        let each =
            4 * (1 + u64::from(self.duration.is_none()) + u64::from(self.flags) + u64::from(self.shown));
        let tfhd = 20 + 4 * u64::from(self.duration.is_some());
        let trun = 20 + 4 * u64::from(self.first_flags()) + each * frames;
        8 + 16 + 8 + tfhd + 20 + trun + 8
    }

    /// These bytes: of the fragment of this number, which is decoded from `at` on and has so many bytes of frames.
    pub fn head(
        self,
        number: u32,
        at: u64,
        media_bytes: u32,
        frames: impl ExactSizeIterator<Item = FrameFacts>,
    ) -> Vec<u8> {
        let count = frames.len();
        let moof_bytes = self.head_bytes(count as u64) as u32 - 8;
        let flags = if self.all_keys { KEY } else { PREDICTED };
        // default-base-is-moof, the duration if all have it, and flags (section 8.8.7).
        let tfhd_flags = 0x02_0000 | 0x20 | if self.duration.is_some() { 0x08 } else { 0 };
        let tfhd = words([1].into_iter().chain(self.duration).chain([flags]));
        // The data's offset, the first's flags; of each its duration, size, flags, and when it is shown (section 8.8.8).
        let trun_flags = 0x1
            | if self.first_flags() { 0x4 } else { 0 }
            | if self.duration.is_none() { 0x100 } else { 0 }
            | 0x200
            | if self.flags { 0x400 } else { 0 }
            | if self.shown { 0x800 } else { 0 };
        let mut trun =
            words([count as u32, moof_bytes + 8].into_iter().chain(self.first_flags().then_some(KEY)));
        for frame in frames {
            let flags = if frame.is_key { KEY } else { PREDICTED };
            let told = [
                self.duration.is_none().then_some(frame.duration),
                Some(frame.bytes),
                self.flags.then_some(flags),
                self.shown.then_some(frame.later.cast_unsigned()),
            ];
            trun.extend(words(told.into_iter().flatten()));
        }
        let traf = [
            full(b"tfhd", 0, tfhd_flags, tfhd),
            full(b"tfdt", 1, 0, at.to_be_bytes().to_vec()),
            full(b"trun", 1, trun_flags, trun),
        ];
        let moof = [full(b"mfhd", 0, 0, words([number])), made(b"traf", traf.concat())].concat();
        [made(b"moof", moof), words([media_bytes + 8]), b"mdat".to_vec()].concat()
    }
}

/// Bytes of an index of `segments`.
pub fn index_bytes(segments: usize) -> u64 {
    12 + 8 + 16 + 4 + 12 * segments as u64
}

/// `sidx` of segments that follow it at once, each of so many bytes and ticks and with a key frame in front (section
/// 8.16.3).
pub fn index(timescale: u32, segments: impl ExactSizeIterator<Item = (u32, u32)>) -> Vec<u8> {
    // From the presentation's start, right behind the index.
    let mut content = [words([1, timescale]), vec![0; 16], vec![0; 2]].concat();
    content.extend((segments.len() as u16).to_be_bytes());
    content.extend(words(segments.flat_map(|(bytes, ticks)| [bytes, ticks, 0x9000_0000])));
    full(b"sidx", 1, 0, content)
}
