//! How channels come to be: those that a flow begins with, those with a stranger, and those that a machine opens.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::libc;
use streamgauge_systems::{Carrier, Channel, ChannelError, ChannelId, RTP_PORTS};

use super::{Channels, Counts, READ_AT_ONCE, Socket};
use crate::error::{EngineError, Result};
use crate::net::AddressPair;
use crate::net::datagram::Udp;
use crate::net::echo::Echo;
use crate::net::ports::{PortRange, Ports};
use crate::net::stream::{Listener, TcpSocket};

/// Whom a machine's channels lead to.
#[derive(Clone, Copy)]
pub(super) enum Place {
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

    pub(super) fn lock(&self) -> MutexGuard<'_, Ports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channels {
    /// Those that a trial's flow begins with: its listeners listen from here on. Nothing of them is heard before
    /// [`Channels::connect`].
    pub fn open(addresses: AddressPair, serves: bool, begins_with: &[Channel]) -> Result<Channels> {
        let ports = SharedPorts::new(PortRange::new(RTP_PORTS.0, RTP_PORTS.1), 0);
        let mut channels = Channels::of(Place::Trial(addresses), ports);
        for channel in begins_with {
            let id = channels.number();
            let socket = match &channel.carrier {
                Carrier::IcmpEcho | Carrier::Listener { .. } if !serves => Socket::Silent,
                Carrier::Tcp { port, settings } if serves => {
                    Socket::Stream(TcpSocket::listen(addresses, *port, settings)?.into(), true)
                }
                Carrier::Tcp { port, settings } => {
                    Socket::Stream(TcpSocket::unconnected(addresses, *port, settings)?.into(), true)
                }
                carrier => {
                    if channels.make(id, carrier)? {
                        continue;
                    }
                    let why = "ports are taken on this address";
                    return Err(EngineError::new("open the channels that the flow begins with", why));
                }
            };
            channels.insert(id, socket);
        }
        Ok(channels)
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

    fn of(place: Place, ports: SharedPorts) -> Channels {
        Channels {
            place,
            list: BTreeMap::new(),
            next: 0,
            ports,
            made: None,
            refused: VecDeque::new(),
            touched: Vec::new(),
            ready: Vec::new(),
            full_until: None,
            allowance: usize::MAX,
            counts: Counts::default(),
            settings: None,
        }
    }

    /// Makes what is no connection; false if the host has no pair of ports left.
    fn make(&mut self, id: ChannelId, carrier: &Carrier) -> Result<bool> {
        let (own, peer) = self.place.addresses();
        let socket = match (carrier, self.place) {
            (Carrier::Udp { port, ecn }, _) => Socket::Udp(Udp::open(own, peer, *port, *ecn)?, false),
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
                let made = self.made.take().filter(|made| made.peer().port() == *port);
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

    pub(super) fn try_open(
        &mut self,
        id: ChannelId,
        carrier: &Carrier,
    ) -> std::result::Result<(), ChannelError> {
        match (self.make(id, carrier), carrier) {
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
            (Err(error), Carrier::Udp { port, .. } | Carrier::Listener { port, .. })
                if error.errno == Some(libc::EADDRINUSE) =>
            {
                Err(ChannelError::PortTaken { port: *port })
            }
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
}

/// Why a connection to `port` was not made.
pub(super) fn refusal(error: nix::Error, port: u16) -> ChannelError {
    match error {
        nix::Error::ECONNREFUSED | nix::Error::ECONNRESET => ChannelError::NoListener { port },
        nix::Error::ETIMEDOUT => ChannelError::TimedOut { port },
        nix::Error::EADDRNOTAVAIL | nix::Error::EADDRINUSE => {
            let (first, last) = local_ports().unwrap_or((32_768, 60_999));
            ChannelError::NoPort { first, last }
        }
        error => ChannelError::Host(format!("connect to port {port} of the other end: {}", error.desc())),
    }
}

/// The range that the kernel chooses ports from.
fn local_ports() -> Option<(u16, u16)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}
