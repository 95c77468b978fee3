//! Packets of a body.

use streamgauge_base::Chunk;

use crate::body::{Body, Written};
use crate::mms::DataPacket;

/// Bytes before a packet's own: `$`, its type, and a length ([MS-WMSP] section 2.2.3.1.1).
pub const FRAMING_BYTES: usize = 4;

/// The first byte, without the bit that means that the next packet follows at once.
pub(super) const FRAME: u8 = b'$';
pub(super) const BACK_TO_BACK: u8 = 0x80;

/// `PacketLength` of the three packets of a packet pair, which is less than their length ([MS-WMSP] section
/// 2.2.3.7).
pub(super) const PAIR_LENGTHS: [u16; 3] = [504, 504, 1_048];

/// HRESULTs that $E and $C have ([MS-WMSP] sections 2.2.3.2 and 2.2.3.4); others are errors ([MS-ERREF]).
pub mod reasons {
    /// $E: everything was sent. $C: the playlist advances.
    pub const DONE: u32 = 0;
    /// $E: the playlist's next entry follows a $C.
    pub const MORE: u32 = 1;
    /// $E: backwards to the beginning.
    pub const RECEDED: u32 = 0x000d_2f09;
    /// $C: the playlist moves back.
    pub const RECEDING: u32 = 0x400d_14be;
}

/// A packet: a response's body is some of them ([MS-WMSP] section 2.2.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WmspPacket {
    /// The next is sent at once, without pacing.
    pub is_back_to_back: bool,
    /// Its content.
    pub content: PacketContent,
}

/// The content of a packet. Media, headers and metadata are packets of [`mms`](crate::mms), for
/// [`DataPacket::parse`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketContent {
    /// $H: some of an ASF file's header, with the first 50 bytes of its Data Object.
    Header(Chunk),
    /// $D: an ASF data packet.
    Data(Chunk),
    /// $M: some of a playlist entry's [`Metadata`](super::Metadata).
    Metadata(Chunk),
    /// $C: the playlist advances, or moves back; see [`reasons`].
    Change(u32),
    /// $E: nothing more follows; see [`reasons`].
    End(u32),
    /// $P: one of three packets of random bytes, by which the path's rate is estimated.
    PacketPair {
        /// 0, 1 or 2.
        place: usize,
        /// Bytes of the response's head, at most 504.
        head_bytes: u32,
        /// As many as [`random_bytes`](PacketContent::random_bytes) requires.
        random: Chunk,
    },
    /// $T: to the first of two pipelined requests.
    Test,
    /// A packet of another sort. It is written as received.
    Other {
        /// Its letter.
        id: u8,
        /// The bytes behind the length, at most 65535 B.
        body: Chunk,
    },
}

impl PacketContent {
    /// Bytes of a response's head that a packet pair takes into account.
    pub const MOST_HEAD_BYTES: u32 = 504;

    /// Returns the random bytes of the packet at this place behind such a head: head and first packet are 512
    /// B together, and so is the second packet ([MS-WMSP] section 2.2.3.7).
    pub fn random_bytes(place: usize, head_bytes: u32) -> usize {
        let head_bytes = head_bytes.min(Self::MOST_HEAD_BYTES) as usize;
        match place {
            0 => Self::MOST_HEAD_BYTES as usize - head_bytes,
            1 => 504,
            _ => 1_048 + head_bytes,
        }
    }

    /// Returns media in a packet.
    pub fn data(packet: &DataPacket<'_>) -> Self {
        PacketContent::Data(packet.write())
    }

    /// Its letter.
    pub fn id(&self) -> u8 {
        match self {
            PacketContent::Header(_) => b'H',
            PacketContent::Data(_) => b'D',
            PacketContent::Metadata(_) => b'M',
            PacketContent::Change(_) => b'C',
            PacketContent::End(_) => b'E',
            PacketContent::PacketPair { .. } => b'P',
            PacketContent::Test => b'T',
            PacketContent::Other { id, .. } => *id,
        }
    }
}

impl From<PacketContent> for WmspPacket {
    /// Behind which nothing follows at once.
    fn from(content: PacketContent) -> Self {
        WmspPacket { is_back_to_back: false, content }
    }
}

impl WmspPacket {
    /// Its bytes. Panics if it has more than 65535 behind its length.
    pub fn write(&self) -> Chunk {
        let mut out = Written::default();
        out.put(&[FRAME | if self.is_back_to_back { BACK_TO_BACK } else { 0 }, self.content.id()]);
        let of = |bytes: usize| u16::try_from(bytes).expect("packets are below 64 kB").to_le_bytes();
        match &self.content {
            PacketContent::Header(packet)
            | PacketContent::Data(packet)
            | PacketContent::Metadata(packet)
            | PacketContent::Other { body: packet, .. } => {
                out.put(&of(packet.len()));
                out.put_body(Body::from(packet));
            }
            PacketContent::Change(reason) | PacketContent::End(reason) => {
                out.put(&of(4));
                out.put(&reason.to_le_bytes());
            }
            PacketContent::PacketPair { place, head_bytes, random } => {
                out.put(&PAIR_LENGTHS[*place].to_le_bytes());
                out.put(&head_bytes.to_le_bytes());
                out.put_body(Body::from(random));
            }
            PacketContent::Test => out.put(&of(0)),
        }
        out.into_chunk()
    }
}
