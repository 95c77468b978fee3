//! The channels of one end: those that the flow begins with, and those that its machine opens and accepts.

mod opening;
mod outbox;
mod streams;

use std::sync::Arc;

use streamgauge_base::{Chunk, Ecn, Event, FlowId, Instant, RandomStream};
use streamgauge_plan::TcpSpec;
use streamgauge_record::flow_hash;
use streamgauge_systems::{Carrier, ChannelError, ChannelId, Peer, RTP_PORTS};
use streamgauge_transport::tcp::{self, Connection};

use crate::lingering::Lingering;
use crate::network::Network;
use crate::peers::{Line, PeerLink, PeerLinks};
use crate::pending::Pending;
use crate::ports::{EphemeralPorts, FIRST_EPHEMERAL_PORT};
use crate::prefetch::prefetch;
use crate::recorder::Recorder;
use crate::settings::{Settings, settings};
use crate::store::{Body, Ports};
use crate::table::{Address, Entry, Table};
pub use opening::{Opening, Roots, Start};
use outbox::Outbox;
pub use streams::Said;

const UDP: u8 = 17;
const TCP: u8 = 6;
const ICMP: u8 = 1;

/// Our port and the other end's, and the number of the link to it.
type To = ((u16, u16), u32);

/// The totals of the machine's bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Bytes that the machine sent and the network or the send buffer accepted.
    pub sent_bytes: u64,
    /// Bytes that the machine received.
    pub received_bytes: u64,
}

enum Kind {
    /// With the value that it sets in the ECN field.
    Udp(Ecn),
    /// A relay's listener, with the value that its channels set there.
    UdpListener(Ecn),
    Echo,
    Tcp(Box<Tcp>),
    Listener(Box<Listener>),
}

struct Tcp {
    connection: Connection,
    origin: Origin,
    /// Whether the machine has been informed of it, or has it from the start.
    told: bool,
    /// Whether the machine has aborted it, and gets no more events of it.
    aborted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The flow began with it: it stays.
    Start,
    Opened,
    /// By the listener.
    Accepted(ChannelId),
}

struct Listener {
    settings: Settings,
    backlog: u32,
    /// Handshakes that are under way.
    waiting: u32,
}

/// State that only an end with changing channels has.
struct Opened {
    /// Draws the initial sequence numbers of further connections.
    sequences: RandomStream,
    ephemeral: EphemeralPorts,
    lingering: Lingering,
    /// The last that were made.
    settings: Option<(TcpSpec, Settings)>,
    gone: Gone,
}

/// The figures of closed streams.
#[derive(Clone, Default)]
struct Gone {
    first: Option<tcp::Stats>,
    /// Figures of all others, as [`tcp::Stats`] has them.
    segments: u64,
    retransmits: u64,
    timeouts: u64,
    recoveries: u64,
}

impl Gone {
    fn add(&mut self, is_first: bool, stats: tcp::Stats) {
        if is_first {
            self.first = Some(stats);
            return;
        }
        self.segments += stats.segments;
        self.retransmits += stats.retransmits;
        self.timeouts += stats.timeouts;
        self.recoveries += stats.recoveries;
    }
}

pub struct Channels {
    links: PeerLinks,
    /// The next channel's number.
    next: ChannelId,
    /// How many of the first ephemeral ports the flow began with: as many as streams.
    reserved: u16,
    /// The first stream.
    first: Option<ChannelId>,
    table: Table<Kind>,
    /// From the flow's start.
    roots: Option<Arc<Roots>>,
    /// Once the machine has opened a channel, or the host has received a packet of one that does not exist.
    opened: Option<Box<Opened>>,
    /// Once the machine has given a datagram a time.
    outbox: Option<Box<Outbox>>,
    pub counts: Counts,
}

/// Draws the initial sequence numbers of the two ends of a connection.
fn drawn(sequences: &mut RandomStream) -> [u64; 2] {
    [sequences.bits(), sequences.bits()]
}

impl Channels {
    /// Makes the channels of the end with these links.
    pub fn new(links: PeerLinks) -> Self {
        Channels {
            links,
            next: ChannelId(0),
            reserved: 0,
            first: None,
            table: Table::default(),
            roots: None,
            opened: None,
            outbox: None,
            counts: Counts::default(),
        }
    }

    /// Returns the flow that its machine's events belong to.
    pub fn flow(&self) -> FlowId {
        self.links.flow
    }

    /// Returns whether it is a flow's server, or a relay at the servers' side.
    pub fn serves(&self) -> bool {
        self.links.to(0).line.serves
    }

    fn roots(&self) -> &Roots {
        self.roots.as_ref().expect("the flow has started")
    }

    fn opened(&mut self) -> &mut Opened {
        if self.opened.is_none() {
            let mut sequences = self.roots().sequences();
            // The streams that the flow began with have drawn theirs.
            for _ in 0..self.reserved {
                drawn(&mut sequences);
            }
            self.opened = Some(Box::new(Opened {
                sequences,
                ephemeral: EphemeralPorts::default(),
                lingering: Lingering::default(),
                settings: None,
                gone: Gone::default(),
            }));
        }
        self.opened.as_mut().expect("it was made above")
    }

    /// Starts the flow with its channels.
    pub fn start(&mut self, now: Instant, start: &Start) {
        self.roots = Some(start.roots.clone());
        let mut sequences = start.roots.sequences();
        self.table.reserve(start.openings.len());
        for opening in start.openings.iter() {
            let id = self.next_id();
            match opening {
                Opening::Udp(port, ecn) => self.add(id, UDP, ((*port, *port), 0), Kind::Udp(*ecn)),
                Opening::UdpListener(port, ecn) => {
                    debug_assert!(self.links.is_relay(), "ends of flows have one other end, and UDP to it");
                    self.add(id, UDP, ((*port, 0), 0), Kind::UdpListener(*ecn));
                }
                Opening::Echo => self.add(id, ICMP, ((0, 0), 0), Kind::Echo),
                Opening::RtpPair => {
                    let _ = self.open_pair(id);
                }
                Opening::Tcp(port, settings) => {
                    // Each end has the other's port before the first packet.
                    let ephemeral = FIRST_EPHEMERAL_PORT + self.reserved;
                    self.reserved += 1;
                    let ports = if self.serves() { (*port, ephemeral) } else { (ephemeral, *port) };
                    let connection = if self.serves() {
                        Connection::listen(settings.config.clone())
                    } else {
                        Connection::connect(settings.config.clone(), now)
                    };
                    let drawn = drawn(&mut sequences);
                    self.add_stream(id, (ports, 0), connection, Origin::Start, drawn);
                    self.table.set_due(self.table.len() - 1, now);
                }
                Opening::Listener(port, settings, backlog) if self.serves() || self.links.is_relay() => {
                    self.add_listener(id, *port, settings.clone(), *backlog);
                }
                Opening::Listener(..) => {}
            }
        }
    }

    fn next_id(&mut self) -> ChannelId {
        let id = self.next;
        self.next = ChannelId(id.0 + 1);
        id
    }

    /// Returns the hash of packets to the end `whom`; `ports` are ours and the other end's.
    fn hash(&self, protocol: u8, (ports, whom): To) -> u32 {
        let serves = self.serves();
        let [from, to] = self.links.to(whom).addresses;
        // ICMP has the type and the code in the place of ports: a request's and a reply's.
        let ports = if protocol == ICMP { (if serves { 8 } else { 0 }, 0) } else { ports };
        flow_hash(from, to, protocol, u32::from(ports.0) << 16 | u32::from(ports.1))
    }

    fn add(&mut self, id: ChannelId, protocol: u8, (ports, whom): To, carrier: Kind) {
        let hash = self.hash(protocol, (ports, whom));
        // Our port alone identifies the owner of datagrams and of a listener's packets.
        let peer = if matches!(carrier, Kind::Tcp(_)) { ports.1 } else { 0 };
        let address = Address { protocol, own: ports.0, peer, whom };
        self.table.push(Entry { id, address, to: ports.1, hash, carrier });
    }

    fn add_listener(&mut self, id: ChannelId, port: u16, settings: Settings, backlog: u32) {
        let backlog = backlog.max(1);
        self.add(
            id,
            TCP,
            ((port, 0), 0),
            Kind::Listener(Box::new(Listener { settings, backlog, waiting: 0 })),
        );
    }

    fn add_stream(&mut self, id: ChannelId, to: To, connection: Connection, origin: Origin, drawn: [u64; 2]) {
        let serves = self.serves();
        // Each end of each connection has its own.
        let initial_sequence = drawn[usize::from(!serves)] as u32;
        let seed = self.roots().control_seed.wrapping_add(2 * u64::from(id.0) + u64::from(serves));
        self.first.get_or_insert(id);
        let connection = connection.numbered(initial_sequence, seed);
        let tcp = Tcp { connection, origin, told: false, aborted: false };
        self.add(id, TCP, to, Kind::Tcp(Box::new(tcp)));
    }

    fn listener(&self, port: u16) -> Option<usize> {
        self.table.find(Address { protocol: TCP, own: port, peer: 0, whom: 0 })
    }

    /// Returns the place of our channel, or listener, of UDP with the end `whom`.
    fn udp(&self, port: u16, whom: u32) -> Option<usize> {
        self.table.find(Address { protocol: UDP, own: port, peer: 0, whom })
    }

    /// Opens a channel for the machine; a relay's also names the flow at the server.
    pub fn open(
        &mut self,
        now: Instant,
        peer: Option<Peer>,
        carrier: &Carrier,
        pending: &mut Pending,
    ) -> ChannelId {
        self.expire(now);
        let id = self.next_id();
        let whom = self.whom(peer, carrier);
        if let Err(error) = whom.and_then(|whom| self.try_open(now, id, whom, carrier)) {
            pending.refused.push_back((id, error));
        }
        pending.touch(id);
        id
    }

    /// Returns the number of the link that the channel opens on.
    fn whom(&self, peer: Option<Peer>, carrier: &Carrier) -> Result<u32, ChannelError> {
        let refused = |why: &str| Err(ChannelError::Host(why.into()));
        match (carrier, peer) {
            _ if !self.links.is_relay() => Ok(0),
            (Carrier::Listener { .. }, None) => Ok(0),
            (Carrier::Udp { port, .. }, Some(_)) if self.udp(*port, 0).is_none() => refused(
                "a relay sends datagrams from a port at which it listens; begin with a listener there",
            ),
            (Carrier::Tcp { .. } | Carrier::Udp { .. }, Some(peer)) => match self.links.upstream(peer) {
                Some(whom) => Ok(whom),
                None => refused("no flow of that number passes the relay"),
            },
            (Carrier::Tcp { .. } | Carrier::Udp { .. }, None) => {
                refused("a relay must name the flow of the server that it opens a channel to")
            }
            _ => refused("a relay opens TCP, UDP and listeners of TCP alone"),
        }
    }

    fn try_open(
        &mut self,
        now: Instant,
        id: ChannelId,
        whom: u32,
        carrier: &Carrier,
    ) -> Result<(), ChannelError> {
        match carrier {
            Carrier::Udp { port, .. } if self.udp(*port, whom).is_some() => {
                Err(ChannelError::PortTaken { port: *port })
            }
            Carrier::Udp { port, ecn } => {
                self.add(id, UDP, ((*port, *port), whom), Kind::Udp(*ecn));
                Ok(())
            }
            Carrier::UdpListener { .. } => {
                Err(ChannelError::Host("a relay alone listens at a port of UDP, and begins with it".into()))
            }
            Carrier::RtpPair => self.open_pair(id),
            Carrier::IcmpEcho if self.echo().is_some() => Err(ChannelError::Host(
                "a machine has one channel of ICMP echo; use the one that is open".into(),
            )),
            Carrier::IcmpEcho => {
                self.add(id, ICMP, ((0, 0), 0), Kind::Echo);
                Ok(())
            }
            Carrier::Listener { port, .. } if self.listener(*port).is_some() => {
                Err(ChannelError::PortTaken { port: *port })
            }
            Carrier::Listener { port, settings, backlog } => {
                let settings = self.settings(settings)?;
                self.add_listener(id, *port, settings, *backlog);
                Ok(())
            }
            Carrier::Tcp { port, settings } => {
                let settings = self.settings(settings)?;
                let mut ephemeral = std::mem::take(&mut self.opened().ephemeral);
                let taken = ephemeral.take(|own| {
                    own.checked_sub(FIRST_EPHEMERAL_PORT).is_some_and(|nth| nth < self.reserved)
                        || self.listener(own).is_some()
                });
                let opened = self.opened();
                opened.ephemeral = ephemeral;
                let own = taken?;
                let drawn = drawn(&mut opened.sequences);
                let connection = Connection::connect(settings.config.clone(), now);
                self.add_stream(id, ((own, *port), whom), connection, Origin::Opened, drawn);
                Ok(())
            }
        }
    }

    fn settings(&mut self, spec: &TcpSpec) -> Result<Settings, ChannelError> {
        let last = &mut self.opened().settings;
        if let Some((_, made)) = last.as_ref().filter(|(of, _)| of == spec) {
            return Ok(made.clone());
        }
        let made = settings(spec).map_err(|error| ChannelError::Host(error.to_string()))?;
        *last = Some((spec.clone(), made.clone()));
        Ok(made)
    }

    /// Opens `rtp` and the channel after it.
    fn open_pair(&mut self, rtp: ChannelId) -> Result<(), ChannelError> {
        let rtcp = self.next_id();
        let (first, last) = RTP_PORTS;
        let free = |port: &u16| self.udp(*port, 0).is_none() && self.udp(port + 1, 0).is_none();
        let port = (first..last).step_by(2).find(free).ok_or(ChannelError::NoPort { first, last })?;
        for (id, port) in [(rtp, port), (rtcp, port + 1)] {
            self.add(id, UDP, ((port, 0), 0), Kind::Udp(Ecn::NotEct));
        }
        Ok(())
    }

    pub fn send<R: Recorder>(
        &mut self,
        now: Instant,
        channel: ChannelId,
        datagram: Chunk,
        mark: Option<Ecn>,
        network: &mut Network<R>,
    ) {
        let Some(at) = self.table.of(channel) else { return };
        let Entry { address, to, hash, carrier, .. } = self.table.get(at);
        let (link, hash) = (*self.links.to(address.whom), *hash);
        let ports = Ports { from: address.own, to: *to, user: link.user };
        let bytes = datagram.len() as u64;
        let (body, ecn) = match carrier {
            // No destination is set yet.
            Kind::Udp(_) if *to == 0 => return,
            Kind::Udp(ecn) => (Body::Datagram(ports, datagram), *ecn),
            Kind::Echo => (Body::Echo(datagram), Ecn::NotEct),
            Kind::Tcp(_) | Kind::Listener(_) | Kind::UdpListener(_) => return,
        };
        let ecn = mark.unwrap_or(ecn);
        self.counts.sent_bytes += bytes;
        network.send(now, &PeerLink { line: Line { ecn, ..link.line }, ..link }, hash, body);
    }

    #[inline]
    fn stream(&mut self, channel: ChannelId, pending: &mut Pending) -> Option<&mut Connection> {
        let at = self.table.of(channel)?;
        match &mut self.table.get_mut(at).carrier {
            Kind::Tcp(tcp) => {
                pending.touch(channel);
                Some(&mut tcp.connection)
            }
            _ => None,
        }
    }

    /// Writes data: the part that the window admits leaves at once, as from a socket with `TCP_NODELAY`: two writes are
    /// two segments.
    pub fn write<R: Recorder>(
        &mut self,
        now: Instant,
        channel: ChannelId,
        chunk: Chunk,
        network: &mut Network<R>,
    ) -> usize {
        let Some(at) = self.table.of(channel) else { return 0 };
        let Kind::Tcp(tcp) = &mut self.table.get_mut(at).carrier else { return 0 };
        network.pending.touch(channel);
        let taken = tcp.connection.write(chunk);
        self.counts.sent_bytes += taken as u64;
        if taken > 0 {
            self.transmit(now, at, network);
        }
        taken
    }

    pub fn read(&mut self, channel: ChannelId, max: usize, pending: &mut Pending) -> Option<Chunk> {
        let chunk = self.stream(channel, pending)?.read(max)?;
        self.counts.received_bytes += chunk.len() as u64;
        Some(chunk)
    }

    /// Finishes the channel, or ends it `at_once`.
    pub fn close(&mut self, channel: ChannelId, at_once: bool, pending: &mut Pending) {
        let Some(at) = self.table.of(channel) else { return };
        match &mut self.table.get_mut(at).carrier {
            Kind::Tcp(tcp) => {
                if at_once {
                    tcp.aborted = true;
                    tcp.connection.abort();
                } else {
                    tcp.connection.close();
                }
                pending.touch(channel);
            }
            Kind::Udp(_) | Kind::Echo => {
                self.table.remove(at);
            }
            Kind::UdpListener(_) => {
                let Address { own, .. } = self.table.get(at).address;
                let is_its = |entry: &Entry<Kind>| entry.address.protocol == UDP && entry.address.own == own;
                for at in (0..self.table.len()).rev() {
                    if is_its(self.table.get(at)) {
                        self.table.remove(at);
                    }
                }
            }
            Kind::Listener(_) => {
                self.table.remove(at);
                self.abort_unaccepted(channel, pending);
            }
        }
    }

    /// Drops the streams that wait at a closed listener.
    fn abort_unaccepted(&mut self, listener: ChannelId, pending: &mut Pending) {
        for at in 0..self.table.len() {
            let Entry { id, carrier, .. } = self.table.get_mut(at);
            if let Kind::Tcp(tcp) = carrier
                && tcp.origin == Origin::Accepted(listener)
                && !tcp.told
            {
                tcp.connection.abort();
                pending.touch(*id);
            }
        }
    }

    pub fn port(&self, channel: ChannelId) -> Option<u16> {
        Some(self.table.get(self.table.of(channel)?).address.own)
    }

    /// Returns the flow of a relay's channel.
    pub fn peer(&self, channel: ChannelId) -> Option<Peer> {
        self.links.peer(self.table.get(self.table.of(channel)?).address.whom)
    }

    pub fn direct(&mut self, channel: ChannelId, port: u16) {
        let Some(at) = self.table.of(channel) else { return };
        let Entry { address, carrier: Kind::Udp(_), .. } = self.table.get(at) else { return };
        let hash = self.hash(UDP, ((address.own, port), address.whom));
        let entry = self.table.get_mut(at);
        (entry.to, entry.hash) = (port, hash);
    }

    /// Records an event of this end's host.
    pub fn tell<R: Recorder>(&self, at: Instant, name: &'static str, why: String, network: &mut Network<R>) {
        network.fates.recorder.event(Event {
            at,
            flow: Some(self.links.flow),
            name: name.into(),
            value: None,
            unit: "".into(),
            reason: why.into(),
        });
    }

    /// Returns the channel of a datagram that arrived across the path, or `locally`; and the listener, if this is the
    /// first from there.
    pub fn datagram(&mut self, ports: Ports, locally: bool) -> Option<(ChannelId, Option<ChannelId>)> {
        let whom = self.links.from(ports.user, locally);
        match self.udp(ports.to, whom) {
            Some(at) => Some((self.table.get(at).id, None)),
            None => self.strange_datagram(ports, whom),
        }
    }

    /// Handles a datagram of no channel: a player's that reaches a relay's listener is the first of one.
    #[cold]
    fn strange_datagram(&mut self, ports: Ports, whom: u32) -> Option<(ChannelId, Option<ChannelId>)> {
        let Entry { id, carrier: Kind::UdpListener(ecn), .. } = self.table.get(self.udp(ports.to, 0)?) else {
            return None;
        };
        let (on, carrier) = (*id, Kind::Udp(*ecn));
        if self.links.leads_to_server(whom) {
            return None;
        }
        let id = self.next_id();
        self.add(id, UDP, ((ports.to, ports.from), whom), carrier);
        Some((id, Some(on)))
    }

    /// Returns the channel of ICMP echo.
    pub fn echo(&self) -> Option<ChannelId> {
        let at = self.table.find(Address { protocol: ICMP, own: 0, peer: 0, whom: 0 })?;
        Some(self.table.get(at).id)
    }

    /// Answers an echo request as this end's host.
    pub fn reply<R: Recorder>(&mut self, now: Instant, message: Chunk, network: &mut Network<R>) {
        let hash = self.hash(ICMP, ((0, 0), 0));
        network.send(now, self.links.to(0), hash, Body::Echo(message));
    }

    /// Returns when one of its connections is next due.
    #[inline]
    pub fn poll_timeout(&mut self) -> Instant {
        self.table.earliest()
    }

    /// Prefetches for a packet that will soon arrive: with thousands of flows, the memory that it will touch is in no
    /// near cache.
    #[inline]
    pub fn prefetch(&self) {
        for entry in self.table.iter() {
            if let Kind::Tcp(tcp) = &entry.carrier {
                prefetch(&**tcp);
            }
        }
    }

    /// Channels, connections in TIME-WAIT, and ports that are kept.
    #[cfg(test)]
    pub fn kept(&self) -> [usize; 3] {
        let (lingering, ports) =
            self.opened.as_ref().map_or((0, 0), |opened| (opened.lingering.len(), opened.ephemeral.len()));
        [self.table.len(), lingering, ports]
    }
}
