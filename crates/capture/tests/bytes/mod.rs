//! Captures made byte by byte, as the specifications have them.
#![allow(dead_code)]

use std::io::Write;
use std::path::PathBuf;

/// IPv4's TCP segment.
#[derive(Clone)]
pub struct Segment {
    pub from: [u8; 4],
    pub to: [u8; 4],
    pub ports: (u16, u16),
    pub id: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

/// From the server to the client.
pub fn down(id: u16, seq: u32, payload: usize) -> Segment {
    let payload = vec![b'x'; payload];
    let (from, to, ports) = ([10, 0, 0, 1], [10, 0, 0, 2], (80, 4000));
    Segment { from, to, ports, id, seq, ack: 1, flags: 16, window: 60_000, options: Vec::new(), payload }
}

/// From the client to the server.
pub fn up(id: u16, ack: u32) -> Segment {
    let (from, to, ports) = ([10, 0, 0, 2], [10, 0, 0, 1], (4000, 80));
    let (options, payload) = (Vec::new(), Vec::new());
    Segment { from, to, ports, id, seq: 1, ack, flags: 16, window: 60_000, options, payload }
}

impl Segment {
    pub fn ip(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.ports.0.to_be_bytes());
        tcp.extend(self.ports.1.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.push((((20 + self.options.len()) / 4) << 4) as u8);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.extend(&self.payload);
        ipv4(6, self.from, self.to, self.id, &tcp)
    }
}

pub fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], id: u16, above: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend(((20 + above.len()) as u16).to_be_bytes());
    ip.extend(id.to_be_bytes());
    ip.extend([0, 0, 64, protocol, 0, 0]);
    ip.extend(from);
    ip.extend(to);
    ip.extend(above);
    ip
}

pub fn udp(ports: (u16, u16), id: u16, payload: &[u8]) -> Vec<u8> {
    let mut udp = Vec::new();
    udp.extend(ports.0.to_be_bytes());
    udp.extend(ports.1.to_be_bytes());
    udp.extend(((8 + payload.len()) as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], id, &udp)
}

pub fn rtp(ssrc: u32, kind: u8, seq: u16, stamp: u32) -> Vec<u8> {
    let mut rtp = vec![0x80, kind];
    rtp.extend(seq.to_be_bytes());
    rtp.extend(stamp.to_be_bytes());
    rtp.extend(ssrc.to_be_bytes());
    rtp.extend([0; 100]);
    rtp
}

pub fn ethernet(kind: u16, above: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend(kind.to_be_bytes());
    frame.extend(above);
    frame
}

/// pcap of raw IP, or of frames of this link type: (time in ns, bytes).
pub fn pcap(link: u32, big: bool, nanoseconds: bool, frames: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = Vec::new();
    file.extend(word(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    file.extend([half(2), half(4)].concat());
    file.extend([word(0), word(0), word(65_535), word(link)].concat());
    for (at_ns, bytes) in frames {
        let part = (at_ns % 1_000_000_000) as u32;
        file.extend(word((at_ns / 1_000_000_000) as u32));
        file.extend(word(if nanoseconds { part } else { part / 1000 }));
        file.extend([word(bytes.len() as u32), word(bytes.len() as u32)].concat());
        file.extend(bytes);
    }
    file
}

/// A block of pcapng.
pub fn block(kind: u32, big: bool, body: &[u8]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let padding = body.len().wrapping_neg() % 4;
    let length = (12 + body.len() + padding) as u32;
    [&word(kind)[..], &word(length), body, &vec![0; padding], &word(length)].concat()
}

/// A section header.
pub fn section(big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let version = if big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
    block(0x0a0d_0d0a, big, &[&word(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat())
}

/// An interface of raw IP, its stamps in units of 10^-`resolution` s and `offset` s behind.
pub fn interface(big: bool, resolution: u8, offset: i64) -> Vec<u8> {
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let offset = if big { offset.to_be_bytes() } else { offset.to_le_bytes() };
    let mut body = [half(101), half(0)].concat();
    body.extend([0; 4]);
    body.extend([half(9), half(1)].concat());
    body.extend([resolution, 0, 0, 0]);
    body.extend([half(14), half(8)].concat());
    body.extend(offset);
    body.extend([0; 4]);
    block(1, big, &body)
}

/// An enhanced packet.
pub fn packet(big: bool, interface: u32, stamp: u64, bytes: &[u8], original: u32) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut body = [word(interface), word((stamp >> 32) as u32), word(stamp as u32)].concat();
    body.extend([word(bytes.len() as u32), word(original)].concat());
    body.extend(bytes);
    block(6, big, &body)
}

/// The bytes as a file that is there for the test.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("streamgauge-capture-{}-{name}", std::process::id()));
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    path
}
