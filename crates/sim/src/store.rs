//! Packets on their way. A path carries small items; their content stays here.

use streamgauge_base::{self as base, Chunk, Direction, Headers, PacketInfo, Protocol, TransportHeader};
use streamgauge_transport::tcp::Segment;

use crate::prefetch::prefetch;

/// The ports of a packet of UDP or TCP.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub from: u16,
    pub to: u16,
    /// Between a relay and an end of a flow, that flow; else [`NO_RELAY`].
    pub user: u16,
}

/// No relay sends or receives the packet.
pub const NO_RELAY: u16 = u16::MAX;

/// A packet's content above IP.
#[derive(Clone, Debug)]
pub enum Body {
    /// UDP.
    Datagram(Ports, Chunk),
    /// ICMP echo, request or reply: sequence number, then data.
    Echo(Chunk),
    /// TCP.
    Segment(Ports, Segment),
}

/// Bytes of an IPv4 header and the UDP or ICMP header, 8 bytes both.
const IP_AND_8_BYTES: u32 = 20 + 8;

/// Bytes of the sequence number that an echo datagram begins with; it is part of the ICMP header.
const ECHO_SEQUENCE_BYTES: u32 = 2;

impl Body {
    /// Returns the placeholder of a body that has been released.
    fn empty() -> Self {
        Body::Echo(Chunk::default())
    }

    pub fn ip_bytes(&self) -> u32 {
        match self {
            Body::Datagram(_, datagram) => IP_AND_8_BYTES + datagram.len() as u32,
            Body::Echo(message) => IP_AND_8_BYTES + message.len() as u32 - ECHO_SEQUENCE_BYTES,
            Body::Segment(_, segment) => segment.ip_bytes(),
        }
    }

    pub fn protocol(&self) -> Protocol {
        match self {
            Body::Datagram(..) => Protocol::Udp,
            Body::Echo(..) => Protocol::Icmp,
            Body::Segment(..) => Protocol::Tcp,
        }
    }

    /// Returns the ports as a firewall sees them.
    pub fn ports(&self) -> base::Ports {
        match self {
            Body::Datagram(Ports { from, to, .. }, _) | Body::Segment(Ports { from, to, .. }, _) => {
                base::Ports { source: *from, destination: *to }
            }
            Body::Echo(..) => base::Ports::NONE,
        }
    }

    /// Identifies the flow's connections by their ports, in both directions alike; 0 without ports.
    pub fn connection(&self, direction: Direction) -> u64 {
        let (Body::Datagram(Ports { from, to, .. }, _) | Body::Segment(Ports { from, to, .. }, _)) = self
        else {
            return 0;
        };
        let (server, player) = match direction {
            Direction::Down => (from, to),
            Direction::Up => (to, from),
        };
        u64::from(*server) << 16 | u64::from(*player)
    }

    /// [`Ports::user`].
    pub fn user(&self) -> u16 {
        match self {
            Body::Datagram(ports, _) | Body::Segment(ports, _) => ports.user,
            Body::Echo(_) => NO_RELAY,
        }
    }

    /// Returns the bytes of the transport header.
    pub fn header_bytes(&self) -> u8 {
        match self {
            Body::Datagram(..) | Body::Echo(..) => 8,
            Body::Segment(_, segment) => (segment.ip_bytes() - segment.payload.len() as u32 - 20) as u8,
        }
    }

    /// Returns the bytes above the transport header.
    pub fn payload_bytes(&self) -> u32 {
        match self {
            Body::Datagram(_, datagram) => datagram.len() as u32,
            Body::Echo(message) => message.len() as u32 - ECHO_SEQUENCE_BYTES,
            Body::Segment(_, segment) => segment.payload.len() as u32,
        }
    }

    pub fn headers(&self) -> Headers<'_> {
        let (transport, payload_head) = match self {
            Body::Datagram(_, datagram) => (TransportHeader::Udp, datagram.head()),
            Body::Echo(message) => {
                let seq = message.head().first_chunk().map_or(0, |seq| u16::from_be_bytes(*seq));
                (TransportHeader::IcmpEcho { seq }, &[][..])
            }
            Body::Segment(_, s) => {
                (TransportHeader::Tcp { seq: s.seq, ack: s.ack, flags: s.flags }, s.payload.head())
            }
        };
        let (header_bytes, payload_bytes) = (self.header_bytes(), self.payload_bytes());
        Headers { transport, header_bytes, payload_bytes, payload_head }
    }
}

/// Place of a packet's body: the value in [`Item::body`](streamgauge_base::Item::body).
pub type Handle = u32;

/// Places are reused, so nothing is allocated per packet.
#[derive(Debug, Default)]
pub struct Store {
    /// Those of free places are empty.
    bodies: Vec<Body>,
    /// The notes of the body in the same place.
    notes: Vec<Note>,
    free: Vec<Handle>,
}

#[derive(Debug)]
struct Note {
    info: PacketInfo,
    /// Items inside the path, and datagrams being put together, that are of this body.
    references: u32,
}

impl Store {
    /// Keeps the body of `references` items, at least one.
    #[inline]
    pub fn insert(&mut self, body: Body, info: PacketInfo, references: u32) -> Handle {
        let note = Note { info, references };
        match self.free.pop() {
            Some(handle) => {
                self.bodies[handle as usize] = body;
                self.notes[handle as usize] = note;
                handle
            }
            None => {
                self.bodies.push(body);
                self.notes.push(note);
                self.notes.len() as Handle - 1
            }
        }
    }

    #[inline]
    pub fn info(&self, handle: Handle) -> &PacketInfo {
        &self.notes[handle as usize].info
    }

    /// Returns the body there.
    pub fn body(&self, handle: Handle) -> &Body {
        &self.bodies[handle as usize]
    }

    /// Returns [`Body::user`] of the body there.
    pub fn user(&self, handle: Handle) -> u16 {
        self.bodies[handle as usize].user()
    }

    /// Prefetches a body that will soon be removed.
    #[inline]
    pub fn prefetch(&self, handle: Handle) {
        prefetch(&self.bodies[handle as usize]);
    }

    /// Counts one more item of this body.
    pub fn hold(&mut self, handle: Handle) {
        self.notes[handle as usize].references += 1;
    }

    /// Releases one item of this body; the last releases the body.
    pub fn release(&mut self, handle: Handle) {
        if self.let_go(handle) {
            self.bodies[handle as usize] = Body::empty();
        }
    }

    /// Releases as [`Store::release`], and returns the body: itself, or a copy where other items are of it.
    #[inline]
    pub fn take(&mut self, handle: Handle) -> Body {
        if self.let_go(handle) {
            std::mem::replace(&mut self.bodies[handle as usize], Body::empty())
        } else {
            self.bodies[handle as usize].clone()
        }
    }

    /// Drops one reference, and the place with the last one.
    #[inline]
    fn let_go(&mut self, handle: Handle) -> bool {
        let references = &mut self.notes[handle as usize].references;
        *references -= 1;
        let last = *references == 0;
        if last {
            self.free.push(handle);
        }
        last
    }

    /// Returns the bytes of all places, free ones too; data that a body points to is shared and not counted.
    pub fn memory_bytes(&self) -> u64 {
        (self.bodies.capacity() * size_of::<Body>() + self.notes.capacity() * size_of::<Note>()) as u64
    }

    /// Bodies that are kept.
    pub fn len(&self) -> usize {
        self.bodies.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::PacketKind;

    use super::*;

    fn datagram(bytes: u32) -> (Body, PacketInfo) {
        let (kind, header_bytes) = (PacketKind::Cross, 8);
        let info =
            PacketInfo { kind, flags: 0, header_bytes, payload_bytes: bytes, seq: None, connection: None };
        (Body::Datagram(Ports { from: 1, to: 2, user: NO_RELAY }, Chunk::filler(bytes)), info)
    }

    #[test]
    fn slots_are_reused_whatever_the_order_of_leaving() {
        let mut store = Store::default();
        for _ in 0..1000u64 {
            let handles = [0, 1, 2].map(|n| {
                let (body, info) = datagram(n);
                store.insert(body, info, 1)
            });
            for n in [1, 2, 0] {
                assert_eq!(store.info(handles[n]).payload_bytes, n as u32);
                assert_eq!(store.take(handles[n]).payload_bytes(), n as u32);
            }
        }
        assert_eq!((store.bodies.len(), store.len()), (3, 0));
    }

    #[test]
    fn a_body_stays_until_the_last_of_its_items_has_gone() {
        let mut store = Store::default();
        let (body, info) = datagram(7);
        let handle = store.insert(body, info, 2);
        store.hold(handle);
        store.release(handle);
        assert_eq!(store.take(handle).payload_bytes(), 7);
        assert_eq!(store.len(), 1);
        assert_eq!(store.take(handle).payload_bytes(), 7);
        assert_eq!(store.len(), 0);
    }

    #[test]
    fn headers_are_counted_to_the_byte() {
        assert_eq!(datagram(1000).0.ip_bytes(), 1028);
        let echo = Body::Echo(Chunk::with_filler(7u16.to_be_bytes(), 56));
        assert_eq!((echo.ip_bytes(), echo.payload_bytes()), (84, 56));
        assert_eq!(echo.headers().transport, TransportHeader::IcmpEcho { seq: 7 });
    }
}
