//! The entrance of strangers' datagrams: a socket that receives from all peers, and a socket of its own for
//! each lasting peer.
//!
//! The kernel gives a datagram to the socket that is connected to its sender, if there is one of the same port.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, bind, recvmsg, sendmsg,
};
use streamgauge_base::Chunk;

use super::address_of;
use crate::sys;

/// Room for datagrams that arrive at once, bytes.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// Most datagrams read from those that arrived before a socket was connected.
const MOST_MEANWHILE: usize = 64;

/// A received datagram, with its source and destination.
pub struct Received {
    /// All of it.
    pub datagram: Chunk,
    /// Its sender.
    pub from: SocketAddr,
    /// Its destination: an address of ours.
    pub to: SocketAddr,
}

/// The socket that receives from all peers.
pub struct UdpListener {
    socket: UdpSocket,
    address: SocketAddr,
}

impl UdpListener {
    /// Opens a listener at this address.
    pub fn open(address: SocketAddr) -> io::Result<UdpListener> {
        let socket = shared(address)?;
        // It may have many addresses, and must answer from the one that was written to.
        let (level, option) = match address {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_PKTINFO),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        };
        sys::set_option(socket.as_fd(), level, option, &1i32)?;
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)?;
        Ok(UdpListener { socket, address })
    }

    /// Returns the descriptor for polling.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns the next datagram, read through `room`; `None` if there is none.
    pub fn next(&self, room: &mut [u8]) -> Option<Received> {
        loop {
            let mut control = nix::cmsg_space!(libc::in6_pktinfo);
            let mut parts = [IoSliceMut::new(room)];
            let fd = self.socket.as_raw_fd();
            let came = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), MsgFlags::MSG_DONTWAIT);
            let came = match came {
                Ok(came) => came,
                Err(nix::Error::EINTR) => continue,
                Err(_) => return None,
            };
            let to = came.cmsgs().ok().and_then(|mut all| all.find_map(|one| written_to(&one)));
            let (bytes, from) = (came.bytes, came.address.as_ref().and_then(address_of));
            // Port 0 belongs to no socket: there is no answer to it.
            if let Some(from) = from.filter(|from| from.port() != 0) {
                let to = SocketAddr::new(to.unwrap_or(self.address.ip()), self.address.port());
                let (from, to) = (canonical(from), canonical(to));
                return Some(Received { datagram: Chunk::bytes(&room[..bytes]), from, to });
            }
        }
    }

    /// Returns the address in the socket's form.
    fn as_ours(&self, address: SocketAddr) -> SocketAddr {
        match (self.address, address.ip()) {
            (SocketAddr::V6(_), IpAddr::V4(ip)) => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
            }
            _ => address,
        }
    }

    /// Sends a datagram to the sender of that one, from the address that it was sent to.
    pub fn answer(&self, came: &Received, datagram: &Chunk) {
        let (own, to) = (self.as_ours(came.to), self.as_ours(came.from));
        let (parts, to) = ([IoSlice::new(datagram.head())], SockaddrStorage::from(to));
        let send = |control: &[ControlMessage<'_>]| {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            // Data that the network cannot accept are dropped.
            let _ = sendmsg(self.socket.as_raw_fd(), &parts, control, flags, Some(&to));
        };
        match own.ip() {
            IpAddr::V4(own) => send(&[ControlMessage::Ipv4PacketInfo(&libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(own.octets()) },
                ipi_addr: libc::in_addr { s_addr: 0 },
            })]),
            IpAddr::V6(own) => send(&[ControlMessage::Ipv6PacketInfo(&libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: own.octets() },
                ipi6_ifindex: 0,
            })]),
        }
    }
}

/// Returns a socket for the datagrams of `peer` to `own` alone. Until it was connected it received from all
/// peers, in the listener's place: datagrams from that time are returned with it, read through `room`.
pub fn connected(
    own: SocketAddr,
    peer: SocketAddr,
    room: &mut [u8],
) -> io::Result<(UdpSocket, Vec<Received>)> {
    let socket = shared(of_link(own, peer))?;
    socket.connect(peer)?;
    let mut meanwhile = Vec::new();
    while meanwhile.len() < MOST_MEANWHILE
        && let Ok((length, from)) = socket.recv_from(room)
    {
        meanwhile.push(Received { datagram: Chunk::bytes(&room[..length]), from, to: own });
    }
    Ok((socket, meanwhile))
}

/// Returns the address as IPv4 where it is a mapped one.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Returns our address with the peer's link, if it is an address of one link.
fn of_link(own: SocketAddr, peer: SocketAddr) -> SocketAddr {
    match (own, peer) {
        (SocketAddr::V6(own), SocketAddr::V6(peer)) if own.ip().is_unicast_link_local() => {
            SocketAddrV6::new(*own.ip(), own.port(), 0, peer.scope_id()).into()
        }
        (own, _) => own,
    }
}

/// Returns a socket that shares its address with others of this process.
fn shared(address: SocketAddr) -> io::Result<UdpSocket> {
    let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket: OwnedFd = sys::socket(domain, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0)?;
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(socket.into())
}

fn written_to(control: &ControlMessageOwned) -> Option<IpAddr> {
    match control {
        ControlMessageOwned::Ipv4PacketInfo(info) => Some(IpAddr::from(info.ipi_addr.s_addr.to_ne_bytes())),
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(IpAddr::from(info.ipi6_addr.s6_addr)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn next(listener: &UdpListener, room: &mut [u8]) -> Received {
        loop {
            if let Some(came) = listener.next(room) {
                return came;
            }
        }
    }

    fn heard(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut room = [0; 100];
        let (length, from) = socket.recv_from(&mut room).unwrap();
        (room[..length].to_vec(), from)
    }

    #[test]
    fn who_is_new_is_heard_by_the_listener_and_who_stays_by_his_own_socket() {
        // Both families of a host, and one of its many addresses.
        for (listens, there) in [
            (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from([127, 0, 0, 9])),
            (Ipv6Addr::UNSPECIFIED.into(), [127, 0, 0, 9].into()),
            (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()),
        ] {
            // Below those that the kernel chooses.
            let port = 28_960;
            let listener = UdpListener::open(SocketAddr::new(listens, port)).unwrap();
            let here = if there.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { there };
            let [one, other] = [(); 2].map(|()| UdpSocket::bind((here, 0)).unwrap());
            let mut room = vec![0; 2000];
            one.send_to(b"hello", (there, port)).unwrap();
            let came = next(&listener, &mut room);
            assert_eq!((came.datagram.head(), came.from), (&b"hello"[..], one.local_addr().unwrap()));
            assert_eq!(came.to, SocketAddr::new(there, port));
            listener.answer(&came, &Chunk::bytes(*b"no room"));
            assert_eq!(heard(&one), (b"no room".to_vec(), SocketAddr::new(there, port)));

            let (own, meanwhile) = connected(came.to, came.from, &mut room).unwrap();
            assert!(meanwhile.is_empty());
            own.set_nonblocking(false).unwrap();
            one.send_to(b"again", (there, port)).unwrap();
            other.send_to(b"me too", (there, port)).unwrap();
            assert_eq!(heard(&own), (b"again".to_vec(), one.local_addr().unwrap()));
            own.send(b"answer").unwrap();
            assert_eq!(heard(&one), (b"answer".to_vec(), SocketAddr::new(there, port)));
            assert_eq!(next(&listener, &mut room).datagram.head(), b"me too");
            assert!(listener.next(&mut room).is_none());
            // Without its own socket the peer is new again.
            drop(own);
            one.send_to(b"late", (there, port)).unwrap();
            assert_eq!(next(&listener, &mut room).datagram.head(), b"late");
        }
    }
}
