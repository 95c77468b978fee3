//! Numbered packets: lost, late, repeated (RFC 3550 appendix A.1, with numbers of any width).

use std::collections::BTreeSet;

/// Missing numbers that are kept: the last ones.
const MOST_MISSING: usize = 1 << 16;
/// A larger step is a new start, not loss (RFC 3550 appendix A.1: `MAX_DROPOUT`).
const LARGEST_STEP: u64 = 3000;

/// The part of a packet in its numbered stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// A number after all others.
    Next,
    /// A number that was missing.
    Late,
    /// A number that has arrived.
    Repeated,
    /// Too far from all others: the numbers start anew.
    Restart,
}

/// The number with these low `bits` that is nearest to `to`.
pub fn nearest(bits: u32, to: u64, number: u64) -> u64 {
    let size = 1u64 << bits;
    let ahead = number.wrapping_sub(to) & (size - 1);
    if ahead < size / 2 { to + ahead } else { (to + ahead).saturating_sub(size) }
}

/// Follows one stream's numbers of `bits` bits.
#[derive(Clone, Debug)]
pub struct Sequence {
    bits: u32,
    /// Numbers are extended to 64 bits.
    first: u64,
    highest: u64,
    missing: BTreeSet<u64>,
    /// Missing numbers that were dropped from `missing`.
    forgotten: u64,
    /// Packets with a new number.
    pub received: u64,
    /// Packets with a number that had arrived.
    pub repeated: u64,
    /// Packets behind a higher number.
    pub late: u64,
    /// Times that the numbers started anew.
    pub restarts: u64,
    /// Lost before the last restart.
    lost_before: u64,
}

impl Sequence {
    /// Starts with this number.
    pub fn new(bits: u32, number: u64) -> Self {
        let start = (1 << bits) + number;
        Sequence {
            bits,
            first: start,
            highest: start,

            missing: BTreeSet::new(),
            forgotten: 0,
            received: 1,
            repeated: 0,
            late: 0,
            restarts: 0,
            lost_before: 0,
        }
    }

    /// The extended number nearest to the highest one.
    pub fn extended(&self, number: u64) -> u64 {
        nearest(self.bits, self.highest, number)
    }

    /// A packet with this number arrives.
    pub fn arrive(&mut self, number: u64) -> Arrival {
        let at = self.extended(number);
        if at > self.highest {
            if at - self.highest > LARGEST_STEP {
                return self.restart(number);
            }
            self.missing.extend(self.highest + 1..at);
            while self.missing.len() > MOST_MISSING {
                self.missing.pop_first();
                self.forgotten += 1;
            }
            self.highest = at;
            self.received += 1;
            return Arrival::Next;
        }
        if self.missing.remove(&at) {
            self.received += 1;
            self.late += 1;
            return Arrival::Late;
        }
        if at < self.first && self.highest - at > LARGEST_STEP {
            return self.restart(number);
        }
        if at < self.first {
            // From before the capture's first packet of the stream.
            for earlier in at + 1..self.first {
                self.missing.insert(earlier);
            }
            self.first = at;
            self.received += 1;
            self.late += 1;
            return Arrival::Late;
        }
        self.repeated += 1;
        Arrival::Repeated
    }

    fn restart(&mut self, number: u64) -> Arrival {
        self.lost_before += self.missing.len() as u64;
        self.missing.clear();
        let start = (((self.highest >> self.bits) + 2) << self.bits) + number;
        (self.first, self.highest) = (start, start);
        self.received += 1;
        self.restarts += 1;
        Arrival::Restart
    }

    /// Marks a number as arrived by a retransmission. Returns whether it was missing.
    pub fn repair(&mut self, number: u64) -> bool {
        let at = self.extended(number);
        if at > self.highest && at - self.highest <= LARGEST_STEP {
            // The originals from the highest on were missing, and none of them has come.
            self.missing.extend(self.highest + 1..at);
            self.highest = at;
            return true;
        }
        self.missing.remove(&at)
    }

    /// Numbers that have not arrived.
    pub fn lost(&self) -> u64 {
        self.missing.len() as u64 + self.forgotten + self.lost_before
    }

    /// The numbers that have not arrived since the last restart, extended.
    pub fn missing(&self) -> &BTreeSet<u64> {
        &self.missing
    }

    /// The highest number, extended.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The first number since the last restart, extended.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Runs of missing numbers: how many, and the longest.
    pub fn runs(&self) -> (u64, u64) {
        let (mut count, mut longest, mut length, mut last) = (0, 0, 0, None);
        for &at in &self.missing {
            length = if last == Some(at - 1) { length + 1 } else { 1 };
            count += u64::from(length == 1);
            longest = longest.max(length);
            last = Some(at);
        }
        (count, longest)
    }
}
