//! What every reader of a protocol does.

use streamgauge_base::{Direction, PacketKind};

/// A TCP segment with payload.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    pub direction: Direction,
    /// The connection's number within its flow.
    pub connection: u32,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// How many there are.
    pub bytes: u32,
    /// As many of the first as are known.
    pub head: &'a [u8],
}

/// Takes what the first line of a message says that begins in a segment.
pub type Say<'a> = dyn FnMut(String) + 'a;

/// Reads one protocol in the TCP connections of one flow.
pub trait StreamReader: Send {
    /// What the segment carries; `None` if that is payload, or if the segment is not this protocol's. Messages that begin
    /// in it, and were not sent before, are said in their order.
    fn read(&mut self, segment: &Segment<'_>, say: &mut Say<'_>) -> Option<PacketKind>;
}

/// The payload of a UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    pub direction: Direction,
    pub bytes: u32,
    /// As many of its first bytes as are known.
    pub head: &'a [u8],
}

/// What a datagram shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// What it carries; `None` if that is payload.
    pub kind: Option<PacketKind>,
    /// Its sequence number, unless that is hidden.
    pub seq: Option<u32>,
    /// That number was sent before.
    pub again: bool,
}

impl Shown {
    /// Of this kind, and no more.
    pub fn kind(kind: PacketKind) -> Self {
        Shown { kind: Some(kind), ..Shown::default() }
    }
}

/// Reads one protocol in the datagrams of one flow.
pub trait DatagramReader: Send {
    /// What the datagram shows; `None` if it is not this protocol's.
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown>;
}
