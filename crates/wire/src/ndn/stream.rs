//! Packets out of one direction of a connection, however its bytes are cut: a face over TCP, on which whole packets follow
//! each other.

use streamgauge_base::Chunk;

use super::data::Signature;
use super::fault::{Fault, Problem};
use super::types::{DATA, INTEREST, LP_PACKET, MOST_PACKET_BYTES};
use crate::incoming::{Incoming, Run};

/// Reads the packets of a stream: Interests, Data and LpPackets, each whole and not yet looked into. It is an
/// iterator that may continue after `None`: push arriving data, then take packets until there is none. It
/// keeps at most one packet, and pushed data not yet taken. An error is the last that it gives, and ends the
/// face.
#[derive(Clone, Debug)]
pub struct Reader {
    limit: usize,
    incoming: Incoming,
    /// Bytes before the packet that is being read.
    at: u64,
    /// The real bytes of that packet that are here.
    real: Vec<u8>,
    /// The amount of filler behind them.
    filler: usize,
    has_failed: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Reader::with_limit(MOST_PACKET_BYTES)
    }
}

impl Reader {
    /// Returns a reader with another limit of a packet's bytes than [`MOST_PACKET_BYTES`].
    pub fn with_limit(limit: usize) -> Self {
        Reader { limit, incoming: Incoming::default(), at: 0, real: Vec::new(), filler: 0, has_failed: false }
    }

    /// Takes the connection's next bytes.
    pub fn push(&mut self, chunk: Chunk) {
        if !self.has_failed {
            self.incoming.push(chunk);
        }
    }

    /// Returns whether the reader is between packets, as far as it has been read: the connection may end
    /// here.
    pub fn is_between_packets(&self) -> bool {
        self.real.is_empty()
    }

    /// Returns the next packet, if it is whole. Zeros behind filler are filler: a simulated TCP makes zeros
    /// of filler that has real bytes behind it in a segment.
    fn read(&mut self) -> Result<Option<Chunk>, Problem> {
        let length = loop {
            if let Some(length) = self.length()? {
                break length;
            }
            match self.incoming.run(1) {
                Some(Run::Real(bytes)) => self.real.extend(bytes),
                Some(Run::Filler(_)) => return Err(self.fault(Fault::Filler)),
                None => return Ok(None),
            }
        };
        while self.real.len() + self.filler < length {
            match self.incoming.run(length - self.real.len() - self.filler) {
                Some(Run::Real(bytes)) if self.filler > 0 => {
                    if bytes.iter().any(|byte| *byte != 0) {
                        return Err(self.fault(Fault::RealAfterFiller));
                    }
                    self.filler += bytes.len();
                }
                Some(Run::Real(bytes)) => {
                    self.real.reserve_exact(bytes.len());
                    self.real.extend(bytes);
                }
                Some(Run::Filler(bytes)) => self.filler += bytes,
                None => return Ok(None),
            }
        }
        self.at += length as u64;
        let filler = std::mem::take(&mut self.filler) as u32;
        Ok(Some(Chunk::with_filler(std::mem::take(&mut self.real), filler)))
    }

    /// Returns the bytes of the packet that begins here, type and length included, once these are known.
    fn length(&self) -> Result<Option<usize>, Problem> {
        let Some((&kind, rest)) = self.real.split_first() else { return Ok(None) };
        if ![INTEREST, DATA, LP_PACKET].contains(&kind.into()) {
            return Err(self.fault(Fault::PacketType(kind.into())));
        }
        let (header, value) = match *rest {
            [] => return Ok(None),
            [length @ ..=252, ..] => (2, u64::from(length)),
            [253, high, low, ..] => (4, u64::from(u16::from_be_bytes([high, low]))),
            [253, ..] => return Ok(None),
            [254, a, b, c, d, ..] => (6, u64::from(u32::from_be_bytes([a, b, c, d]))),
            [254, ..] => return Ok(None),
            // Nothing that long in its shortest form is a packet.
            [255, ..] => (10, u64::MAX),
        };
        if matches!((header, value), (4, ..253) | (6, ..0x1_0000)) {
            return Err(self.fault(Fault::NotShortest));
        }
        let (bytes, limit) = (value.saturating_add(header), self.limit as u64);
        if bytes > limit {
            return Err(self.fault(Fault::TooLong { bytes, limit }));
        }
        Ok(Some(bytes as usize))
    }

    /// Returns a fault of the packet that is being read.
    fn fault(&self, fault: Fault) -> Problem {
        Problem { at: self.at, fault }
    }
}

impl Iterator for Reader {
    type Item = Result<Chunk, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let read = self.read().transpose();
        if let Some(Err(_)) = read {
            *self = Reader { has_failed: true, ..Reader::with_limit(self.limit) };
        }
        read
    }
}

/// Returns a packet of a stream that keeps filler, with the filler at its end again: of a Data that lies in
/// one segment of a simulated TCP, with real bytes of the next packet behind it, the absent signature is
/// zeros. No signed packet ends with this many.
pub fn refilled(packet: Chunk) -> Chunk {
    let is_real = packet.len() == packet.head().len();
    match packet.head().split_last_chunk::<{ Signature::ZEROS_BYTES }>() {
        Some((real, zeros)) if is_real && *zeros == [0; Signature::ZEROS_BYTES] => {
            Chunk::with_filler(real, Signature::ZEROS_BYTES as u32)
        }
        _ => packet,
    }
}
