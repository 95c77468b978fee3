//! The other packets, which carry no media.

use super::EXTENDED_STREAM;
use super::fault::Problem;
use super::fields::Fields;
use crate::body::Written;

/// The first bit of most first bytes.
pub(super) const HAS_LENGTH: u8 = 0x80;

/// Type 0xff06: a stream has ended. RealNetworks' servers send it five times over UDP, once over TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamEnd<'a> {
    /// Which.
    pub stream: u16,
    /// Some packet of it was sent.
    pub packet_sent: bool,
    /// The last number; a [`SequenceNumber`](super::SequenceNumber) if a packet was sent.
    pub sequence: u16,
    /// When the last packet was to be shown, in ms from the start.
    pub timestamp_ms: u32,
    /// Reliable packets that the stream sent, modulo 65536.
    pub total_reliable: Option<u16>,
    /// Why, if it does not simply end.
    pub reason: Option<EndReason<'a>>,
}

/// Why a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndReason<'a> {
    /// RealNetworks' result code.
    pub code: u32,
    /// The text behind it.
    pub text: &'a [u8],
}

impl<'a> StreamEnd<'a> {
    const HAS_TOTAL_RELIABLE: u8 = 0x80;
    const PACKET_SENT: u8 = 2;
    const HAS_REASON: u8 = 1;

    pub(super) fn read(flags: u8, fields: &mut Fields<'a>) -> Result<Self, Problem> {
        let sequence = fields.u16()?;
        let timestamp_ms = fields.u32()?;
        let stream = match flags >> 2 & EXTENDED_STREAM {
            EXTENDED_STREAM => fields.u16()?,
            stream => stream.into(),
        };
        let total_reliable = (flags & Self::HAS_TOTAL_RELIABLE != 0).then(|| fields.u16()).transpose()?;
        let reason = (flags & Self::HAS_REASON != 0).then(|| {
            // A first byte and a type of the reason's own, without meaning.
            fields.bytes(3)?;
            Ok(EndReason { code: fields.u32()?, text: fields.real_rest()? })
        });
        Ok(StreamEnd {
            stream,
            packet_sent: flags & Self::PACKET_SENT != 0,
            sequence,
            timestamp_ms,
            total_reliable,
            reason: reason.transpose()?,
        })
    }

    pub(super) fn write(&self, packet_type: u16, out: &mut Written) {
        let flag = |set, flag| if set { flag } else { 0u8 };
        let stream = self.stream.min(EXTENDED_STREAM.into()) as u8;
        out.put(&[flag(self.total_reliable.is_some(), Self::HAS_TOTAL_RELIABLE)
            | stream << 2
            | flag(self.packet_sent, Self::PACKET_SENT)
            | flag(self.reason.is_some(), Self::HAS_REASON)]);
        out.put(&packet_type.to_be_bytes());
        out.put(&self.sequence.to_be_bytes());
        out.put(&self.timestamp_ms.to_be_bytes());
        if stream == EXTENDED_STREAM {
            out.put(&self.stream.to_be_bytes());
        }
        if let Some(total) = self.total_reliable {
            out.put(&total.to_be_bytes());
        }
        if let Some(reason) = self.reason {
            out.put(&[0; 3]);
            out.put(&reason.code.to_be_bytes());
            out.put(reason.text);
        }
    }
}

/// Reads type 0xff08: the server's time in ms, as it sends the packet.
pub(super) fn read_latency(flags: u8, start: usize, fields: &mut Fields<'_>) -> Result<u32, Problem> {
    fields.of_length(start, flags & HAS_LENGTH != 0)?.u32()
}

/// Writes the fields of [`read_latency`].
pub(super) fn write_latency(packet_type: u16, server_time_ms: u32, with_length: bool, out: &mut Written) {
    let start = out.len();
    out.put(&[if with_length { HAS_LENGTH } else { 0 }]);
    out.put(&packet_type.to_be_bytes());
    let length = with_length.then(|| out.put_length());
    out.put(&server_time_ms.to_be_bytes());
    if let Some(place) = length {
        out.set_length(place, start);
    }
}

/// Type 0xff01: a player's received rate. Wireshark and the Helix sources agree on this layout; servers have
/// long ignored it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BandwidthReport {
    /// Over how long it was measured. The unit is not known.
    pub interval: u16,
    /// Received rate, in bit/s.
    pub bandwidth_bps: u32,
    /// The report's number.
    pub sequence: u8,
}

impl BandwidthReport {
    /// Returns `None` where the data behind type and length have another size than this.
    pub(super) fn read(flags: u8, start: usize, fields: &mut Fields<'_>) -> Result<Option<Self>, Problem> {
        let mut fields = fields.of_length(start, flags & HAS_LENGTH != 0)?;
        let (interval, bandwidth_bps, sequence) = (fields.u16(), fields.u32(), fields.u8());
        if let (Ok(interval), Ok(bandwidth_bps), Ok(sequence), true) =
            (interval, bandwidth_bps, sequence, fields.is_empty())
        {
            return Ok(Some(BandwidthReport { interval, bandwidth_bps, sequence }));
        }
        Ok(None)
    }

    pub(super) fn write(&self, packet_type: u16, with_length: bool, out: &mut Written) {
        let start = out.len();
        out.put(&[if with_length { HAS_LENGTH } else { 0 }]);
        out.put(&packet_type.to_be_bytes());
        let length = with_length.then(|| out.put_length());
        out.put(&self.interval.to_be_bytes());
        out.put(&self.bandwidth_bps.to_be_bytes());
        out.put(&[self.sequence]);
        if let Some(place) = length {
            out.set_length(place, start);
        }
    }
}

/// Type 0xff09, of RDT's feature level 3: requests a [`TransportInfo`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransportInfoRequest {
    /// The asker's time in ms, to be sent back.
    pub rtt_ms: Option<u32>,
    /// It requests the buffers.
    pub wants_buffers: bool,
}

impl TransportInfoRequest {
    const RTT: u8 = 2;
    const BUFFERS: u8 = 1;

    pub(super) fn read(flags: u8, fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let rtt_ms = (flags & Self::RTT != 0).then(|| fields.u32()).transpose()?;
        Ok(TransportInfoRequest { rtt_ms, wants_buffers: flags & Self::BUFFERS != 0 })
    }

    pub(super) fn write(&self, packet_type: u16, out: &mut Written) {
        let rtt = if self.rtt_ms.is_some() { Self::RTT } else { 0 };
        out.put(&[rtt | u8::from(self.wants_buffers)]);
        out.put(&packet_type.to_be_bytes());
        if let Some(time) = self.rtt_ms {
            out.put(&time.to_be_bytes());
        }
    }
}

/// Type 0xff0a: answers a [`TransportInfoRequest`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TransportInfo {
    /// The request's time, if it had one.
    pub rtt: Option<RttInfo>,
    /// The buffered media of each stream, if requested.
    pub buffers: Option<Vec<BufferInfo>>,
}

/// From which the asker has its round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RttInfo {
    /// As the request had it, in ms.
    pub request_time_ms: u32,
    /// The answer waited: until when, in ms.
    pub response_time_ms: Option<u32>,
}

/// A player's buffered media of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferInfo {
    /// Which.
    pub stream: u16,
    /// Timestamp of the first packet, in ms.
    pub lowest_timestamp_ms: u32,
    /// Timestamp of the last, in ms.
    pub highest_timestamp_ms: u32,
    /// Bytes of all.
    pub bytes: u32,
}

impl TransportInfo {
    const RTT: u8 = 4;
    const DELAYED: u8 = 2;
    const BUFFERS: u8 = 1;
    const BUFFER_BYTES: usize = 14;

    pub(super) fn read(flags: u8, fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let rtt = (flags & Self::RTT != 0).then(|| {
            let request_time_ms = fields.u32()?;
            let response_time_ms = (flags & Self::DELAYED != 0).then(|| fields.u32()).transpose()?;
            Ok(RttInfo { request_time_ms, response_time_ms })
        });
        let rtt = rtt.transpose()?;
        let buffers = (flags & Self::BUFFERS != 0).then(|| {
            let count = fields.u16()?;
            let mut fields = fields.part(Self::BUFFER_BYTES * usize::from(count))?;
            let buffer = |_| {
                Ok(BufferInfo {
                    stream: fields.u16()?,
                    lowest_timestamp_ms: fields.u32()?,
                    highest_timestamp_ms: fields.u32()?,
                    bytes: fields.u32()?,
                })
            };
            (0..count).map(buffer).collect::<Result<Vec<_>, Problem>>()
        });
        Ok(TransportInfo { rtt, buffers: buffers.transpose()? })
    }

    /// Beyond 65535 buffers only the first are written.
    pub(super) fn write(&self, packet_type: u16, out: &mut Written) {
        let response_time = self.rtt.and_then(|rtt| rtt.response_time_ms);
        let flag = |set, flag| if set { flag } else { 0u8 };
        out.put(&[flag(self.rtt.is_some(), Self::RTT)
            | flag(response_time.is_some(), Self::DELAYED)
            | flag(self.buffers.is_some(), Self::BUFFERS)]);
        out.put(&packet_type.to_be_bytes());
        for time in self.rtt.map(|rtt| rtt.request_time_ms).into_iter().chain(response_time) {
            out.put(&time.to_be_bytes());
        }
        if let Some(buffers) = &self.buffers {
            let count = u16::try_from(buffers.len()).unwrap_or(u16::MAX);
            out.put(&count.to_be_bytes());
            for buffer in &buffers[..count.into()] {
                out.put(&buffer.stream.to_be_bytes());
                for number in [buffer.lowest_timestamp_ms, buffer.highest_timestamp_ms, buffer.bytes] {
                    out.put(&number.to_be_bytes());
                }
            }
        }
    }
}
