//! Packets of media.

use streamgauge_base::Chunk;

use super::fault::{Fault, Problem};
use crate::body::{Body, Written};

/// Bytes before the payload.
pub const DATA_HEADER_BYTES: usize = 8;

/// Meaning of [`DataPacket::flags`] in packets that are not media. The first three are [MS-WMSP]'s (section
/// 2.2.3.1.2). By [MS-MMSP] (section 2.2.2) the last of several packets has [`WHOLE`](data_flags::WHOLE)
/// instead of [`LAST`](data_flags::LAST); FFmpeg takes either.
pub mod data_flags {
    /// The first packet of several with an ASF file's header.
    pub const FIRST: u8 = 0x04;
    /// The last of several.
    pub const LAST: u8 = 0x08;
    /// The only one, or by [MS-MMSP] the last.
    pub const WHOLE: u8 = 0x0c;
    /// One of a packet pair.
    pub const PACKET_PAIR: u8 = 0x10;
}

/// A packet of media: an ASF data packet, some of an ASF file's header, or one of a packet pair ([MS-MMSP] section 2.2.2,
/// [MS-WMSP] section 2.2.3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataPacket<'a> {
    /// `LocationId`: for an ASF data packet its number in the file, regardless of omitted ones; for a
    /// header's packets 0, 1, ...
    pub location: u32,
    /// `playIncarnation`: of the message that made the server send it, its low 8 bits. Never 0.
    pub incarnation: u8,
    /// `AFFlags`: for an ASF data packet the low 8 bits of its number among those sent, which reveals losses;
    /// else one of [`data_flags`].
    pub flags: u8,
    /// Its content.
    pub payload: Body<'a>,
}

impl<'a> DataPacket<'a> {
    /// `LocationId` of the two packets of a packet pair over UDP ([MS-MMSP] section 3.2.5.8).
    pub const PACKET_PAIR: [u32; 2] = [0xf0f0_f000, 0xf0f0_f001];
    /// Bytes of payload that each of them has; with them a datagram fills an Ethernet frame. ([MS-MMSP] section 3.2.5.8; its
    /// example in section 4.4.1 has 1,472 B, which is the packet with its header.)
    pub const PACKET_PAIR_BYTES: usize = 1_464;
    /// Their `playIncarnation`.
    pub const PACKET_PAIR_INCARNATION: u8 = 0xff;
    /// Bytes of payload that a packet has room for.
    pub const MOST_BYTES: usize = u16::MAX as usize - DATA_HEADER_BYTES;

    /// Returns the first or second (0 or 1) packet of a pair over UDP. `random` bytes are to be others in
    /// each.
    pub fn packet_pair(place: usize, random: Body<'a>) -> Self {
        DataPacket {
            location: Self::PACKET_PAIR[place],
            incarnation: Self::PACKET_PAIR_INCARNATION,
            flags: data_flags::PACKET_PAIR,
            payload: random,
        }
    }

    /// Returns which of a packet pair it is, if it is one.
    pub fn place_in_pair(&self) -> Option<usize> {
        Self::PACKET_PAIR.iter().position(|location| *location == self.location)
    }

    /// Parses `packet`, which is one packet, of a datagram or a connection.
    pub fn parse(packet: impl Into<Body<'a>>) -> Result<Self, Problem> {
        let packet = packet.into();
        if packet.len() < DATA_HEADER_BYTES {
            return Err(Fault::Truncated { missing: (DATA_HEADER_BYTES - packet.len()) as u64 }.at(0));
        }
        let (header, payload) = packet.split_at(DATA_HEADER_BYTES);
        let Some(header) = header.head().first_chunk::<DATA_HEADER_BYTES>() else {
            return Err(Fault::Filler.at(header.head().len()));
        };
        let [location, end] = [0, 4].map(|at| *header[at..].first_chunk::<4>().expect("it has eight"));
        let size = size_of(header);
        if let Some(missing) = size.checked_sub(packet.len()).filter(|missing| *missing > 0) {
            return Err(Fault::Truncated { missing: missing as u64 }.at(packet.len()));
        }
        if size != packet.len() {
            return Err(Fault::Length(size as u32).at(6));
        }
        Ok(DataPacket { location: u32::from_le_bytes(location), incarnation: end[0], flags: end[1], payload })
    }

    /// Its bytes. Panics above [`MOST_BYTES`](Self::MOST_BYTES) of payload.
    pub fn write(&self) -> Chunk {
        let mut out = Written::with_capacity(DATA_HEADER_BYTES + self.payload.head().len());
        self.write_to(&mut out);
        out.into_chunk()
    }

    pub(crate) fn write_to(&self, out: &mut Written) {
        let size = u16::try_from(DATA_HEADER_BYTES + self.payload.len()).expect("packets are below 64 kB");
        out.put(&self.location.to_le_bytes());
        out.put(&[self.incarnation, self.flags]);
        out.put(&size.to_le_bytes());
        out.put_body(self.payload);
    }
}

/// Returns `PacketSize`: bytes of the packet, its header included.
pub fn size_of(header: &[u8; DATA_HEADER_BYTES]) -> usize {
    u16::from_le_bytes([header[6], header[7]]).into()
}

/// Returns the number nearest to `expected`, the next one, with `flags` as its low 8 bits ([MS-MMSP] section
/// 3.1.4.7).
pub fn sequence_near(flags: u8, expected: u32) -> u32 {
    expected.wrapping_add_signed(flags.wrapping_sub(expected as u8).cast_signed().into())
}
