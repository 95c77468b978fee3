//! A packet's headers as far as measurement needs them, whether read from bytes or made by a simulated host.

use crate::IPV4_HEADER_BYTES;
use crate::item::Item;

/// TCP flag bits (RFC 9293 section 3.1) as in the header's low byte.
pub type TcpFlags = u8;

/// The transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportHeader {
    /// TCP.
    Tcp {
        /// Sequence number of the first payload byte.
        seq: u32,
        /// Acknowledgement number.
        ack: u32,
        /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
        flags: TcpFlags,
    },
    /// UDP.
    Udp,
    /// ICMP echo request or reply.
    IcmpEcho {
        /// Sequence number.
        seq: u16,
    },
    /// Anything else: ARP, other ICMP, IPv6 housekeeping.
    Other,
}

/// The classifier's input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers<'a> {
    /// The transport header.
    pub transport: TransportHeader,
    /// Its bytes; 0 if it is not in this packet.
    pub header_bytes: u8,
    /// Bytes above the transport header.
    pub payload_bytes: u32,
    /// The available first bytes of the payload; empty for filler.
    pub payload_head: &'a [u8],
}

/// The content of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum PacketKind {
    /// Payload of a flow with the role subject.
    Media = 0,
    /// A TCP segment without payload; RTCP that acknowledges RTP (Apple's Reliable UDP).
    Ack = 1,
    /// Other RTCP.
    Rtcp = 2,
    /// Session signalling: RTSP text, heads of HTTP, QUIC's handshake, TCP SYN, FIN, RST.
    Signalling = 3,
    /// ICMP echo.
    Probe = 4,
    /// Payload of a flow of cross traffic.
    Cross = 5,
    /// Anything else.
    Other = 6,
}

/// Bits of `PacketInfo::flags` and of the record's `flags` column.
pub mod packet_flags {
    use crate::item::Ecn;

    /// Carries bytes, or an RTP sequence number, that this flow sent before.
    pub const RETRANSMIT: u16 = 1;
    /// Arrived ECN-capable.
    pub const ECN_IN: u16 = 2;
    /// The stage set congestion experienced.
    pub const CE_MARKED: u16 = 4;
    /// The path corrupted it.
    pub const CORRUPTED: u16 = 8;
    /// More fragments of its datagram are behind it.
    pub const MORE_FRAGMENTS: u16 = 16;
    /// Arrived at the path with ECT(1).
    pub const ECT1_ARRIVED: u16 = 32;
    /// Arrived at the path with congestion experienced.
    pub const CE_ARRIVED: u16 = 64;
    /// No router may cut it up.
    pub const DONT_FRAGMENT: u16 = 128;

    /// Returns the flags for the ECN bits with which a packet arrived at the path.
    pub const fn of_arrived(ecn: Ecn) -> u16 {
        match ecn {
            Ecn::NotEct => 0,
            Ecn::Ect0 => ECN_IN,
            Ecn::Ect1 => ECN_IN | ECT1_ARRIVED,
            Ecn::Ce => ECN_IN | CE_ARRIVED,
        }
    }

    /// Returns the ECN bits with which a packet of these flags arrived at the path.
    pub const fn arrived(flags: u16) -> Ecn {
        match (flags & CE_ARRIVED != 0, flags & ECT1_ARRIVED != 0, flags & ECN_IN != 0) {
            (true, _, _) => Ecn::Ce,
            (_, true, _) => Ecn::Ect1,
            (_, _, true) => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }
}

/// The classifier's result; joined with a `Fate` it is a row of the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketInfo {
    /// Its content.
    pub kind: PacketKind,
    /// Bits of [`packet_flags`].
    pub flags: u16,
    /// Bytes of the transport header; 0 where it is not in this packet, as in a datagram's later fragments.
    pub header_bytes: u8,
    /// Bytes above the transport header.
    pub payload_bytes: u32,
    /// RTP or TCP sequence number; `None` if hidden or absent.
    pub seq: Option<u32>,
    /// For TCP: the number of its connection within the flow, counted from 0 in order of their first packets.
    pub connection: Option<u32>,
}

impl PacketInfo {
    /// Returns the bytes above the transport header in `item`, which may be a fragment of the packet that this is
    /// about: the first one has the header.
    #[inline]
    pub fn payload_bytes_in(&self, item: &Item) -> u32 {
        if item.fragment.is_whole() {
            return self.payload_bytes;
        }
        let header = if item.fragment.offset() == 0 { u32::from(self.header_bytes) } else { 0 };
        item.ip_bytes.saturating_sub(IPV4_HEADER_BYTES + header)
    }
}
