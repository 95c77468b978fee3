//! A hash of packet headers: quick, the same on every machine.

use std::hash::{BuildHasherDefault, Hasher};

/// Mixes 64 bits with a further number (MurmurHash3's finaliser constants).
#[inline]
pub fn mix(hash: u64, with: u64) -> u64 {
    let hash = (hash ^ with.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 32)
}

/// Builds hashers for keys that are well mixed already, or are mixed here word by word.
pub type Mixed = BuildHasherDefault<Mixer>;

/// See [`Mixed`].
#[derive(Default, Clone, Copy)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = mix(self.0 ^ u64::from(byte), 5));
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value, 6);
    }
    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.0 = mix(self.0 ^ value as u64, (value >> 64) as u64);
    }
    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }
    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
}
