//! Received units, in the order for decoders.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration};

use super::units::Unit;

/// This many units of a track wait for one that was sent before them and is shown after them. Encoders put no
/// more pictures between two that they refer to: x264 and ffmpeg's MPEG-4 at most 16.
const MOST_WAITING: usize = 16;

/// A unit as it was received, with its payloads in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedUnit {
    /// Its track, in the order of those of the description that are played.
    pub track: usize,
    /// Its number in the track from the media's start, in the order in which units are shown; one that never
    /// arrived has one too if the description gives the frame rate.
    pub number: u64,
    /// When it is shown, in the media.
    pub at: Duration,
    /// Its RTP timestamp; `None` if no part of it arrived.
    pub timestamp: Option<u32>,
    /// The received part of it.
    pub payloads: Vec<Chunk>,
    /// Whether all of it arrived, even too late.
    pub whole: bool,
    /// It was there when it was due.
    pub shown: bool,
}

/// Puts units that come in the order in which they are shown back into that in which they were sent, which is that of
/// their sequence numbers and that in which they are decoded (RFC 6184 section 7.1). The two differ where there are
/// pictures that refer to a later one (B frames).
pub struct Kept {
    tracks: Vec<Line>,
    ready: VecDeque<ReceivedUnit>,
}

/// One track's, by sequence number.
#[derive(Default)]
struct Line {
    waiting: VecDeque<(u32, ReceivedUnit)>,
    /// That of the last that was pushed.
    last: Option<u32>,
}

impl Kept {
    /// Returns the queues of this many tracks.
    pub fn new(tracks: usize) -> Self {
        Kept { tracks: (0..tracks).map(|_| Line::default()).collect(), ready: VecDeque::new() }
    }

    /// Adds the next unit of `track`, which was shown or given up.
    pub fn push(&mut self, track: usize, unit: Unit) {
        let line = &mut self.tracks[track];
        // One without any received part stays behind the one that was to be shown before it.
        line.last = unit.first_sequence().or(line.last);
        let Some(sequence) = line.last else { return self.ready.push_back(received(track, unit)) };
        let is_before = |there: u32| there.wrapping_sub(sequence).cast_signed() <= 0;
        let place = line.waiting.partition_point(|(there, _)| is_before(*there));
        line.waiting.insert(place, (sequence, received(track, unit)));
        if line.waiting.len() > MOST_WAITING {
            self.ready.extend(line.waiting.pop_front().map(|(_, unit)| unit));
        }
    }

    /// Ends the input: no unit waits for another.
    pub fn finish(&mut self) {
        for line in &mut self.tracks {
            self.ready.extend(line.waiting.drain(..).map(|(_, unit)| unit));
        }
    }

    /// Returns the next, in its track's order of decoding.
    pub fn take(&mut self) -> Option<ReceivedUnit> {
        self.ready.pop_front()
    }
}

fn received(track: usize, mut unit: Unit) -> ReceivedUnit {
    let low = unit.payloads.first().map_or(0, |(sequence, _)| *sequence);
    unit.payloads.sort_by_key(|(sequence, _)| sequence.wrapping_sub(low).cast_signed());
    ReceivedUnit {
        track,
        number: unit.number,
        at: unit.at,
        timestamp: unit.timestamp,
        payloads: unit.payloads.into_iter().map(|(_, payload)| payload).collect(),
        whole: unit.whole_at.is_some(),
        shown: unit.shown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamgauge_base::Instant;

    use super::super::units::{Timeline, Units};
    use super::*;
    use crate::reception::Place;

    const CLOCK: u32 = 90_000;

    /// Units of one packet each, 40 ms apart, that were sent in the order of `shown`: each entry is the place
    /// at which the unit is shown, `None` for one that does not come. Returns the output, by that place.
    fn kept(shown: &[Option<u32>], first_sequence: u32) -> Vec<u64> {
        let mut units = Units::new(Some(Duration::from_millis(40)));
        units.anchor(Timeline::new(CLOCK, 0, Duration::ZERO));
        for (number, place) in (0..).zip(shown) {
            let Some(shown) = place else { continue };
            let sequence = first_sequence.wrapping_add(number);
            let place = Place { sequence, timestamp: shown * 3600, first: true, last: true };
            units.take(Instant::ZERO, place, None);
        }
        let (mut kept, mut out) = (Kept::new(1), Vec::new());
        while !units.is_empty() {
            units.fall();
            kept.push(0, units.leave().unwrap());
            out.extend(std::iter::from_fn(|| kept.take()));
        }
        kept.finish();
        out.extend(std::iter::from_fn(|| kept.take()));
        out.into_iter().filter(|unit| unit.timestamp.is_some()).map(|unit| unit.number).collect()
    }

    /// Returns the order of showing of units sent and decoded as I P B B P B B ..., shown as I B B P B B P
    /// ...
    fn sent(groups: u32, b_frames: u32) -> Vec<Option<u32>> {
        let step = b_frames + 1;
        let group = |end: u32| std::iter::once(end).chain(end - b_frames..end);
        std::iter::once(0).chain((1..=groups).flat_map(|n| group(n * step))).map(Some).collect()
    }

    proptest! {
        #[test]
        fn units_come_out_as_they_were_sent(
            groups in 1u32..12, b_frames in 0u32..=16, first in prop_oneof![any::<u32>(), Just(1 << 31)],
            lost in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut sent = sent(groups, b_frames);
            for lost in lost {
                *lost.get_mut(&mut sent) = None;
            }
            let expected: Vec<u64> = sent.iter().flatten().map(|&shown| shown.into()).collect();
            prop_assert_eq!(kept(&sent, first), expected);
        }
    }

    #[test]
    fn a_picture_is_handed_on_once_sixteen_wait_behind_it() {
        let mut units = Units::new(Some(Duration::from_millis(40)));
        units.anchor(Timeline::new(CLOCK, 0, Duration::ZERO));
        let mut kept = Kept::new(1);
        for number in 0..20 {
            let place = Place { sequence: number, timestamp: number * 3600, first: true, last: true };
            units.take(Instant::ZERO, place, None);
            units.fall();
            kept.push(0, units.leave().unwrap());
        }
        let out: Vec<u64> = std::iter::from_fn(|| kept.take()).map(|unit| unit.number).collect();
        assert_eq!(out, [0, 1, 2, 3]);
    }
}
