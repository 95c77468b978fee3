//! The request to send packets again.

use super::fault::{Fault, Problem};
use super::fields::{Fields, Out};

const SIGNATURE: u32 = 0xbeef_f00d;

/// Packets that one request may name.
pub const MOST_RESENDS: usize = 32;

/// `RequestPacketListResend`: a player's datagram to the server's UDP port 1755 ([MS-MMSP] section 2.2.5).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResendRequest {
    /// The requester: [`FunnelReport::client_id`](super::FunnelReport::client_id).
    pub client_id: u32,
    /// The source: the low 16 bits of [`FileReport::file_id`](super::FileReport::file_id).
    pub source: u16,
    /// The packets' numbers among those sent; [`DataPacket::flags`](super::DataPacket::flags) has 8 bits of
    /// each; 1 to 32.
    pub sequences: Vec<u32>,
}

impl ResendRequest {
    /// Parses `datagram`, which is one request.
    pub fn parse(datagram: &[u8]) -> Result<Self, Problem> {
        let mut fields = Fields::of(datagram, 0);
        if fields.u32()? != SIGNATURE {
            return Err(Fault::NotResend.at(0));
        }
        let (client_id, source) = (fields.u32()?, fields.u16()?);
        let at = fields.at();
        let count = fields.u16()?;
        if !(1..=MOST_RESENDS).contains(&count.into()) {
            return Err(Fault::Resends(count).at(at));
        }
        let mut list = fields.part(4 * usize::from(count))?;
        let sequences = (0..count).map(|_| list.u32()).collect::<Result<_, _>>()?;
        Ok(ResendRequest { client_id, source, sequences })
    }

    /// Its bytes; of more than 32 packets, the first 32.
    pub fn write(&self) -> Vec<u8> {
        let sequences = &self.sequences[..self.sequences.len().min(MOST_RESENDS)];
        let mut out = Out::default();
        out.u32(SIGNATURE).u32(self.client_id).u16(self.source).u16(sequences.len() as u16);
        sequences.iter().for_each(|sequence| {
            out.u32(*sequence);
        });
        out.0
    }
}
