//! Packets of random bytes, by which a player estimates the path's rate.

use streamgauge_base::Chunk;

use super::{AsfUnit, Fault, LengthOf, UnitContent, write};
use crate::body::Body;

/// Random bytes of three packets where the player does not leave them to the server ([MS-RTSP] section 2.2.3.2): the third
/// fills an Ethernet frame.
pub const THREE_RANDOM_BYTES: [usize; 3] = [1_454, 1_455, 1_456];
/// The same of two.
pub const TWO_RANDOM_BYTES: [usize; 2] = [1_455, 1_456];
/// Random bytes that each has at least, where the player leaves them to the server (`variable-size`).
pub const LEAST_RANDOM_BYTES: usize = 482;

/// Returns which of three packets has this many random bytes: modulo 3 they are 2, 0 and 1.
pub fn place_of_three(random_bytes: usize) -> usize {
    (random_bytes + 1) % 3
}

/// Returns which of two packets has this many random bytes: modulo 3 they are 0 and 1.
pub fn place_of_two(random_bytes: usize) -> Option<usize> {
    Some(random_bytes % 3).filter(|place| *place < 2)
}

/// One of two or three packets in a row on the retransmissions' stream, with the RTP timestamp 0 ([MS-RTSP] section 2.2.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpPacketPair<'a> {
    /// It is the first.
    pub is_first: bool,
    /// Others in each packet.
    pub random: Body<'a>,
}

impl<'a> RtpPacketPair<'a> {
    /// Parses `payload`, which is that of one packet.
    pub fn parse(payload: impl Into<Body<'a>>) -> Result<Self, Fault> {
        let payload = payload.into();
        let (unit, rest) = AsfUnit::read(payload, LengthOf::Packet)?;
        match unit.content {
            UnitContent::Packet(random) if rest.is_empty() => {
                Ok(RtpPacketPair { is_first: unit.is_key, random })
            }
            UnitContent::Packet(random) => {
                Err(Fault::Length { length: random.len() as u32, left: payload.len() as u32 })
            }
            UnitContent::Fragment { offset, .. } => {
                Err(Fault::Length { length: offset, left: payload.len() as u32 })
            }
        }
    }

    /// Returns the payload. The length counts the random bytes alone.
    pub fn write(&self) -> Chunk {
        write(&[AsfUnit::packet(self.is_first, self.random)], LengthOf::Packet)
    }
}
