//! Numbers of data packets.

use std::fmt;

/// The number of a data packet among its stream's. Those from 0xff00 on are packet types; 0 follows 0xfeff.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceNumber(u16);

impl SequenceNumber {
    /// How many there are.
    pub const COUNT: u16 = 0xff00;

    /// Returns `None` from [`COUNT`](Self::COUNT) on.
    pub fn new(number: u16) -> Option<Self> {
        (number < Self::COUNT).then_some(SequenceNumber(number))
    }

    /// Returns that of the packet before which `sent` were sent.
    pub fn of(sent: u64) -> Self {
        SequenceNumber((sent % u64::from(Self::COUNT)) as u16)
    }

    /// Returns its value in a packet.
    pub fn get(self) -> u16 {
        self.0
    }

    /// Returns the number this many packets later, or earlier.
    pub fn plus(self, packets: i32) -> Self {
        let sum = i64::from(self.0) + i64::from(packets);
        SequenceNumber(sum.rem_euclid(i64::from(Self::COUNT)) as u16)
    }

    /// Returns the next.
    pub fn next(self) -> Self {
        self.plus(1)
    }

    /// Returns how many packets further on it is than `other`, the short way round: from -32639 to 32640.
    pub fn ahead_of(self, other: Self) -> i32 {
        let count = i32::from(Self::COUNT);
        let ahead = (i32::from(self.0) - i32::from(other.0)).rem_euclid(count);
        if ahead > count / 2 { ahead - count } else { ahead }
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
