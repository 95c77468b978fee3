//! Channels of datagrams: UDP and ICMP echo.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::libc;
use nix::sys::socket::{MsgFlags, SockaddrIn, sendmsg};
use streamgauge_base::{Chunk, Ecn};

use super::Addresses;
use crate::error::{EngineError, Result};
use crate::sys;

/// Largest UDP payload over IPv4.
const MAX_DATAGRAM: usize = 65_507;

/// What filler is made of.
pub static ZEROS: [u8; 65_536] = [0; 65_536];

/// Room for arrivals while the machine is busy, bytes; the path's queue is the bottleneck, not this one.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// Sends real bytes and then filler as one datagram; whether the kernel took it.
fn send_parts(socket: BorrowedFd<'_>, head: &[u8], filler: usize, peer: Ipv4Addr, port: u16) -> bool {
    let parts = [IoSlice::new(head), IoSlice::new(&ZEROS[..filler])];
    let to = SockaddrIn::from(SocketAddrV4::new(peer, port));
    sendmsg(socket.as_raw_fd(), &parts, &[], MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL, Some(&to))
        .is_ok()
}

fn bound(what: &str, own: Ipv4Addr, e: &std::io::Error) -> EngineError {
    EngineError::io(format!("{what} on address {own}"), e)
        .remedy("run inside the namespace that has this address")
}

/// A UDP channel; both ends use the same port.
pub struct Udp {
    // Not connected: a connected socket would answer the next send with the error of an earlier one.
    socket: UdpSocket,
    peer: Ipv4Addr,
    port: u16,
    buffer: Box<[u8]>,
}

impl Udp {
    /// Bound to our address and `port`. Every packet goes out with `ecn` in its ECN field.
    pub fn open(addresses: Addresses, port: u16, ecn: Ecn) -> Result<Udp> {
        let Addresses { own, peer } = addresses;
        let failed = |e: std::io::Error| bound(&format!("open UDP port {port}"), own, &e);
        let socket = UdpSocket::bind((own, port)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)
            .map_err(failed)?;
        // The ECN field is the lower two bits of the TOS byte (RFC 3168 section 5).
        sys::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_TOS, &libc::c_int::from(ecn as u8))
            .map_err(failed)?;
        // Linux would forbid routers to cut up what it sends by UDP, and wait for ICMP to learn the path's MTU. Our
        // machines know nothing of MTUs, in sim neither, and leave it to the routers.
        let dont = libc::IP_PMTUDISC_DONT;
        sys::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &dont).map_err(failed)?;
        Ok(Udp { socket, peer, port, buffer: vec![0; MAX_DATAGRAM].into_boxed_slice() })
    }

    /// For polling.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Ours and the other end's.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the kernel took it.
    pub fn send(&mut self, datagram: &Chunk) -> bool {
        let filler = datagram.len() - datagram.head().len();
        filler <= MAX_DATAGRAM
            && send_parts(self.socket.as_fd(), datagram.head(), filler, self.peer, self.port)
    }

    /// The next one from the other end.
    pub fn receive(&mut self) -> Option<Chunk> {
        loop {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, SocketAddr::V4(from))) if *from.ip() == self.peer => {
                    return Some(Chunk::bytes(&self.buffer[..length]));
                }
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return None,
                // An ICMP error of an earlier send: the datagram behind it still waits.
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(_) => return None,
            }
        }
    }
}

/// Echo requests out, replies in. A datagram is the sequence number and the data.
pub struct Echo {
    socket: OwnedFd,
    peer: Ipv4Addr,
    identifier: u16,
}

impl Echo {
    /// A raw socket at our address.
    pub fn open(addresses: Addresses) -> Result<Echo> {
        let Addresses { own, peer } = addresses;
        let failed = |e: std::io::Error| {
            bound("open a raw ICMP socket", own, &e)
                .remedy("echo needs CAP_NET_RAW: run the node with --keep-privileges")
        };
        let socket = sys::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, libc::IPPROTO_ICMP)
            .map_err(failed)?;
        let address = SockaddrIn::from(SocketAddrV4::new(own, 0));
        nix::sys::socket::bind(socket.as_raw_fd(), &address).map_err(|e| failed(e.into()))?;
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)
            .map_err(failed)?;
        Ok(Echo { socket, peer, identifier: std::process::id() as u16 })
    }

    /// For polling.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Whether the kernel took it.
    pub fn send(&mut self, datagram: &Chunk) -> bool {
        let [high, low] = datagram.head().first_chunk().copied().unwrap_or_default();
        let [id_high, id_low] = self.identifier.to_be_bytes();
        let mut message = vec![8, 0, 0, 0, id_high, id_low, high, low];
        message.extend(datagram.head().get(2..).unwrap_or_default());
        // Filler is zero and adds nothing to the checksum.
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let filler = datagram.len() - datagram.head().len();
        filler <= MAX_DATAGRAM && send_parts(self.socket.as_fd(), &message, filler, self.peer, 0)
    }

    /// The next reply to one of our requests.
    pub fn receive(&mut self) -> Option<Chunk> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 2048];
        loop {
            // SAFETY: the kernel writes at most `buffer.len()` bytes.
            let length = unsafe {
                libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_TRUNC)
            };
            if length < 0 {
                return None;
            }
            let length = length as usize;
            // SAFETY: the kernel has written this many bytes.
            let packet =
                unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), length.min(buffer.len())) };
            if let Some(message) = reply(packet, self.peer, self.identifier) {
                let filler = length - packet.len();
                return Some(Chunk::with_filler(message, filler as u32));
            }
        }
    }
}

/// Sequence number and data of an echo reply from `peer` with `identifier`; `packet` begins with its IP header.
fn reply(packet: &[u8], peer: Ipv4Addr, identifier: u16) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let message = packet.get(header..)?;
    let ours = message.get(4..6)? == identifier.to_be_bytes();
    (packet.get(12..16)? == peer.octets() && message[..2] == [0, 0] && ours).then(|| message.get(6..))?
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_rfc_1071s_example() {
        // Section 3: the sum of these words is ddf2.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn only_our_own_replies_are_taken() {
        let mut packet = vec![0x45; 20];
        packet[12..16].copy_from_slice(&[10, 2, 0, 1]);
        packet.extend([0, 0, 9, 9, 0x12, 0x34, 0, 5, 1, 2]);
        let peer = Ipv4Addr::new(10, 2, 0, 1);
        assert_eq!(reply(&packet, peer, 0x1234), Some(&[0, 5, 1, 2][..]));
        assert_eq!(reply(&packet, peer, 0x1235), None);
        assert_eq!(reply(&packet, Ipv4Addr::new(10, 2, 0, 2), 0x1234), None);
        packet[20] = 8;
        assert_eq!(reply(&packet, peer, 0x1234), None);
        assert_eq!(reply(&packet[..23], peer, 0x1234), None);
    }
}
