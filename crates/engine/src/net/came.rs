//! A received datagram, with its marks and its time: the kernel's data beside its bytes.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use streamgauge_base::{Chunk, Duration, Ecn, Instant};

use super::address_of;
use crate::sys;

/// A stamp older than this is no stamp: the clock has been set meanwhile.
const OLDEST_NS: i64 = 1_000_000_000;

/// A received datagram.
pub struct Came {
    /// All of it.
    pub bytes: Chunk,
    /// The IP header's ECN bits.
    pub ecn: Ecn,
    /// CLOCK_REALTIME at its arrival, ns; `None` without a stamp of the kernel.
    stamp_ns: Option<i64>,
}

impl Came {
    /// Returns a datagram without marks and time.
    pub fn unmarked(bytes: Chunk) -> Self {
        Came { bytes, ecn: Ecn::NotEct, stamp_ns: None }
    }

    /// Returns when it reached the host, of a clock that reads `now`; `now` where the kernel has no stamp.
    pub fn at(&self, now: Instant) -> Instant {
        let age = self.stamp_ns.map(|stamp| sys::clock_ns(libc::CLOCK_REALTIME) - stamp);
        let age = age.filter(|age| (0..OLDEST_NS).contains(age)).unwrap_or(0);
        Instant::ZERO + now.saturating_since(Instant::ZERO).saturating_sub(Duration::from_nanos(age as u64))
    }
}

/// Asks the kernel for marks and stamps of arrivals.
pub fn tell_marks_and_times(socket: impl AsFd, address: SocketAddr) -> io::Result<()> {
    let (level, option) = match address {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVTOS),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    };
    sys::set_option(socket.as_fd(), level, option, &1i32)?;
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)
}

/// Returns the next datagram and its sender, read through `room`.
pub fn receive(socket: impl AsFd, room: &mut [u8]) -> nix::Result<(Came, SocketAddr)> {
    loop {
        let mut control = nix::cmsg_space!(libc::timespec, libc::c_int);
        let mut parts = [IoSliceMut::new(room)];
        let fd = socket.as_fd().as_raw_fd();
        let came = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), MsgFlags::MSG_DONTWAIT);
        let came = match came {
            Err(nix::Error::EINTR) => continue,
            other => other?,
        };
        let (mut ecn, mut stamp_ns) = (Ecn::NotEct, None);
        for message in came.cmsgs().into_iter().flatten() {
            match message {
                ControlMessageOwned::Ipv4Tos(tos) => ecn = ecn_of(tos),
                ControlMessageOwned::Ipv6TClass(class) => ecn = ecn_of(class as u8),
                ControlMessageOwned::ScmTimestampns(time) => {
                    stamp_ns = Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec());
                }
                _ => {}
            }
        }
        let (length, from) = (came.bytes, came.address.as_ref().and_then(address_of));
        let Some(from) = from else { continue };
        return Ok((Came { bytes: Chunk::bytes(&room[..length]), ecn, stamp_ns }, from));
    }
}

fn ecn_of(tos: u8) -> Ecn {
    match tos & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
