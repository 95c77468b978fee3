//! Contents of control packets: acknowledgements, loss reports, requests to drop.

use super::fault::{Fault, Problem};
use super::fields::Fields;
use super::sequence::SequenceNumber;
use crate::body::Written;

/// Ranges that a loss report of one Ethernet frame can hold: 1500 B without the headers of IP, UDP and SRT, 8 B each.
pub const MOST_RANGES: usize = (1500 - 28 - super::HEADER_BYTES) / 8;

/// The content of an acknowledgement (section 3.2.4), of any of its three lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckReport {
    /// The first number that is not acknowledged.
    pub next: SequenceNumber,
    /// The round trip and its variance, in microseconds. A light acknowledgement has none.
    pub round_trip_us: Option<(u32, u32)>,
    /// Free packets of the receiver's buffer, beside the round trip.
    pub free_packets: u32,
    /// Packets received and link capacity in packets/s, and bytes received in B/s. A small acknowledgement has none.
    pub rates: Option<[u32; 3]>,
}

impl AckReport {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let mut ack = AckReport { next: fields.sequence()?, ..AckReport::default() };
        if fields.left() >= 12 {
            ack.round_trip_us = Some((fields.u32()?, fields.u32()?));
            ack.free_packets = fields.u32()?;
        }
        if ack.round_trip_us.is_some() && fields.left() >= 12 {
            ack.rates = Some([fields.u32()?, fields.u32()?, fields.u32()?]);
        }
        fields.rest();
        Ok(ack)
    }

    pub(super) fn write(&self, out: &mut Written) {
        put(out, self.next.get());
        let Some((rtt, variance)) = self.round_trip_us else { return };
        [rtt, variance, self.free_packets].into_iter().for_each(|field| put(out, field));
        self.rates.iter().flatten().for_each(|field| put(out, *field));
    }
}

/// Consecutive lost packets, the first and the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossRange {
    /// The first.
    pub first: SequenceNumber,
    /// The last, which may be the first.
    pub last: SequenceNumber,
}

impl LossRange {
    /// Returns how many packets it has.
    pub fn packets(&self) -> u32 {
        self.first.to(self.last).unsigned_abs() + 1
    }
}

/// Set in the first of two numbers that are a range (appendix A).
const IS_RANGE: u32 = 1 << 31;

/// Reads the list of a loss report (appendix A).
pub(super) fn read_losses(fields: &mut Fields<'_>) -> Result<Vec<LossRange>, Problem> {
    let begins = fields.at();
    let mut losses = Vec::with_capacity(fields.left().min(MOST_RANGES * 8) / 8);
    while fields.left() > 0 {
        let at = fields.at();
        let number = fields.u32()?;
        let first = SequenceNumber::of(u64::from(number & !IS_RANGE));
        let last = if number & IS_RANGE == 0 { first } else { fields.sequence()? };
        if first.to(last) < 0 {
            return Err(Fault::Range.at(at));
        }
        losses.push(LossRange { first, last });
    }
    if losses.is_empty() { Err(Fault::NoLoss.at(begins)) } else { Ok(losses) }
}

pub(super) fn write_losses(losses: &[LossRange], out: &mut Written) {
    for LossRange { first, last } in losses {
        if first == last {
            put(out, first.get());
        } else {
            put(out, first.get() | IS_RANGE);
            put(out, last.get());
        }
    }
}

/// A sender's request to wait no longer for a message (section 3.2.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropRequest {
    /// The message, 0 where its packets alone are known.
    pub message: u32,
    /// Its packets.
    pub packets: LossRange,
}

pub(super) fn put(out: &mut Written, field: u32) {
    out.put(&field.to_be_bytes());
}
