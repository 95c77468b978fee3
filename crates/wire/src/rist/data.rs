//! Media: MPEG-TS in RTP (TR-06-1 section 5.1; RFC 2250 section 2).

use rtp_types::{RtpPacket, RtpPacketBuilder};
use streamgauge_base::Chunk;

use crate::body::{Body, Written};

/// The payload type of MPEG-TS (RFC 3551 section 6).
pub const PAYLOAD_TYPE: u8 = 33;
/// Ticks per second of its timestamps.
pub const CLOCK_RATE: u32 = 90_000;
/// Bytes of the header of RTP without further sources or extension.
pub const HEADER_BYTES: usize = 12;

/// The last bit of a source: set where a packet is sent again (section 5.3.2).
const REPEATED: u32 = 1;

/// Returns whether packets of this source were sent before.
pub fn is_repeated(ssrc: u32) -> bool {
    ssrc & REPEATED == REPEATED
}

/// Returns the source of the originals of a packet.
pub fn source_of(ssrc: u32) -> u32 {
    ssrc & !REPEATED
}

/// A packet of media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Data<'a> {
    /// Its number, the same where it is sent again.
    pub sequence: u16,
    /// Its time in ticks of 90 kHz, the same where it is sent again.
    pub timestamp: u32,
    /// Its source, an even number.
    pub source: u32,
    /// It was sent before.
    pub is_repeated: bool,
    /// Packets of MPEG-TS.
    pub payload: Body<'a>,
}

/// Faults of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DataFault {
    /// It is no packet of RTP.
    #[error("no packet of RTP")]
    NoRtp,
    /// It has another payload.
    #[error("a payload other than MPEG-TS")]
    Payload,
}

impl<'a> Data<'a> {
    /// Reads a datagram; further sources, extension and padding are skipped.
    ///
    /// # Errors
    ///
    /// See [`DataFault`].
    pub fn parse(datagram: impl Into<Body<'a>>) -> Result<Self, DataFault> {
        let datagram = datagram.into();
        let head = datagram.head();
        let packet = RtpPacket::parse(head).map_err(|_| DataFault::NoRtp)?;
        let padding = packet.padding().map_or(0, usize::from);
        // The count of padding is the datagram's last byte, which filler does not have.
        if padding > 0 && datagram.filler_bytes() > 0 {
            return Err(DataFault::NoRtp);
        }
        if packet.payload_type() != PAYLOAD_TYPE {
            return Err(DataFault::Payload);
        }
        let begins = head.len() - padding - packet.payload().len();
        let (front, _) = datagram.split_at(datagram.len() - padding);
        Ok(Data {
            sequence: packet.sequence_number(),
            timestamp: packet.timestamp(),
            source: source_of(packet.ssrc()),
            is_repeated: is_repeated(packet.ssrc()),
            payload: front.split_at(begins).1,
        })
    }

    /// Returns the datagram.
    pub fn write(&self) -> Chunk {
        let mut header = [0; HEADER_BYTES];
        RtpPacketBuilder::<&[u8], &[u8]>::new()
            .payload_type(PAYLOAD_TYPE)
            .sequence_number(self.sequence)
            .timestamp(self.timestamp)
            .ssrc(source_of(self.source) | if self.is_repeated { REPEATED } else { 0 })
            .write_into(&mut header)
            .expect("a header without options has this length");
        let mut written = Written::with_capacity(HEADER_BYTES + self.payload.head().len());
        written.put(&header);
        written.put_body(self.payload);
        written.into_chunk()
    }
}
