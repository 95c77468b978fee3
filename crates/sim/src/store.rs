//! Packets on their way. A path carries small items; what they carry stays here.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Headers, PacketId, PacketInfo, Protocol, Transport};
use streamgauge_systems::ChannelId;
use streamgauge_transport::tcp::Segment;

/// What a packet carries above IP.
#[derive(Clone, Debug)]
pub enum Body {
    /// UDP.
    Datagram(ChannelId, Chunk),
    /// ICMP echo, request or reply: sequence number, then data.
    Echo(ChannelId, Chunk),
    /// TCP.
    Segment(ChannelId, Segment),
}

/// Bytes of an IPv4 header and the UDP or ICMP header, 8 bytes both.
const IP_AND_8_BYTES: u32 = 20 + 8;

/// Bytes of the sequence number that an echo datagram begins with; it is part of the ICMP header.
const ECHO_SEQUENCE_BYTES: u32 = 2;

impl Body {
    pub fn ip_bytes(&self) -> u32 {
        match self {
            Body::Datagram(_, datagram) => IP_AND_8_BYTES + datagram.len() as u32,
            Body::Echo(_, message) => IP_AND_8_BYTES + message.len() as u32 - ECHO_SEQUENCE_BYTES,
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

    /// Bytes above the transport header.
    pub fn payload_bytes(&self) -> u32 {
        match self {
            Body::Datagram(_, datagram) => datagram.len() as u32,
            Body::Echo(_, message) => message.len() as u32 - ECHO_SEQUENCE_BYTES,
            Body::Segment(_, segment) => segment.payload.len() as u32,
        }
    }

    pub fn headers(&self) -> Headers<'_> {
        let (transport, payload_head) = match self {
            Body::Datagram(_, datagram) => (Transport::Udp, datagram.head()),
            Body::Echo(_, message) => {
                let seq = message.head().first_chunk().map_or(0, |seq| u16::from_be_bytes(*seq));
                (Transport::IcmpEcho { seq }, &[][..])
            }
            Body::Segment(_, s) => {
                (Transport::Tcp { seq: s.seq, ack: s.ack, flags: s.flags }, s.payload.head())
            }
        };
        Headers { transport, payload_bytes: self.payload_bytes(), payload_head }
    }
}

#[derive(Debug)]
struct Slot {
    body: Body,
    info: PacketInfo,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots are reused, so nothing is allocated per packet. A packet's number leads to its slot through a ring that
/// spans the numbers between the oldest packet inside and the newest.
#[derive(Debug, Default)]
pub struct Store {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    ring: VecDeque<u32>,
    /// The packet of the ring's front.
    oldest: u64,
}

impl Store {
    /// The number of the next packet.
    pub fn next_id(&self) -> PacketId {
        PacketId(self.oldest + self.ring.len() as u64)
    }

    /// Keeps a packet under [`Store::next_id`].
    pub fn insert(&mut self, body: Body, info: PacketInfo) {
        let slot = Some(Slot { body, info });
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                self.ring.push_back(index);
            }
            None => {
                self.ring.push_back(self.slots.len() as u32);
                self.slots.push(slot);
            }
        }
    }

    pub fn info(&self, id: PacketId) -> &PacketInfo {
        let index = self.ring[(id.0 - self.oldest) as usize];
        &self.slots[index as usize].as_ref().expect("the path reports a packet that it holds").info
    }

    pub fn take(&mut self, id: PacketId) -> Body {
        let index = std::mem::replace(&mut self.ring[(id.0 - self.oldest) as usize], NONE);
        while self.ring.front() == Some(&NONE) {
            self.ring.pop_front();
            self.oldest += 1;
        }
        self.free.push(index);
        self.slots[index as usize].take().expect("the path gives a packet out once").body
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::PacketKind;

    use super::*;

    fn datagram(bytes: u32) -> (Body, PacketInfo) {
        let info = PacketInfo { kind: PacketKind::Cross, flags: 0, payload_bytes: bytes, seq: None };
        (Body::Datagram(ChannelId(0), Chunk::filler(bytes)), info)
    }

    #[test]
    fn slots_are_reused_whatever_the_order_of_leaving() {
        let mut store = Store::default();
        for round in 0..1000u64 {
            for n in 0..3 {
                assert_eq!(store.next_id(), PacketId(3 * round + n));
                let (body, info) = datagram(n as u32);
                store.insert(body, info);
            }
            for n in [1, 2, 0] {
                assert_eq!(store.info(PacketId(3 * round + n)).payload_bytes, n as u32);
                assert_eq!(store.take(PacketId(3 * round + n)).payload_bytes(), n as u32);
            }
        }
        assert_eq!((store.slots.len(), store.ring.len()), (3, 0));
    }

    #[test]
    fn headers_are_counted_to_the_byte() {
        assert_eq!(datagram(1000).0.ip_bytes(), 1028);
        let echo = Body::Echo(ChannelId(0), Chunk::with_filler(7u16.to_be_bytes(), 56));
        assert_eq!((echo.ip_bytes(), echo.payload_bytes()), (84, 56));
        assert_eq!(echo.headers().transport, Transport::IcmpEcho { seq: 7 });
    }
}
