//! A machine's channels on real sockets.

mod counts;
mod io;
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
use streamgauge_base::Chunk;
use streamgauge_systems::{Carrier, Channel, ChannelError, ChannelId, CloseReason, Input, RTP_PORTS};

use super::{Reactor, token};
use crate::error::{EngineError, Result};
use crate::net::AddressPair;
use crate::net::datagram::{MAX_DATAGRAM, SharedUdp, Udp};
use crate::net::echo::Echo;
use crate::net::ports::{PortRange, Ports};
use crate::net::stream::{Listener, News, TcpSocket};
use crate::sys::monotonic_ns;
use refusal::refusal;
use relayed::Relayed;

/// What a machine among strangers reads from its streams before others get their turn, bytes.
const READ_AT_ONCE: usize = 64 << 10;

/// Who finds no room for a connection looks again so much later, ns.
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
    /// Of a relay.
    UdpListener(SharedUdp),
    /// With one of those who come to that listener, or whom it sends to.
    OfListener(ChannelId, SocketAddr),
}

/// A socket, and what it is watched for.
struct Entry {
    socket: Socket,
    watched: Option<(RawFd, i16)>,
}

/// Whom a machine's channels lead to.
#[derive(Clone, Copy)]
enum Place {
    /// The other end of a trial's flow: connections have the settings of the plan.
    Trial(AddressPair),
    /// A stranger: connections have the kernel's own settings. What is written to the one that was there first is owed.
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
    /// All of `range`, from its pair number `start` on.
    pub fn new(range: PortRange, start: u32) -> SharedPorts {
        SharedPorts(Arc::new(Mutex::new(Ports::new(range, start))))
    }

    fn lock(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a machine may do to the world.
pub struct Channels {
    place: Place,
    /// Of a relay: whom its streams lead to.
    relayed: Option<Relayed>,
    list: BTreeMap<ChannelId, Entry>,
    next: u32,
    ports: SharedPorts,
    /// A connection that is there before the machine asks for one.
    made: Option<TcpSocket>,
    /// Those that could not be opened.
    refused: VecDeque<(ChannelId, ChannelError)>,
    /// Those whose interest may have changed.
    touched: Vec<ChannelId>,
    /// Those that may have something which no socket will tell.
    ready: Vec<ChannelId>,
    /// Streams at once at most: who comes then waits.
    most_streams: usize,
    /// There is no room for another connection: they wait until one of ours goes, or until CLOCK_MONOTONIC reads
    /// this, ns.
    full_until: Option<i64>,
    /// What the machine may still read at this turn.
    allowance: usize,
    counts: Counts,
    /// What streams held that were ended at once, bytes.
    given_up: u64,
    /// What the kernel made of the first stream's settings.
    settings: Option<Value>,
}

/// What a channel has for the machine.
pub enum Arrival {
    /// An input.
    Input(Input<'static>),
    /// A datagram, and by which channel: by one of a listener's where that was asked.
    Datagram(ChannelId, Chunk),
    /// It could not be opened.
    Refused(ChannelError),
}

impl Channels {
    /// Those that a trial's flow begins with: its listeners listen from here on. Nothing of them is heard before
    /// [`Channels::connect`].
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

    /// None yet, between us and a stranger. Addresses are those of `made`, a connection to it: with `first` it is channel
    /// 0, else what the machine gets that opens a connection.
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

    /// Those of a proxy: whoever comes to `listener`, its channel 0, up to so many streams at once, and `made`, a connection
    /// from our address `own` to the only one whom it asks. That one is what the machine gets which opens a connection.
    pub fn of_proxy(made: TcpSocket, own: SocketAddr, listener: Listener, most_streams: usize) -> Channels {
        let none = SharedPorts::new(PortRange::new(RTP_PORTS.0, RTP_PORTS.1), 0);
        let mut channels = Channels::with_stranger(made, own, &none, false);
        channels.most_streams = most_streams;
        let id = channels.number();
        channels.insert(id, Socket::Listener(listener));
        channels
    }

    /// None yet, between us at `own` and a stranger at `peer` to whom there is no connection.
    pub fn to_stranger(own: IpAddr, peer: IpAddr, ports: &SharedPorts) -> Channels {
        let (own, peer) = (own.to_canonical(), peer.to_canonical());
        let mut channels = Channels::of(Place::Network { own, peer, owed: false }, ports.clone());
        channels.allowance = READ_AT_ONCE;
        channels
    }

    /// Those of a stranger at `peer` who sends us datagrams to `own`: by `udp`, which is channel 0.
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

    /// When to [`Channels::settle`] at the latest, of CLOCK_MONOTONIC, ns: there may be room for connections again.
    pub fn listens_again_ns(&self) -> Option<i64> {
        self.full_until
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

    /// The flow has started: the player connects what it begins with.
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

    /// A new turn: the machine may read again.
    pub fn renew(&mut self) {
        if matches!(self.place, Place::Network { .. }) {
            self.allowance = READ_AT_ONCE;
        }
    }

    /// Those that could not be opened since.
    pub fn take_refused(&mut self) -> VecDeque<(ChannelId, ChannelError)> {
        std::mem::take(&mut self.refused)
    }

    /// Something waits that no socket will tell.
    pub fn has_news(&self) -> bool {
        !self.refused.is_empty() || !self.ready.is_empty()
    }

    /// Those that may have something for the machine which no socket will tell.
    pub fn take_ready(&mut self) -> Vec<ChannelId> {
        std::mem::take(&mut self.ready)
    }

    /// Watches what each channel waits for now, as the machine's at `place`, and lets go of what is over.
    pub fn settle(&mut self, reactor: &Reactor, place: u32) -> Result<()> {
        let failed = |e: nix::Error| EngineError::io("watch a socket", &e.into());
        if self.full_until.is_some_and(|at| at <= monotonic_ns()) {
            self.listen_again();
        }
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
                    // Nobody watches what is closed.
                    Err(nix::Error::EBADF | nix::Error::ENOENT) => Ok(()),
                    deleted => deleted,
                },
                (None, None) => Ok(()),
            }
            .map_err(failed)?;
        }
        Ok(())
    }

    /// The next thing that the channel has. `room` is where datagrams are read.
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
                return Some(self.datagram(id, datagram));
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
        // Once it has read its share of this turn, the machine would be told the same again.
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
                let channel = self.number();
                self.insert(channel, Socket::Stream(stream.into(), false));
                Some(Arrival::Input(Input::Accepted { channel, on }))
            }
            // Who connects still waits, and would wake us at once, again and again.
            Err(nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOMEM | nix::Error::ENOBUFS) => {
                self.full_until = Some(monotonic_ns() + BREATHER_NS);
                self.touched.push(on);
                None
            }
            Err(_) => None,
        }
    }

    fn datagram(&mut self, channel: ChannelId, datagram: Chunk) -> Arrival {
        self.note_datagram(&datagram);
        Arrival::Datagram(channel, datagram)
    }

    /// The stream, of which the machine may change what it waits for.
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

    /// The machine has finished what it writes to this stream.
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
    /// For the largest datagram.
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
