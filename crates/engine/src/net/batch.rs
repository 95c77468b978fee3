//! Several datagrams that leave by one system call.

use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use streamgauge_base::{Chunk, Ecn};

/// Largest UDP payload over IPv4.
pub const MAX_DATAGRAM: usize = 65_507;

/// The bytes of filler.
pub static ZEROS: [u8; 65_536] = [0; 65_536];

/// Most datagrams of one call.
pub const MOST: usize = 64;

/// Room for the control message with the ECN bits; aligned as its header must be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 32]);

/// Sends up to [`MOST`] datagrams to `to`, each with ECN bits of its own or the socket's. Returns how many the kernel took.
pub fn send(socket: BorrowedFd<'_>, to: SocketAddr, datagrams: &[(Chunk, Option<Ecn>)]) -> io::Result<usize> {
    let fits = |(datagram, _): &(Chunk, Option<Ecn>)| datagram.len() <= MAX_DATAGRAM;
    let count = datagrams.iter().take(MOST).take_while(|one| fits(one)).count();
    let datagrams = &datagrams[..count];
    if count == 0 {
        return Ok(0);
    }
    let mut address = SockaddrStorage::from(to);
    let (level, option) = match to {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    let mut parts: Vec<[libc::iovec; 2]> = datagrams
        .iter()
        .map(|(datagram, _)| {
            let (head, filler) = (datagram.head(), datagram.len() - datagram.head().len());
            let part =
                |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
            [part(head), part(&ZEROS[..filler])]
        })
        .collect();
    let mut controls = vec![Control([0; 32]); datagrams.len()];
    // SAFETY: CMSG_SPACE is arithmetic.
    let space = unsafe { libc::CMSG_SPACE(size_of::<libc::c_int>() as u32) } as usize;
    let mut headers: Vec<libc::mmsghdr> = Vec::with_capacity(datagrams.len());
    for (((_, ecn), parts), control) in datagrams.iter().zip(&mut parts).zip(&mut controls) {
        // SAFETY: all-zero bytes are a value of this plain C type.
        let mut header: libc::mmsghdr = unsafe { zeroed() };
        header.msg_hdr.msg_name = std::ptr::from_mut(&mut address).cast();
        header.msg_hdr.msg_namelen = address.len();
        header.msg_hdr.msg_iov = parts.as_mut_ptr();
        header.msg_hdr.msg_iovlen = parts.len();
        if let Some(ecn) = ecn {
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = space;
            // SAFETY: the control buffer is aligned, zeroed, and has room for one message of an int.
            unsafe {
                let message = libc::CMSG_FIRSTHDR(&header.msg_hdr);
                (*message).cmsg_level = level;
                (*message).cmsg_type = option;
                (*message).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as usize;
                libc::CMSG_DATA(message).cast::<libc::c_int>().write_unaligned(i32::from(*ecn as u8));
            }
        }
        headers.push(header);
    }
    // SAFETY: each header points to an address, parts and control data that live until the call returns, and to their
    // lengths.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as u32,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
    use std::os::fd::AsFd;

    use streamgauge_base::Instant;

    use super::*;
    use crate::net::came::{receive, tell_marks_and_times};

    #[test]
    fn datagrams_of_one_call_keep_their_marks_and_have_times() {
        for here in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()] {
            let Ok(to) = UdpSocket::bind(here) else { continue };
            tell_marks_and_times(&to, here).unwrap();
            let from = UdpSocket::bind(here).unwrap();
            let marks = [None, Some(Ecn::Ect1), Some(Ecn::Ect0), Some(Ecn::Ce), Some(Ecn::NotEct)];
            let datagrams = marks.map(|ecn| (Chunk::with_filler(*b"head", 96), ecn));
            let sent = send(from.as_fd(), to.local_addr().unwrap(), &datagrams).unwrap();
            assert_eq!(sent, marks.len());
            let mut room = [1; 2000];
            let now = Instant::from_nanos(5_000_000_000);
            for mark in marks {
                let (came, who) = receive(&to, &mut room).unwrap();
                assert_eq!((came.bytes.len(), who), (100, from.local_addr().unwrap()));
                assert_eq!(&came.bytes.head()[..5], b"head\0");
                assert_eq!(came.ecn, mark.unwrap_or(Ecn::NotEct));
                assert!(came.at(now) <= now && came.at(now) > Instant::from_nanos(4_000_000_000));
            }
            assert_eq!(receive(&to, &mut room).err(), Some(nix::Error::EAGAIN));
        }
    }
}
