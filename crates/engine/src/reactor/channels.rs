//! A machine's channels on real sockets.

mod counts;
mod crowds;
mod io;
mod outbox;
mod refusal;
mod relayed;

pub use counts::Counts;
pub use relayed::Ends;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::libc;
use nix::sys::epoll::{EpollEvent, EpollFlags};
use serde_json::Value;
use streamgauge_systems::{Carrier, Channel, ChannelError, ChannelId, CloseReason, Input, RTP_PORTS};

use super::{Reactor, token};
use crate::error::{EngineError, Result};
use crate::net::AddressPair;
use crate::net::came::Came;
use crate::net::datagram::{MAX_DATAGRAM, SharedUdp, Udp};
use crate::net::echo::Echo;
use crate::net::ports::{PortRange, Ports};
use crate::net::stream::{Listener, News, TcpSocket};
use crate::sys::monotonic_ns;
use outbox::Outbox;
use refusal::refusal;
use relayed::Relayed;

/// Bytes that a machine among strangers reads from its streams before others get their turn.
const READ_AT_ONCE: usize = 64 << 10;

/// Delay, ns, before a listener without room for a connection tries again.
const BREATHER_NS: i64 = 200_000_000;

/// A channel on its socket.
enum Socket {
    /// With whether it is one of a pair for RTP and RTCP.
    Udp(Udp, bool),
    Echo(Echo),
    /// The player's host answers echo requests by itself, and the server's listener is not the player's.
    Silent,
    /// True for one that the flow began with: it stays.
    Stream(Box<TcpSocket>, bool),
    Listener(Listener),
    /// A relay's listener.
    UdpListener(SharedUdp),
    /// With one peer of that listener, either a sender or a destination.
    OfListener(ChannelId, SocketAddr),
}

/// A socket, and the watched events.
struct Entry {
    socket: Socket,
    watched: Option<(RawFd, i16)>,
}

/// The peers of a machine's channels.
#[derive(Clone, Copy)]
enum Place {
    /// The other end of a trial's flow: connections have the settings of the plan.
    Trial(AddressPair),
    /// A stranger: connections have the kernel's own settings. The first one's data are owed.
    Network { own: IpAddr, peer: IpAddr, owed: bool },
}

impl Place {
    fn addresses(self) -> (IpAddr, IpAddr) {
        match self {
            Place::Trial(AddressPair { own, peer }) => (own.into(), peer.into()),
            Place::Network { own, peer, .. } => (own, peer),
        }
    }
}

/// Pairs of UDP ports that the machines of a process share.
#[derive(Clone)]
pub struct SharedPorts(Arc<Mutex<Ports>>);

impl SharedPorts {
    /// Returns all of `range`, from its pair number `start` on.
    pub fn new(range: PortRange, start: u32) -> SharedPorts {
        SharedPorts(Arc::new(Mutex::new(Ports::new(range, start))))
    }

    fn lock(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The actions that a machine may perform.
pub struct Channels {
    place: Place,
    /// For a relay: the peers of its streams.
    relayed: Option<Relayed>,
    list: BTreeMap<ChannelId, Entry>,
    next: u32,
    ports: SharedPorts,
    /// A connection that is there before the machine asks for one.
    made: Option<TcpSocket>,
    /// Those that could not be opened.
    refused: VecDeque<(ChannelId, ChannelError)>,
    /// Channels with an interest that may have changed.
    touched: Vec<ChannelId>,
    /// Channels with possible news that no socket will report.
    ready: Vec<ChannelId>,
    /// Limit of concurrent streams: further clients wait.
    most_streams: usize,
    /// Limit of those of one client's address: further ones are closed.
    most_per_address: usize,
    /// Clients that were closed for that.
    turned_away: Vec<SocketAddr>,
    /// There is no room for another connection: they wait until one of ours ends, or until CLOCK_MONOTONIC
    /// reads this, ns.
    full_until: Option<i64>,
    /// Datagrams that wait for their time.
    outbox: Outbox,
    /// Bytes that the machine may still read at this turn.
    allowance: usize,
    counts: Counts,
    /// Bytes held by streams that were ended at once.
    given_up: u64,
    /// The first stream's settings as the kernel applied them.
    settings: Option<Value>,
}

/// An event of a channel for the machine.
pub enum Arrival {
    /// An input.
    Input(Input<'static>),
    /// A datagram, and by which channel: by one of a listener's where that was asked.
    Datagram(ChannelId, Came),
    /// It could not be opened.
    Refused(ChannelError),
}

impl Channels {
    /// Returns those that a trial's flow begins with: its listeners listen from here on. They report nothing
    /// before [`Channels::connect`].
    pub fn open(addresses: AddressPair, serves: bool, begins_with: &[Channel]) -> Result<Channels> {
        let ports = SharedPorts::new(PortRange::new(RTP_PORTS.0, RTP_PORTS.1), 0);
        let mut channels = Channels::of(Place::Trial(addresses), ports);
        channels.begin(addresses, serves, begins_with)?;
        Ok(channels)
    }

    fn begin(&mut self, addresses: AddressPair, serves: bool, begins_with: &[Channel]) -> Result<()> {
        for channel in begins_with {
            let id = self.number();
            let socket = match &channel.carrier {
                Carrier::IcmpEcho | Carrier::Listener { .. } if !serves => Socket::Silent,
                Carrier::Tcp { port, settings } if serves => {
                    Socket::Stream(TcpSocket::listen(addresses, *port, settings)?.into(), true)
                }
                Carrier::Tcp { port, settings } => {
                    Socket::Stream(TcpSocket::unconnected(addresses, *port, settings)?.into(), true)
                }
                carrier => {
                    if self.make(id, carrier, self.place)? {
                        continue;
                    }
                    let why = "ports are taken on this address";
                    return Err(EngineError::new("open the channels that the flow begins with", why));
                }
            };
            self.insert(id, socket);
        }
        Ok(())
    }

    /// Returns none yet, between us and a stranger. Addresses are those of `made`, a connection to it: with
    /// `first` it is channel 0, else the machine receives it when it opens a connection.
    pub fn with_stranger(made: TcpSocket, own: SocketAddr, ports: &SharedPorts, first: bool) -> Channels {
        // As IPv4 where they are that.
        let (own, peer) = (own.ip().to_canonical(), made.peer().ip().to_canonical());
        let mut channels = Channels::of(Place::Network { own, peer, owed: first }, ports.clone());
        channels.allowance = READ_AT_ONCE;
        if first {
            let id = channels.number();
            channels.insert(id, Socket::Stream(made.into(), true));
        } else {
            channels.made = Some(made);
        }
        channels
    }

    /// Returns those of a proxy: the clients of `listener`, its channel 0, up to a limit of streams at once and
    /// of clients of one address, and `made`, a connection from our address `own` to its only upstream server.
    /// The machine receives that one when it opens a connection.
    pub fn of_proxy(
        made: TcpSocket,
        own: SocketAddr,
        listener: Listener,
        (most_streams, most_per_address): (usize, usize),
    ) -> Channels {
        let none = SharedPorts::new(PortRange::new(RTP_PORTS.0, RTP_PORTS.1), 0);
        let mut channels = Channels::with_stranger(made, own, &none, false);
        channels.most_streams = most_streams;
        channels.most_per_address = most_per_address;
        let id = channels.number();
        channels.insert(id, Socket::Listener(listener));
        channels
    }

    /// Returns none yet, between us at `own` and a stranger at `peer` without a connection.
    pub fn to_stranger(own: IpAddr, peer: IpAddr, ports: &SharedPorts) -> Channels {
        let (own, peer) = (own.to_canonical(), peer.to_canonical());
        let mut channels = Channels::of(Place::Network { own, peer, owed: false }, ports.clone());
        channels.allowance = READ_AT_ONCE;
        channels
    }

    /// Returns those of a stranger at `peer` that sends us datagrams to `own`: by `udp`, which is channel 0.
    pub fn of_client(udp: Udp, own: IpAddr, peer: IpAddr, ports: &SharedPorts) -> Channels {
        let mut channels = Channels::to_stranger(own, peer, ports);
        let id = channels.number();
        channels.insert(id, Socket::Udp(udp, false));
        channels
    }

    fn of(place: Place, ports: SharedPorts) -> Channels {
        Channels {
            place,
            relayed: None,
            list: BTreeMap::new(),
            next: 0,
            ports,
            made: None,
            refused: VecDeque::new(),
            touched: Vec::new(),
            ready: Vec::new(),
            full_until: None,
            most_streams: usize::MAX,
            most_per_address: usize::MAX,
            turned_away: Vec::new(),
            outbox: Outbox::default(),
            allowance: usize::MAX,
            counts: Counts::default(),
            given_up: 0,
            settings: None,
        }
    }

    fn number(&mut self) -> ChannelId {
        self.next += 1;
        ChannelId(self.next - 1)
    }

    fn insert(&mut self, id: ChannelId, socket: Socket) {
        if let (Socket::Stream(stream, _), Place::Trial(_)) = (&socket, self.place) {
            self.settings.get_or_insert_with(|| stream.settings());
        }
        self.list.insert(id, Entry { socket, watched: None });
        self.touched.push(id);
    }

    fn remove(&mut self, id: ChannelId) {
        let Some(Entry { socket, .. }) = self.list.remove(&id) else { return };
        self.listen_again();
        self.forget_relayed(id, &socket);
        if let Socket::Udp(udp, true) = socket {
            // A pair is free again when both have gone: no other can be bound before.
            let port = udp.port();
            drop(udp);
            self.ports.lock().release(port);
        }
    }

    /// Listeners are watched again, if they were not.
    fn listen_again(&mut self) {
        if self.full_until.take().is_some() {
            let is_listener = |(_, entry): &(&ChannelId, &Entry)| matches!(entry.socket, Socket::Listener(_));
            self.touched.extend(self.list.iter().filter(is_listener).map(|(&id, _)| id));
        }
    }

    /// Returns when to [`Channels::settle`] at the latest, of CLOCK_MONOTONIC, ns: there may be room for
    /// connections again, or a datagram is to leave.
    pub fn settles_again_ns(&self) -> Option<i64> {
        self.full_until.into_iter().chain(self.outbox.first_ns()).min()
    }

    /// Makes it, towards `place`; false if the host has no pair of ports left.
    fn make(&mut self, id: ChannelId, carrier: &Carrier, place: Place) -> Result<bool> {
        let (own, peer) = place.addresses();
        let socket = match (carrier, place) {
            (Carrier::Udp { .. } | Carrier::UdpListener { .. }, Place::Trial(addresses))
                if self.relayed.is_some() =>
            {
                self.make_relayed(id, carrier, addresses)?
            }
            (Carrier::UdpListener { .. }, _) => {
                return Err(EngineError::new("open a channel", "a relay alone listens at a port of UDP"));
            }
            (Carrier::Udp { port, ecn }, Place::Trial(_)) => {
                Socket::Udp(Udp::open(own, peer, *port, *ecn)?, false)
            }
            (Carrier::Udp { port, ecn }, Place::Network { .. }) => {
                let peer = SocketAddr::new(peer, *port);
                let opened = Udp::to_stranger(own, peer, *ecn);
                let udp = opened.map_err(|e| EngineError::io(format!("open UDP to {peer}"), &e))?;
                Socket::Udp(udp, false)
            }
            (Carrier::RtpPair, place) => {
                let rtcp_id = self.number();
                let Some([rtp, rtcp]) = self.ports.lock().pair(own, peer) else { return Ok(false) };
                for (id, udp) in [(id, rtp), (rtcp_id, rtcp)] {
                    if matches!(place, Place::Trial(_)) {
                        udp.hold_bursts().map_err(|e| EngineError::io("make room for bursts", &e))?;
                    }
                    self.insert(id, Socket::Udp(udp, true));
                }
                return Ok(true);
            }
            (Carrier::IcmpEcho, Place::Trial(addresses)) => Socket::Echo(Echo::open(addresses)?),
            (Carrier::Listener { port, settings, backlog }, Place::Trial(addresses)) => {
                Socket::Listener(Listener::open(addresses, *port, settings, *backlog)?)
            }
            (Carrier::Tcp { port, settings }, Place::Trial(addresses)) => {
                Socket::Stream(TcpSocket::unconnected(addresses, *port, settings)?.into(), false)
            }
            (Carrier::Tcp { port, .. }, Place::Network { .. }) => {
                let made = self
                    .made
                    .take_if(|made| made.peer().port() == *port && made.peer().ip().to_canonical() == peer);
                let stream = made.map_or_else(|| TcpSocket::connecting(SocketAddr::new(peer, *port)), Ok)?;
                Socket::Stream(stream.into(), false)
            }
            (Carrier::IcmpEcho | Carrier::Listener { .. }, Place::Network { .. }) => {
                return Err(EngineError::new("open a channel", "outside trials a machine has TCP and UDP"));
            }
        };
        self.insert(id, socket);
        Ok(true)
    }

    fn try_open(
        &mut self,
        id: ChannelId,
        carrier: &Carrier,
        place: Place,
    ) -> std::result::Result<(), ChannelError> {
        match (self.make(id, carrier, place), carrier) {
            (Ok(true), Carrier::Tcp { port, .. }) => {
                let connected = self.stream(id).map(TcpSocket::connect);
                connected.unwrap_or(Ok(())).map_err(|error| {
                    self.remove(id);
                    refusal(error, *port)
                })
            }
            (Ok(true), _) => Ok(()),
            (Ok(false), _) => {
                let (first, last) = self.ports.lock().range().ends();
                Err(ChannelError::NoPort { first, last })
            }
            (
                Err(error),
                Carrier::Udp { port, .. }
                | Carrier::UdpListener { port, .. }
                | Carrier::Listener { port, .. },
            ) if error.errno == Some(libc::EADDRINUSE) => Err(ChannelError::PortTaken { port: *port }),
            (Err(error), _) => Err(ChannelError::Host(error.to_string())),
        }
    }

    /// Starts the flow: the player connects its first channel.
    pub fn connect(&mut self) -> Result<()> {
        for entry in self.list.values_mut() {
            if let Socket::Stream(stream, _) = &mut entry.socket {
                let peer = stream.peer();
                stream.connect().map_err(|e| EngineError::io(format!("connect to {peer}"), &e.into()))?;
            }
        }
        self.touched.extend(self.list.keys());
        Ok(())
    }

    /// Begins a new turn: the machine may read again.
    pub fn renew(&mut self) {
        if matches!(self.place, Place::Network { .. }) {
            self.allowance = READ_AT_ONCE;
        }
    }

    /// Returns those that could not be opened since.
    pub fn take_refused(&mut self) -> VecDeque<(ChannelId, ChannelError)> {
        std::mem::take(&mut self.refused)
    }

    /// Returns whether news are waiting that no socket will report.
    pub fn has_news(&self) -> bool {
        !self.refused.is_empty() || !self.ready.is_empty()
    }

    /// Returns the channels with possible news that no socket will report.
    pub fn take_ready(&mut self) -> Vec<ChannelId> {
        std::mem::take(&mut self.ready)
    }

    /// Watches the awaited events of each channel, as the machine's at `place`, and drops channels that are
    /// over.
    pub fn settle(&mut self, reactor: &Reactor, place: u32) -> Result<()> {
        let failed = |e: nix::Error| EngineError::io("watch a socket", &e.into());
        if self.full_until.is_some_and(|at| at <= monotonic_ns()) {
            self.listen_again();
        }
        self.send_due();
        while let Some(id) = self.touched.pop() {
            let Some(entry) = self.list.get_mut(&id) else { continue };
            let interest = match &entry.socket {
                Socket::Udp(udp, _) => Some((udp.fd(), libc::POLLIN)),
                Socket::Echo(echo) => Some((echo.fd(), libc::POLLIN)),
                Socket::UdpListener(udp) => Some((udp.fd(), libc::POLLIN)),
                Socket::Silent | Socket::OfListener(..) => None,
                Socket::Stream(stream, false) if stream.is_gone() => {
                    self.remove(id);
                    continue;
                }
                Socket::Stream(stream, _) => {
                    if stream.has_news() && !self.ready.contains(&id) {
                        self.ready.push(id);
                    }
                    stream.interest()
                }
                Socket::Listener(_) if self.full_until.is_some() => None,
                Socket::Listener(listener) => Some((listener.fd(), libc::POLLIN)),
            };
            if entry.watched == interest {
                continue;
            }
            let event = |events| EpollEvent::new(flags(events), token(place, id.0));
            match (std::mem::replace(&mut entry.watched, interest), interest) {
                (Some((before, _)), Some((fd, events))) if before == fd => {
                    reactor.epoll.modify(borrow(&fd), &mut event(events))
                }
                (_, Some((fd, events))) => reactor.epoll.add(borrow(&fd), event(events)),
                (Some((fd, _)), None) => match reactor.epoll.delete(borrow(&fd)) {
                    // A closed descriptor is not watched.
                    Err(nix::Error::EBADF | nix::Error::ENOENT) => Ok(()),
                    deleted => deleted,
                },
                (None, None) => Ok(()),
            }
            .map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the next thing that the channel has. `room` is where datagrams are read.
    pub fn arrival(&mut self, id: ChannelId, room: &mut Room) -> Option<Arrival> {
        let is_full = self.most_streams < usize::MAX
            && matches!(self.list.get(&id)?.socket, Socket::Listener(_))
            && self.open_streams() >= self.most_streams;
        let entry = self.list.get_mut(&id)?;
        let stream = match &mut entry.socket {
            Socket::Udp(udp, _) => {
                let datagram = udp.receive(&mut room.0);
                return match (datagram, udp.refused()) {
                    (Some(datagram), _) => Some(self.datagram(id, datagram)),
                    (None, Some(port)) => {
                        self.remove(id);
                        Some(Arrival::Refused(ChannelError::NoListener { port }))
                    }
                    (None, None) => None,
                };
            }
            Socket::Echo(echo) => {
                let datagram = echo.receive()?;
                return Some(self.datagram(id, Came::unmarked(datagram)));
            }
            Socket::UdpListener(_) => return self.relayed_arrival(id, room),
            Socket::Silent | Socket::OfListener(..) => return None,
            Socket::Listener(_) if is_full => {
                return self.accept(id, Err(nix::Error::EMFILE));
            }
            Socket::Listener(listener) => {
                let accepted = listener.accept();
                return self.accept(id, accepted);
            }
            Socket::Stream(stream, _) => stream,
        };
        self.touched.push(id);
        let before = stream.fd();
        // Once it has read its share of this turn, the machine would get the same event again.
        let news = if self.allowance == 0 { None } else { stream.news() }?;
        if stream.fd() != before {
            // A listener that became its one connection is closed, and so no longer watched.
            entry.watched = None;
        }
        Some(match news {
            News::Opened => Arrival::Input(Input::Opened(id)),
            News::Readable => Arrival::Input(Input::Readable(id)),
            News::Writable => Arrival::Input(Input::Writable(id)),
            News::Finished => Arrival::Input(Input::Closed(id, CloseReason::Finished)),
            News::Failed(nix::Error::ETIMEDOUT) => Arrival::Input(Input::Closed(id, CloseReason::TimedOut)),
            News::Failed(_) => Arrival::Input(Input::Closed(id, CloseReason::Reset)),
            News::Refused(error) => Arrival::Refused(refusal(error, stream.peer().port())),
        })
    }

    fn accept(&mut self, on: ChannelId, stream: nix::Result<TcpSocket>) -> Option<Arrival> {
        match stream {
            Ok(stream) => {
                // A relay's is of one of its flows' players, or closes at once.
                if self.relayed.as_ref().is_some_and(|relayed| !relayed.may_come(stream.peer())) {
                    return None;
                }
                if self.most_per_address <= self.come_from(stream.peer().ip()) {
                    self.turned_away.push(stream.peer());
                    return None;
                }
                let channel = self.number();
                self.insert(channel, Socket::Stream(stream.into(), false));
                Some(Arrival::Input(Input::Accepted { channel, on }))
            }
            // The connecting client still waits, and would wake us at once, again and again.
            Err(nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOMEM | nix::Error::ENOBUFS) => {
                self.full_until = Some(monotonic_ns() + BREATHER_NS);
                self.touched.push(on);
                None
            }
            Err(_) => None,
        }
    }

    fn datagram(&mut self, channel: ChannelId, came: Came) -> Arrival {
        self.note_datagram(&came.bytes);
        Arrival::Datagram(channel, came)
    }

    /// Returns the stream; the machine may change its awaited events.
    fn stream(&mut self, channel: ChannelId) -> Option<&mut TcpSocket> {
        match &mut self.list.get_mut(&channel)?.socket {
            Socket::Stream(stream, _) => {
                if self.touched.last() != Some(&channel) {
                    self.touched.push(channel);
                }
                Some(stream)
            }
            _ => None,
        }
    }

    /// Returns whether the machine has finished writing to this stream.
    pub fn is_finished(&self, channel: ChannelId) -> bool {
        let entry = self.list.get(&channel);
        entry.is_none_or(|entry| matches!(&entry.socket, Socket::Stream(stream, _) if stream.is_finished()))
    }

    /// Streams that are kept.
    pub fn open_streams(&self) -> usize {
        self.list.values().filter(|entry| matches!(entry.socket, Socket::Stream(..))).count()
    }

    /// Closes all of them.
    pub fn release(&mut self) {
        for id in self.list.keys().copied().collect::<Vec<_>>() {
            self.remove(id);
        }
    }
}

/// Where datagrams are read: one for a process.
pub struct Room(pub(crate) Box<[u8]>);

impl Room {
    /// Returns room for the largest datagram.
    pub fn new() -> Room {
        Room(vec![0; MAX_DATAGRAM].into())
    }
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

#[cfg(test)]
mod tests;
