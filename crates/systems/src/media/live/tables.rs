//! The measured encodes.

use std::sync::OnceLock;

/// A line an encode: codec, sequence, rate in kbit/s, bytes of each frame.
static FRAMES: &str = include_str!("frames.txt");
/// Interval of key frames of an encode, in frames.
pub const KEY_EVERY: usize = 60;

/// One encode. Sizes are multiples of the mean of the frames that are no key frames.
#[derive(Debug)]
pub struct Encode {
    /// Its actual rate, bit/s at 30 frames/s.
    pub rate: f64,
    /// Sizes of key frames.
    pub keys: Vec<f64>,
    /// Sizes of the others, in order.
    pub deltas: Vec<f64>,
}

/// Codec and sequence, and their encodes by ascending rate.
pub type Encodes = ((&'static str, &'static str), Vec<Encode>);

/// Returns all of them.
pub fn encodes() -> &'static [Encodes] {
    static READ: OnceLock<Vec<Encodes>> = OnceLock::new();
    READ.get_or_init(|| {
        let mut all: Vec<Encodes> = Vec::new();
        for line in FRAMES.lines() {
            let mut words = line.split(' ');
            let (Some(codec), Some(sequence), Some(_)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let sizes: Vec<f64> = words.filter_map(|size| size.parse().ok()).collect();
            match all.iter_mut().find(|(key, _)| *key == (codec, sequence)) {
                Some((_, encodes)) => encodes.push(encode(&sizes)),
                None => all.push(((codec, sequence), vec![encode(&sizes)])),
            }
        }
        // At the lowest rates VP8 does not get as low as its target.
        all.iter_mut().for_each(|(_, encodes)| encodes.sort_by(|a, b| a.rate.total_cmp(&b.rate)));
        all
    })
}

fn encode(sizes: &[f64]) -> Encode {
    let is_key = |place: usize| place.is_multiple_of(KEY_EVERY);
    let of = |key: bool| sizes.iter().enumerate().filter(move |(place, _)| is_key(*place) == key);
    let mean = of(false).map(|(_, size)| size).sum::<f64>() / of(false).count() as f64;
    let parts = |key: bool| of(key).map(|(_, size)| size / mean).collect();
    let rate = sizes.iter().sum::<f64>() * 8.0 * 30.0 / sizes.len() as f64;
    Encode { rate, keys: parts(true), deltas: parts(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_codecs_and_three_sequences_at_ten_rates_each() {
        assert_eq!(encodes().len(), 6);
        for (name, encodes) in encodes() {
            assert_eq!(encodes.len(), 10, "{name:?}");
            // VP8 on bikes has key frames that are smaller than the others' mean.
            assert!(encodes.is_sorted_by(|a, b| a.rate < b.rate), "{name:?}");
            for one in encodes {
                assert_eq!((one.keys.len(), one.deltas.len()), (2, 2 * KEY_EVERY - 2), "{name:?}");
                let mean = one.deltas.iter().sum::<f64>() / one.deltas.len() as f64;
                assert!((mean - 1.0).abs() < 1e-9 && one.keys.iter().all(|key| *key > 0.0), "{name:?}");
            }
        }
    }
}
