//! Sequence numbers: 64 bits inside; the low 32 are the wire's, so that comparisons need no care.

/// Returns where the 64-bit numbering of a stream with initial sequence number `wire` starts. The offset of 2^32 leaves
/// room below it, so that `extend` near the start of a stream cannot run below zero.
pub fn first(wire: u32) -> u64 {
    (1 << 32) + u64::from(wire)
}

/// Returns the 64-bit number with the low bits `wire` that is nearest to `near`.
#[inline]
pub fn extend(near: u64, wire: u32) -> u64 {
    let distance = wire.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(i64::from(distance))
}

/// A sequence number that may be unknown, in 8 bytes: no stream gets as far as the last of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Maybe(u64);

impl Maybe {
    /// An unknown sequence number.
    pub const NONE: Maybe = Maybe(u64::MAX);

    /// Makes a known sequence number.
    #[inline]
    pub fn some(seq: u64) -> Self {
        Maybe(seq)
    }

    #[inline]
    pub fn get(self) -> Option<u64> {
        (self.0 != u64::MAX).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extending_is_the_inverse_of_truncating_within_half_the_space() {
        for near in [first(0), first(5), first(u32::MAX), (7 << 32) - 3] {
            for distance in [0i64, 1, -1, 1448, -1448, (1 << 31) - 1, -(1 << 31)] {
                let seq = near.wrapping_add_signed(distance);
                assert_eq!(extend(near, seq as u32), seq);
            }
        }
    }
}
