//! The loop: one thread, one epoll, a machine for each connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::libc;
use serde_json::json;
use streamgauge_base::{Duration, Instant};
use streamgauge_systems::ChannelId;
use streamgauge_systems::media::Library;
use streamgauge_systems::standalone::{Clients, Served, ServerFacts};

use super::client::{Host, ServedClient, Shown};
use super::library::Folder;
use super::tell::{Teller, closed};
use super::{ServeArgs, listen_address};
use crate::error::{EngineError, Result};
use crate::net::datagram::Udp;
use crate::net::network;
use crate::net::stream::{TcpSocket, listen_for_strangers, no_listener};
use crate::net::udp_listener::{self, Received, UdpListener};
use crate::reactor::{Channels, Reactor, Ready, Room, SharedPorts};
use crate::sys::{self, monotonic_ns};

/// The descriptors that are no session's; a session's are identified by its place.
const LISTENER: u32 = 0;
const UDP_LISTENER: u32 = 1;

/// Least interval of reports about datagrams from peers without room: such a peer sends again and again.
const TOLD_EACH: Duration = Duration::from_secs(1);

/// Ports that the kernel chooses for TCP until UDP's of the same number is free.
const MOST_PORTS: usize = 16;

/// Clients taken before those that are here get their turn.
const COMERS: usize = 256;

/// Clients that get the answer of a full server, at once; further ones are cut off without a word.
pub const TURNED_AWAY: usize = 64;

/// Time for a client that is turned away to send its request.
const TURN_AWAY_PATIENCE: Duration = Duration::from_secs(2);

/// Errors of an accept that leave the client waiting.
const NO_ROOM: [libc::c_int; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS];

/// Delay before the next client is accepted without a free descriptor.
const BREATHER: Duration = Duration::from_millis(200);

/// Bytes of a connection's interleaved media that the kernel may hold; it needs twice that for its own
/// overhead.
const SEND_BUFFER: libc::c_int = 128 << 10;

/// Between two looks for slow clients.
const LOOKED_EACH: Duration = Duration::from_secs(1);

/// The constructor of a client's machine.
type Machine = fn(&(dyn Clients + 'static), Arc<dyn Library>, &str, u64) -> Box<dyn Served>;

/// The server.
pub struct Server {
    listener: TcpListener,
    /// Where clients come by datagrams.
    udp_listener: Option<UdpListener>,
    /// Peers that sent datagrams, and their places.
    by_address: BTreeMap<SocketAddr, usize>,
    /// Datagrams that arrived for the listener, and elsewhere.
    astray: VecDeque<Received>,
    /// When a peer without room of this kind was last reported.
    told: Option<Instant>,
    reactor: Reactor,
    ports: SharedPorts,
    room: Room,
    /// No clients are taken before this; `None` when they are.
    breathes_until: Option<Instant>,
    teller: Teller,
    folder: Arc<Folder>,
    clients: Box<dyn Clients>,
    sessions: Vec<Option<Box<ServedClient>>>,
    free: Vec<usize>,
    wakes: BTreeSet<(Instant, usize)>,
    served: usize,
    max_sessions: usize,
    max_per_address: usize,
    request_within: Duration,
    /// When slow clients were last looked for.
    looked: Option<Instant>,
    /// Clients so far.
    count: u64,
    zero_ns: i64,
}

impl Server {
    /// Opens the listeners and reports that it is ready.
    pub fn open(
        args: &ServeArgs,
        facts: ServerFacts,
        clients: Box<dyn Clients>,
        max_sessions: usize,
    ) -> Result<Server> {
        let folder = Arc::new(Folder::open(&args.folder, args.cache << 20)?);
        let address = listen_address(args, facts.ports);
        let (listener, udp_listener) = listen(address, facts)?;
        let failed = |what: &'static str| move |e: io::Error| EngineError::io(what, &e);
        let address = listener.local_addr().map_err(failed("listen"))?;
        let start = std::process::id();
        let ports = SharedPorts::new(args.udp_ports, start);
        let mut reactor = Reactor::new()?;
        reactor.watch(listener.as_fd(), LISTENER)?;
        if let Some(udp_listener) = &udp_listener {
            reactor.watch(udp_listener.fd(), UDP_LISTENER)?;
        }
        reactor.heed_signals()?;
        let zero_ns = monotonic_ns();
        let teller = Teller::new(args.json, args.log.as_deref(), zero_ns)?;
        teller.say(
            &json!({
                "event": "ready", "address": address.ip().to_string(), "port": address.port(),
                "pid": std::process::id(), "max_sessions": max_sessions,
                "udp_ports": args.udp_ports.to_string(),
            }),
            &format!(
                "serving {} at {}://{address}/ to {max_sessions} clients at once",
                args.folder.display(),
                facts.scheme
            ),
        );
        Ok(Server {
            listener,
            udp_listener,
            by_address: BTreeMap::new(),
            astray: VecDeque::new(),
            told: None,
            reactor,
            ports,
            room: Room::new(),
            breathes_until: None,
            teller,
            folder,
            clients,
            sessions: Vec::new(),
            free: Vec::new(),
            wakes: BTreeSet::new(),
            served: 0,
            max_sessions,
            max_per_address: args.max_per_address as usize,
            request_within: args.request_within,
            looked: None,
            count: 0,
            zero_ns,
        })
    }

    /// Serves until a signal ends it.
    pub fn run(mut self) -> Result<()> {
        let mut ready = Vec::new();
        loop {
            let until = self.wakes_at().map(|at| self.zero_ns.saturating_add_unsigned(at.as_nanos()));
            self.reactor.wait(until, &mut ready)?;
            let (mut comers, mut datagrams) = (false, false);
            for &ready in &ready {
                match ready {
                    Ready::Own(UDP_LISTENER) => datagrams = true,
                    Ready::Own(_) => comers = true,
                    Ready::Signal => return self.stop(),
                    Ready::Channel { place, channel } => self.arrivals(place as usize, channel),
                }
            }
            self.timers();
            // Last: no event above is then taken for one of a later client.
            if comers {
                self.accept();
            }
            if datagrams {
                self.take_datagrams();
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos((monotonic_ns() - self.zero_ns).max(0) as u64)
    }

    fn arrivals(&mut self, place: usize, channel: ChannelId) {
        let now = self.now();
        let Some(Some(session)) = self.sessions.get_mut(place) else { return };
        session.arrivals(now, channel, &mut self.room, &mut self.teller);
        self.settle(place);
    }

    fn timers(&mut self) {
        let now = self.now();
        while let Some(&(at, place)) = self.wakes.first().filter(|&&(at, _)| at <= now) {
            self.wakes.remove(&(at, place));
            if let Some(Some(session)) = self.sessions.get_mut(place) {
                session.noted = None;
                session.timers(now, &mut self.room, &mut self.teller);
                self.settle(place);
            }
        }
        if self.breathes_until.is_some_and(|until| until <= now) {
            self.breathes_until = None;
            let _ = self.reactor.watch(self.listener.as_fd(), LISTENER);
        }
    }

    /// Follows a session's turn: its awaited events, its next wake-up, or its end.
    fn settle(&mut self, place: usize) {
        let Some(Some(session)) = self.sessions.get_mut(place) else { return };
        session.watch(&self.reactor, place as u32);
        if let Some((path, transport)) = session.begins_to_play() {
            let number = session.number;
            self.teller.say(
                &json!({"event": "playing", "session": number, "path": path, "transport": transport}),
                &format!("session {number} plays {path} over {transport}"),
            );
        }
        if let Some(why) = session.is_over() {
            return self.remove(place, why);
        }
        let wakes = session.wakes_at();
        if session.noted != Some(wakes) {
            if let Some(noted) = session.noted.replace(wakes) {
                self.wakes.remove(&(noted, place));
            }
            self.wakes.insert((wakes, place));
        }
    }

    fn remove(&mut self, place: usize, why: &str) {
        let now = self.now();
        let Some(mut session) = self.sessions[place].take() else { return };
        session.release();
        if let Some(noted) = session.noted {
            self.wakes.remove(&(noted, place));
        }
        self.free.push(place);
        if self.by_address.get(&session.peer) == Some(&place) {
            self.by_address.remove(&session.peer);
        }
        if session.is_served() {
            self.served -= 1;
            let seconds = (now - session.began).as_secs_f64();
            let (value, line) = closed(session.number, session.peer, why, seconds, session.counts());
            // Readers of the report may rely on closed sockets.
            drop(session);
            self.teller.say(&value, &line);
        }
    }

    /// Accepts connections, up to a turn's share; the kernel reports the rest again.
    fn accept(&mut self) {
        for _ in 0..COMERS {
            match self.listener.accept() {
                Ok((socket, peer)) => {
                    if let Err(why) =
                        socket.set_nonblocking(true).and_then(|()| self.welcome(socket.into(), peer))
                    {
                        self.refuse(peer, &why.to_string());
                    }
                }
                Err(e) if e.raw_os_error().is_some_and(|errno| NO_ROOM.contains(&errno)) => {
                    // The client still waits and would wake us at once, again and again.
                    self.reactor.forget(self.listener.as_fd());
                    self.breathes_until = Some(self.now() + BREATHER);
                    return;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // A client that has gone before it was taken.
                Err(_) => {}
            }
        }
    }

    fn refuse(&mut self, peer: SocketAddr, why: &str) {
        self.teller.say(
            &json!({"event": "refused", "client": peer.to_string(), "why": why}),
            &format!("{peer} turned away: {why}"),
        );
    }

    /// Returns why a client at `address` cannot be served now, though others that ask for nothing, or take
    /// nothing, have made room for it.
    fn obstacle(&mut self, address: IpAddr) -> Option<String> {
        let there = self.served_at(address);
        if there >= self.max_per_address && !self.make_room(Some(address)) {
            return Some(format!("{there} clients of this address are here"));
        }
        if self.served >= self.max_sessions && !self.make_room(None) {
            return Some(format!("{} clients are here", self.served));
        }
        None
    }

    /// Ends a session, at `address` if that is named: the earliest of those that have asked for nothing, or
    /// else the one that has been quiet longest since its answer, or else one that receives nothing. False if
    /// there is none.
    fn make_room(&mut self, address: Option<IpAddr>) -> bool {
        let now = self.now();
        let is_there =
            |session: &ServedClient| address.is_none_or(|address| network(session.peer.ip()) == address);
        let all =
            self.sessions.iter().enumerate().filter_map(|(place, session)| Some((place, session.as_ref()?)));
        let silent = all.filter(|(_, session)| is_there(session)).filter_map(|(place, session)| {
            let why = session.gives_way(now)?;
            Some((session.began, place, why))
        });
        if let Some((_, place, why)) = silent.min() {
            self.remove(place, why);
            return true;
        }
        let all =
            self.sessions.iter().enumerate().filter_map(|(place, session)| Some((place, session.as_ref()?)));
        let quiet = all.filter(|(_, session)| is_there(session));
        let quiet = quiet.filter_map(|(place, session)| Some((session.quiet_since(now)?, place)));
        if let Some((_, place)) = quiet.min() {
            self.remove(place, "made room for another: it had its answer and asked for nothing more");
            return true;
        }
        // Each look asks the kernel about every connection.
        if self.looked.is_some_and(|looked| now < looked + LOOKED_EACH) {
            return false;
        }
        self.looked = Some(now);
        let mut slow = Vec::new();
        for (place, session) in self.sessions.iter_mut().enumerate() {
            let why = session.as_mut().and_then(|session| session.is_slow(now));
            slow.extend(why.map(|why| (place, why)));
        }
        for (place, why) in slow {
            self.remove(place, why);
        }
        match address {
            None => self.served < self.max_sessions,
            Some(address) => self.served_at(address) < self.max_per_address,
        }
    }

    fn served_at(&self, address: IpAddr) -> usize {
        let all = self.sessions.iter().flatten();
        all.filter(|session| session.is_served() && network(session.peer.ip()) == address).count()
    }

    fn welcome(&mut self, socket: OwnedFd, peer: SocketAddr) -> io::Result<()> {
        let obstacle = self.obstacle(network(peer.ip()));
        if let Some(why) = &obstacle {
            self.refuse(peer, why);
            if self.sessions.iter().flatten().filter(|s| !s.is_served()).count() >= TURNED_AWAY {
                return Ok(());
            }
        }
        let _ = sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32);
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER)?;
        let stream = TcpSocket::accepted(socket, peer);
        let own = stream.own_address()?;
        let channels = Channels::with_stranger(stream, own, &self.ports, true);
        if obstacle.is_some() {
            let host = Host::TurnAway(self.clients.turn_away());
            let leaves_at = Some(self.now() + TURN_AWAY_PATIENCE);
            self.begin(peer, host, channels, leaves_at);
        } else {
            self.serve(peer, channels, <dyn Clients>::machine);
        }
        Ok(())
    }

    /// Reads datagrams of peers without a socket of their own yet, up to a turn's share; the kernel reports
    /// the rest again.
    fn take_datagrams(&mut self) {
        for turn in 0.. {
            let came = match self.astray.pop_front() {
                None if turn >= COMERS => return,
                None => {
                    self.udp_listener.as_ref().and_then(|udp_listener| udp_listener.next(&mut self.room.0))
                }
                came => came,
            };
            let Some(came) = came else { return };
            // It was on its way when the peer's socket was made.
            let place = self.by_address.get(&came.from).copied();
            let Some(place) = place.or_else(|| self.client_of(&came)) else { continue };
            let now = self.now();
            if let Some(Some(session)) = self.sessions.get_mut(place) {
                session.datagram(now, &came.datagram, &mut self.teller);
                self.settle(place);
            }
        }
    }

    /// Returns the place of the sender of a first datagram, if there is one for it.
    fn client_of(&mut self, came: &Received) -> Option<usize> {
        if !self.clients.begins(&came.datagram) {
            return None;
        }
        let (own, peer) = (came.to.ip(), came.from.ip());
        let obstacle = self.obstacle(network(peer));
        let udp = match obstacle {
            None => self.socket_for(came).map_err(|e| e.to_string()),
            Some(why) => Err(why),
        };
        match udp {
            Ok(udp) => {
                let channels = Channels::of_client(udp, own, peer, &self.ports);
                let place = self.serve(came.from, channels, <dyn Clients>::datagram_machine);
                // It may be over already.
                self.sessions[place].as_ref()?;
                self.by_address.insert(came.from, place);
                Some(place)
            }
            Err(why) => {
                let now = self.now();
                if self.told.is_none_or(|told| now >= told + TOLD_EACH) {
                    self.told = Some(now);
                    self.refuse(came.from, &why);
                }
                let answer = self.clients.turn_away_datagram(&came.datagram);
                if let (Some(udp_listener), Some(answer)) = (&self.udp_listener, answer) {
                    udp_listener.answer(came, &answer);
                }
                None
            }
        }
    }

    fn socket_for(&mut self, came: &Received) -> io::Result<Udp> {
        let (socket, meanwhile) = udp_listener::connected(came.to, came.from, &mut self.room.0)?;
        self.astray.extend(meanwhile);
        Udp::connected(socket, came.from)
    }

    /// Begins a session with the server's machine, and returns its place.
    fn serve(&mut self, peer: SocketAddr, channels: Channels, machine: Machine) -> usize {
        let shown = Arc::new(Shown::new(Arc::clone(&self.folder)));
        let number = self.count + 1;
        let (name, library) = (format!("session {number}"), Arc::clone(&shown));
        self.served += 1;
        self.teller.say(
            &json!({"event": "opened", "session": number, "client": peer.to_string(), "sessions": self.served}),
            &format!("session {number} from {peer}, {} now", self.served),
        );
        let server = machine(&*self.clients, library, &name, seed(self.zero_ns));
        self.begin(peer, Host::Server(server, shown), channels, None)
    }

    fn begin(
        &mut self,
        peer: SocketAddr,
        host: Host,
        channels: Channels,
        leaves_at: Option<Instant>,
    ) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        self.count += 1;
        let now = self.now();
        let patience = (leaves_at, self.request_within);
        let session = ServedClient::new(self.count, peer, host, channels, now, patience);
        let session = self.sessions[place].insert(Box::new(session));
        session.start(now, &mut self.room, &mut self.teller);
        self.settle(place);
        place
    }

    /// Returns when the next session wakes, or connections are accepted again.
    fn wakes_at(&self) -> Option<Instant> {
        let next = self.wakes.first().map(|&(at, _)| at);
        next.into_iter().chain(self.breathes_until).min()
    }

    /// Ends all sessions with a goodbye.
    fn stop(mut self) -> Result<()> {
        let now = self.now();
        for place in 0..self.sessions.len() {
            if let Some(session) = &mut self.sessions[place] {
                session.stop(now, "server stopped", &mut self.teller);
                self.remove(place, "server stopped");
            }
        }
        self.teller.say(
            &json!({"event": "stopped", "sessions": self.count, "cpu_s": sys::cpu_seconds()}),
            &format!("stopped after {} sessions", self.count),
        );
        Ok(())
    }
}

/// Takes the address for connections, and with `datagrams` for these too.
fn listen(address: SocketAddr, facts: ServerFacts) -> Result<(TcpListener, Option<UdpListener>)> {
    let mut tries = if address.port() == 0 { MOST_PORTS } else { 1 };
    loop {
        tries -= 1;
        let listener = listen_for_strangers(address, facts.ports[1])?;
        if !facts.datagrams {
            return Ok((listener, None));
        }
        match listener.local_addr().and_then(UdpListener::open) {
            Ok(udp_listener) => return Ok((listener, Some(udp_listener))),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
            Err(e) => return Err(no_listener(address, facts.ports[1], &e)),
        }
    }
}

/// Returns the run's seed: session ids and sequence numbers must not be guessed from those of the last run.
fn seed(zero_ns: i64) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the kernel writes at most these bytes.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled == 8 { u64::from_ne_bytes(bytes) } else { zero_ns as u64 ^ u64::from(std::process::id()) }
}
