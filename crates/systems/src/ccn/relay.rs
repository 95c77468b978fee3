//! A forwarder that flows share: an object that several players request crosses the path once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use streamgauge_base::{Duration, Ecn, Event, Instant};
use streamgauge_plan::{Parameter, Protocols, RelaySpec, TcpSpec, check_bounds, settings};
use streamgauge_wire::ndn::Name;

use super::ends::COUNTS_EACH;
use super::face::Face;
use super::forwarder::{FaceId, Forwarder, ForwarderSettings, StorePolicy};
use super::spec::{self, CcnPreset, CcnSettings, Fragmentation};
use crate::app::{App, ChannelId, Input, Io, Peer};
use crate::carrier::Carrier;
use crate::describe::{EventKind, Refusal, Relay, events, tcp_last, within};
use crate::machines::{Channel, RelayMachine};
use crate::outbox::Outbox;

/// Where players' forwarders come.
const LISTENER: ChannelId = ChannelId(0);

/// Connections that may wait to be accepted: Linux's somaxconn.
const BACKLOG: u32 = 4_096;

settings! {
    /// A forwarder with a content store.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CcnForwarderSpec {
        /// Data that it keeps for later requests; 0 B turns storing off.
        pub store_bytes: u64 => |p| p.called("content_store"),
        /// Order of eviction when the store is full.
        pub store_policy: StorePolicy,
        /// An Interest repeated within this time after being passed on is held for a copy.
        /// Source: NFD Developer's Guide, retransmission suppression.
        pub suppression: Duration => |p| p.most(60e9),
        /// It refuses Interests that it cannot handle; else it is silent.
        pub nacks: bool,
        /// Interests that it keeps at most.
        pub pit: u32 => |p| p.called("pending_interests").least(1).most(500_000),
        /// How a packet larger than the network's crosses it, over UDP.
        /// Source: NDNLPv2, indexed fragmentation.
        pub fragmentation: Fragmentation,
        /// UDP's or TCP's port at which it listens, and reaches producers.
        pub face_port: u32 => |p| p.least(1).most(65_535),
        /// Its faces, both sides, are over UDP, or over TCP with these settings.
        pub tcp: Option<TcpSpec>,
    }
}

impl CcnForwarderSpec {
    fn forwarder(&self) -> ForwarderSettings {
        ForwarderSettings {
            most_pending: self.pit as usize,
            suppression: self.suppression,
            nacks: self.nacks,
            store_bytes: self.store_bytes,
            store_policy: self.store_policy,
        }
    }
}

impl Relay for CcnForwarderSpec {
    const NAME: &'static str = "ccn-forwarder";
    const TITLE: &'static str = "Shared forwarder of content-centric networking, with a content store";
    const VERSION: u32 = 2;
    const EVENTS: &'static [EventKind] = &events([("forwarder", "1"), ("face_down", "")]);

    fn usual() -> Self {
        let today = CcnSettings::of(CcnPreset::NdnToday);
        CcnForwarderSpec {
            store_bytes: 1_000_000_000,
            store_policy: today.store_policy,
            suppression: today.suppression,
            nacks: today.nacks,
            pit: today.pit,
            fragmentation: today.fragmentation,
            face_port: today.face_port,
            tcp: Some(TcpSpec::default()),
        }
    }

    fn parameters() -> Vec<Parameter> {
        let chosen = spec::transport("The transport of its faces on both sides, the same as its flows'.");
        std::iter::once(chosen).chain(tcp_last(Self::fields())).collect()
    }

    fn protocols(&self) -> Protocols {
        super::protocols(self.tcp.as_ref())
    }

    fn machine(&self, _: &RelaySpec, _: u64) -> Result<RelayMachine, Refusal> {
        let own: Vec<Parameter> = Self::fields().into_iter().filter(|field| field.at.len() == 1).collect();
        check_bounds(&own, self).map_err(within("app.ccn-forwarder"))?;
        let port = self.face_port as u16;
        let carrier = match self.tcp.clone() {
            None => Carrier::UdpListener { port, ecn: Ecn::NotEct },
            Some(settings) => Carrier::Listener { port, settings, backlog: BACKLOG },
        };
        Ok(RelayMachine {
            channels: vec![Channel { id: LISTENER, carrier }],
            app: Box::new(CcnForwarder::new(self, port)),
        })
    }
}

/// The machine. It has a face to each player's forwarder that connects, or sends it a datagram, and one to a
/// producer, for all names: to that of the flow with the earliest player, and if that is down, of the next
/// that asks.
pub struct CcnForwarder {
    forwarder: Forwarder,
    /// How producers are reached.
    upstream: Carrier,
    /// Fragmentation of its datagrams over UDP.
    fragmentation: Fragmentation,
    faces: BTreeMap<FaceId, Face>,
    by_channel: BTreeMap<ChannelId, FaceId>,
    /// The face that all names lead to.
    way: Option<FaceId>,
    next_face: u32,
    /// When it last reported its counts, and whether they have changed since.
    told: Option<Instant>,
    is_untold: bool,
    events: Outbox,
}

impl CcnForwarder {
    fn new(spec: &CcnForwarderSpec, port: u16) -> Self {
        CcnForwarder {
            forwarder: Forwarder::new(&spec.forwarder()),
            upstream: match spec.tcp.clone() {
                None => Carrier::Udp { port, ecn: Ecn::NotEct },
                Some(settings) => Carrier::Tcp { port, settings },
            },
            fragmentation: spec.fragmentation,
            faces: BTreeMap::new(),
            by_channel: BTreeMap::new(),
            way: None,
            next_face: 0,
            told: None,
            is_untold: false,
            events: Outbox::default(),
        }
    }

    fn add(&mut self, channel: ChannelId, is_open: bool) -> FaceId {
        let id = FaceId(self.next_face);
        self.next_face += 1;
        let face = match self.upstream {
            Carrier::Udp { .. } => Face::udp(channel, self.fragmentation),
            _ => Face::tcp(channel, is_open),
        };
        self.faces.insert(id, face);
        self.by_channel.insert(channel, id);
        id
    }

    /// Opens the face to a flow's producer, if none is there.
    fn lead_to(&mut self, peer: Peer, io: &mut dyn Io) {
        if self.way.is_none() {
            let channel = io.open_to(peer, &self.upstream);
            let face = self.add(channel, false);
            self.forwarder.route(Name::root(), face);
            self.way = Some(face);
        }
    }

    fn remove(&mut self, face: FaceId) {
        self.faces.remove(&face);
        self.by_channel.retain(|_, one| *one != face);
        self.forwarder.remove_face(face);
        if self.way == Some(face) {
            self.way = None;
        }
    }

    /// Processes the arrivals on one of its faces.
    fn input(&mut self, now: Instant, channel: ChannelId, input: &Input<'_>, io: &mut dyn Io) {
        let Some(&id) = self.by_channel.get(&channel) else { return };
        if self.way.is_none()
            && matches!(input, Input::Readable(_) | Input::Datagram { .. })
            && let Some(peer) = io.peer(channel)
        {
            self.lead_to(peer, io);
        }
        let Some(face) = self.faces.get_mut(&id) else { return };
        for packet in face.input(now, input, io, &mut self.events) {
            self.forwarder.receive(now, id, packet);
            self.is_untold = true;
        }
        if self.faces.get(&id).is_some_and(Face::is_gone) {
            self.remove(id);
        }
    }

    /// Returns when its counts are to be reported.
    fn tells_at(&self) -> Option<Instant> {
        self.is_untold.then(|| self.told.map_or(Instant::ZERO, |told| told + COUNTS_EACH))
    }

    fn say_counts(&mut self, now: Instant) {
        if self.tells_at().is_some_and(|at| at <= now) {
            (self.told, self.is_untold) = (Some(now), false);
            let (forwarded, words) = (self.forwarder.counts().forwarded, self.forwarder.in_words());
            self.events.say(now, "forwarder", forwarded as f64, "1", words);
        }
    }
}

impl App for CcnForwarder {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.forwarder.expire(now);
        match input {
            Input::Accepted { channel, .. } => {
                self.add(channel, true);
                if let Some(peer) = io.peer(channel) {
                    self.lead_to(peer, io);
                }
            }
            Input::Opened(channel)
            | Input::Refused(channel, _)
            | Input::Datagram { on: channel, .. }
            | Input::Readable(channel)
            | Input::Writable(channel)
            | Input::Closed(channel, _) => self.input(now, channel, &input, io),
            Input::Stop => {
                for face in std::mem::take(&mut self.faces).values_mut() {
                    face.fail(io);
                }
                self.by_channel.clear();
            }
            _ => {}
        }
        while let Some((id, packet)) = self.forwarder.next_packet() {
            if let Some(face) = self.faces.get_mut(&id) {
                face.send(&packet, io);
            }
        }
        self.say_counts(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.forwarder.deadline().into_iter().chain(self.tells_at()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Chunk;
    use streamgauge_wire::ndn::{Component, Data, Interest};

    use super::*;
    use crate::app::CloseReason;
    use crate::app::Envelope;

    /// Channels that accept everything and bring nothing: the peer of each, and the peers of opened ones.
    #[derive(Default)]
    struct Wires {
        peers: BTreeMap<ChannelId, Peer>,
        opened_to: Vec<Peer>,
        /// Datagrams.
        sent: Vec<(ChannelId, Chunk)>,
        aborted: Vec<ChannelId>,
    }

    impl Wires {
        fn number(&mut self, peer: Peer) -> ChannelId {
            let channel = ChannelId(1 + self.peers.len() as u32);
            self.peers.insert(channel, peer);
            channel
        }
    }

    impl Io for Wires {
        fn open(&mut self, _: &Carrier) -> ChannelId {
            unreachable!("a relay opens to a peer")
        }
        fn open_to(&mut self, peer: Peer, _: &Carrier) -> ChannelId {
            self.opened_to.push(peer);
            self.number(peer)
        }
        fn peer(&self, channel: ChannelId) -> Option<Peer> {
            self.peers.get(&channel).copied()
        }
        fn send_as(&mut self, channel: ChannelId, datagram: Chunk, _: Envelope) {
            self.sent.push((channel, datagram));
        }
        fn write(&mut self, _: ChannelId, chunk: Chunk) -> usize {
            chunk.len()
        }
        fn read(&mut self, _: ChannelId, _: usize) -> Option<Chunk> {
            None
        }
        fn close(&mut self, _: ChannelId) {}
        fn abort(&mut self, channel: ChannelId) {
            self.aborted.push(channel);
        }
        fn port(&self, _: ChannelId) -> Option<u16> {
            None
        }
        fn direct(&mut self, _: ChannelId, _: u16) {}
    }

    fn accept(relay: &mut CcnForwarder, io: &mut Wires, peer: u16) -> ChannelId {
        let channel = io.number(Peer(peer));
        relay.handle(Instant::ZERO, Input::Accepted { channel, on: LISTENER }, io);
        channel
    }

    #[test]
    fn one_producer_serves_all_and_another_is_asked_when_it_is_gone() {
        let (mut relay, mut io) = (CcnForwarder::new(&CcnForwarderSpec::usual(), 6363), Wires::default());
        let first = accept(&mut relay, &mut io, 0);
        let upstream = ChannelId(first.0 + 1);
        let second = accept(&mut relay, &mut io, 1);
        assert_eq!(io.opened_to, [Peer(0)]);
        relay.handle(Instant::ZERO, Input::Opened(upstream), &mut io);
        relay.handle(Instant::ZERO, Input::Closed(upstream, CloseReason::Reset), &mut io);
        assert_eq!(io.opened_to, [Peer(0)], "nobody has asked since");
        relay.handle(Instant::ZERO, Input::Readable(second), &mut io);
        assert_eq!(io.opened_to, [Peer(0), Peer(1)]);
        let told: Vec<Event> = std::iter::from_fn(|| relay.poll_event()).collect();
        assert!(told.iter().any(|event| event.name == "face_down" && event.reason.contains("reset")));
    }

    #[test]
    fn over_udp_interests_of_all_go_to_one_producer_and_large_data_come_back_in_parts() {
        let spec = CcnForwarderSpec { tcp: None, ..CcnForwarderSpec::usual() };
        let (mut relay, mut io) = (CcnForwarder::new(&spec, 6363), Wires::default());
        let first = accept(&mut relay, &mut io, 0);
        let upstream = ChannelId(first.0 + 1);
        let second = accept(&mut relay, &mut io, 1);
        let name = Name::of([Component::generic(b"x".as_slice())]).unwrap();
        let asked = |nonce| Interest { nonce: Some(nonce), ..Interest::of(name.clone()) }.write();
        relay.handle(Instant::ZERO, Input::datagram(first, &asked(1), Instant::ZERO), &mut io);
        relay.handle(Instant::ZERO, Input::datagram(second, &asked(2), Instant::ZERO), &mut io);
        assert_eq!(io.opened_to, [Peer(0)]);
        assert_eq!(std::mem::take(&mut io.sent), [(upstream, asked(1))], "the second waits with the first");
        let data = Data::of(name.clone(), Chunk::filler(8_000)).write();
        relay.handle(Instant::ZERO, Input::datagram(upstream, &data, Instant::ZERO), &mut io);
        assert!(io.sent.iter().all(|(_, part)| part.len() <= 1472));
        let parts = |to| io.sent.iter().filter(|sent| sent.0 == to).count();
        assert_eq!((parts(first), parts(second), io.sent.len()), (6, 6, 12));
    }

    #[test]
    fn a_stop_ends_every_face() {
        let (mut relay, mut io) = (CcnForwarder::new(&CcnForwarderSpec::usual(), 6363), Wires::default());
        accept(&mut relay, &mut io, 0);
        accept(&mut relay, &mut io, 1);
        relay.handle(Instant::ZERO, Input::Stop, &mut io);
        assert_eq!(io.aborted.len(), 3, "two players' and the producer's");
        relay.handle(Instant::ZERO, Input::Timeout, &mut io);
        assert!(relay.poll_timeout().is_none());
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let relay: RelaySpec = serde_json::from_value(serde_json::json!({
            "name": "home", "at": "client", "app": CcnForwarderSpec::usual().app(),
        }))
        .unwrap();
        for (spec, key) in [
            (CcnForwarderSpec { face_port: 0, ..CcnForwarderSpec::usual() }, "app.ccn-forwarder.face_port"),
            (CcnForwarderSpec { pit: 0, ..CcnForwarderSpec::usual() }, "app.ccn-forwarder.pit"),
        ] {
            assert_eq!(spec.machine(&relay, 1).err().unwrap().0, key);
        }
    }
}
