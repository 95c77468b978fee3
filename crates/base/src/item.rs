//! What crosses a path: a small handle on a packet, without its bytes.

/// A packet's number within a trial, in order of first arrival at the path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketId(pub u64);

/// A flow's index in its scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u16);

impl FlowId {
    /// ARP, neighbour discovery, ICMP errors: what belongs to no flow of the scenario. It balances too.
    pub const OTHER: FlowId = FlowId(u16::MAX);
}

/// A stage's index in the trial: those of `down` first, then those of `up`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StageId(pub u8);

/// Which way a packet goes: `Down` is server to player (RFC 8867's forward).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Direction {
    /// Server to player.
    Down = 0,
    /// Player to server.
    Up = 1,
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

/// A packet as a path sees it. Bytes stay with the driver, which applies marks at egress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// The packet's number.
    pub id: PacketId,
    /// Ethernet bytes: IP bytes + 14, no FCS (as `tc` counts).
    pub bytes: u32,
    /// IP bytes.
    pub ip_bytes: u32,
    /// Hash of the addresses and ports, for flow queueing.
    pub hash: u32,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// 0 for the original, 1 and up for duplicates made by the path.
    pub copy: u8,
    /// ECN bits as they stand now.
    pub ecn: Ecn,
}
