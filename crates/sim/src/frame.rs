//! A simulated packet as the bytes that would be on the wire: Ethernet, IPv4, and TCP, UDP or ICMP with checksums.

use streamgauge_base::{Chunk, Direction, IPV4_HEADER_BYTES, Item};
use streamgauge_transport::tcp::{Segment, flags};

use crate::store::{Body, Ports};

/// Around a packet.
pub struct Envelope {
    /// IPv4, of the sender and of the receiver.
    pub addresses: [[u8; 4]; 2],
    pub direction: Direction,
}

const IPV4: [u8; 2] = [0x08, 0x00];
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const TIME_TO_LIVE: u8 = 64;
/// RFC 7323 section 2.3: windows of 1 GiB fit.
const WINDOW_SCALE: u8 = 14;
/// As much as an Ethernet frame carries behind IPv4's and TCP's headers.
const MOST_SEGMENT: u16 = 1460;

/// Returns the frame of `item`, as it is at its place on the path.
pub fn frame(item: &Item, body: &Body, envelope: &Envelope) -> Vec<u8> {
    let (protocol, mut above) = match body {
        Body::Segment(ports, segment) => (TCP, tcp(*ports, segment)),
        Body::Datagram(ports, datagram) => (UDP, udp(*ports, datagram)),
        Body::Echo(message) => (ICMP, echo(message, envelope.direction)),
    };
    check(protocol, &mut above, envelope.addresses);
    if item.corrupted
        && let Some(last) = above.last_mut()
    {
        *last ^= 1;
    }
    let from = usize::from(item.fragment.offset()) * 8;
    let to = from + item.ip_bytes.saturating_sub(IPV4_HEADER_BYTES) as usize;
    let part = &above[from.min(above.len())..to.min(above.len())];
    let mut frame = ethernet(envelope.direction);
    let mut ip = vec![0x45, item.ecn as u8];
    ip.extend((part.len() as u16 + IPV4_HEADER_BYTES as u16).to_be_bytes());
    ip.extend((item.id.0 as u16).to_be_bytes());
    ip.extend(item.fragment.word().to_be_bytes());
    ip.extend([TIME_TO_LIVE, protocol, 0, 0]);
    ip.extend(envelope.addresses.concat());
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(part);
    frame
}

/// Returns a header with locally administered addresses: 1 serves, 2 plays.
fn ethernet(direction: Direction) -> Vec<u8> {
    let (from, to) = if direction == Direction::Down { (1, 2) } else { (2, 1) };
    let mut header = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
    header.extend(IPV4);
    header
}

fn bytes_of(chunk: &Chunk) -> Vec<u8> {
    let mut bytes = chunk.head().to_vec();
    bytes.resize(chunk.len(), 0);
    bytes
}

fn udp(ports: Ports, datagram: &Chunk) -> Vec<u8> {
    let length = 8 + datagram.len() as u16;
    let mut bytes = [ports.from, ports.to, length, 0].map(u16::to_be_bytes).concat();
    bytes.extend(bytes_of(datagram));
    bytes
}

/// Returns an echo message by RFC 792, which begins with the sequence number.
fn echo(message: &Chunk, direction: Direction) -> Vec<u8> {
    let kind = if direction == Direction::Down { 8 } else { 0 };
    let mut bytes = vec![kind, 0, 0, 0, 0, 1];
    bytes.extend(bytes_of(message));
    bytes
}

fn tcp(ports: Ports, segment: &Segment) -> Vec<u8> {
    let header = (segment.header_bytes() - IPV4_HEADER_BYTES) as usize;
    let is_syn = segment.has(flags::SYN);
    let mut bytes = [ports.from, ports.to].map(u16::to_be_bytes).concat();
    bytes.extend(segment.seq.to_be_bytes());
    bytes.extend(segment.ack.to_be_bytes());
    bytes.extend([((header / 4) << 4) as u8 | u8::from(segment.ae), segment.flags]);
    // The window of a SYN is not scaled (RFC 7323 section 2.2).
    let window = if is_syn { segment.window } else { segment.window.div_ceil(1 << WINDOW_SCALE) };
    bytes.extend((window.min(u32::from(u16::MAX)) as u16).to_be_bytes());
    bytes.extend([0; 4]);
    if is_syn {
        bytes.extend([2, 4]);
        bytes.extend(MOST_SEGMENT.to_be_bytes());
        bytes.extend([4, 2]);
        stamps(&mut bytes, segment);
        bytes.extend([1, 3, 3, WINDOW_SCALE]);
    } else if header > 20 {
        bytes.extend([1, 1]);
        stamps(&mut bytes, segment);
        let blocks = segment.sack.as_slice();
        if !blocks.is_empty() {
            bytes.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            blocks.iter().for_each(|(left, right)| {
                bytes.extend([left.to_be_bytes(), right.to_be_bytes()].concat());
            });
        }
    }
    bytes.resize(header, 0);
    bytes.extend(bytes_of(&segment.payload));
    bytes
}

fn stamps(bytes: &mut Vec<u8>, segment: &Segment) {
    bytes.extend([8, 10]);
    bytes.extend(segment.timestamps.value.to_be_bytes());
    bytes.extend(segment.timestamps.echo.to_be_bytes());
}

/// Writes the transport's checksum (RFC 9293 section 3.1, RFC 768, RFC 792).
fn check(protocol: u8, above: &mut [u8], addresses: [[u8; 4]; 2]) {
    let (at, pseudo) = match protocol {
        TCP => (16, true),
        UDP => (6, true),
        _ => (2, false),
    };
    let mut head = addresses.concat();
    head.extend([0, protocol]);
    head.extend((above.len() as u16).to_be_bytes());
    let sum = if pseudo { checksum(&[&head, above]) } else { checksum(&[above]) };
    // RFC 768: a sum of zero is sent as ones.
    let sum = if sum == 0 && protocol == UDP { u16::MAX } else { sum };
    above[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the checksum of RFC 1071; all parts but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 =
        words.map(|word| u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))).sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
