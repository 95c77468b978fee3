//! Final content of a face: Interests and Data.

use streamgauge_base::Chunk;

use super::data::Data;
use super::fault::{Fault, Problem};
use super::interest::Interest;
use super::tlv::Elements;
use super::types::{DATA, INTEREST};

/// A packet of the network layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// Asks for a Data.
    Interest(Interest),
    /// Answers an Interest.
    Data(Data),
}

impl Packet {
    /// Reads the whole of a bare packet, or an [`LpPacket`](super::LpPacket)'s fragment.
    ///
    /// # Errors
    /// Malformed bytes; for a Data a wrong DigestSha256 too.
    pub fn read(packet: &Chunk) -> Result<Packet, Problem> {
        let first = Elements::of(packet).next()?.ok_or(Fault::Truncated { missing: 1 }.at(0))?;
        match first.kind {
            INTEREST => Interest::read(packet).map(Packet::Interest),
            DATA => Data::read(packet).map(Packet::Data),
            other => Err(Fault::PacketType(other).at(0)),
        }
    }

    /// Its name.
    pub fn name(&self) -> &super::name::Name {
        match self {
            Packet::Interest(interest) => &interest.name,
            Packet::Data(data) => &data.name,
        }
    }
}
