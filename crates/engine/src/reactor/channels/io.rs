//! A machine's operations on its channels.

use streamgauge_base::Chunk;
use streamgauge_systems::{Carrier, ChannelError, ChannelId, Envelope, Io, Peer};

use super::{Channels, Place, Socket};
use crate::net::AddressPair;
use crate::net::datagram::SharedUdp;
use crate::net::host::Host;

impl Io for Channels {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        let id = self.number();
        if let Err(error) = self.try_open(id, carrier, self.place) {
            self.refused.push_back((id, error));
        }
        id
    }

    fn open_at(&mut self, host: &str, carrier: &Carrier) -> ChannelId {
        let id = self.number();
        let opened = match self.place {
            Place::Trial(_) => Err(ChannelError::Host(format!("a trial has no host {host}"))),
            Place::Network { own, owed, .. } => match Host::named(host).resolve() {
                Ok(found) => {
                    let peer = found[0].ip().to_canonical();
                    self.try_open(id, carrier, Place::Network { own, peer, owed })
                }
                Err(error) => Err(ChannelError::Host(error.to_string())),
            },
        };
        if let Err(error) = opened {
            self.refused.push_back((id, error));
        }
        id
    }

    fn open_to(&mut self, peer: Peer, carrier: &Carrier) -> ChannelId {
        let (Some(relayed), Place::Trial(AddressPair { own, .. })) = (&self.relayed, self.place) else {
            return self.open(carrier);
        };
        let server = relayed.server(peer);
        let id = self.number();
        let opened = match server {
            Some(peer) => self.try_open(id, carrier, Place::Trial(AddressPair { own, peer })),
            None => Err(ChannelError::Host(format!("the relay has no flow number {}", peer.0))),
        };
        if let Err(error) = opened {
            self.refused.push_back((id, error));
        }
        id
    }

    fn peer(&self, channel: ChannelId) -> Option<Peer> {
        match &self.list.get(&channel)?.socket {
            Socket::Stream(stream, _) => self.relayed.as_ref()?.peer(stream.peer()),
            Socket::OfListener(_, there) => self.relayed.as_ref()?.peer(*there),
            _ => None,
        }
    }

    fn send_as(&mut self, channel: ChannelId, mut datagram: Chunk, how: Envelope) {
        if let Some(at) = how.departs {
            match self.outbox.keep(at, channel, datagram, how.ecn) {
                Ok(()) => return,
                Err(kept_by_nobody) => datagram = kept_by_nobody,
            }
        }
        if how.ecn.is_some() {
            return self.send_together(channel, &[(datagram, how.ecn)]);
        }
        let sent = match self.list.get_mut(&channel).map(|entry| &mut entry.socket) {
            Some(Socket::Udp(udp, _)) => udp.send(&datagram),
            Some(Socket::Echo(echo)) => echo.send(&datagram),
            Some(&mut Socket::OfListener(listener, there)) => {
                self.shared(listener).is_some_and(|udp| udp.send(there, &datagram))
            }
            _ => return,
        };
        if sent {
            self.counts.datagrams_sent += 1;
            self.counts.datagram_bytes_sent += datagram.len() as u64;
        } else {
            self.counts.send_errors += 1;
        }
    }

    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        let taken = self.stream(channel).map_or(0, |stream| stream.write(chunk));
        self.counts.stream_bytes_sent += taken as u64;
        taken
    }

    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        let allowance = self.allowance;
        let stream = self.stream(channel)?;
        if allowance == 0 {
            stream.read_later();
            return None;
        }
        let chunk = stream.read(max.min(allowance))?;
        let there = stream.peer();
        if allowance != usize::MAX {
            self.allowance -= chunk.len();
        }
        self.counts.stream_bytes_received += chunk.len() as u64;
        if let Some(relayed) = &mut self.relayed {
            relayed.read(there, chunk.len());
        }
        Some(chunk)
    }

    fn close(&mut self, channel: ChannelId) {
        match self.list.get(&channel).map(|entry| &entry.socket) {
            Some(Socket::Stream(..)) => {
                if let Some(stream) = self.stream(channel) {
                    stream.close();
                }
            }
            Some(
                Socket::Udp(..)
                | Socket::Echo(_)
                | Socket::Listener(_)
                | Socket::UdpListener(_)
                | Socket::OfListener(..),
            ) => self.remove(channel),
            Some(Socket::Silent) | None => {}
        }
    }

    fn abort(&mut self, channel: ChannelId) {
        match (self.place, self.stream(channel)) {
            (Place::Trial(_) | Place::Network { owed: false, .. }, Some(stream)) => {
                let unread = stream.unread_bytes();
                stream.abort();
                self.given_up += unread;
            }
            _ => self.close(channel),
        }
    }

    fn port(&self, channel: ChannelId) -> Option<u16> {
        match &self.list.get(&channel)?.socket {
            Socket::Udp(udp, _) => Some(udp.port()),
            Socket::Listener(listener) => Some(listener.port()),
            Socket::UdpListener(udp) => Some(udp.port()),
            Socket::OfListener(listener, _) => self.shared(*listener).map(SharedUdp::port),
            Socket::Stream(stream, _) => stream.own_address().ok().map(|address| address.port()),
            Socket::Echo(_) | Socket::Silent => None,
        }
    }

    fn direct(&mut self, channel: ChannelId, port: u16) {
        match self.list.get_mut(&channel).map(|entry| &mut entry.socket) {
            Some(Socket::Udp(udp, _)) => udp.direct(port),
            Some(Socket::OfListener(_, there)) => there.set_port(port),
            _ => {}
        }
    }
}
