//! An IP packet's headers, as far as the analysis reads them. Any bytes are accepted.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::Ipv6Addr;

use etherparse::Ipv6HeaderSlice;

use crate::hash::mix;
use crate::link::{LinkType, Network, inner_ethernet, inner_of_gre, network};

/// An address of either version; IPv4 as RFC 4291 section 2.5.5.2 maps it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Address(pub u128);

impl Address {
    fn v4(octets: [u8; 4]) -> Self {
        Address(0xffff_0000_0000 | u128::from(u32::from_be_bytes(octets)))
    }

    fn v6(octets: [u8; 16]) -> Self {
        Address(u128::from_be_bytes(octets))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from_bits(self.0);
        match address.to_ipv4_mapped() {
            Some(v4) => v4.fmt(to),
            None => address.fmt(to),
        }
    }
}

/// An address with a port: one end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct End {
    /// The address.
    pub address: Address,
    /// The port; 0 where there is none.
    pub port: u16,
}

impl Hash for End {
    /// One word: flows are looked up for every packet.
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let (low, high) = (self.address.0 as u64, (self.address.0 >> 64) as u64);
        hasher.write_u64(mix(low ^ u64::from(self.port) << 48, high));
    }
}

impl fmt::Display for End {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_v6 = Ipv6Addr::from_bits(self.address.0).to_ipv4_mapped().is_none();
        if is_v6 {
            write!(to, "[{}]:{}", self.address, self.port)
        } else {
            write!(to, "{}:{}", self.address, self.port)
        }
    }
}

/// IP protocol numbers.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// GRE.
    pub const GRE: u8 = 47;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
}

/// TCP flags as in the header's low byte.
pub mod flag {
    #![allow(missing_docs)]
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const RST: u8 = 4;
    pub const ACK: u8 = 16;
}

/// A TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tcp<'a> {
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bits of [`flag`].
    pub flags: u8,
    /// The window as the header has it, unscaled.
    pub window: u16,
    /// The options, as far as they are captured.
    pub options: &'a [u8],
}

/// The transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketTransport<'a> {
    /// TCP.
    Tcp(Tcp<'a>),
    /// UDP.
    Udp,
    /// None that is read, or not in this packet.
    Other,
}

/// An IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// ns since 1970 UTC.
    pub at_ns: i64,
    /// Index of the interface.
    pub interface: u32,
    /// The sender's end.
    pub source: End,
    /// The receiver's end.
    pub destination: End,
    /// IP's protocol number; of IPv6 behind its extension headers.
    pub protocol: u8,
    /// Bytes of the IP packet on the wire.
    pub ip_bytes: u32,
    /// Bytes of the frame on the wire.
    pub frame_bytes: u32,
    /// IPv4's identification, or that of IPv6's fragment header; `None` for a whole IPv6 packet.
    pub identification: Option<u32>,
    /// Offset of the fragment in bytes; 0 for the first and for whole packets.
    pub fragment_offset: u16,
    /// More fragments follow.
    pub more_fragments: bool,
    /// The ECN bits.
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The transport header.
    pub transport: PacketTransport<'a>,
    /// Bytes above the transport header on the wire.
    pub payload_bytes: u32,
    /// As many of them as are captured.
    pub payload: &'a [u8],
}

impl Packet<'_> {
    /// Whether it is a fragment without a transport header.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment_offset > 0
    }
}

/// VXLAN (RFC 7348) and its predecessor.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const VXLAN_FLAGS: u8 = 0x08;
/// IP in IP: RFC 2003, RFC 4213.
const IP_IN_IP: [u8; 2] = [4, 41];
const DEEPEST: usize = 8;
const MOST_EXTENSIONS: usize = 16;

/// The needed parts of an IP header.
struct Ip<'a> {
    source: Address,
    destination: Address,
    protocol: u8,
    ip_bytes: u32,
    identification: Option<u32>,
    fragment_offset: u16,
    more_fragments: bool,
    ecn: u8,
    ttl: u8,
    /// Bytes of IP's headers.
    header: usize,
    /// The captured bytes behind them, without the link's padding.
    rest: &'a [u8],
}

/// The transport header above IP.
struct Above<'a> {
    /// The sender's and the receiver's; 0 where there are none.
    ports: (u16, u16),
    transport: PacketTransport<'a>,
    /// Bytes of the header.
    header: usize,
}

/// Reads a frame down to its innermost IP packet: tunnels are looked through. `None` if there is no IP packet.
// Into its callers: a packet is long, and would be copied.
#[inline(always)]
pub fn parse<'a>(
    link: LinkType,
    frame: &'a [u8],
    original: u32,
    interface: u32,
    at_ns: i64,
) -> Option<Packet<'a>> {
    let mut inner = network(link, frame)?;
    let mut left = (original as usize).saturating_sub(inner.below);
    for _ in 0..DEEPEST {
        let ip = ip(inner.bytes, left)?;
        let above = above(&ip);
        let Some(next) = tunnelled(&ip, &above) else {
            // Built once, at its place: it is long.
            return Some(Packet {
                at_ns,
                interface,
                source: End { address: ip.source, port: above.ports.0 },
                destination: End { address: ip.destination, port: above.ports.1 },
                protocol: ip.protocol,
                ip_bytes: ip.ip_bytes,
                frame_bytes: original,
                identification: ip.identification,
                fragment_offset: ip.fragment_offset,
                more_fragments: ip.more_fragments,
                ecn: ip.ecn,
                ttl: ip.ttl,
                transport: above.transport,
                payload_bytes: (ip.ip_bytes - ip.header as u32).saturating_sub(above.header as u32),
                payload: ip.rest.get(above.header..).unwrap_or_default(),
            });
        };
        // Bytes on the wire behind the tunnel's headers.
        left = (ip.ip_bytes as usize - ip.header).saturating_sub(next.below);
        inner = next;
    }
    None
}

/// The packet inside a tunnel, if this is one; `below` then counts from the outer IP payload.
#[inline]
fn tunnelled<'a>(ip: &Ip<'a>, above: &Above<'a>) -> Option<Network<'a>> {
    if ip.protocol == protocol::TCP || ip.fragment_offset > 0 || ip.more_fragments {
        return None;
    }
    match ip.protocol {
        protocol::GRE => inner_of_gre(ip.rest, 0),
        inner if IP_IN_IP.contains(&inner) => Some(Network { bytes: ip.rest, below: 0 }),
        protocol::UDP
            if VXLAN_PORTS.contains(&above.ports.1) && ip.rest.get(above.header) == Some(&VXLAN_FLAGS) =>
        {
            inner_ethernet(ip.rest, 16)
        }
        _ => None,
    }
}

#[inline]
fn ip(bytes: &[u8], on_wire: usize) -> Option<Ip<'_>> {
    match bytes.first()? >> 4 {
        4 => ipv4(bytes, on_wire),
        6 => ipv6(bytes, on_wire),
        _ => None,
    }
}

#[inline]
fn ipv4(bytes: &[u8], on_wire: usize) -> Option<Ip<'_>> {
    let head: &[u8; 20] = bytes.first_chunk()?;
    let length = usize::from(head[0] & 15) * 4;
    if length < head.len() || length > bytes.len() {
        return None;
    }
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let address = |at: usize| Address::v4([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    // A capture before segmentation offload may have 0 here: the frame's length then counts.
    let total = match usize::from(half(2)) {
        0 => on_wire,
        total => total,
    };
    let total = total.max(length);
    let fragment = half(6);
    Some(Ip {
        source: address(12),
        destination: address(16),
        protocol: head[9],
        ip_bytes: total as u32,
        identification: Some(u32::from(half(4))),
        fragment_offset: (fragment & 0x1fff) * 8,
        more_fragments: fragment & 0x2000 != 0,
        ecn: head[1] & 3,
        ttl: head[8],
        header: length,
        rest: &bytes[length..total.min(bytes.len())],
    })
}

fn ipv6(bytes: &[u8], on_wire: usize) -> Option<Ip<'_>> {
    const JUMBO: usize = 0;
    let header = Ipv6HeaderSlice::from_slice(bytes).ok()?;
    let total = match usize::from(header.payload_length()) {
        JUMBO => on_wire.max(40),
        payload => payload + 40,
    };
    let mut found = Ip {
        source: Address::v6(header.source()),
        destination: Address::v6(header.destination()),
        protocol: header.next_header().0,
        ip_bytes: total as u32,
        identification: None,
        fragment_offset: 0,
        more_fragments: false,
        ecn: header.traffic_class() & 3,
        ttl: header.hop_limit(),
        header: 40,
        rest: &bytes[40..total.min(bytes.len()).max(40)],
    };
    for _ in 0..MOST_EXTENSIONS {
        let rest = found.rest;
        let length = match found.protocol {
            // Hop-by-hop, routing, destination options, mobility (RFC 8200 section 4).
            0 | 43 | 60 | 135 => (usize::from(*rest.get(1)?) + 1) * 8,
            // Authentication header (RFC 4302 section 2.2).
            51 => (usize::from(*rest.get(1)?) + 2) * 4,
            44 => {
                let word = u16::from_be_bytes(*rest.get(2..)?.first_chunk()?);
                found.fragment_offset = word & !7;
                found.more_fragments = word & 1 == 1;
                found.identification = Some(u32::from_be_bytes(*rest.get(4..)?.first_chunk()?));
                8
            }
            _ => break,
        };
        found.protocol = *rest.first()?;
        found.header += length;
        found.rest = rest.get(length..).unwrap_or_default();
        if found.fragment_offset > 0 {
            break;
        }
    }
    found.ip_bytes = found.ip_bytes.max(found.header as u32);
    Some(found)
}

#[inline]
fn above<'a>(ip: &Ip<'a>) -> Above<'a> {
    const UDP_BYTES: usize = 8;
    let mut found = Above { ports: (0, 0), transport: PacketTransport::Other, header: 0 };
    let is_tcp = ip.protocol == protocol::TCP;
    if ip.fragment_offset > 0 || !is_tcp && ip.protocol != protocol::UDP {
        return found;
    }
    if let Some(&[a, b, c, d]) = ip.rest.first_chunk() {
        found.ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    }
    if !is_tcp && ip.rest.len() >= UDP_BYTES {
        (found.transport, found.header) = (PacketTransport::Udp, UDP_BYTES);
    }
    if is_tcp && let Some((tcp, header)) = tcp(ip.rest) {
        (found.transport, found.header) = (PacketTransport::Tcp(tcp), header);
    }
    found
}

/// A TCP header with its whole length. Options that a short snapshot cut off are left out.
#[inline]
fn tcp(bytes: &[u8]) -> Option<(Tcp<'_>, usize)> {
    let fixed: &[u8; 20] = bytes.first_chunk()?;
    let length = usize::from(fixed[12] >> 4) * 4;
    if length < fixed.len() {
        return None;
    }
    let tcp = Tcp {
        seq: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        ack: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        flags: fixed[13],
        window: u16::from_be_bytes([fixed[14], fixed[15]]),
        options: bytes.get(fixed.len()..length.min(bytes.len())).unwrap_or_default(),
    };
    Some((tcp, length))
}
