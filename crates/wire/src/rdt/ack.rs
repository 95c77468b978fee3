//! Acknowledgements: received packets, and packets to be sent again.

use super::SequenceNumber;
use super::fault::{Fault, Problem};
use super::fields::Fields;
use crate::body::Written;

const HAS_LENGTH: u8 = 0x80;
const LOST_HIGH: u8 = 0x40;
const HAS_EXTENSION: u8 = 1;

/// Numbers before the last that one acknowledgement of a stream has room for: 255 B of bits.
pub const MOST_BITS: u16 = 255 * 8;

/// Type 0xff02: the received packets of some streams. RealPlayer sends it each second, and at once where some
/// are missing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AckPacket {
    /// The last number of each stream is lost.
    pub lost_high: bool,
    /// The acknowledgement of each stream.
    pub streams: Vec<StreamAck>,
}

/// An acknowledgement of one stream: of a last number, and of some before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamAck {
    /// Number of the stream.
    pub stream: u16,
    /// The last number that it covers; its meaning is in [`AckPacket::lost_high`].
    pub last: SequenceNumber,
    bits: u16,
    /// Bit k, from the least significant of the first byte on as in Helix's bit sets, is `last` - 1 - k; 1 if
    /// it was received.
    bitmap: Box<[u8]>,
}

impl AckPacket {
    /// Reports which of `first` to `last` arrived. It covers at most [`MOST_BITS`] before the last.
    pub fn of(
        stream: u16,
        first: SequenceNumber,
        last: SequenceNumber,
        mut came: impl FnMut(SequenceNumber) -> bool,
    ) -> Self {
        let bits = last.ahead_of(first).clamp(0, MOST_BITS.into()) as u16;
        let mut bitmap = vec![0; usize::from(bits).div_ceil(8)];
        for bit in (0..bits).filter(|bit| came(before(last, *bit))) {
            bitmap[usize::from(bit / 8)] |= 1 << (bit % 8);
        }
        let ack = StreamAck { stream, last, bits, bitmap: bitmap.into() };
        AckPacket { lost_high: !came(last), streams: vec![ack] }
    }

    /// Reports all from `first` to `last` as lost.
    pub fn lost(stream: u16, first: SequenceNumber, last: SequenceNumber) -> Self {
        Self::of(stream, first, last, |_| false)
    }

    /// Returns the numbers that it reports as lost, with their streams; a stream's oldest is its first.
    pub fn lost_sequences(&self) -> impl Iterator<Item = (u16, SequenceNumber)> + '_ {
        self.sequences().filter(|(_, _, came)| !came).map(|(stream, sequence, _)| (stream, sequence))
    }

    /// Returns the numbers that it covers: their streams, and whether they arrived. A stream's oldest is its
    /// first.
    pub fn sequences(&self) -> impl Iterator<Item = (u16, SequenceNumber, bool)> + '_ {
        self.streams.iter().flat_map(|ack| {
            let bits = (0..ack.bits).rev().map(|bit| {
                let came = ack.bitmap[usize::from(bit / 8)] >> (bit % 8) & 1 == 1;
                (ack.stream, before(ack.last, bit), came)
            });
            bits.chain([(ack.stream, ack.last, !self.lost_high)])
        })
    }

    pub(super) fn read(flags: u8, start: usize, fields: &mut Fields<'_>) -> Result<Self, Problem> {
        if flags & HAS_EXTENSION != 0 {
            return Err(Fault::Extension.at(start));
        }
        let mut fields = fields.of_length(start, flags & HAS_LENGTH != 0)?;
        let mut streams = Vec::new();
        while !fields.is_empty() {
            let stream = fields.u16()?;
            let last = fields.sequence()?;
            let at = fields.at();
            let (bits, bytes) = (fields.u16()?, fields.u8()?);
            if usize::from(bits) > 8 * usize::from(bytes) {
                return Err(Fault::Bitmap { bits, bytes }.at(at));
            }
            let bitmap = fields.bytes(bytes.into())?.into();
            streams.push(StreamAck { stream, last, bits, bitmap });
        }
        Ok(AckPacket { lost_high: flags & LOST_HIGH != 0, streams })
    }

    pub(super) fn write(&self, packet_type: u16, with_length: bool, out: &mut Written) {
        let start = out.len();
        let flags = if with_length { HAS_LENGTH } else { 0 } | if self.lost_high { LOST_HIGH } else { 0 };
        out.put(&[flags]);
        out.put(&packet_type.to_be_bytes());
        let length = with_length.then(|| out.put_length());
        for ack in &self.streams {
            for number in [ack.stream, ack.last.get(), ack.bits] {
                out.put(&number.to_be_bytes());
            }
            out.put(&[ack.bitmap.len() as u8]);
            out.put(&ack.bitmap);
        }
        if let Some(place) = length {
            out.set_length(place, start);
        }
    }
}

/// Returns the number for a bit.
fn before(last: SequenceNumber, bit: u16) -> SequenceNumber {
    last.plus(-1 - i32::from(bit))
}
