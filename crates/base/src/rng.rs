//! Named random streams: adding a flow or a stage changes no other draw.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A seeded stream of random numbers that belongs to one owner and purpose.
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64);

impl RandomStream {
    /// Makes the stream of `seed` for `owner` (a flow's or stage's name) and `purpose` ("loss", "host_jitter").
    pub fn named(seed: u64, owner: &str, purpose: &str) -> Self {
        RandomStream::of(seed, RandomStream::key(owner, purpose))
    }

    /// Returns the key by which [`RandomStream::of`] identifies `owner` and `purpose`: a quarter of the stream's
    /// memory.
    pub fn key(owner: &str, purpose: &str) -> u64 {
        // FNV-1a over the names, with a separator that can be in neither: stable across versions and machines.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for &byte in owner.as_bytes().iter().chain(&[0xff]).chain(purpose.as_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash
    }

    /// Makes the stream of `seed` for the owner and purpose of `key`.
    pub fn of(seed: u64, key: u64) -> Self {
        let mut bytes = [0u8; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&(!seed).to_le_bytes());
        bytes[16..24].copy_from_slice(&key.to_le_bytes());
        RandomStream(Pcg64::from_seed(bytes))
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns true with probability `threshold / 2^64`; see [`RandomStream::threshold`].
    #[inline]
    pub fn chance(&mut self, threshold: u64) -> bool {
        self.bits() < threshold
    }

    /// Returns a probability in [0, 1] as the integer that [`RandomStream::chance`] compares with. 1.0 gives
    /// `u64::MAX`.
    pub fn threshold(probability: f64) -> u64 {
        // `as` saturates, so 1.0 * 2^64 becomes u64::MAX.
        (probability * 18_446_744_073_709_551_616.0) as u64
    }

    /// Returns a whole number in `0..below`, or 0 if `below` is 0. The bias is below `below / 2^64`.
    #[inline]
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(below)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_independent_of_each_other_and_stable() {
        let mut a = RandomStream::named(1, "ftp", "start");
        let mut b = RandomStream::named(1, "ftp", "jitter");
        let mut c = RandomStream::named(2, "ftp", "start");
        let firsts = [a.bits(), b.bits(), c.bits()];
        assert_eq!(
            firsts,
            [
                RandomStream::named(1, "ftp", "start").bits(),
                RandomStream::named(1, "ftp", "jitter").bits(),
                RandomStream::named(2, "ftp", "start").bits(),
            ]
        );
        assert!(firsts[0] != firsts[1] && firsts[0] != firsts[2] && firsts[1] != firsts[2]);
    }

    #[test]
    fn chance_matches_its_probability() {
        let mut s = RandomStream::named(7, "loss", "bernoulli");
        let threshold = RandomStream::threshold(0.1);
        let hits = (0..100_000).filter(|_| s.chance(threshold)).count();
        // 5 standard deviations of a binomial.
        assert!((9_526..=10_474).contains(&hits), "{hits}");
    }

    #[test]
    fn below_stays_below() {
        let mut s = RandomStream::named(7, "x", "y");
        assert!((0..10_000).all(|_| s.below(7) < 7));
        assert_eq!(s.below(0), 0);
    }
}
