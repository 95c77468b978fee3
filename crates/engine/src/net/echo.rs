//! Channels of ICMP echo.

use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use nix::libc;
use nix::sys::socket::SockaddrIn;
use streamgauge_base::Chunk;

use super::AddressPair;
use crate::error::Result;
use crate::net::datagram::{MAX_DATAGRAM, RECEIVE_BUFFER, bound, send_parts};
use crate::sys;

/// Echo requests out, replies in. A datagram is the sequence number and the data.
pub struct Echo {
    socket: OwnedFd,
    peer: Ipv4Addr,
    identifier: u16,
}

impl Echo {
    /// Returns a raw socket at our address.
    pub fn open(addresses: AddressPair) -> Result<Echo> {
        let AddressPair { own, peer } = addresses;
        let failed = |e: std::io::Error| {
            bound("open a raw ICMP socket", own.into(), &e)
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

    /// Returns the descriptor for polling.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns whether the kernel took it.
    pub fn send(&mut self, datagram: &Chunk) -> bool {
        let [high, low] = datagram.head().first_chunk().copied().unwrap_or_default();
        let [id_high, id_low] = self.identifier.to_be_bytes();
        let mut message = vec![8, 0, 0, 0, id_high, id_low, high, low];
        message.extend(datagram.head().get(2..).unwrap_or_default());
        // Filler is zero and adds nothing to the checksum.
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let filler = datagram.len() - datagram.head().len();
        filler <= MAX_DATAGRAM && send_parts(self.socket.as_fd(), &message, filler, self.peer.into(), 0)
    }

    /// Returns the next reply to one of our requests.
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

/// Returns the sequence number and data of an echo reply from `peer` with `identifier`; `packet` begins with
/// its IP header.
fn reply(packet: &[u8], peer: Ipv4Addr, identifier: u16) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let message = packet.get(header..)?;
    let ours = message.get(4..6)? == identifier.to_be_bytes();
    (packet.get(12..16)? == peer.octets() && message[..2] == [0, 0] && ours).then(|| message.get(6..))?
}

/// Returns the Internet checksum (RFC 1071).
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
