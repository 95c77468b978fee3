//! Reads an Ethernet frame as far as flow, bytes and classifier need it.

use std::net::Ipv4Addr;

use etherparse::{EtherType, Ethernet2Slice, IpNumber, Ipv4HeaderSlice, TcpHeaderSlice, UdpHeaderSlice};
use streamgauge_base::{Direction, Ecn, Fragment, Headers, IPV4_HEADER_BYTES, Protocol, TransportHeader};

/// The contents of a frame's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// IPv4 source; `None` if the frame is not IPv4.
    pub source: Option<Ipv4Addr>,
    /// IPv4 destination; `None` if the frame is not IPv4.
    pub destination: Option<Ipv4Addr>,
    /// Bytes of the IP packet without Ethernet padding; of the frame's payload if it is not IPv4.
    pub ip_bytes: u32,
    /// The ECN bits.
    pub ecn: Ecn,
    /// The protocol above IP.
    pub protocol: Protocol,
    /// Which part of its datagram it is. A packet with options in its IP header counts as one that may not be cut up:
    /// the path's fragments have none.
    pub fragment: Fragment,
    /// The number that all fragments of one datagram share, with the addresses and the protocol (RFC 791 section 3.2).
    pub identification: u16,
    /// Hash of addresses, protocol and ports: one value per connection and direction. A datagram's later fragments
    /// are hashed without ports, which only the first has.
    pub hash: u32,
    /// Source port * 65536 + destination port; 0 where there are none.
    pub ports: u32,
    /// The classifier's input.
    pub headers: Headers<'a>,
}

impl Frame<'_> {
    /// Returns one value for both directions of a TCP connection, with this packet in `direction`; the argument of
    /// [`Classifier::classify`](crate::Classifier::classify).
    #[inline]
    pub fn connection(&self, direction: Direction) -> u64 {
        let address = |ip: Option<Ipv4Addr>| ip.unwrap_or(Ipv4Addr::UNSPECIFIED).octets();
        let (source, destination) = (address(self.source), address(self.destination));
        match direction {
            Direction::Down => mixed(source, destination, IpNumber::TCP.0, self.ports),
            Direction::Up => mixed(destination, source, IpNumber::TCP.0, self.ports.rotate_left(16)),
        }
    }
}

const ETHERNET_HEADER: usize = streamgauge_base::ETHERNET_HEADER_BYTES as usize;
const NO_HEADERS: Headers<'static> =
    Headers { transport: TransportHeader::Other, header_bytes: 0, payload_bytes: 0, payload_head: &[] };

/// Reads a whole frame without its FCS. Any bytes are accepted; an unreadable part is [`TransportHeader::Other`].
pub fn parse_frame(bytes: &[u8]) -> Frame<'_> {
    let above = bytes.get(ETHERNET_HEADER..).unwrap_or_default();
    let nothing = Frame {
        source: None,
        destination: None,
        ip_bytes: count(above),
        ecn: Ecn::NotEct,
        protocol: Protocol::Other,
        fragment: Fragment::WHOLE_DF,
        identification: 0,
        hash: 0,
        ports: 0,
        headers: Headers { payload_bytes: count(above), ..NO_HEADERS },
    };
    let is_ipv4 =
        Ethernet2Slice::from_slice_without_fcs(bytes).is_ok_and(|e| e.ether_type() == EtherType::IPV4);
    if !is_ipv4 {
        return nothing;
    }
    let Ok(ip) = Ipv4HeaderSlice::from_slice(above) else { return nothing };
    // A total length past the frame's end is a damaged packet; one before it leaves Ethernet padding.
    let packet = &above[..usize::from(ip.total_len()).clamp(ip.slice().len(), above.len())];
    let payload = &packet[ip.slice().len()..];
    let (transport, header_bytes, ports) = transport(&ip, payload);
    let payload = payload.get(header_bytes..).unwrap_or_default();
    let is_later = ip.fragments_offset().value() > 0;
    Frame {
        source: Some(ip.source_addr()),
        destination: Some(ip.destination_addr()),
        ip_bytes: count(packet),
        ecn: match ip.ecn().value() {
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            3 => Ecn::Ce,
            _ => Ecn::NotEct,
        },
        protocol: match ip.protocol() {
            IpNumber::TCP => Protocol::Tcp,
            IpNumber::UDP => Protocol::Udp,
            IpNumber::ICMP => Protocol::Icmp,
            _ => Protocol::Other,
        },
        fragment: fragment(&ip),
        identification: ip.identification(),
        hash: flow_hash(ip.source(), ip.destination(), ip.protocol().0, ports),
        ports,
        headers: Headers {
            transport,
            header_bytes: header_bytes as u8,
            payload_bytes: count(payload),
            payload_head: if is_later { &[] } else { payload },
        },
    }
}

fn count(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn fragment(ip: &Ipv4HeaderSlice<'_>) -> Fragment {
    let word = u16::from_be_bytes([ip.slice()[6], ip.slice()[7]]);
    let options = ip.slice().len() > IPV4_HEADER_BYTES as usize;
    Fragment::from_word(if options { word | Fragment::WHOLE_DF.word() } else { word })
}

/// Returns the transport header, its length, and its ports (none: 0).
fn transport(ip: &Ipv4HeaderSlice<'_>, payload: &[u8]) -> (TransportHeader, usize, u32) {
    let ports = payload.first_chunk().map_or(0, |&ports| u32::from_be_bytes(ports));
    if ip.fragments_offset().value() > 0 {
        // All bytes of a datagram's later fragments are payload.
        let transport =
            if ip.protocol() == IpNumber::UDP { TransportHeader::Udp } else { TransportHeader::Other };
        return (transport, 0, 0);
    }
    match ip.protocol() {
        IpNumber::TCP => {
            let Ok(tcp) = TcpHeaderSlice::from_slice(payload) else { return (TransportHeader::Other, 0, 0) };
            let flags = tcp.slice()[13];
            let (seq, ack) = (tcp.sequence_number(), tcp.acknowledgment_number());
            (TransportHeader::Tcp { seq, ack, flags }, tcp.slice().len(), ports)
        }
        IpNumber::UDP => match UdpHeaderSlice::from_slice(payload) {
            Ok(udp) => (TransportHeader::Udp, udp.slice().len(), ports),
            Err(_) => (TransportHeader::Other, 0, 0),
        },
        IpNumber::ICMP => match payload {
            // Type, code, checksum, identifier, sequence number (RFC 792).
            [0 | 8, 0, _, _, _, _, high, low, ..] => {
                (TransportHeader::IcmpEcho { seq: u16::from_be_bytes([*high, *low]) }, 8, 0)
            }
            _ => (TransportHeader::Other, 0, 0),
        },
        _ => (TransportHeader::Other, 0, 0),
    }
}

/// Returns the hash of a connection in one direction, the same on every machine. `ports` is source port * 65536 +
/// destination port.
pub fn flow_hash(source: [u8; 4], destination: [u8; 4], protocol: u8, ports: u32) -> u32 {
    (mixed(source, destination, protocol, ports) >> 32) as u32
}

fn mixed(source: [u8; 4], destination: [u8; 4], protocol: u8, ports: u32) -> u64 {
    let addresses = u64::from(u32::from_be_bytes(source)) << 32 | u64::from(u32::from_be_bytes(destination));
    let rest = u64::from(protocol) << 32 | u64::from(ports);
    // Two rounds of a multiply-xorshift mix (MurmurHash3's finaliser constants).
    let mut hash = addresses ^ rest.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

#[cfg(test)]
mod tests;
