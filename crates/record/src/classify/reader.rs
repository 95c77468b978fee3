//! The interface of every reader of a protocol.

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
    /// The known part of the first bytes.
    pub head: &'a [u8],
}

/// Receives the first line of a message that begins in a segment.
pub type Say<'a> = dyn FnMut(String) + 'a;

/// Reads one protocol in the TCP connections of one flow.
pub trait StreamReader: Send {
    /// Returns the kind of the segment; `None` if that is payload, or if the segment is not this protocol's. Messages
    /// that begin in it, and were not sent before, are passed to `say` in their order.
    fn read(&mut self, segment: &Segment<'_>, say: &mut Say<'_>) -> Option<PacketKind>;
}

/// The payload of a UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    pub direction: Direction,
    pub bytes: u32,
    /// The known part of its first bytes.
    pub head: &'a [u8],
}

/// The result for a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// Its kind; `None` if that is payload.
    pub kind: Option<PacketKind>,
    /// Its sequence number, unless that is hidden.
    pub seq: Option<u32>,
    /// That number was sent before.
    pub again: bool,
}

impl Shown {
    /// Makes a result of this kind alone.
    pub fn kind(kind: PacketKind) -> Self {
        Shown { kind: Some(kind), ..Shown::default() }
    }
}

/// Reads one protocol in the datagrams of one flow.
pub trait DatagramReader: Send {
    /// Returns the result for the datagram; `None` if it is not this protocol's.
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown>;
}
