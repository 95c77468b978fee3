//! Numbers of data packets.

/// The number of a data packet: 31 bits; 0 follows the greatest (section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceNumber(u32);

impl SequenceNumber {
    /// How many there are.
    pub const COUNT: u32 = 1 << 31;

    /// Returns `None` from [`COUNT`](Self::COUNT) on.
    pub fn new(number: u32) -> Option<Self> {
        (number < Self::COUNT).then_some(SequenceNumber(number))
    }

    /// Returns the number with the lowest bits of a count.
    pub fn of(count: u64) -> Self {
        SequenceNumber((count % u64::from(Self::COUNT)) as u32)
    }

    /// Returns its value in a packet.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Returns how many packets later `other` is than this one, by the shorter way round; negative if it is earlier.
    pub fn to(self, other: Self) -> i32 {
        let ahead = other.0.wrapping_sub(self.0) << 1;
        ahead.cast_signed() >> 1
    }

    /// Returns the count that has these lowest bits and is nearest to `near`; 0 or more.
    pub fn near(self, near: u64) -> u64 {
        let ahead = i64::from(SequenceNumber::of(near).to(self));
        near.checked_add_signed(ahead).unwrap_or(u64::from(self.0))
    }
}
