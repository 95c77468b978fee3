//! Flows of a capture: packets between the same two ends, both ways.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use crate::course::Course;
use crate::datagrams::Datagrams;
use crate::exchanges::{Exchanges, LEAST_DATAGRAM};
use crate::hash::{Mixed, mix};
use crate::packet::{Address, End, Packet, PacketTransport, protocol};
use crate::streams::{Hint, Streams};
use crate::tcp::{Connection, Segment};

/// Flows that are followed. Packets of further ones are counted together, so that memory is bounded.
pub const MOST_FLOWS: usize = 30_000;
/// Most datagrams that wait for fragments.
const MOST_FRAGMENTED: usize = 1024;
/// Hints of signalling that are kept.
const MOST_HINTS: usize = 4096;

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Packets, fragments included.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
    /// Bytes above the transport header.
    pub payload_bytes: u64,
    /// Packets with congestion experienced.
    pub ce: u64,
    /// Packets that are longer than any frame: joined by offload before the capture.
    pub joined: u64,
    /// Packets with bytes that are not in the capture.
    pub cut: u64,
    /// The last time to live.
    pub ttl: u8,
    /// Course of the payload.
    pub course: Option<Box<Course>>,
}

/// The protocol above UDP or TCP.
#[derive(Clone, Debug)]
pub enum Above {
    /// TCP.
    Tcp(Box<(Connection, Streams)>),
    /// UDP.
    Udp(Box<Datagrams>),
    /// Neither.
    Other,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its two ends in order.
    pub ends: [End; 2],
    /// IP's protocol number.
    pub protocol: u8,
    /// Time of the first and the last packet (ns).
    pub times: (i64, i64),
    /// Both directions, by the end that sends.
    pub ways: [Way; 2],
    /// The rest.
    pub above: Above,
    /// Signalling named its protocol.
    pub hinted: Option<&'static str>,
    /// Requests and answers by their sizes.
    pub exchanges: Exchanges,
}

/// A packet is longer than this only before offload cuts it, or after it joins it: Ethernet's jumbo frames end here.
const LONGEST_FRAME: u32 = 9216;

/// Both ends in order, and IP's protocol number.
#[derive(Clone, Copy, Debug)]
struct Key(End, End, u8);

impl PartialEq for Key {
    /// Without branches: flows are looked up for every packet.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let addresses = (self.0.address.0 ^ other.0.address.0) | (self.1.address.0 ^ other.1.address.0);
        let ports = (self.0.port ^ other.0.port) | (self.1.port ^ other.1.port);
        addresses == 0 && ports | u16::from(self.2 ^ other.2) == 0
    }
}

impl Eq for Key {}

impl Hash for Key {
    /// One word of both ends.
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let halves = |end: &End| (end.address.0 as u64, (end.address.0 >> 64) as u64);
        let ((low, high), (other, higher)) = (halves(&self.0), halves(&self.1));
        let ports = u64::from(self.0.port) << 48 | u64::from(self.1.port) << 32;
        hasher.write_u64(mix(mix(low ^ ports, high) ^ other, higher ^ u64::from(self.2)));
    }
}

/// All flows of a capture.
#[derive(Debug, Default)]
pub struct Flows {
    /// In order of their first packets.
    pub flows: Vec<Flow>,
    index: HashMap<Key, u32, Mixed>,
    /// The flow of the last packet, which is often that of the next.
    last: u32,
    /// Ports behind a fragment's identification.
    fragmented: HashMap<(Address, Address, u8, u32), (u16, u16), Mixed>,
    ports: HashMap<(Address, u16), Hint, Mixed>,
    rates: HashMap<u8, u32>,
    /// Packets and bytes of flows beyond [`MOST_FLOWS`].
    pub beyond: (u64, u64),
    /// Fragments without their first one in the capture.
    pub orphans: u64,
}

/// The place of a packet: its flow's index, and the end that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Index in [`Flows::flows`].
    pub flow: u32,
    /// 0 or 1.
    pub from: usize,
    /// The findings on a TCP segment.
    pub segment: Segment,
}

impl Flows {
    /// Takes a packet. `None` if it belongs to no flow that is followed.
    pub fn take(&mut self, packet: &Packet<'_>) -> Option<Placed> {
        let mut ends = (packet.source, packet.destination);
        if packet.is_later_fragment() {
            let key = (ends.0.address, ends.1.address, packet.protocol, packet.identification.unwrap_or(0));
            let Some(&(source, destination)) = self.fragmented.get(&key) else {
                self.orphans += 1;
                return None;
            };
            (ends.0.port, ends.1.port) = (source, destination);
        } else if packet.more_fragments {
            if self.fragmented.len() >= MOST_FRAGMENTED {
                self.fragmented.clear();
            }
            let key = (ends.0.address, ends.1.address, packet.protocol, packet.identification.unwrap_or(0));
            self.fragmented.insert(key, (ends.0.port, ends.1.port));
        }
        let (from, key) = if ends.0 <= ends.1 {
            (0, Key(ends.0, ends.1, packet.protocol))
        } else {
            (1, Key(ends.1, ends.0, packet.protocol))
        };
        let number = match self.flows.get(self.last as usize) {
            Some(last) if Key(last.ends[0], last.ends[1], last.protocol) == key => self.last,
            _ => self.find(key, packet)?,
        };
        self.last = number;
        let flow = &mut self.flows[number as usize];
        let (segment, hints) = flow.take(from, packet);
        if !hints.is_empty() {
            self.hints(hints, packet);
        }
        Some(Placed { flow: number, from, segment })
    }

    #[inline]
    fn find(&mut self, key: Key, packet: &Packet<'_>) -> Option<u32> {
        match self.index.get(&key) {
            Some(&number) => Some(number),
            None => self.begin(key, packet),
        }
    }

    #[cold]
    fn begin(&mut self, key: Key, packet: &Packet<'_>) -> Option<u32> {
        if self.flows.len() >= MOST_FLOWS {
            self.beyond.0 += 1;
            self.beyond.1 += u64::from(packet.ip_bytes);
            return None;
        }
        let number = self.flows.len() as u32;
        self.index.insert(key, number);
        self.flows.push(Flow {
            ends: [key.0, key.1],
            protocol: key.2,
            times: (packet.at_ns, packet.at_ns),
            ways: Default::default(),
            above: match key.2 {
                protocol::TCP => Above::Tcp(Box::default()),
                protocol::UDP => {
                    let mut datagrams = Datagrams::default();
                    let told = [key.0, key.1].iter().find_map(|end| self.ports.get(&(end.address, end.port)));
                    if let Some(Hint::RtpPort(_)) = told {
                        datagrams.told = Some(None);
                    }
                    Above::Udp(Box::new(datagrams))
                }
                _ => Above::Other,
            },
            hinted: match [key.0, key.1].iter().find_map(|end| self.ports.get(&(end.address, end.port))) {
                Some(Hint::RdtPort(_)) => Some("rdt"),
                _ => None,
            },
            exchanges: Exchanges::default(),
        });
        Some(number)
    }

    /// The flow between these ends, in order.
    pub fn find_flow(&self, ends: &[End; 2], protocol: u8) -> Option<&Flow> {
        let number = *self.index.get(&Key(ends[0], ends[1], protocol))?;
        self.flows.get(number as usize)
    }

    #[cold]
    fn hints(&mut self, hints: Vec<Hint>, packet: &Packet<'_>) {
        for hint in hints {
            self.hint(hint, packet);
        }
    }

    fn hint(&mut self, hint: Hint, packet: &Packet<'_>) {
        if self.ports.len() >= MOST_HINTS {
            return;
        }
        match hint {
            Hint::Rate(kind, rate) => {
                self.rates.insert(kind, rate);
            }
            Hint::RtpPort(port) | Hint::RdtPort(port) => {
                for end in [packet.source, packet.destination] {
                    self.ports.insert((end.address, port), hint.clone());
                }
            }
        }
    }
}

impl Flow {
    #[inline(always)]
    fn take(&mut self, from: usize, packet: &Packet<'_>) -> (Segment, Vec<Hint>) {
        self.times.0 = self.times.0.min(packet.at_ns);
        self.times.1 = self.times.1.max(packet.at_ns);
        let way = &mut self.ways[from];
        way.packets += 1;
        way.bytes += u64::from(packet.ip_bytes);
        way.payload_bytes += u64::from(packet.payload_bytes);
        way.ce += u64::from(packet.ecn == 3);
        way.joined += u64::from(packet.ip_bytes > LONGEST_FRAME);
        way.cut += u64::from((packet.payload.len() as u32) < packet.payload_bytes);
        way.ttl = packet.ttl;
        if packet.payload_bytes > 0 {
            let course = way.course.get_or_insert_with(|| Box::new(Course::new(packet.at_ns)));
            course.add(packet.at_ns, packet.ip_bytes);
        }
        match &mut self.above {
            Above::Tcp(tcp) => {
                let PacketTransport::Tcp(header) = packet.transport else {
                    return (Segment::Empty, Vec::new());
                };
                let segment = tcp.0.take(from, &header, packet);
                let is_new = matches!(segment, Segment::New | Segment::Repair | Segment::Late);
                if !is_new || packet.payload_bytes == 0 {
                    return (segment, Vec::new());
                }
                let arrived = header.seq.wrapping_add(packet.payload_bytes);
                let hints = tcp.1.take(from, header.seq, arrived, packet);
                let least = Exchanges::least(tcp.1.protocol);
                self.exchanges.take(from, packet.payload_bytes, packet.at_ns, least);
                (segment, hints)
            }
            Above::Udp(datagrams) => {
                if !packet.is_later_fragment() && packet.transport == PacketTransport::Udp {
                    datagrams.take(from, packet);
                    if datagrams.seen.quic {
                        self.exchanges.take(from, packet.payload_bytes, packet.at_ns, LEAST_DATAGRAM);
                    }
                }
                (Segment::Empty, sip(packet))
            }
            Above::Other => (Segment::Empty, Vec::new()),
        }
    }

    /// The end that sends most payload, or most bytes where neither sends payload.
    pub fn main(&self) -> usize {
        let key = |way: &Way| (way.payload_bytes, way.bytes);
        usize::from(key(&self.ways[1]) > key(&self.ways[0]))
    }

    /// Its protocol by name.
    pub fn protocol_name(&self) -> String {
        match &self.above {
            Above::Tcp(tcp) => tcp.1.protocol.unwrap_or("tcp").into(),
            Above::Udp(datagrams) => datagrams.protocol().or(self.hinted).unwrap_or("udp").into(),
            Above::Other => match self.protocol {
                protocol::ICMP => "icmp".into(),
                protocol::ICMPV6 => "icmpv6".into(),
                other => format!("ip {other}"),
            },
        }
    }

    /// Its name, as `--flow` matches it.
    pub fn name(&self) -> String {
        let main = self.main();
        format!("{} {} > {}", self.protocol_name(), self.ends[main], self.ends[1 - main])
    }
}

/// Session descriptions in SIP (RFC 3261, RFC 3264).
fn sip(packet: &Packet<'_>) -> Vec<Hint> {
    let is_sip = packet.source.port == 5060 || packet.destination.port == 5060;
    if !is_sip || !packet.payload.first().is_some_and(u8::is_ascii_uppercase) {
        return Vec::new();
    }
    crate::streams::hints(&String::from_utf8_lossy(packet.payload))
}

/// Rates that session descriptions gave for dynamic payload types.
impl Flows {
    /// The clock rate of a payload type, if one session description named it.
    pub fn told_rate(&self, payload_type: u8) -> Option<u32> {
        self.rates.get(&payload_type).copied()
    }
}
