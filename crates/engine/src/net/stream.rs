//! Channels of streams: TCP with its buffers set and read back.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::libc;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, SockaddrStorage, accept4,
    bind, connect, getpeername, getsockname, listen, sendmsg, shutdown, socket,
};
use serde_json::{Value, json};
use streamgauge_base::Chunk;
use streamgauge_plan::TcpSpec;

use super::datagram::ZEROS;
use super::{AddressPair, address_of};
use crate::error::{EngineError, Result};
use crate::sys;

/// The timestamps option with its padding (RFC 7323).
const TIMESTAMPS_BYTES: u64 = 12;

/// Events of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// It is connected.
    Opened,
    /// There are bytes.
    Readable,
    /// It takes bytes again.
    Writable,
    /// The other end finished.
    Finished,
    /// It could not be made.
    Refused(nix::Error),
    /// It broke.
    Failed(nix::Error),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Waits for the player, or for the flow's start.
    Idle,
    Connecting,
    Open,
    Closed,
}

/// A TCP channel at one end.
pub struct TcpSocket {
    /// The listener until a client connects, then the connection.
    socket: OwnedFd,
    pub serves: bool,
    peer: SocketAddr,
    state: State,
    /// The machine was notified of bytes and has not read them all.
    told_readable: bool,
    /// The machine wrote more than there was room for.
    wants_room: bool,
    /// We have finished, or will once it is connected.
    finished: bool,
    /// The other end has finished.
    peer_finished: bool,
    pending: VecDeque<News>,
    settings: Settings,
}

/// As the kernel gave them, before and after.
#[derive(Clone, Debug, Default)]
struct Settings {
    send_buffer_bytes: i32,
    receive_buffer_bytes: i32,
    congestion_control: String,
}

impl TcpSocket {
    /// Returns the server's end.
    pub fn listen(addresses: AddressPair, port: u16, spec: &TcpSpec) -> Result<TcpSocket> {
        let mut stream = TcpSocket::make(addresses, port, spec, true)?;
        listen_at(&stream.socket, addresses, port, 1)?;
        stream.read_back();
        Ok(stream)
    }

    /// Returns an end that connects on request, from a port that is chosen then.
    pub fn unconnected(addresses: AddressPair, port: u16, spec: &TcpSpec) -> Result<TcpSocket> {
        let mut stream = TcpSocket::make(addresses, port, spec, false)?;
        sys::set_option(stream.socket.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1i32)
            .map_err(|e| EngineError::io("set IP_BIND_ADDRESS_NO_PORT", &e))?;
        bind(stream.socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(addresses.own, 0))).map_err(
            |e| {
                EngineError::io(format!("use address {}", addresses.own), &e.into())
                    .remedy("run inside the namespace that has this address")
            },
        )?;
        stream.read_back();
        Ok(stream)
    }

    fn make(addresses: AddressPair, port: u16, spec: &TcpSpec, serves: bool) -> Result<TcpSocket> {
        let peer = SocketAddrV4::new(addresses.peer, port).into();
        Ok(TcpSocket::over(configured(spec)?, peer, State::Idle, serves))
    }

    fn over(socket: OwnedFd, peer: SocketAddr, state: State, serves: bool) -> TcpSocket {
        TcpSocket {
            socket,
            serves,
            peer,
            state,
            told_readable: false,
            wants_room: false,
            finished: false,
            peer_finished: false,
            pending: VecDeque::new(),
            settings: Settings::default(),
        }
    }

    /// Returns a connection that a peer has made to us; `socket` does not block.
    pub fn accepted(socket: OwnedFd, peer: SocketAddr) -> TcpSocket {
        let mut stream = TcpSocket::over(socket, peer, State::Idle, true);
        stream.open();
        stream
    }

    /// Returns a connection to `peer`, under way, with the kernel's own settings.
    pub fn connecting(peer: SocketAddr) -> Result<TcpSocket> {
        let family = if peer.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Stream, flags, None)
            .map_err(|e| EngineError::io("make a TCP socket", &e.into()))?;
        let _ = sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32);
        let mut stream = TcpSocket::over(socket, peer, State::Idle, false);
        stream.connect().map_err(|e| EngineError::io(format!("connect to {peer}"), &e.into()))?;
        Ok(stream)
    }

    /// Returns our address on this connection.
    pub fn own_address(&self) -> io::Result<SocketAddr> {
        let name: SockaddrStorage = getsockname(self.socket.as_raw_fd())?;
        address_of(&name).ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
    }

    fn read_back(&mut self) {
        let get =
            |option| sys::get_option::<i32>(self.socket.as_fd(), libc::SOL_SOCKET, option).unwrap_or(-1);
        let name = sys::get_option::<[u8; 16]>(self.socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION);
        let name = name.unwrap_or_default();
        let name =
            CStr::from_bytes_until_nul(&name).map_or_else(|_| String::new(), |n| n.to_string_lossy().into());
        self.settings = Settings {
            send_buffer_bytes: get(libc::SO_SNDBUF),
            receive_buffer_bytes: get(libc::SO_RCVBUF),
            congestion_control: name,
        };
    }

    /// Returns the settings as the kernel applied them.
    pub fn settings(&self) -> Value {
        json!({
            "send_buffer_bytes": self.settings.send_buffer_bytes,
            "receive_buffer_bytes": self.settings.receive_buffer_bytes,
            "congestion_control": self.settings.congestion_control,
        })
    }

    /// Connects the end that does not listen. `news` reports the result.
    pub fn connect(&mut self) -> nix::Result<()> {
        if self.serves || self.state != State::Idle {
            return Ok(());
        }
        match connect(self.socket.as_raw_fd(), &SockaddrStorage::from(self.peer)) {
            Ok(()) | Err(nix::Error::EINPROGRESS) => {
                self.state = State::Connecting;
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Returns the other end's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns whether there is news that waits for nothing.
    pub fn has_news(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns whether we have finished.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns whether both ends have finished, or the connection broke, and the machine was notified.
    pub fn is_gone(&self) -> bool {
        self.pending.is_empty() && self.state == State::Closed
    }

    /// Returns the socket: another one once a listener has become its one connection.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns the events to poll for; `None` for none. A connection that is over has at once the news that `news` has yet
    /// to report, which a write may find at any time: poll reports a hang-up for any requested events.
    pub fn interest(&self) -> Option<(RawFd, i16)> {
        let events = match self.state {
            State::Idle if self.serves => libc::POLLIN,
            State::Connecting => libc::POLLOUT,
            // Only a read by the machine can bring more, and poll would report the hang-up on and on.
            State::Open if self.finished && self.told_readable => return None,
            State::Open => {
                let readable = if self.told_readable || self.peer_finished { 0 } else { libc::POLLIN };
                readable | if self.wants_room { libc::POLLOUT } else { 0 }
            }
            State::Closed if !self.pending.is_empty() => 0,
            State::Idle | State::Closed => return None,
        };
        Some((self.socket.as_raw_fd(), events))
    }

    /// Returns the next event for the machine.
    pub fn news(&mut self) -> Option<News> {
        if let Some(news) = self.pending.pop_front() {
            return Some(news);
        }
        let (fd, events) = self.interest()?;
        let mut poll = libc::pollfd { fd, events, revents: 0 };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&mut poll, 1, 0) };
        match self.state {
            State::Idle if poll.revents != 0 => self.accept(),
            State::Connecting if poll.revents != 0 => self.connected(),
            State::Open if poll.revents & libc::POLLIN != 0 => {
                self.told_readable = true;
                return Some(News::Readable);
            }
            State::Open if poll.revents & libc::POLLOUT != 0 => {
                self.wants_room = false;
                return Some(News::Writable);
            }
            State::Open if poll.revents & (libc::POLLERR | libc::POLLHUP) != 0 => {
                let error = self.error();
                self.end(News::Failed(error));
            }
            _ => {}
        }
        self.pending.pop_front()
    }

    fn accept(&mut self) {
        if let Ok(socket) = accept_from(&self.socket) {
            // The listener closes: the flow began with one connection.
            self.socket = socket;
            self.open();
        }
    }

    fn connected(&mut self) {
        match self.error() {
            nix::Error::UnknownErrno => self.open(),
            error => self.end(News::Refused(error)),
        }
    }

    /// Returns its error; `UnknownErrno`, which is 0, if there is none.
    fn error(&self) -> nix::Error {
        let error = sys::get_option::<i32>(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR);
        error.map_or(nix::Error::EIO, nix::Error::from_raw)
    }

    fn open(&mut self) {
        self.read_back();
        self.state = State::Open;
        self.pending.push_back(News::Opened);
        if self.finished {
            let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        }
    }

    /// Handles the end of the peer's data: there is nothing left to read and never will be.
    fn peer_finishes(&mut self) {
        if !std::mem::replace(&mut self.peer_finished, true) {
            self.pending.push_back(News::Finished);
            self.told_readable = false;
            if self.finished {
                self.state = State::Closed;
            }
        }
    }

    fn end(&mut self, news: News) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.pending.push_back(news);
            let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
        }
    }

    /// Writes as much as there is room for and returns that amount.
    pub fn write(&mut self, mut chunk: Chunk) -> usize {
        let mut taken = 0;
        // As in sim, a machine that writes before the connection is open is notified when there is room.
        if matches!(self.state, State::Idle | State::Connecting) && !self.finished && !chunk.is_empty() {
            self.wants_room = true;
        }
        while self.state == State::Open && !self.finished && !chunk.is_empty() {
            let head = chunk.head();
            let filler = (chunk.len() - head.len()).min(ZEROS.len());
            let parts = [IoSlice::new(head), IoSlice::new(&ZEROS[..filler])];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            match sendmsg::<()>(self.socket.as_raw_fd(), &parts, &[], flags, None) {
                Ok(sent) => {
                    taken += sent;
                    chunk = chunk.split_off(sent);
                }
                Err(nix::Error::EAGAIN) => {
                    self.wants_room = true;
                    break;
                }
                Err(nix::Error::EINTR) => {}
                Err(e) => self.end(News::Failed(e)),
            }
        }
        taken
    }

    /// Reads up to `max` bytes; `None` if there are none now.
    pub fn read(&mut self, max: usize) -> Option<Chunk> {
        if self.state != State::Open || self.peer_finished || max == 0 {
            return None;
        }
        let mut buffer = vec![0; max.min(65_536)];
        loop {
            // SAFETY: the kernel writes at most `buffer.len()` bytes.
            let length = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            match length {
                0 => {
                    self.peer_finishes();
                    return None;
                }
                length if length > 0 => {
                    buffer.truncate(length as usize);
                    return Some(Chunk::bytes(buffer));
                }
                _ => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e if e.kind() == io::ErrorKind::WouldBlock => {
                        self.told_readable = false;
                        return None;
                    }
                    e => {
                        self.end(News::Failed(nix::Error::from_raw(e.raw_os_error().unwrap_or(libc::EIO))));
                        return None;
                    }
                },
            }
        }
    }

    /// Returns the bytes that the kernel holds because the other end has not acknowledged them.
    pub fn unacknowledged_bytes(&self) -> u64 {
        let mut held: libc::c_int = 0;
        // SAFETY: the kernel writes one number (SIOCOUTQ, tcp(7)).
        let done = unsafe { libc::ioctl(self.fd(), libc::TIOCOUTQ, &mut held) };
        if done == 0 { u64::try_from(held).unwrap_or(0) } else { 0 }
    }

    /// Returns the unread bytes that the kernel holds ready.
    pub fn unread_bytes(&self) -> u64 {
        let mut held: libc::c_int = 0;
        // SAFETY: the kernel writes one int. It fails on a listener, which holds none.
        unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::FIONREAD, &raw mut held) };
        u64::try_from(held).unwrap_or(0)
    }

    /// Makes `news` report the connection once more, for a listener that missed it.
    pub fn tell_again(&mut self) {
        self.pending.push_front(News::Opened);
    }

    /// Leaves unread bytes for later: `news` reports `Readable` again.
    pub fn read_later(&mut self) {
        self.told_readable = false;
    }

    /// Ends the connection, or the wait for one, at once: the kernel drops unsent data and resets the other
    /// end. There is no more news.
    pub fn abort(&mut self) {
        // The address that dissolves a socket's association (connect(2)); Linux's TCP accepts it in any state.
        let nobody = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
        let length = size_of_val(&nobody) as libc::socklen_t;
        // SAFETY: `nobody` is readable for its length. It fails only where there is no connection.
        unsafe { libc::connect(self.socket.as_raw_fd(), &nobody, length) };
        self.state = State::Closed;
        self.pending.clear();
    }

    /// Ends writing: pending data are still sent, and the other end's data are still received.
    pub fn close(&mut self) {
        if !std::mem::replace(&mut self.finished, true) && self.state == State::Open {
            self.wants_room = false;
            let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
            if self.peer_finished {
                self.state = State::Closed;
            }
        }
    }
}

/// A port that takes connections.
pub struct Listener {
    socket: OwnedFd,
    port: u16,
}

impl Listener {
    /// Opens a listener at our address, with room for `backlog` unaccepted connections, which have its settings.
    pub fn open(addresses: AddressPair, port: u16, spec: &TcpSpec, backlog: u32) -> Result<Listener> {
        let socket = configured(spec)?;
        listen_at(&socket, addresses, port, backlog)?;
        Ok(Listener { socket, port })
    }

    /// Returns one that listens already, and never blocks. Connections have the kernel's settings.
    pub fn of(listener: TcpListener) -> io::Result<Listener> {
        let port = listener.local_addr()?.port();
        Ok(Listener { socket: listener.into(), port })
    }

    /// Returns the descriptor for polling.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Ours.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the next connection, which is open.
    ///
    /// # Errors
    ///
    /// Returns EAGAIN without a waiting client, else the reason why it cannot be accepted.
    pub fn accept(&self) -> nix::Result<TcpSocket> {
        let socket = accept_from(&self.socket)?;
        let peer: Option<SockaddrStorage> = getpeername(socket.as_raw_fd()).ok();
        let peer = peer.and_then(|peer| address_of(&peer)).ok_or(nix::Error::ECONNABORTED)?;
        let mut stream = TcpSocket::accepted(socket, peer);
        stream.pending.clear();
        Ok(stream)
    }
}

/// Listens there for strangers; port 0 lets the kernel choose. `unprivileged` is a port that its remedy names.
pub fn listen_for_strangers(address: SocketAddr, unprivileged: u16) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|e| no_listener(address, unprivileged, &e))
}

/// Returns the reason why listening there fails, and the remedy.
pub fn no_listener(address: SocketAddr, unprivileged: u16, e: &io::Error) -> EngineError {
    let remedy = match e.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("ports below 1024 are root's; choose --listen 0.0.0.0:{unprivileged}")
        }
        io::ErrorKind::AddrInUse => "another program has this port; choose another with --listen".into(),
        _ => "choose an address of this machine with --listen".into(),
    };
    EngineError::io(format!("listen on {address}"), e).remedy(remedy).code(4)
}

/// Largest buffer that Linux lets a program request (the defaults of net.core.wmem_max and rmem_max). It would take a
/// larger one for this, and never more: left alone, it lets buffers grow to megabytes (tcp_wmem, tcp_rmem).
const LARGEST_BUFFER: u64 = 212_992;

/// Returns a socket with these settings.
fn configured(spec: &TcpSpec) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)
        .map_err(|e| EngineError::io("make a TCP socket", &e.into()))?;
    let set = |name: &str, level, option, value: u64| {
        let value = i32::try_from(value).unwrap_or(i32::MAX);
        sys::set_option(socket.as_fd(), level, option, &value)
            .map_err(|e| EngineError::io(format!("set {name} to {value}"), &e))
    };
    if let Some(bytes) = spec.send_buffer.filter(|&bytes| bytes <= LARGEST_BUFFER) {
        set("SO_SNDBUF", libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)?;
    }
    if spec.receive_window <= LARGEST_BUFFER {
        set("SO_RCVBUF", libc::SOL_SOCKET, libc::SO_RCVBUF, spec.receive_window)?;
    }
    // The kernel doubles SO_RCVBUF for its own overhead; this bounds the window that is advertised to the sender.
    set("TCP_WINDOW_CLAMP", libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, spec.receive_window)?;
    // Linux takes the timestamps option out of the segment size that it is given.
    set("TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG, u64::from(spec.mss) + TIMESTAMPS_BYTES)?;
    set("TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    choose_congestion_control(&socket, &spec.congestion_control);
    Ok(socket)
}

/// Listens at our address and `port`.
fn listen_at(socket: &OwnedFd, addresses: AddressPair, port: u16, backlog: u32) -> Result<()> {
    let failed = |e: nix::Error| {
        EngineError::io(format!("listen on {}:{port}", addresses.own), &e.into())
            .remedy("run inside the namespace that has this address")
    };
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32)
        .map_err(|e| EngineError::io("set SO_REUSEADDR", &e))?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(addresses.own, port))).map_err(failed)?;
    // The kernel has its own limit (net.core.somaxconn), and reduces a greater value to that.
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX).clamp(1, libc::SOMAXCONN);
    listen(socket, Backlog::new(backlog).map_err(failed)?).map_err(failed)
}

/// Returns the next connection of a listening socket, which does not block.
fn accept_from(listener: &OwnedFd) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = accept4(listener.as_raw_fd(), flags)?;
    // SAFETY: a fresh descriptor has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let _ = sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32);
    Ok(socket)
}

/// Sets the congestion control; a program without CAP_NET_ADMIN may choose only among the kernel's allowed
/// ones. The route chooses then, and `TcpSocket::settings` returns the result.
fn choose_congestion_control(socket: &OwnedFd, name: &str) {
    // SAFETY: `name` is readable for its length.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn an_abort_resets_the_other_end_and_drops_what_waits() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut stream = TcpSocket::accepted(socket.into(), peer);
        assert_eq!(stream.news(), Some(News::Opened));
        let taken = stream.write(Chunk::filler(64 << 20));
        assert!((1..64 << 20).contains(&taken), "{taken}");
        stream.abort();
        assert_eq!((stream.news(), stream.interest()), (None, None));
        assert_eq!(stream.write(Chunk::filler(1)), 0);
        let mut read = 0;
        let error = loop {
            match client.read(&mut [0; 65_536]) {
                Ok(0) => panic!("it finished in order, after {read} of {taken} B"),
                Ok(length) => read += length,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(read < taken, "{read} of {taken} B");
    }

    #[test]
    fn an_abort_ends_the_wait_for_a_player() {
        let own = Ipv4Addr::LOCALHOST;
        let mut stream = TcpSocket::listen(AddressPair { own, peer: own }, 0, &TcpSpec::default()).unwrap();
        let there = stream.own_address().unwrap();
        stream.abort();
        assert_eq!(stream.interest(), None);
        let refused = TcpStream::connect(there).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
