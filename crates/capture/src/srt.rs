//! SRT as its packets show it, also without the handshake (draft-sharabayko-srt section 3).

use crate::sequence::Sequence;

/// A data packet's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrtData {
    /// Its number, of 31 bits.
    pub seq: u32,
    /// It is sent again.
    pub resent: bool,
    /// The receiver's socket.
    pub socket: u32,
}

/// A packet before the flow is believed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate(Option<SrtData>);

/// The SRT data of one direction of a flow.
#[derive(Clone, Debug)]
pub struct SrtStream {
    /// Its numbers, of originals.
    pub sequence: Sequence,
    socket: u32,
    /// Originals.
    pub originals: u64,
    /// Packets sent again.
    pub resent: u64,
    /// Originals that were missing and arrived later.
    pub repaired: u64,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The header of a data packet, if these bytes may be one.
pub fn data(bytes: &[u8]) -> Option<SrtData> {
    let (seq, message, socket) = (word(bytes, 0)?, word(bytes, 4)?, word(bytes, 12)?);
    let is_data = seq >> 31 == 0 && socket != 0 && message >> 30 != 0 && bytes.len() >= 16;
    is_data.then_some(SrtData { seq, resent: message >> 26 & 1 == 1, socket })
}

/// A control packet: handshake, keep-alive, ACK, NAK, shutdown, ACKACK, drop request.
pub fn is_control(bytes: &[u8]) -> bool {
    let Some(first) = word(bytes, 0) else { return false };
    bytes.len() >= 16 && first >> 31 == 1 && matches!(first >> 16 & 0x7fff, 0..=8) && first & 0xffff == 0
}

impl Candidate {
    /// A datagram of a flow that may be SRT's. Returns the stream once two data packets of one socket have numbers in a
    /// row; everything else that begins like data has none.
    pub fn take(&mut self, bytes: &[u8]) -> Option<SrtStream> {
        let packet = data(bytes)?;
        let first = self.0.replace(packet)?;
        if first.socket != packet.socket || packet.seq != (first.seq + 1) & 0x7fff_ffff {
            return None;
        }
        let mut stream = SrtStream {
            sequence: Sequence::new(31, u64::from(first.seq)),
            socket: first.socket,
            originals: 1,
            resent: u64::from(first.resent),
            repaired: 0,
        };
        stream.take(bytes);
        Some(stream)
    }
}

impl SrtStream {
    /// A further datagram of the direction; others than data change nothing.
    pub fn take(&mut self, bytes: &[u8]) {
        let Some(packet) = data(bytes).filter(|packet| packet.socket == self.socket) else { return };
        if packet.resent {
            self.resent += 1;
            self.repaired += u64::from(self.sequence.repair(u64::from(packet.seq)));
        } else {
            self.originals += 1;
            self.sequence.arrive(u64::from(packet.seq));
        }
    }
}
