//! An RTSP connection and the pairs of UDP ports that its tracks use: the channels of a Darwin machine on real
//! sockets, at either end.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};

use nix::libc;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use streamgauge_base::Chunk;
use streamgauge_systems::darwin::{FIRST_RTP, RTSP};
use streamgauge_systems::{ChannelId, Io};

use super::datagram::{MAX_DATAGRAM, Udp};
use super::ports::Ports;
use super::stream::{News, Stream};

/// Tracks with ports of their own; a file with more is not for streaming.
const MAX_TRACKS: usize = 8;

/// What a machine reads from its stream before others get their turn, bytes.
const READ_AT_ONCE: usize = 64 << 10;

/// What the RTSP connections of this process share.
pub struct Host {
    /// Where their sockets are watched.
    pub epoll: Epoll,
    /// Pairs of UDP ports.
    pub ports: Ports,
    /// Where datagrams are read.
    room: Box<[u8]>,
}

impl Host {
    /// With nothing watched.
    pub fn new(ports: Ports) -> std::io::Result<Host> {
        let epoll = Epoll::new(nix::sys::epoll::EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Host { epoll, ports, room: vec![0; MAX_DATAGRAM].into() })
    }
}

/// What has passed.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct Counts {
    /// RTP packets that we sent, over either transport.
    pub rtp_packets_sent: u64,
    /// Their bytes, with RTP's header.
    pub rtp_bytes_sent: u64,
    /// RTCP datagrams that we sent by UDP.
    pub rtcp_packets_sent: u64,
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Their bytes.
    pub datagram_bytes_received: u64,
    /// Datagrams that the kernel did not take.
    pub send_errors: u64,
    /// Bytes written to the RTSP connection.
    pub stream_bytes_sent: u64,
    /// Bytes read from it.
    pub stream_bytes_received: u64,
}

/// One RTSP connection.
pub struct Connection {
    stream: Stream,
    own: IpAddr,
    peer: IpAddr,
    /// Watched events carry it, and the channel in the low byte.
    token: u64,
    pairs: [Option<Box<[Udp; 2]>>; MAX_TRACKS],
    /// What the stream is watched for.
    watched: Option<i16>,
    /// What the machine may still read at this turn.
    allowance: usize,
    /// A chunk was taken in part: what is written next is the rest of it.
    within_chunk: bool,
    /// The machine has finished the stream.
    finished: bool,
    /// What has been read of the stream, for whoever reads beside the machine.
    heard: Option<Vec<Chunk>>,
    /// What has passed.
    pub counts: Counts,
}

impl Connection {
    /// Over `stream`, between two addresses. `token`'s low byte is 0.
    pub fn new(stream: Stream, own: IpAddr, peer: IpAddr, token: u64) -> Connection {
        Connection {
            stream,
            own,
            peer,
            token,
            pairs: Default::default(),
            watched: None,
            allowance: READ_AT_ONCE,
            within_chunk: false,
            finished: false,
            heard: None,
            counts: Counts::default(),
        }
    }

    /// Keeps what is read of the stream until it is taken by [`Connection::overheard`].
    pub fn listen_in(&mut self) {
        self.heard = Some(Vec::new());
    }

    /// What has been read since.
    pub fn overheard(&mut self) -> Vec<Chunk> {
        self.heard.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A new turn: the machine may read again.
    pub fn renew(&mut self) {
        self.allowance = READ_AT_ONCE;
    }

    /// The stream's next news; none once the machine has read its share of this turn, as it would be the same again.
    pub fn news(&mut self) -> Option<News> {
        if self.allowance == 0 { None } else { self.stream.news() }
    }

    /// The next datagram of `channel`.
    pub fn datagram(&mut self, host: &mut Host, channel: ChannelId) -> Option<Chunk> {
        let datagram = self.udp(channel)?.receive(&mut host.room)?;
        self.counts.datagrams_received += 1;
        self.counts.datagram_bytes_received += datagram.len() as u64;
        Some(datagram)
    }

    /// True once the machine has finished the stream.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// True once the machine has been told that the other end has finished, or that the connection broke.
    pub fn is_closed(&self) -> bool {
        self.stream.interest().is_none()
    }

    /// True if a track has ports of its own.
    pub fn has_ports(&self) -> bool {
        self.pairs.iter().any(Option::is_some)
    }

    /// Watches the stream for what it waits for now.
    pub fn watch(&mut self, host: &Host) -> nix::Result<()> {
        let Some((fd, events)) = self.stream.interest() else {
            if let Some(fd) = self.watched.take().map(|_| self.stream.fd()) {
                host.epoll.delete(borrow(&fd))?;
            }
            return Ok(());
        };
        if self.watched == Some(events) {
            return Ok(());
        }
        let mut event = EpollEvent::new(flags(events), self.token | u64::from(RTSP.0));
        match self.watched.replace(events) {
            None => host.epoll.add(borrow(&fd), event),
            Some(_) => host.epoll.modify(borrow(&fd), &mut event),
        }
    }

    /// Gives the ports back and closes their sockets; that of the stream closes with `self`.
    pub fn release(&mut self, host: &mut Host) {
        for pair in self.pairs.iter_mut().filter_map(Option::take) {
            host.ports.release(pair[0].port());
        }
    }

    fn udp(&mut self, channel: ChannelId) -> Option<&mut Udp> {
        let (track, side) = place(channel)?;
        Some(&mut self.pairs.get_mut(track)?.as_mut()?[side])
    }
}

/// Of a channel of datagrams: the track, and 0 for RTP or 1 for RTCP.
fn place(channel: ChannelId) -> Option<(usize, usize)> {
    let index = usize::from(channel.0.checked_sub(FIRST_RTP.0)?);
    Some((index / 2, index % 2))
}

/// True for a channel that carries RTP, not RTCP.
pub fn carries_rtp(channel: ChannelId) -> bool {
    place(channel).is_some_and(|(_, side)| side == 0)
}

fn flags(events: i16) -> EpollFlags {
    let mut flags = EpollFlags::empty();
    flags.set(EpollFlags::EPOLLIN, events & libc::POLLIN != 0);
    flags.set(EpollFlags::EPOLLOUT, events & libc::POLLOUT != 0);
    flags
}

fn borrow(fd: &RawFd) -> BorrowedFd<'_> {
    // SAFETY: the callers hold the socket open meanwhile.
    unsafe { BorrowedFd::borrow_raw(*fd) }
}

/// A connection as its machine sees it.
pub struct Face<'a> {
    /// The channels.
    pub connection: &'a mut Connection,
    /// What they share with others.
    pub host: &'a mut Host,
}

impl Io for Face<'_> {
    fn send(&mut self, channel: ChannelId, datagram: Chunk) {
        let bytes = datagram.len() as u64;
        let sent = self.connection.udp(channel).is_some_and(|udp| udp.send(&datagram));
        let counts = &mut self.connection.counts;
        match (sent, carries_rtp(channel)) {
            (false, _) => counts.send_errors += 1,
            (true, false) => counts.rtcp_packets_sent += 1,
            (true, true) => {
                counts.rtp_packets_sent += 1;
                counts.rtp_bytes_sent += bytes;
            }
        }
    }

    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        if channel != RTSP || self.connection.finished {
            return 0;
        }
        let connection = &mut *self.connection;
        let packet = if connection.within_chunk { None } else { interleaved(chunk.head()) };
        let bytes = chunk.len();
        let taken = connection.stream.write(chunk);
        if taken == 0 {
            return 0;
        }
        connection.within_chunk = taken < bytes;
        if let Some(length) = packet {
            connection.counts.rtp_packets_sent += 1;
            connection.counts.rtp_bytes_sent += u64::from(length);
        }
        connection.counts.stream_bytes_sent += taken as u64;
        taken
    }

    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        let connection = &mut *self.connection;
        if channel != RTSP {
            return None;
        }
        if connection.allowance == 0 {
            connection.stream.read_later();
            return None;
        }
        let chunk = connection.stream.read(max.min(connection.allowance))?;
        connection.allowance -= chunk.len();
        connection.counts.stream_bytes_received += chunk.len() as u64;
        if let Some(heard) = &mut connection.heard {
            heard.push(chunk.clone());
        }
        Some(chunk)
    }

    fn close(&mut self, channel: ChannelId) {
        if channel == RTSP && !self.connection.finished {
            self.connection.finished = true;
            self.connection.stream.close();
        }
    }

    fn bind_pair(&mut self, rtp: ChannelId) -> Option<u16> {
        let (track, 0) = place(rtp)? else { return None };
        let connection = &mut *self.connection;
        let slot = connection.pairs.get_mut(track)?;
        if let Some(pair) = slot {
            return Some(pair[0].port());
        }
        let pair = self.host.ports.pair(connection.own, connection.peer)?;
        let port = pair[0].port();
        let token = connection.token | u64::from(rtp.0);
        let watched = pair.iter().zip(token..).try_for_each(|(udp, token)| {
            self.host.epoll.add(udp.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, token))
        });
        if watched.is_err() {
            self.host.ports.release(port);
            return None;
        }
        *slot = Some(Box::new(pair));
        Some(port)
    }

    fn direct(&mut self, channel: ChannelId, port: u16) {
        if let Some(udp) = self.connection.udp(channel) {
            udp.direct(port);
        }
    }
}

/// The length of the RTP packet that begins an interleaved frame, from its head (RFC 2326 section 10.12); `None`
/// for RTCP, whose channels are odd, and for messages.
fn interleaved(head: &[u8]) -> Option<u16> {
    match *head {
        [b'$', channel, high, low, ..] if channel % 2 == 0 => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

/// A connection's two addresses, as IPv4 where they are that.
pub fn addresses(own: SocketAddr, peer: SocketAddr) -> (IpAddr, IpAddr) {
    (own.ip().to_canonical(), peer.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use nix::sys::epoll::EpollTimeout;

    use super::*;
    use crate::sys;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Whether something that is watched is there, or comes `within` so many ms.
    fn wakes(host: &Host, within: u16) -> bool {
        host.epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::from(within)) == Ok(1)
    }

    #[test]
    fn the_end_is_told_if_a_write_finds_it_before_a_read() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut host = Host::new(Ports::new("28980-28981".parse().unwrap(), 0)).unwrap();
        let mut connection = Connection::new(Stream::accepted(socket.into(), peer), HERE, HERE, 0);
        assert_eq!(connection.news(), Some(News::Opened));
        connection.watch(&host).unwrap();
        assert!(!wakes(&host, 0));

        // Closed so, it is reset.
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        sys::set_option(client.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
        drop(client);
        assert!(wakes(&host, 60_000));
        // A timer comes first, and the machine has something to send; it has read its share, too.
        let mut face = Face { connection: &mut connection, host: &mut host };
        assert_eq!(face.write(RTSP, Chunk::filler(1000)), 0);
        connection.allowance = 0;
        assert_eq!(connection.news(), None);
        connection.watch(&host).unwrap();
        assert!(wakes(&host, 0) && !connection.is_closed());
        connection.renew();
        assert_eq!(connection.news(), Some(News::Failed));
        connection.watch(&host).unwrap();
        assert!(!wakes(&host, 0) && connection.is_closed());
    }
}
