//! The player's selection from an object: the rate that fits at first, and less when too much is lost (Intelligent
//! Streaming).

use streamgauge_wire::mms::ThinningLevel;

use super::super::sdp::StreamDescription;

/// The selected part of a stream of pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The stream's number.
    pub number: u8,
    pub level: ThinningLevel,
}

/// The possible selections of the pictures, and the present one.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// From the most to the least.
    steps: Vec<Taken>,
    at: usize,
}

impl Choice {
    /// Makes the choice for `streams`: beside the sound, the pictures of the highest rate with a profile that, with
    /// that sound, is at most `fits_bps`; else of the lowest. Where that is not to be had, lower rates, key frames
    /// alone, no pictures.
    pub fn new(streams: &[StreamDescription], fits_bps: f64) -> Self {
        let sound: u64 = streams.iter().find(|stream| !stream.is_video).map_or(0, |sound| sound.bit_rate_bps);
        let mut pictures: Vec<_> = streams.iter().filter(|stream| stream.is_video).collect();
        pictures.sort_by_key(|stream| std::cmp::Reverse(stream.bit_rate_bps));
        let mut steps: Vec<_> = pictures
            .iter()
            .map(|stream| Taken { number: stream.number, level: ThinningLevel::All })
            .collect();
        if let Some(lowest) = pictures.last() {
            let thinner = [ThinningLevel::KeyFrames, ThinningLevel::Nothing];
            steps.extend(thinner.map(|level| Taken { number: lowest.number, level }));
        }
        let fits = |stream: &&StreamDescription| (stream.bit_rate_bps + sound) as f64 <= fits_bps;
        let at = pictures.iter().position(fits).unwrap_or(pictures.len().saturating_sub(1));
        Choice { steps, at }
    }

    /// Returns the present selection; `None` where there are no pictures.
    pub fn taken(&self) -> Option<Taken> {
        self.steps.get(self.at).copied()
    }

    /// Selects less. Returns whether there is less.
    pub fn take_less(&mut self) -> bool {
        let is_less = self.at + 1 < self.steps.len();
        self.at += usize::from(is_less);
        is_less
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(rates: &[u64], sound: u64) -> Vec<StreamDescription> {
        let sound = StreamDescription { number: 1, is_video: false, bit_rate_bps: sound };
        let video =
            |(number, rate): (u8, &u64)| StreamDescription { number, is_video: true, bit_rate_bps: *rate };
        std::iter::once(sound).chain((2..).zip(rates).map(video)).collect()
    }

    #[test]
    fn the_highest_that_fits_is_taken_and_then_ever_less() {
        let streams = streams(&[100_000, 300_000, 500_000], 48_000);
        let mut choice = Choice::new(&streams, 400_000.0);
        let mut taken = vec![choice.taken().unwrap()];
        while choice.take_less() {
            taken.push(choice.taken().unwrap());
        }
        let of = |number, level| Taken { number, level };
        use ThinningLevel::{All, KeyFrames, Nothing};
        assert_eq!(taken, [of(3, All), of(2, All), of(2, KeyFrames), of(2, Nothing)]);
        assert_eq!(Choice::new(&streams, 10.0).taken(), Some(of(2, All)), "the lowest where none fits");
        assert_eq!(Choice::new(&streams[..1], 1e9).taken(), None);
    }
}
