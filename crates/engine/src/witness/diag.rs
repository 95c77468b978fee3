//! The kernel's own account of one TCP connection, over sock_diag(7).
//!
//! A connection is asked for by its addresses and ports, which the kernel finds by a hash: a list of all connections
//! would walk a table of hundreds of thousands of places at every sample.

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;

use crate::error::{EngineError, Result};
use crate::sys;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Attributes of an answer, and, less one, their bits in a request (linux/inet_diag.h).
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const MESSAGE_BYTES: usize = 72;
/// States in which a connection may send (net/tcp_states.h): ESTABLISHED, FIN_WAIT1 and CLOSE_WAIT.
const SENDING: [u8; 3] = [1, 4, 8];
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;
const OPTION_ECN: u8 = 8;

/// A connection at one moment. Segments are counted as the kernel counts them, of `mss` bytes of payload each.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    pub congestion_control: String,
    /// Both ends agreed on ECN.
    pub ecn: bool,
    pub cwnd_bytes: u64,
    /// `None` while it is infinite.
    pub ssthresh_bytes: Option<u64>,
    pub in_flight_bytes: u64,
    /// Smoothed; `None` before the first sample.
    pub srtt_us: Option<u32>,
    /// Segments sent again.
    pub retransmits: u32,
    /// Bytes per second; `None` without pacing.
    pub pacing_bytes_s: Option<u64>,
    /// Payload that the peer has acknowledged.
    pub acked_bytes: u64,
}

/// A socket that asks, in the namespace of the thread that made it.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    answer: Vec<u8>,
}

impl Diag {
    /// Refuses if this kernel answers no questions about TCP.
    pub fn open() -> Result<Self> {
        let failed = |e: std::io::Error| {
            EngineError::io("ask the kernel about TCP connections", &e).remedy("load the module tcp_diag")
        };
        let socket =
            sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG).map_err(failed)?;
        let mut diag = Diag { socket, answer: vec![0; 16 << 10] };
        // A list of nothing: it distinguishes "no such connection" from "no such question".
        let dump = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        let nobody = SocketAddrV4::new([0, 0, 0, 0].into(), 0);
        let length = diag.ask(&request(dump, 0, nobody, nobody)).map_err(failed)?;
        match error_of(&diag.answer[..length]) {
            None => Ok(diag),
            Some(number) => Err(failed(std::io::Error::from_raw_os_error(number))),
        }
    }

    /// Returns the connection from `own` to `peer`; `None` if there is none that could send.
    pub fn state(&mut self, own: SocketAddrV4, peer: SocketAddrV4) -> Option<State> {
        let length = self.ask(&request(libc::NLM_F_REQUEST as u16, u32::MAX, own, peer)).ok()?;
        read(&self.answer[..length])
    }

    /// Sends a request and takes the answer, which the kernel has ready when the call returns.
    fn ask(&mut self, request: &[u8]) -> std::io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        // SAFETY: both buffers are valid for the lengths given.
        unsafe {
            if libc::send(fd, request.as_ptr().cast(), request.len(), 0) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let length =
                libc::recv(fd, self.answer.as_mut_ptr().cast(), self.answer.len(), libc::MSG_DONTWAIT);
            usize::try_from(length).map_err(|_| std::io::Error::last_os_error())
        }
    }
}

/// Returns a request of `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn request(flags: u16, states: u32, own: SocketAddrV4, peer: SocketAddrV4) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[16] = libc::AF_INET as u8;
    bytes[17] = libc::IPPROTO_TCP as u8;
    bytes[18] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    bytes[20..24].copy_from_slice(&states.to_ne_bytes());
    bytes[24..26].copy_from_slice(&own.port().to_be_bytes());
    bytes[26..28].copy_from_slice(&peer.port().to_be_bytes());
    bytes[28..32].copy_from_slice(&own.ip().octets());
    bytes[44..48].copy_from_slice(&peer.ip().octets());
    bytes[64..72].fill(0xff); // any cookie
    bytes
}

fn error_of(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let number = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (i32::from(kind) == libc::NLMSG_ERROR && number != 0).then_some(-number)
}

/// Reads an answer: header, `struct inet_diag_msg`, attributes.
fn read(answer: &[u8]) -> Option<State> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let length = u32::from_ne_bytes(answer.get(..4)?.try_into().ok()?) as usize;
    let message = answer.get(HEADER_BYTES..length)?;
    if kind != SOCK_DIAG_BY_FAMILY || !SENDING.contains(message.get(1)?) {
        return None;
    }
    let (mut info, mut name) = (None, None);
    let mut rest = message.get(MESSAGE_BYTES..)?;
    while let (Some(length), Some(kind)) = (rest.get(..2), rest.get(2..4)) {
        let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
        let value = rest.get(4..length)?;
        match u16::from_ne_bytes(kind.try_into().ok()?) {
            INET_DIAG_INFO => info = Some(value),
            INET_DIAG_CONG => name = value.split(|&byte| byte == 0).next(),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    tcp_info(info?, String::from_utf8_lossy(name?).into_owned())
}

/// Reads a `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
fn tcp_info(info: &[u8], congestion_control: String) -> Option<State> {
    let u32_at = |at: usize| Some(u32::from_ne_bytes(info.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    let mss = u64::from(u32_at(16)?);
    let [unacked, sacked, lost, again] = [u32_at(24)?, u32_at(28)?, u32_at(32)?, u32_at(36)?];
    let in_flight = (unacked + again).saturating_sub(sacked + lost);
    let ssthresh = u32_at(76)?;
    let (pacing, most) = (u64_at(104)?, u64_at(112)?);
    // The kernel reckons a rate for every connection. It keeps to it where the controller asks, or the program.
    let paces = congestion_control.starts_with("bbr") || most != u64::MAX;
    Some(State {
        ecn: info.get(5)? & OPTION_ECN != 0,
        cwnd_bytes: u64::from(u32_at(80)?) * mss,
        ssthresh_bytes: (ssthresh < INFINITE).then_some(u64::from(ssthresh) * mss),
        in_flight_bytes: u64::from(in_flight) * mss,
        srtt_us: u32_at(68).filter(|&us| us > 0),
        retransmits: u32_at(100)?,
        pacing_bytes_s: (paces && pacing != u64::MAX).then_some(pacing),
        acked_bytes: u64_at(120)?,
        congestion_control,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => panic!("{address}"),
        }
    }

    #[test]
    fn the_kernel_tells_of_a_connection_while_it_can_send() {
        let mut diag = Diag::open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = v4(listener.local_addr().unwrap());
        let client = TcpStream::connect(server).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let player = v4(client.local_addr().unwrap());
        accepted.write_all(&[7; 5000]).unwrap();
        let mut taken = [0; 5000];
        (&client).read_exact(&mut taken).unwrap();
        // The last acknowledgement may be on its way.
        let mut states = (0..600).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            diag.state(server, player).unwrap()
        });
        let state = states.find(|state| state.in_flight_bytes == 0).unwrap();
        assert_eq!((state.acked_bytes, state.in_flight_bytes, state.retransmits), (5000, 0, 0), "{state:?}");
        assert!(state.cwnd_bytes > 5000 && state.ssthresh_bytes.is_none(), "{state:?}");
        assert!(state.srtt_us.is_some_and(|us| us < 60_000_000), "{state:?}");
        let own = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(state.congestion_control, own.trim());
        // The listener is at these ports still, and is no connection.
        drop((client, accepted));
        assert_eq!(diag.state(server, player), None);
        assert_eq!(diag.state(player, server), None);
    }

    #[test]
    fn an_answer_that_is_cut_short_is_none() {
        let mut answer = vec![0; 300];
        answer[..4].copy_from_slice(&300u32.to_ne_bytes());
        answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        answer[17] = 1;
        answer[88..90].copy_from_slice(&500u16.to_ne_bytes());
        for length in 0..answer.len() {
            assert_eq!(read(&answer[..length]), None);
        }
    }
}
