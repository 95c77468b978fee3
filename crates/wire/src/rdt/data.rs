//! Data packets.

use super::fault::Problem;
use super::fields::Fields;
use super::{EXTENDED_STREAM, SequenceNumber};
use crate::body::{Body, Written};

const HAS_LENGTH: u8 = 0x80;
const HAS_TOTAL_RELIABLE: u8 = 0x40;
const IS_RELIABLE: u8 = 1;
const BACK_TO_BACK: u8 = 0x80;
const SLOW: u8 = 0x40;
/// This rule number in six bits means that the number is in 16 bits behind.
const EXTENDED_RULE: u8 = 63;

/// A data packet: some of one stream's media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataPacket<'a> {
    /// Number of the stream, as in the session description.
    pub stream: u16,
    /// Its number among the stream's packets.
    pub sequence: SequenceNumber,
    /// It has to come: its rule has priority 10.
    pub is_reliable: bool,
    /// How many packets that have to come the stream sent so far, modulo 65536. RealNetworks' servers always
    /// send it.
    pub total_reliable: Option<u16>,
    /// It was sent right behind the packet before it: of the two, receivers measure the rate of the path.
    pub is_back_to_back: bool,
    /// It may come late.
    pub is_slow: bool,
    /// The rule of the stream's ASM rule book that it belongs to.
    pub rule: u16,
    /// When it is to be shown, in ms from the start.
    pub timestamp_ms: u32,
    /// Its part of the media.
    pub payload: Body<'a>,
}

impl<'a> DataPacket<'a> {
    /// Returns the bytes before the payload: 8 to 16.
    pub fn header_bytes(&self, with_length: bool) -> usize {
        let extra = [
            with_length,
            self.stream >= EXTENDED_STREAM.into(),
            self.total_reliable.is_some(),
            self.rule >= EXTENDED_RULE.into(),
        ];
        8 + 2 * extra.into_iter().filter(|extra| *extra).count()
    }

    /// Reads the rest of a packet; `sequence` and `flags` have been read.
    pub(super) fn read(
        flags: u8,
        sequence: SequenceNumber,
        start: usize,
        fields: &mut Fields<'a>,
    ) -> Result<Self, Problem> {
        let mut fields = fields.of_length(start, flags & HAS_LENGTH != 0)?;
        let more = fields.u8()?;
        let timestamp_ms = fields.u32()?;
        let stream = match flags >> 1 & EXTENDED_STREAM {
            EXTENDED_STREAM => fields.u16()?,
            stream => stream.into(),
        };
        let total_reliable = (flags & HAS_TOTAL_RELIABLE != 0).then(|| fields.u16()).transpose()?;
        let rule = match more & EXTENDED_RULE {
            EXTENDED_RULE => fields.u16()?,
            rule => rule.into(),
        };
        Ok(DataPacket {
            stream,
            sequence,
            is_reliable: flags & IS_RELIABLE != 0,
            total_reliable,
            is_back_to_back: more & BACK_TO_BACK != 0,
            is_slow: more & SLOW != 0,
            rule,
            timestamp_ms,
            payload: fields.rest(),
        })
    }

    pub(super) fn write(&self, with_length: bool, out: &mut Written) {
        let flag = |set, flag| if set { flag } else { 0u8 };
        let start = out.len();
        let stream = self.stream.min(EXTENDED_STREAM.into()) as u8;
        let rule = self.rule.min(EXTENDED_RULE.into()) as u8;
        let flags = flag(with_length, HAS_LENGTH)
            | flag(self.total_reliable.is_some(), HAS_TOTAL_RELIABLE)
            | stream << 1
            | flag(self.is_reliable, IS_RELIABLE);
        out.put(&[flags]);
        out.put(&self.sequence.get().to_be_bytes());
        let length = with_length.then(|| out.put_length());
        out.put(&[flag(self.is_back_to_back, BACK_TO_BACK) | flag(self.is_slow, SLOW) | rule]);
        out.put(&self.timestamp_ms.to_be_bytes());
        if stream == EXTENDED_STREAM {
            out.put(&self.stream.to_be_bytes());
        }
        if let Some(total) = self.total_reliable {
            out.put(&total.to_be_bytes());
        }
        if rule == EXTENDED_RULE {
            out.put(&self.rule.to_be_bytes());
        }
        out.put_body(self.payload);
        if let Some(place) = length {
            out.set_length(place, start);
        }
    }
}
