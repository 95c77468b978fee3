//! The main profile's header: GRE in UDP (VSF TR-06-2 sections 5.2, 5.3; RFC 2784, RFC 2890), without keys.

use streamgauge_base::Chunk;

use crate::body::{Body, Written};

/// Bits of the first 16: checksum, key, sequence number, and the version of GRE.
const CHECKSUM: u16 = 1 << 15;
const KEY: u16 = 1 << 13;
const SEQUENCE: u16 = 1 << 12;
const VERSION: u16 = 0b111;

/// Protocol types of TR-06-2.
const KEEP_ALIVE: u16 = 0x88b5;
const REDUCED: u16 = 0x88b6;
const FULL: u16 = 0x0800;

/// The UDP ports within the tunnel, where the rest of the headers is left out (section 5.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GrePorts {
    /// The sender's.
    pub source: u16,
    /// The receiver's: even for RTP, odd for RTCP.
    pub destination: u16,
}

/// The content of a tunnel's packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GreProtocol {
    /// RTP or RTCP behind ports alone.
    Reduced(GrePorts),
    /// A whole packet of IP.
    Full,
    /// The tunnel is kept.
    KeepAlive,
}

/// A packet of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gre<'a> {
    /// Its number, if the tunnel counts.
    pub sequence: Option<u32>,
    /// Its protocol.
    pub protocol: GreProtocol,
    /// Its content.
    pub payload: Body<'a>,
}

/// Faults of a tunnel's packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GreFault {
    /// It ends before its header does.
    #[error("cut short")]
    Truncated,
    /// It is of a version of GRE other than 0, or has a checksum.
    #[error("another version of GRE, or a checksum")]
    Version,
    /// It is encrypted.
    #[error("encrypted with a key")]
    Encrypted,
    /// Its protocol is none of RIST's.
    #[error("another protocol: {0:#06x}")]
    Protocol(u16),
}

impl<'a> Gre<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    ///
    /// See [`GreFault`].
    pub fn parse(datagram: impl Into<Body<'a>>) -> Result<Self, GreFault> {
        let datagram = datagram.into();
        let half = |at: usize| {
            let bytes = datagram.head().get(at..).and_then(|rest| rest.first_chunk());
            bytes.map(|bytes| u16::from_be_bytes(*bytes)).ok_or(GreFault::Truncated)
        };
        let (flags, protocol) = (half(0)?, half(2)?);
        if flags & (VERSION | CHECKSUM) != 0 {
            return Err(GreFault::Version);
        }
        if flags & KEY != 0 {
            return Err(GreFault::Encrypted);
        }
        let mut at = 4;
        let mut sequence = None;
        if flags & SEQUENCE != 0 {
            sequence = Some(u32::from(half(4)?) << 16 | u32::from(half(6)?));
            at = 8;
        }
        let protocol = match protocol {
            REDUCED => {
                let ports = GrePorts { source: half(at)?, destination: half(at + 2)? };
                at += 4;
                GreProtocol::Reduced(ports)
            }
            FULL => GreProtocol::Full,
            KEEP_ALIVE => GreProtocol::KeepAlive,
            other => return Err(GreFault::Protocol(other)),
        };
        Ok(Gre { sequence, protocol, payload: datagram.split_at(at).1 })
    }

    /// Returns the datagram.
    pub fn write(&self) -> Chunk {
        let mut written = Written::with_capacity(12 + self.payload.head().len());
        let (protocol, ports) = match self.protocol {
            GreProtocol::Reduced(ports) => (REDUCED, Some(ports)),
            GreProtocol::Full => (FULL, None),
            GreProtocol::KeepAlive => (KEEP_ALIVE, None),
        };
        written.put(&(if self.sequence.is_some() { SEQUENCE } else { 0 }).to_be_bytes());
        written.put(&protocol.to_be_bytes());
        if let Some(sequence) = self.sequence {
            written.put(&sequence.to_be_bytes());
        }
        if let Some(GrePorts { source, destination }) = ports {
            written.put(&source.to_be_bytes());
            written.put(&destination.to_be_bytes());
        }
        written.put_body(self.payload);
        written.into_chunk()
    }
}
