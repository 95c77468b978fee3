//! One level: its frames cut into segments, and every byte of these.

use streamgauge_base::{Chunk, Duration};

use super::boxes::{FrameFacts, Layout, TrackFacts, index, index_bytes, init};
use super::entry::Entry;
use super::frames::Frames;
use crate::dash::manifest::time::of_ticks;

/// Two key frames so near each other are at one time.
const SAME: Duration = Duration::from_millis(1);

/// The limit of an index (ISO/IEC 14496-12 section 8.16.3).
const MOST_SEGMENTS: usize = 65_535;

/// A level of a ladder, of pictures or of sound.
pub struct Level {
    /// `v0`, `a0`: the start of its addresses.
    pub id: String,
    pub is_video: bool,
    /// As manifests declare it.
    pub rate_bps: u64,
    /// Width and height; 0 if unknown, and for sound.
    pub size: (u32, u32),
    pub codecs: String,
    pub timescale: u64,
    /// Its initialization.
    pub init: Vec<u8>,
    /// The index of all segments in one file, after the initialization.
    pub index: Vec<u8>,
    /// Names its version: another one where a byte of it is another.
    pub tag: String,
    frames: Frames,
    layout: Layout,
    /// Where each segment begins, and behind the last where that ends.
    cuts: Vec<Cut>,
}

#[derive(Clone, Copy)]
struct Cut {
    frame: u64,
    /// In ticks of the presentation.
    start: u64,
    /// In the file of all segments, counted from the first.
    offset: u64,
}

/// The data of a level before it is cut.
pub struct Uncut {
    pub id: String,
    pub is_video: bool,
    pub rate_bps: u64,
    pub size: (u32, u32),
    pub entry: Entry,
    pub frames: Frames,
    /// The version of its bytes, beside their sizes.
    pub version: String,
}

impl Uncut {
    fn start(&self, frame: u64) -> Duration {
        of_ticks(self.frames.shown(frame), self.frames.timescale())
    }

    /// The times at which segments begin: 0, and each key frame at least `segment` after the previous one.
    pub fn boundaries(&self, segment: Duration) -> Vec<Duration> {
        let mut found = vec![Duration::ZERO];
        let mut next = segment;
        for frame in (1..self.frames.count()).filter(|frame| self.frames.is_key(*frame)) {
            let start = self.start(frame);
            if start + SAME >= next {
                found.push(start);
                next = start + segment;
            }
        }
        found
    }

    /// The frames with which segments begin. Sound is cut where its next block begins.
    fn cut(&self, boundaries: &[Duration]) -> Result<Vec<u64>, String> {
        let count = self.frames.count();
        if count == 0 || !self.frames.is_key(0) {
            return Err(format!("{}: it does not begin with a key frame", self.id));
        }
        let mut found = vec![0];
        let mut frame = 1;
        for boundary in &boundaries[1..] {
            let is_before = |frame: u64| self.start(frame) + SAME < *boundary;
            while frame < count && (is_before(frame) || (self.is_video && !self.frames.is_key(frame))) {
                frame += 1;
            }
            if frame == count {
                match self.is_video {
                    // Sound may end before the pictures do.
                    false => break,
                    true => return Err(self.misaligned(*boundary)),
                }
            }
            if self.is_video && self.start(frame) > *boundary + SAME {
                return Err(self.misaligned(*boundary));
            }
            found.push(frame);
            frame += 1;
        }
        Ok(found)
    }

    fn misaligned(&self, at: Duration) -> String {
        format!(
            "{}: no key frame at {:.3} s, where a segment of the lowest level begins. Encode all levels with key frames \
             at the same times",
            self.id,
            at.as_secs_f64()
        )
    }

    /// Makes the level with segments at these times. The initialization contains its duration if `is_whole`.
    pub fn at(self, boundaries: &[Duration], is_whole: bool) -> Result<Level, String> {
        let firsts = self.cut(boundaries)?;
        if firsts.len() > MOST_SEGMENTS {
            return Err(format!("{}: {} segments; at most {MOST_SEGMENTS} are made", self.id, firsts.len()));
        }
        let frames = &self.frames;
        let count = frames.count();
        let steady = u32::try_from(frames.at(1)).ok();
        let steady = steady.filter(|step| {
            (1..count).all(|n| frames.at(n + 1).checked_sub(frames.at(n)) == Some(u64::from(*step)))
        });
        let all_keys = (0..count).all(|frame| frames.is_key(frame));
        let mut begins = firsts.iter().peekable();
        let keys_elsewhere = (0..count).any(|frame| {
            let is_first = begins.next_if_eq(&&frame).is_some();
            frames.is_key(frame) && !is_first
        });
        let layout = Layout {
            duration: steady,
            all_keys,
            flags: !all_keys && keys_elsewhere,
            shown: (0..count).any(|frame| frames.shown(frame) != frames.at(frame)),
        };
        let mut cuts = Vec::with_capacity(firsts.len() + 1);
        let mut offset = 0;
        for (place, frame) in firsts.iter().enumerate() {
            cuts.push(Cut { frame: *frame, start: frames.shown(*frame), offset });
            let end = firsts.get(place + 1).copied().unwrap_or(count);
            let media = frames.bytes_before(end) - frames.bytes_before(*frame);
            let bytes = layout.head_bytes(end - frame) + media;
            // The size of mdat, and that of an entry of the index, have 31 bits.
            if bytes >= 1 << 31 {
                return Err(format!("{}: segment {} has {bytes} B; cut it shorter", self.id, place + 1));
            }
            offset += bytes;
        }
        cuts.push(Cut { frame: count, start: frames.end().max(frames.shown(count - 1) + 1), offset });
        let out = || format!("{}: its times are out of all bounds", self.id);
        let timescale = u32::try_from(frames.timescale()).map_err(|_| out())?;
        let track = TrackFacts {
            is_video: self.is_video,
            timescale,
            duration: if is_whole { cuts.last().map_or(0, |cut| cut.start) } else { 0 },
            size: self.size,
            entry: &self.entry.bytes,
        };
        let init = init(&track);
        let lengths = cuts.windows(2).map(|two| {
            let ticks = u32::try_from(two[1].start.saturating_sub(two[0].start)).map_err(|_| out())?;
            Ok(((two[1].offset - two[0].offset) as u32, ticks))
        });
        let lengths = lengths.collect::<Result<Vec<_>, String>>()?;
        let index = index(timescale, lengths.into_iter());
        debug_assert_eq!(index.len() as u64, index_bytes(firsts.len()));
        let mut digest = blake3::Hasher::new();
        digest.update(&init).update(&index).update(self.version.as_bytes());
        for frame in 0..count {
            digest.update(&frames.bytes(frame).to_le_bytes());
        }
        Ok(Level {
            tag: digest.finalize().to_hex()[..16].to_owned(),
            timescale: frames.timescale(),
            id: self.id,
            is_video: self.is_video,
            rate_bps: self.rate_bps,
            size: self.size,
            codecs: self.entry.codecs,
            init,
            index,
            frames: self.frames,
            layout,
            cuts,
        })
    }
}

impl Level {
    /// How many segments it has.
    pub fn segments(&self) -> usize {
        self.cuts.len() - 1
    }

    /// Ticks at which a segment begins, counted from 0, and behind the last at which that ends.
    pub fn ticks(&self, segment: usize) -> u64 {
        self.cuts[segment.min(self.segments())].start
    }

    /// The same as a time.
    pub fn start(&self, segment: usize) -> Duration {
        of_ticks(self.ticks(segment), self.timescale)
    }

    /// How long a segment plays.
    pub fn duration(&self, segment: usize) -> Duration {
        self.start(segment + 1).saturating_sub(self.start(segment))
    }

    /// When it has come to its end.
    pub fn end(&self) -> Duration {
        self.start(self.segments())
    }

    /// Bytes of a segment, headers included.
    pub fn bytes(&self, segment: usize) -> u64 {
        self.cuts[segment + 1].offset - self.cuts[segment].offset
    }

    /// Where a segment begins in the file of all.
    pub fn offset(&self, segment: usize) -> u64 {
        self.before() + self.cuts[segment].offset
    }

    /// Bytes of that file before the first segment.
    fn before(&self) -> u64 {
        (self.init.len() + self.index.len()) as u64
    }

    /// Bytes of that file.
    pub fn file_bytes(&self) -> u64 {
        self.offset(self.segments())
    }

    /// The segment that begins at these ticks.
    pub fn at_ticks(&self, ticks: u64) -> Option<usize> {
        self.cuts[..self.segments()].binary_search_by_key(&ticks, |cut| cut.start).ok()
    }

    /// Bits of all segments over the time that they play.
    pub fn mean_bps(&self) -> u64 {
        let bits = u128::from(self.cuts[self.segments()].offset) * 8_000_000_000;
        (bits / u128::from(self.end().as_nanos().max(1))) as u64
    }

    /// Ticks of every segment but the last, if they are the same of all.
    pub fn steady(&self) -> Option<u64> {
        let length = self.ticks(1);
        let last = self.segments() - 1;
        let is_steady = (0..last).all(|segment| self.ticks(segment) == segment as u64 * length);
        (is_steady
            && self.ticks(last) == last as u64 * length
            && self.ticks(last + 1) <= (last as u64 + 1) * length)
            .then_some(length)
    }

    /// The bytes before a segment's frames.
    fn head(&self, segment: usize) -> Vec<u8> {
        let (first, end) = (self.cuts[segment].frame, self.cuts[segment + 1].frame);
        let frames = (first..end).map(|frame| {
            let (at, shown) = (self.frames.at(frame), self.frames.shown(frame));
            FrameFacts {
                duration: self.frames.at(frame + 1).saturating_sub(at) as u32,
                bytes: self.frames.bytes(frame) as u32,
                is_key: self.frames.is_key(frame),
                later: (shown.cast_signed() - at.cast_signed()) as i32,
            }
        });
        let media = self.frames.bytes_before(end) - self.frames.bytes_before(first);
        let facts: Vec<FrameFacts> = frames.collect();
        self.layout.head(segment as u32 + 1, self.frames.at(first), media as u32, facts.into_iter())
    }

    /// A segment's bytes from `first` on, at most `most`.
    pub fn read_segment(&self, segment: usize, first: u64, most: u64) -> Result<Chunk, String> {
        let cut = self.cuts[segment];
        let head_bytes = self.layout.head_bytes(self.cuts[segment + 1].frame - cut.frame);
        let most = most.min(self.bytes(segment).saturating_sub(first));
        let Some(of_head) = head_bytes.checked_sub(first).filter(|left| *left > 0) else {
            let at = self.frames.bytes_before(cut.frame) + (first - head_bytes);
            return self.frames.read(at, most);
        };
        let head = self.head(segment);
        debug_assert_eq!(head.len() as u64, head_bytes);
        let real = &head[first as usize..(first + of_head.min(most)) as usize];
        let rest = match most.saturating_sub(of_head) {
            0 => Chunk::default(),
            rest => self.frames.read(self.frames.bytes_before(cut.frame), rest)?,
        };
        let filler = rest.len() - rest.head().len();
        Ok(Chunk::with_filler([real, rest.head()].concat(), filler as u32))
    }

    /// The same of the file of all segments: initialization, index, segments.
    pub fn read_file(&self, first: u64, most: u64) -> Result<Chunk, String> {
        if first < self.before() {
            let head = [&self.init[..], &self.index].concat();
            let end = (first + most.min(self.before() - first)) as usize;
            return Ok(Chunk::bytes(&head[first as usize..end]));
        }
        let within = first - self.before();
        let segment = self.cuts.partition_point(|cut| cut.offset <= within).saturating_sub(1);
        if segment >= self.segments() {
            return Err("nobody asks for more than there is".into());
        }
        self.read_segment(segment, within - self.cuts[segment].offset, most)
    }
}
