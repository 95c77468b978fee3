//! Channels of datagrams on UDP.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::libc;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendmsg};
use streamgauge_base::{Chunk, Ecn};

use super::batch;
pub use super::batch::{MAX_DATAGRAM, ZEROS};
use super::came::{self, Came, tell_marks_and_times};
use crate::error::{EngineError, Result};
use crate::sys;

/// Room for arrivals while the machine is busy, bytes; the path's queue is the bottleneck, not this one.
pub const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// Sends real bytes and then filler as one datagram; whether the kernel took it.
pub fn send_parts(socket: BorrowedFd<'_>, head: &[u8], filler: usize, peer: IpAddr, port: u16) -> bool {
    let parts = [IoSlice::new(head), IoSlice::new(&ZEROS[..filler])];
    let to = SockaddrStorage::from(SocketAddr::new(peer, port));
    sendmsg(socket.as_raw_fd(), &parts, &[], MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL, Some(&to))
        .is_ok()
}

/// Returns the error of an address that this network does not have.
pub fn bound(what: &str, own: IpAddr, e: &io::Error) -> EngineError {
    EngineError::io(format!("{what} on address {own}"), e)
        .remedy("run inside the namespace that has this address")
}

/// Makes every packet of a socket carry `ecn`: the lower two bits of the TOS byte (RFC 3168 section 5).
fn mark(socket: &UdpSocket, ecn: Ecn) -> io::Result<()> {
    let tos = libc::c_int::from(ecn as u8);
    sys::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_TOS, &tos)
}

/// Makes room for arrivals while the machine is busy.
fn hold_bursts(socket: &UdpSocket) -> io::Result<()> {
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)
}

/// Lets routers fragment: by default Linux forbids it for UDP datagrams, and waits for ICMP to learn the
/// path's MTU. Our machines ignore MTUs, in sim too, and leave fragmentation to the routers.
fn let_routers_cut(socket: &UdpSocket) -> io::Result<()> {
    let (level, option, dont) = match socket.local_addr()? {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT),
    };
    sys::set_option(socket.as_fd(), level, option, &dont)
}

/// A UDP port of a trial by which a relay exchanges datagrams with many.
pub struct SharedUdp {
    socket: UdpSocket,
    port: u16,
}

impl SharedUdp {
    /// Opens a socket bound to our address and `port`. Every packet carries `ecn` in its ECN field.
    pub fn open(own: Ipv4Addr, port: u16, ecn: Ecn) -> Result<SharedUdp> {
        let failed = |e: io::Error| bound(&format!("open UDP port {port}"), own.into(), &e);
        let socket = UdpSocket::bind((own, port)).map_err(failed)?;
        let set = || {
            socket.set_nonblocking(true)?;
            let_routers_cut(&socket)?;
            hold_bursts(&socket)?;
            tell_marks_and_times(&socket, socket.local_addr()?)?;
            mark(&socket, ecn)
        };
        set().map_err(failed)?;
        Ok(SharedUdp { socket, port })
    }

    /// Returns the descriptor for polling.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Ours.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends to an address of this network; whether the kernel took it.
    pub fn send(&self, to: SocketAddr, datagram: &Chunk) -> bool {
        let filler = datagram.len() - datagram.head().len();
        filler <= MAX_DATAGRAM && send_parts(self.socket.as_fd(), datagram.head(), filler, to.ip(), to.port())
    }

    /// Sends several to an address of this network by one call; how many the kernel took.
    pub fn send_batch(&self, to: SocketAddr, datagrams: &[(Chunk, Option<Ecn>)]) -> usize {
        batch::send(self.socket.as_fd(), to, datagrams).unwrap_or(0)
    }

    /// Returns the next datagram and its sender, read through `room`; `None` if there is none.
    pub fn receive(&self, room: &mut [u8]) -> Option<(Came, SocketAddr)> {
        came::receive(&self.socket, room).ok()
    }
}

/// Datagrams of strangers that are passed over before others get their turn.
const MOST_FOREIGN: usize = 64;

/// A UDP channel.
pub struct Udp {
    socket: UdpSocket,
    /// To a stranger, so that the kernel keeps others from it. Such a socket answers a send with the error of an earlier
    /// one; in trials none is connected.
    is_connected: bool,
    /// We have written first, and received nothing yet: the other end's host may report that the port is
    /// closed.
    is_unheard: bool,
    is_refused: bool,
    peer: IpAddr,
    port: u16,
    /// The other end's port; 0 while it is not known.
    to: u16,
}

impl Udp {
    /// Opens a socket bound to our address and `port`, which the other end uses too. Every packet carries
    /// `ecn` in its ECN field.
    pub fn open(own: IpAddr, peer: IpAddr, port: u16, ecn: Ecn) -> Result<Udp> {
        let failed = |e: io::Error| bound(&format!("open UDP port {port}"), own, &e);
        let mut udp = Udp::bind(own, port, peer).map_err(failed)?;
        udp.hold_bursts().map_err(failed)?;
        mark(&udp.socket, ecn).map_err(failed)?;
        udp.direct(port);
        Ok(udp)
    }

    /// Opens a socket to a stranger, from a port that the kernel chooses.
    pub fn to_stranger(own: IpAddr, peer: SocketAddr, ecn: Ecn) -> io::Result<Udp> {
        let socket = UdpSocket::bind((own, 0))?;
        socket.connect(peer)?;
        let mut udp = Udp::connected(socket, peer)?;
        udp.is_unheard = true;
        udp.hold_bursts()?;
        mark(&udp.socket, ecn)?;
        Ok(udp)
    }

    /// Returns a socket to a stranger, which must be connected to it.
    pub fn connected(socket: UdpSocket, peer: SocketAddr) -> io::Result<Udp> {
        let mut udp = Udp::over(socket, peer.ip())?;
        udp.is_connected = true;
        udp.direct(peer.port());
        Ok(udp)
    }

    /// Returns a socket bound to our address and `port`; it sends nothing before [`Udp::direct`], or before
    /// its first arrival.
    pub fn bind(own: IpAddr, port: u16, peer: IpAddr) -> io::Result<Udp> {
        Udp::over(UdpSocket::bind((own, port))?, peer)
    }

    fn over(socket: UdpSocket, peer: IpAddr) -> io::Result<Udp> {
        socket.set_nonblocking(true)?;
        let own = socket.local_addr()?;
        let_routers_cut(&socket)?;
        tell_marks_and_times(&socket, own)?;
        Ok(Udp {
            socket,
            is_connected: false,
            is_unheard: false,
            is_refused: false,
            peer,
            port: own.port(),
            to: 0,
        })
    }

    /// Returns the port of the other end that its host reports as closed, if nothing ever arrived from there.
    pub fn refused(&self) -> Option<u16> {
        self.is_refused.then_some(self.to)
    }

    /// Makes room for arrivals while the machine is busy.
    pub fn hold_bursts(&self) -> io::Result<()> {
        hold_bursts(&self.socket)
    }

    /// Datagrams go to this port of the other end from now on.
    pub fn direct(&mut self, port: u16) {
        self.to = port;
    }

    /// Returns the descriptor for polling.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Ours.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the kernel took it.
    pub fn send(&mut self, datagram: &Chunk) -> bool {
        let filler = datagram.len() - datagram.head().len();
        let send = || send_parts(self.socket.as_fd(), datagram.head(), filler, self.peer, self.to);
        // The first time it may be the error of an earlier one.
        self.to != 0 && filler <= MAX_DATAGRAM && (send() || self.is_connected && send())
    }

    /// Sends several by one call; how many the kernel took.
    pub fn send_batch(&mut self, datagrams: &[(Chunk, Option<Ecn>)]) -> usize {
        if self.to == 0 {
            return 0;
        }
        let send = || batch::send(self.socket.as_fd(), SocketAddr::new(self.peer, self.to), datagrams);
        // The first time it may be the error of an earlier one.
        send().or_else(|error| if self.is_connected { send() } else { Err(error) }).unwrap_or(0)
    }

    /// Returns the next one from the other end's host, from any of its ports unless it is connected; read
    /// through `room`. `None` if there is none, or is behind many of strangers: then there is still something
    /// to poll.
    pub fn receive(&mut self, room: &mut [u8]) -> Option<Came> {
        for _ in 0..MOST_FOREIGN {
            match came::receive(&self.socket, room) {
                // A datagram that arrived before it was connected may be from any sender.
                Ok((came, from))
                    if from.ip() == self.peer && (!self.is_connected || from.port() == self.to) =>
                {
                    self.is_unheard = false;
                    // The other end's port was not given: it is the one that it sends from.
                    if self.to == 0 {
                        self.to = from.port();
                    }
                    return Some(came);
                }
                Ok(_) => {}
                // An ICMP error of an earlier send: the datagram behind it still waits.
                Err(nix::Error::ECONNREFUSED) => self.is_refused = self.is_unheard,
                Err(_) => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_named_no_port_is_answered_where_he_sends_from() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let server = UdpSocket::bind((here, 0)).unwrap();
        let mut udp = Udp::bind(here, 0, here).unwrap();
        assert!(!udp.send(&Chunk::bytes(*b"to nobody")));
        server.send_to(b"media", (here, udp.port())).unwrap();
        let mut room = [0; 100];
        let came = std::iter::repeat_with(|| udp.receive(&mut room)).flatten().next();
        assert_eq!(came.unwrap().bytes.head(), b"media");
        assert!(udp.send(&Chunk::bytes(*b"report")));
        assert_eq!(server.recv_from(&mut room).unwrap(), (6, SocketAddr::new(here, udp.port())));
    }

    #[test]
    fn a_stranger_is_written_to_again_after_an_error_and_others_are_not_heard() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let [gone, other] = [(); 2].map(|()| UdpSocket::bind((here, 0)).unwrap());
        let there = gone.local_addr().unwrap();
        let mut udp = Udp::to_stranger(here, there, Ecn::NotEct).unwrap();
        drop(gone);
        // The kernel answers with ICMP, and would report it at the next send.
        assert!(udp.send(&Chunk::filler(10)));
        let mut room = [0; 100];
        assert!(udp.receive(&mut room).is_none() && udp.refused() == Some(there.port()));
        assert!(udp.send(&Chunk::filler(10)));
        let back = UdpSocket::bind(there).unwrap();
        assert!(udp.send(&Chunk::bytes(*b"there?")));
        assert_eq!(back.recv_from(&mut room).unwrap(), (6, SocketAddr::new(here, udp.port())));
        other.send_to(b"stranger", (here, udp.port())).unwrap();
        back.send_to(b"yes", (here, udp.port())).unwrap();
        assert_eq!(udp.receive(&mut room).unwrap().bytes.head(), b"yes");
        assert!(udp.receive(&mut room).is_none());
    }
}
