//! Packets out of a body's bytes, however they are cut.

use streamgauge_base::Chunk;

use super::fault::{Fault, Problem};
use super::packet::{BACK_TO_BACK, FRAME, FRAMING_BYTES, PAIR_LENGTHS, PacketContent, WmspPacket};
use crate::incoming::{Gathered, Incoming};
use crate::mms::{DATA_HEADER_BYTES, DataPacket};

/// Bytes of a HRESULT, or of the length of a head.
const REASON_BYTES: usize = 4;

/// Reads the body of one response: [`HttpItem::Body`](crate::http::HttpItem::Body). It is an iterator that
/// may continue after `None`: push arriving data, then take packets until there is none. It keeps at most one
/// packet, and pushed data not yet taken. Filler in media stays filler; elsewhere it reads as zeros.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    incoming: Incoming,
    gathered: Gathered,
    /// Packets that were read, and how many of them were $P.
    packets: u64,
    pairs: usize,
    ended: bool,
}

impl Reader {
    /// Takes the body's next bytes.
    pub fn push(&mut self, chunk: Chunk) {
        if !self.ended {
            self.incoming.push(chunk);
        }
    }

    /// Returns whether the reader is between packets, as far as it has been read: the body may end here.
    pub fn is_between_packets(&self) -> bool {
        self.gathered.len() == 0
    }

    /// Returns the bytes of the packet that has begun, as far as received data reveal it.
    fn wanted(&self) -> Result<usize, Fault> {
        let Some([frame, id, low, high]) = self.gathered.first() else { return Ok(FRAMING_BYTES) };
        if frame & !BACK_TO_BACK != FRAME {
            return Err(Fault::NotFramed);
        }
        let length = u16::from_le_bytes([low, high]);
        let wrong = Err(Fault::Length { id, length });
        match id {
            b'H' | b'D' | b'M' if usize::from(length) < DATA_HEADER_BYTES => wrong,
            b'C' | b'E' if usize::from(length) != REASON_BYTES => wrong,
            b'T' if length != 0 => wrong,
            b'P' => match PAIR_LENGTHS.get(self.pairs) {
                None => Err(Fault::PacketPair),
                Some(right) if *right != length => wrong,
                Some(_) => self.wanted_of_pair(),
            },
            _ => Ok(FRAMING_BYTES + usize::from(length)),
        }
    }

    /// Returns the bytes of a packet pair's packet, which is longer or shorter than declared, by the head's
    /// length.
    fn wanted_of_pair(&self) -> Result<usize, Fault> {
        let before = FRAMING_BYTES + REASON_BYTES;
        let Some([.., a, b, c, d]) = self.gathered.first::<8>() else { return Ok(before) };
        match u32::from_le_bytes([a, b, c, d]) {
            head if head > PacketContent::MOST_HEAD_BYTES => Err(Fault::Head(head)),
            head => Ok(before + PacketContent::random_bytes(self.pairs, head)),
        }
    }

    /// Returns the packet that is whole.
    fn read(&mut self) -> Result<WmspPacket, Fault> {
        let [frame, id, ..] = self.gathered.first::<FRAMING_BYTES>().expect("it is whole");
        let word = self.gathered.first::<8>().map(|[.., a, b, c, d]| u32::from_le_bytes([a, b, c, d]));
        let mut packet = self.gathered.chunk();
        let body = packet.split_off(FRAMING_BYTES);
        let checked = |packet: Chunk| match DataPacket::parse(&packet) {
            Ok(_) => Ok(packet),
            Err(problem) => Err(Fault::Media(problem)),
        };
        let content = match id {
            b'H' => PacketContent::Header(checked(body)?),
            b'D' => PacketContent::Data(checked(body)?),
            b'M' => PacketContent::Metadata(checked(body)?),
            b'C' => PacketContent::Change(word.expect("it has one")),
            b'E' => PacketContent::End(word.expect("it has one")),
            b'P' => {
                let (mut body, place, head_bytes) = (body, self.pairs, word.expect("it has one"));
                self.pairs += 1;
                PacketContent::PacketPair { place, head_bytes, random: body.split_off(REASON_BYTES) }
            }
            b'T' => PacketContent::Test,
            id => PacketContent::Other { id, body },
        };
        Ok(WmspPacket { is_back_to_back: frame & BACK_TO_BACK != 0, content })
    }
}

impl Iterator for Reader {
    type Item = Result<WmspPacket, Problem>;

    /// Returns the next packet; `None` until more is pushed, and for ever after a problem.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = loop {
            let have = self.gathered.len();
            match self.wanted() {
                Ok(wanted) if have < wanted => self.gathered.take(&mut self.incoming, wanted - have)?,
                Ok(_) => break self.read(),
                Err(fault) => break Err(fault),
            }
        };
        match read {
            Ok(packet) => {
                self.packets += 1;
                Some(Ok(packet))
            }
            Err(fault) => {
                let problem = Problem { packet: self.packets, fault };
                *self = Reader { ended: true, ..Reader::default() };
                Some(Err(problem))
            }
        }
    }
}
