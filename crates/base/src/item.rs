//! The item that crosses a path: a small handle on a packet, without its bytes.

use crate::{ETHERNET_HEADER_BYTES, IPV4_HEADER_BYTES};

/// A packet's number within a trial, in order of first arrival at the path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketId(pub u64);

/// A flow's index in its scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u16);

impl FlowId {
    /// ARP, neighbour discovery, ICMP errors: packets that belong to no flow of the scenario. It balances too.
    pub const OTHER: FlowId = FlowId(u16::MAX);
}

/// A stage's index in the trial: those of `down` first, then those of `up`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StageId(pub u8);

/// Direction of a packet: `Down` is from the servers' end to the clients' (RFC 8867's forward).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Direction {
    /// From the servers' end to the clients'.
    Down = 0,
    /// Back.
    Up = 1,
}

impl Direction {
    /// Returns the opposite direction.
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Down => Direction::Up,
            Direction::Up => Direction::Down,
        }
    }
}

/// The two ECN bits (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECT(1).
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// The protocol above IP, as far as a path asks: a firewall stops one of them, a queue may distinguish them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Protocol {
    /// TCP.
    Tcp = 0,
    /// UDP.
    Udp = 1,
    /// ICMP.
    Icmp = 2,
    /// Anything else, ARP included.
    #[default]
    Other = 3,
}

/// The ports of TCP or UDP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ports {
    /// The sender's; 0 where there is none.
    pub source: u16,
    /// The receiver's; 0 where there is none.
    pub destination: u16,
}

impl Ports {
    /// Ports of a packet that has none, or none that are known.
    pub const NONE: Ports = Ports { source: 0, destination: 0 };

    /// Reads the first word of a header: source port * 65536 + destination port.
    #[inline]
    pub const fn from_word(word: u32) -> Self {
        Ports { source: (word >> 16) as u16, destination: word as u16 }
    }
}

/// Which part of a datagram a packet is: the flags and offset word of the IPv4 header (RFC 791 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fragment(u16);

impl Fragment {
    /// All of it, and a router may cut it up.
    pub const WHOLE: Fragment = Fragment(0);
    /// All of it, and a router may not.
    pub const WHOLE_DF: Fragment = Fragment(Fragment::DF);

    const DF: u16 = 0x4000;
    const MF: u16 = 0x2000;
    const OFFSET: u16 = 0x1fff;

    /// Makes the part that begins `offset` times 8 bytes into the datagram's payload (13 bits), with more behind it or
    /// not.
    #[inline]
    pub const fn part(offset: u16, more: bool) -> Self {
        Fragment((offset & Fragment::OFFSET) | if more { Fragment::MF } else { 0 })
    }

    /// Reads the header's word; the reserved bit is dropped.
    #[inline]
    pub const fn from_word(word: u16) -> Self {
        Fragment(word & (Fragment::DF | Fragment::MF | Fragment::OFFSET))
    }

    /// Returns the header's word.
    #[inline]
    pub const fn word(self) -> u16 {
        self.0
    }

    /// Returns where it begins in the datagram's payload, in units of 8 bytes.
    #[inline]
    pub const fn offset(self) -> u16 {
        self.0 & Fragment::OFFSET
    }

    /// Returns whether more of the datagram is behind it.
    #[inline]
    pub const fn more(self) -> bool {
        self.0 & Fragment::MF != 0
    }

    /// Returns whether no router may cut it up.
    #[inline]
    pub const fn dont_fragment(self) -> bool {
        self.0 & Fragment::DF != 0
    }

    /// Returns whether it is the whole datagram.
    #[inline]
    pub const fn is_whole(self) -> bool {
        self.0 & (Fragment::MF | Fragment::OFFSET) == 0
    }
}

impl std::fmt::Debug for Fragment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = [if self.dont_fragment() { " DF" } else { "" }, if self.more() { " MF" } else { "" }];
        write!(f, "Fragment({}{})", self.offset(), flags.concat())
    }
}

/// A packet as a path sees it, in 40 bytes. Its content stays with the driver, which applies the path's effects at
/// egress: marks, corruption, fragments.
///
/// A packet's number, copy and fragment offset name it within a stage: fragments of one datagram share number
/// and copy, copies of one packet share number and fragment offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// The packet's number.
    pub id: PacketId,
    /// The driver's handle on its content; a path passes it through and never reads it.
    pub body: u32,
    /// Ethernet bytes: IP bytes + 14, no FCS (as `tc` counts).
    pub bytes: u32,
    /// IP bytes.
    pub ip_bytes: u32,
    /// Hash of the addresses and ports, for flow queueing.
    pub hash: u32,
    /// Its ports, for a firewall.
    pub ports: Ports,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Which part of its datagram it is.
    pub fragment: Fragment,
    /// 0 for the original, 1 and up for duplicates made by the path.
    pub copy: u8,
    /// Present ECN bits.
    pub ecn: Ecn,
    /// The protocol above IP.
    pub protocol: Protocol,
    /// Whether the path has flipped a bit of its payload: the receiving host will throw it away.
    pub corrupted: bool,
}

const _: () = assert!(size_of::<Item>() == 40, "an item is copied at every stage");

impl Item {
    /// Returns a whole packet of `ip_bytes` that may be cut up, neither ECN-capable nor of a known protocol.
    pub const fn new(id: PacketId, flow: FlowId, ip_bytes: u32) -> Self {
        Item {
            id,
            body: 0,
            bytes: ip_bytes + ETHERNET_HEADER_BYTES,
            ip_bytes,
            hash: 0,
            ports: Ports::NONE,
            flow,
            fragment: Fragment::WHOLE,
            copy: 0,
            ecn: Ecn::NotEct,
            protocol: Protocol::Other,
            corrupted: false,
        }
    }

    /// Returns by how many Ethernet bytes the traffic grew when a stage made `made` out of `self`: a copy is there in
    /// addition; a fragment has its payload from `self`, and only its headers are new.
    #[inline]
    pub fn bytes_added_by(&self, made: &Item) -> u32 {
        if made.copy != self.copy { made.bytes } else { IPV4_HEADER_BYTES + ETHERNET_HEADER_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_the_word_of_its_header() {
        for word in 0..=u16::MAX {
            let fragment = Fragment::from_word(word);
            assert_eq!(fragment.word(), word & 0x7fff);
            let rebuilt = Fragment::part(fragment.offset(), fragment.more());
            assert_eq!(rebuilt.word() | (word & 0x4000), fragment.word());
            assert_eq!(fragment.is_whole(), fragment.offset() == 0 && !fragment.more());
        }
        assert!(Fragment::WHOLE_DF.dont_fragment() && !Fragment::WHOLE.dont_fragment());
        assert_eq!(format!("{:?}", Fragment::part(185, true)), "Fragment(185 MF)");
    }

    #[test]
    fn cutting_adds_headers_and_copying_adds_packets() {
        // 4,028 IP bytes through an MTU of 1,500: 1480 + 1480 + 1048 bytes of payload.
        let whole = Item::new(PacketId(0), FlowId(0), 4028);
        let parts = [(0, 1480), (185, 1480), (370, 1048)].map(|(offset, payload)| {
            let fragment = Fragment::part(offset, offset < 370);
            Item { fragment, ..Item::new(whole.id, whole.flow, payload + IPV4_HEADER_BYTES) }
        });
        let added: u32 = parts[1..].iter().map(|made| whole.bytes_added_by(made)).sum();
        assert_eq!(parts.iter().map(|part| part.bytes).sum::<u32>(), whole.bytes + added);
        assert_eq!(parts[1].bytes_added_by(&Item { copy: 1, ..parts[1] }), 1514);
    }
}
