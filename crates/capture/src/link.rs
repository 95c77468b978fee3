//! The layers below IP: link layers and tunnels, from a frame to the innermost IP packet.

/// A link layer that is read (numbers: tcpdump.org/linktypes.html).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkType {
    /// BSD loopback, the protocol family in the host's byte order (0) or big-endian (108).
    Loopback,
    /// Ethernet (1).
    Ethernet,
    /// PPP, with or without address and control (9, 50).
    Ppp,
    /// IPv4 or IPv6 without anything below (12, 14, 101, 228, 229).
    Raw,
    /// Linux cooked, version 1 (113).
    Cooked,
    /// Linux cooked, version 2 (276).
    Cooked2,
}

impl LinkType {
    /// The layer with this number; `None` if it is not read.
    pub fn of(number: i32) -> Option<LinkType> {
        Some(match number {
            0 | 108 => LinkType::Loopback,
            1 => LinkType::Ethernet,
            9 | 50 => LinkType::Ppp,
            12 | 14 | 101 | 228 | 229 => LinkType::Raw,
            113 => LinkType::Cooked,
            276 => LinkType::Cooked2,
            _ => return None,
        })
    }
}

/// An IP packet in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network<'a> {
    /// Its bytes from the IP header on, as captured.
    pub bytes: &'a [u8],
    /// Bytes of the frame before it.
    pub below: usize,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
/// GRE's inner Ethernet (RFC 7637, and Linux's gretap).
const TRANSPARENT_ETHERNET: u16 = 0x6558;
/// Layers within each other. A frame that has more is a hostile one.
const DEEPEST: usize = 16;

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The first IP packet of a frame. `None` if there is none, as in ARP.
#[inline]
pub fn network(link: LinkType, frame: &[u8]) -> Option<Network<'_>> {
    let (protocol, at) = match link {
        LinkType::Ethernet => (word(frame, 12)?, 14),
        LinkType::Cooked => (word(frame, 14)?, 16),
        LinkType::Cooked2 => (word(frame, 0)?, 20),
        LinkType::Raw => (by_version(frame)?, 0),
        LinkType::Loopback => (by_version(frame.get(4..)?)?, 4),
        LinkType::Ppp => {
            let at = if frame.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
            (of_ppp(word(frame, at)?)?, at + 2)
        }
    };
    // Nearly all frames have IP at once.
    if matches!(protocol, IPV4 | IPV6) {
        return Some(Network { bytes: frame.get(at..)?, below: at });
    }
    descend(frame, protocol, at)
}

/// The Ethernet frame at `at` of a tunnel's payload.
pub fn inner_ethernet(bytes: &[u8], at: usize) -> Option<Network<'_>> {
    descend(bytes, word(bytes, at + 12)?, at + 14)
}

/// The packet in GRE (RFC 2784, RFC 2890) with its header at `at`.
pub fn inner_of_gre(bytes: &[u8], at: usize) -> Option<Network<'_>> {
    let (flags, protocol) = (word(bytes, at)?, word(bytes, at + 2)?);
    if flags & 0x0007 != 0 {
        return None; // version 1, of PPTP
    }
    let optional = [0x8000, 0x2000, 0x1000].iter().filter(|&&bit| flags & bit != 0).count();
    descend(bytes, protocol, at + 4 + 4 * optional)
}

fn by_version(packet: &[u8]) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}

fn of_ppp(protocol: u16) -> Option<u16> {
    match protocol {
        0x0021 => Some(IPV4),
        0x0057 => Some(IPV6),
        0x0281 => Some(MPLS[0]),
        _ => None,
    }
}

fn descend(frame: &[u8], mut protocol: u16, mut at: usize) -> Option<Network<'_>> {
    for _ in 0..DEEPEST {
        match protocol {
            IPV4 | IPV6 => return Some(Network { bytes: frame.get(at..)?, below: at }),
            vlan if VLAN.contains(&vlan) => {
                protocol = word(frame, at + 2)?;
                at += 4;
            }
            PPPOE_SESSION => {
                protocol = of_ppp(word(frame, at + 6)?)?;
                at += 8;
            }
            mpls if MPLS.contains(&mpls) => {
                // The bottom of the stack is marked; the first bits after it show the protocol (RFC 4928).
                let is_bottom = frame.get(at + 2)? & 1 == 1;
                at += 4;
                if is_bottom {
                    match by_version(frame.get(at..)?) {
                        Some(inner) => protocol = inner,
                        // Ethernet behind a control word of zeros (RFC 4448).
                        None => {
                            protocol = word(frame, at + 16)?;
                            at += 18;
                        }
                    }
                }
            }
            TRANSPARENT_ETHERNET => {
                protocol = word(frame, at + 12)?;
                at += 14;
            }
            _ => return None,
        }
    }
    None
}
