//! The connections of an end: they handle segments and timeouts, and pass events to their machine.

use std::borrow::Cow;

use streamgauge_base::{FlowId, Instant};
use streamgauge_systems::{ChannelError, ChannelId, CloseReason, Input};
use streamgauge_transport::tcp::{
    self, Connection, ConnectionEvent, Segment, flags, reset_without_connection,
};

use super::{Channels, Gone, Kind, Origin, TCP, Tcp, drawn};
use crate::lingering::Answer;
use crate::network::Network;
use crate::pending::Pending;
use crate::recorder::Recorder;
use crate::store::{Body, NO_RELAY, Ports};
use crate::table::{Address, Entry};

/// An event of a connection for its machine.
pub enum Said {
    Input(Input<'static>),
    /// An event that the machine does not get.
    Unsaid,
    Nothing,
}

impl Channels {
    /// Handles a segment, `locally` from an end at the same side.
    #[inline]
    pub fn segment<R: Recorder>(
        &mut self,
        now: Instant,
        ports: Ports,
        segment: &Segment,
        locally: bool,
        network: &mut Network<R>,
    ) {
        let whom = self.links.from(ports.user, locally);
        let address = Address { protocol: TCP, own: ports.to, peer: ports.from, whom };
        if let Some(at) = self.table.find(address)
            && let Entry { id, carrier: Kind::Tcp(tcp), .. } = self.table.get_mut(at)
        {
            tcp.connection.handle(now, segment);
            return network.pending.touch(*id);
        }
        self.strange_segment(now, address, segment, network);
    }

    /// Handles a segment of no connection that is under way.
    #[cold]
    fn strange_segment<R: Recorder>(
        &mut self,
        now: Instant,
        address: Address,
        segment: &Segment,
        network: &mut Network<R>,
    ) {
        let opens = segment.has(flags::SYN) && !segment.has(flags::ACK);
        self.expire(now);
        if opens {
            // One in TIME-WAIT yields to a new connection (RFC 9293 section 3.6.1).
            if let Some(port) = self.opened().lingering.forget(address) {
                self.opened().ephemeral.release(port);
            }
            if let Some(at) = self.listener(address.own) {
                return self.knock(now, at, address, segment, network);
            }
        }
        let answers = match self.opened().lingering.receive(now, address, segment) {
            None => reset_without_connection(segment).into_iter().collect(),
            Some(Answer::Segments(answers)) => answers,
            Some(Answer::Gone(port)) => {
                port.into_iter().for_each(|port| self.opened().ephemeral.release(port));
                Vec::new()
            }
        };
        let hash = self.hash(TCP, ((address.own, address.peer), address.whom));
        let link = self.links.to(address.whom);
        let ports = Ports { from: address.own, to: address.peer, user: link.user };
        for answer in answers {
            network.send(now, link, hash, Body::Segment(ports, answer));
        }
    }

    /// Handles a SYN for the listener at `at`.
    fn knock<R: Recorder>(
        &mut self,
        now: Instant,
        at: usize,
        address: Address,
        segment: &Segment,
        network: &mut Network<R>,
    ) {
        let Entry { id: on, carrier: Kind::Listener(listener), .. } = self.table.get_mut(at) else { return };
        if listener.waiting >= listener.backlog {
            // As Linux does without SYN cookies: the other end tries again.
            let why = format!("port {}: {} connections wait to be accepted", address.own, listener.waiting);
            return self.tell(now, "listen_overflow", why, network);
        }
        listener.waiting += 1;
        let (on, settings) = (*on, listener.settings.clone());
        let id = self.next_id();
        let connection = Connection::listen(settings.config.clone());
        let drawn = drawn(&mut self.opened().sequences);
        let to = ((address.own, address.peer), address.whom);
        self.add_stream(id, to, connection, Origin::Accepted(on), drawn);
        if let Some(connection) = self.stream(id, &mut network.pending) {
            connection.handle(now, segment);
        }
    }

    /// Gives the connections that are due at `now` their timeouts.
    pub fn timeout(&mut self, now: Instant) {
        if self.table.earliest() > now {
            return;
        }
        for at in 0..self.table.len() {
            if self.table.due_at(at) <= now
                && let Kind::Tcp(tcp) = &mut self.table.get_mut(at).carrier
            {
                tcp.connection.handle_timeout(now);
            }
        }
    }

    /// Queues the due connections, which may have events.
    #[inline]
    pub fn touch_due(&mut self, now: Instant, pending: &mut Pending) {
        if self.table.earliest() <= now {
            for at in 0..self.table.len() {
                if self.table.due_at(at) <= now {
                    pending.touch(self.table.get(at).id);
                }
            }
        }
    }

    /// Lets the stream at place `at` of the table send as much as it can; `None` if there is no stream.
    #[inline]
    pub(super) fn transmit<R: Recorder>(
        &mut self,
        now: Instant,
        at: usize,
        network: &mut Network<R>,
    ) -> Option<&mut Tcp> {
        let Entry { address, hash, carrier: Kind::Tcp(tcp), .. } = self.table.get_mut(at) else {
            return None;
        };
        let link = self.links.to(address.whom);
        let ports = Ports { from: address.own, to: address.peer, user: link.user };
        while let Some(segment) = tcp.connection.poll_transmit(now) {
            network.send(now, link, *hash, Body::Segment(ports, segment));
        }
        Some(tcp)
    }

    /// Lets a channel send as much as it can, and returns its next event.
    #[inline]
    pub fn listen_to<R: Recorder>(&mut self, now: Instant, id: ChannelId, network: &mut Network<R>) -> Said {
        let Some(at) = self.table.of(id) else { return Said::Nothing };
        let Some(tcp) = self.transmit(now, at, network) else { return Said::Nothing };
        let Some(event) = tcp.connection.poll_event() else {
            self.settled(now, at);
            return Said::Nothing;
        };
        self.translate(at, event, &mut network.pending)
    }

    /// Returns the machine's event; nothing for a stream that it ended itself, or one that it was not informed of.
    fn translate(&mut self, at: usize, event: ConnectionEvent, pending: &mut Pending) -> Said {
        let serves = self.serves();
        let Entry { id, to, carrier: Kind::Tcp(tcp), .. } = self.table.get_mut(at) else {
            return Said::Nothing;
        };
        if tcp.aborted {
            return Said::Unsaid;
        }
        let (channel, origin, port) = (*id, tcp.origin, *to);
        let knew = tcp.told;
        tcp.told |= event == ConnectionEvent::Opened;
        let why = match event {
            ConnectionEvent::Opened => {
                let Origin::Accepted(on) = origin else { return Said::Input(Input::Opened(channel)) };
                self.waits_no_more(on);
                return Said::Input(Input::Accepted { channel, on });
            }
            ConnectionEvent::Readable => return Said::Input(Input::Readable(channel)),
            ConnectionEvent::Writable => return Said::Input(Input::Writable(channel)),
            ConnectionEvent::Closed(why) => why,
        };
        match (why, origin) {
            (_, Origin::Accepted(on)) if !knew => {
                self.waits_no_more(on);
                Said::Unsaid
            }
            (tcp::CloseReason::Aborted, _) => Said::Unsaid,
            (tcp::CloseReason::Finished, _) => Said::Input(Input::Closed(channel, CloseReason::Finished)),
            _ if knew || serves && origin == Origin::Start => {
                let timed_out = why == tcp::CloseReason::TimedOut;
                let why = if timed_out { CloseReason::TimedOut } else { CloseReason::Reset };
                Said::Input(Input::Closed(channel, why))
            }
            (tcp::CloseReason::TimedOut, _) => {
                pending.refused.push_back((channel, ChannelError::TimedOut { port }));
                Said::Unsaid
            }
            (tcp::CloseReason::Reset, _) => {
                pending.refused.push_back((channel, ChannelError::NoListener { port }));
                Said::Unsaid
            }
        }
    }

    fn waits_no_more(&mut self, listener: ChannelId) {
        if let Some(at) = self.table.of(listener)
            && let Kind::Listener(listener) = &mut self.table.get_mut(at).carrier
        {
            listener.waiting -= 1;
        }
    }

    /// Settles a connection without further events: finds when it is next due, and drops it if it is over.
    #[inline]
    fn settled(&mut self, now: Instant, at: usize) {
        let Kind::Tcp(tcp) = &self.table.get(at).carrier else { return };
        let connection = &tcp.connection;
        let over = connection.is_closed() && tcp.origin != Origin::Start;
        // Data that has arrived of a stream in order is still the machine's to read.
        if over && (!connection.is_open() || connection.readable() == 0) {
            return self.let_go(now, at);
        }
        let due = connection.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        self.table.set_due(at, due);
    }

    #[cold]
    fn let_go(&mut self, now: Instant, at: usize) {
        let Entry { id, address, carrier, .. } = self.table.remove(at);
        let Kind::Tcp(tcp) = carrier else { return };
        let Tcp { connection, origin, .. } = *tcp;
        let is_first = self.first == Some(id);
        let opened = self.opened();
        opened.gone.add(is_first, connection.stats());
        if connection.is_waiting() {
            opened.lingering.insert(now, address, Box::new(connection), origin == Origin::Opened);
        } else if origin == Origin::Opened {
            opened.ephemeral.release(address.own);
        }
    }

    /// Forgets the connections that are past TIME-WAIT, and frees their ports.
    pub(super) fn expire(&mut self, now: Instant) {
        let opened = self.opened();
        while let Some(port) = opened.lingering.expire(now) {
            opened.ephemeral.release(port);
        }
    }

    /// Returns the open streams across the path: the flow that counts them, the server's and the player's port of each
    /// but a flow's own first, the name of its congestion controller, its figures.
    pub fn open_streams(
        &self,
    ) -> impl Iterator<Item = (FlowId, Option<[u16; 2]>, Cow<'static, str>, tcp::Stats)> {
        let first = self.first;
        let serves = self.serves();
        self.table.iter().filter_map(move |entry| {
            let Kind::Tcp(tcp) = &entry.carrier else { return None };
            let (own, peer) = (entry.address.own, entry.address.peer);
            let ports = if serves { [own, peer] } else { [peer, own] };
            let link = self.links.to(entry.address.whom);
            let is_first = first == Some(entry.id) && link.user == NO_RELAY;
            let ports = (!is_first).then_some(ports);
            let crosses = link.local.is_none() && tcp.connection.is_open();
            crosses.then(|| {
                let control = tcp.connection.congestion_control().label();
                (link.line.flow, ports, control, tcp.connection.stats())
            })
        })
    }

    /// Returns the figures of its first stream, with the counts of all.
    pub fn tcp_stats(&self) -> Option<tcp::Stats> {
        let mut total = self.opened.as_ref().map_or_else(Gone::default, |opened| opened.gone.clone());
        for entry in self.table.iter() {
            if let Kind::Tcp(tcp) = &entry.carrier {
                total.add(self.first == Some(entry.id), tcp.connection.stats());
            }
        }
        let first = total.first?;
        Some(tcp::Stats {
            segments: first.segments + total.segments,
            retransmits: first.retransmits + total.retransmits,
            timeouts: first.timeouts + total.timeouts,
            recoveries: first.recoveries + total.recoveries,
            ..first
        })
    }
}
