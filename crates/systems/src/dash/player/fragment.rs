//! How long the media of a segment play, by its movie fragments (ISO/IEC 14496-12 sections 8.8.7 and 8.8.8).

use streamgauge_base::Duration;

use crate::media::mp4::{contents, find};

/// `tfhd` contains a duration of its own, after the other data of its flags: an offset of 8 bytes and an index of 4.
const DEFAULT_DURATION: u32 = 0x08;
const BASE_OFFSET: u32 = 0x01;
const DESCRIPTION_INDEX: u32 = 0x02;
/// `trun` contains each sample's duration, size, flags and composition offset, 4 bytes each.
const DURATIONS: u32 = 0x100;
const OF_SAMPLE: [u32; 4] = [DURATIONS, 0x200, 0x400, 0x800];
/// `trun` contains an offset, and the first sample's flags.
const BEFORE_SAMPLES: [u32; 2] = [0x01, 0x04];

/// How a track's samples are timed, by its initialization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    track: u32,
    timescale: u32,
    /// The duration of a sample without its own, in units of the timescale.
    duration: u32,
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

impl Timing {
    /// Reads the one track of an initialization. `None` if it has several, or another format.
    pub fn of_init(bytes: &[u8]) -> Option<Timing> {
        let (movie, _) = find(bytes, b"moov")?;
        let mut tracks = contents(movie).filter(|(kind, _)| kind == b"trak");
        let (_, track) = tracks.next()?;
        if tracks.next().is_some() {
            return None;
        }
        let (header, _) = find(find(track, b"mdia")?.0, b"mdhd")?;
        // Behind version and flags: the times of creation and change, of 8 bytes each in version 1.
        let timescale = number(header, if header.first()? == &1 { 20 } else { 12 })?;
        let (extends, _) = find(find(movie, b"mvex")?.0, b"trex")?;
        let timing = Timing { track: number(extends, 4)?, timescale, duration: number(extends, 12)? };
        (timescale > 0).then_some(timing)
    }

    /// Returns how long a segment plays that begins with `head`; `None` if the head has no durations.
    pub fn length(&self, head: &[u8]) -> Option<Duration> {
        let mut ticks = 0u64;
        for (_, fragment) in contents(head).filter(|(kind, _)| kind == b"moof") {
            for (_, track) in contents(fragment).filter(|(kind, _)| kind == b"traf") {
                ticks = ticks.checked_add(self.of_track(track)?)?;
            }
        }
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.timescale);
        (ticks > 0).then_some(Duration::from_nanos(u64::try_from(nanos).ok()?))
    }

    fn of_track(&self, track: &[u8]) -> Option<u64> {
        let (header, _) = find(track, b"tfhd")?;
        if number(header, 4)? != self.track {
            return Some(0);
        }
        let flags = number(header, 0)? & 0xff_ffff;
        let before = [(BASE_OFFSET, 8), (DESCRIPTION_INDEX, 4)];
        let before: usize = before.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, bytes)| bytes).sum();
        let usual = if flags & DEFAULT_DURATION != 0 { number(header, 8 + before)? } else { self.duration };
        let mut ticks = 0u64;
        for (_, run) in contents(track).filter(|(kind, _)| kind == b"trun") {
            let (flags, count) = (number(run, 0)? & 0xff_ffff, number(run, 4)?);
            if flags & DURATIONS == 0 {
                ticks = ticks.checked_add(u64::from(usual) * u64::from(count))?;
                continue;
            }
            let told = |all: &[u32]| all.iter().filter(|flag| flags & **flag != 0).count() * 4;
            let samples = run.get(8 + told(&BEFORE_SAMPLES)..)?;
            for sample in samples.chunks_exact(told(&OF_SAMPLE)).take(count as usize) {
                ticks = ticks.checked_add(u64::from(number(sample, 0)?))?;
            }
        }
        Some(ticks)
    }
}

/// Returns the shown pictures of a segment of `length` with even pictures: all but those before the shown part
/// (`before` long) and after its end.
pub fn shown_of(frames: u32, before: Duration, shown: Duration, length: Duration) -> u32 {
    if length == Duration::ZERO || before + shown >= length && before == Duration::ZERO {
        return frames;
    }
    let upto = |time: Duration| {
        let (time, length) = (u128::from(time.as_nanos()), u128::from(length.as_nanos()));
        u32::try_from((time * u128::from(frames)).div_ceil(length)).unwrap_or(frames).min(frames)
    };
    upto(before + shown) - upto(before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 8).to_be_bytes()[..], kind, content].concat()
    }

    fn words(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn init(tracks: usize) -> Vec<u8> {
        let media = boxed(b"mdia", &boxed(b"mdhd", &words(&[0, 0, 0, 1000, 0, 0])));
        let extends = boxed(b"mvex", &boxed(b"trex", &words(&[0, 1, 1, 40, 0, 0])));
        boxed(b"moov", &[boxed(b"trak", &media).repeat(tracks), extends].concat())
    }

    fn segment(header: &[u32], runs: &[&[u32]]) -> Vec<u8> {
        let runs: Vec<u8> = runs.iter().flat_map(|run| boxed(b"trun", &words(run))).collect();
        boxed(b"moof", &boxed(b"traf", &[boxed(b"tfhd", &words(header)), runs].concat()))
    }

    #[test]
    fn durations_are_told_by_run_by_fragment_or_by_the_initialization() {
        let timing = Timing::of_init(&init(1)).unwrap();
        let length = |bytes: Vec<u8>| timing.length(&bytes).map(|length| length.as_nanos() / 1_000_000);
        assert_eq!(length(segment(&[0, 1], &[&[0, 50], &[0, 25]])), Some(3000));
        assert_eq!(length(segment(&[0x0b, 1, 0, 7, 9, 20], &[&[1, 50, 99]])), Some(1000));
        assert_eq!(length(segment(&[0, 1], &[&[0x305, 2, 9, 9, 30, 7, 50, 7]])), Some(80));
        assert_eq!(length([segment(&[0, 1], &[&[0, 1]]), segment(&[0, 1], &[&[0, 2]])].concat()), Some(120));
        // A fragment of another track, and one of none.
        assert_eq!(length(segment(&[0, 2], &[&[0, 50]])), None);
        assert_eq!(length(Vec::new()), None);
        assert_eq!((Timing::of_init(&init(2)), Timing::of_init(b"")), (None, None));
    }

    #[test]
    fn pictures_outside_are_not_counted() {
        let ms = Duration::from_millis;
        assert_eq!(shown_of(50, ms(0), ms(2000), ms(2000)), 50);
        assert_eq!(shown_of(50, ms(1000), ms(1000), ms(2000)), 25);
        assert_eq!(shown_of(50, ms(0), ms(1000), ms(2000)), 25);
        assert_eq!(shown_of(50, ms(500), ms(500), ms(2000)), 12);
        // It plays less than is shown of it.
        assert_eq!(shown_of(13, ms(0), ms(1500), ms(520)), 13);
        assert_eq!(shown_of(0, ms(500), ms(500), ms(2000)), 0);
    }

    proptest! {
        #[test]
        fn anything_has_a_length_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200), flags in any::<u32>()) {
            let timing = Timing { track: 1, timescale: 1, duration: 1 };
            timing.length(&bytes);
            let run: Vec<u32> = bytes.iter().map(|byte| u32::from(*byte)).collect();
            timing.length(&segment(&[flags, 1], &[&[&[flags][..], &run].concat()]));
            Timing::of_init(&bytes);
        }
    }
}
