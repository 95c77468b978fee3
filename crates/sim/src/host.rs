//! One end of a flow: its machine, its channels, and the effects that the machine may have.

use std::borrow::Cow;
use streamgauge_base::{Chunk, Duration, Ecn, Event, FlowId, Instant};
use streamgauge_systems::{App, Carrier, ChannelId, Envelope, Input, Io, Peer};
use streamgauge_transport::tcp;

use crate::channels::{Channels, Counts, Said, Start};
use crate::network::Network;
use crate::peers::PeerLinks;
use crate::prefetch::prefetch;
use crate::recorder::Recorder;
use crate::store::Body;

/// One end of a flow, or a relay.
pub struct Endpoint {
    app: Box<dyn App + Send>,
    channels: Channels,
    /// Time when the machine is next due; [`NEW_INPUT`] if it has had input since it was last asked.
    app_due: Instant,
    /// The host's addition to the next timer.
    pub timer_jitter: Duration,
}

/// In the place of a time: the machine may have events, and another time. An endpoint that is due then is asked again,
/// which does no harm.
const NEW_INPUT: Instant = Instant::ZERO;

struct HostIo<'a, R> {
    now: Instant,
    channels: &'a mut Channels,
    network: &'a mut Network<R>,
}

impl<R: Recorder> Io for HostIo<'_, R> {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        self.channels.open(self.now, None, carrier, &mut self.network.pending)
    }

    fn open_to(&mut self, peer: Peer, carrier: &Carrier) -> ChannelId {
        self.channels.open(self.now, Some(peer), carrier, &mut self.network.pending)
    }

    fn peer(&self, channel: ChannelId) -> Option<Peer> {
        self.channels.peer(channel)
    }

    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, how: Envelope) {
        match how.departs.filter(|&at| at > self.now) {
            Some(at) => self.channels.keep(at, channel, datagram, how.ecn),
            None => self.channels.send(self.now, channel, datagram, how.ecn, self.network),
        }
    }

    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        self.channels.write(self.now, channel, chunk, self.network)
    }

    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        self.channels.read(channel, max, &mut self.network.pending)
    }

    fn close(&mut self, channel: ChannelId) {
        self.channels.close(channel, false, &mut self.network.pending);
    }

    fn abort(&mut self, channel: ChannelId) {
        self.channels.close(channel, true, &mut self.network.pending);
    }

    fn port(&self, channel: ChannelId) -> Option<u16> {
        self.channels.port(channel)
    }

    fn direct(&mut self, channel: ChannelId, port: u16) {
        self.channels.direct(channel, port);
    }

    fn keeps_filler(&self) -> bool {
        true
    }
}

impl Endpoint {
    /// Makes the end that has these links.
    pub fn new(app: Box<dyn App + Send>, links: PeerLinks) -> Self {
        Endpoint { app, channels: Channels::new(links), app_due: NEW_INPUT, timer_jitter: Duration::ZERO }
    }

    /// Starts the flow: the channels that it begins with are opened.
    pub fn open(&mut self, now: Instant, start: &Start) {
        self.channels.start(now, start);
    }

    /// Gives the machine `input`.
    fn input<R: Recorder>(&mut self, now: Instant, input: Input<'_>, network: &mut Network<R>) {
        let Endpoint { app, channels, .. } = self;
        app.handle(now, input, &mut HostIo { now, channels, network });
        self.app_due = NEW_INPUT;
    }

    /// Gives the machine `input` and performs the consequences.
    pub fn handle<R: Recorder>(&mut self, now: Instant, input: Input<'_>, network: &mut Network<R>) {
        self.input(now, input, network);
        self.settle(now, network);
    }

    /// Prefetches for a packet that will soon arrive: with thousands of flows, the memory that it will touch is in no
    /// near cache.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&*self.app);
        self.channels.prefetch();
    }

    /// Handles a packet across the path, with these ECN bits; `at`: it reached the host, which looks now. The host
    /// itself answers, or drops, a packet that no channel waits for.
    pub fn receive<R: Recorder>(
        &mut self,
        now: Instant,
        mut body: Body,
        (ecn, at): (Ecn, Instant),
        network: &mut Network<R>,
    ) {
        if let Body::Segment(ports, segment) = &mut body {
            segment.ecn = ecn;
            self.channels.segment(now, *ports, segment, false, network);
            return self.settle(now, network);
        }
        self.receive_other(now, body, (ecn, at), false, network);
    }

    /// Handles a packet from an end at the same side.
    pub fn receive_local<R: Recorder>(&mut self, now: Instant, body: Body, network: &mut Network<R>) {
        if let Body::Segment(ports, segment) = &body {
            self.channels.segment(now, *ports, segment, true, network);
            return self.settle(now, network);
        }
        self.receive_other(now, body, (Ecn::NotEct, now), true, network);
    }

    fn receive_other<R: Recorder>(
        &mut self,
        now: Instant,
        body: Body,
        (ecn, at): (Ecn, Instant),
        locally: bool,
        network: &mut Network<R>,
    ) {
        let (channel, datagram) = match body {
            Body::Segment(..) => return,
            Body::Datagram(ports, datagram) => {
                let found = self.channels.datagram(ports, locally);
                if let Some((channel, Some(on))) = found {
                    self.handle(now, Input::Accepted { channel, on }, network);
                    if self.channels.port(channel).is_none() {
                        return;
                    }
                }
                (found.map(|(channel, _)| channel), datagram)
            }
            // The player's host answers by itself.
            Body::Echo(message) if !self.channels.serves() => {
                return self.channels.reply(now, message, network);
            }
            Body::Echo(message) => (self.channels.echo(), message),
        };
        let Some(channel) = channel else { return };
        self.channels.counts.received_bytes += datagram.len() as u64;
        self.handle(now, Input::Datagram { on: channel, bytes: &datagram, ecn, at }, network);
    }

    /// Handles an expired timer.
    pub fn timeout<R: Recorder>(&mut self, now: Instant, network: &mut Network<R>) {
        self.channels.timeout(now);
        self.channels.send_due(now, network);
        if self.app_due <= now {
            self.input(now, Input::Timeout, network);
        }
        self.settle(now, network);
    }

    /// Lets connections emit events until none has any left.
    fn settle<R: Recorder>(&mut self, now: Instant, network: &mut Network<R>) {
        self.channels.touch_due(now, &mut network.pending);
        loop {
            while let Some(channel) = network.pending.next_touched() {
                loop {
                    match self.channels.listen_to(now, channel, network) {
                        Said::Input(input) => self.input(now, input, network),
                        Said::Unsaid => {}
                        Said::Nothing => break,
                    }
                }
            }
            let Some((channel, error)) = network.pending.next_refused() else { return };
            self.channels.tell(now, "connection_refused", error.to_string(), network);
            self.input(now, Input::Refused(channel, &error), network);
        }
    }

    /// Returns whether the machine may have events. It has none if it has had no input since it was last asked for all
    /// of them.
    #[inline]
    pub fn has_new_input(&self) -> bool {
        self.app_due == NEW_INPUT
    }

    /// Returns the machine's next event; after the last its time is known.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.app.poll_event();
        if event.is_none() {
            self.app_due = self.app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        }
        event.map(|event| Event { flow: Some(self.channels.flow()), ..event })
    }

    /// Returns when a datagram that waits for its time leaves.
    #[inline]
    pub fn next_departure(&self) -> Instant {
        self.channels.next_departure()
    }

    /// Returns when the machine or one of its connections is next due.
    #[inline]
    pub fn poll_timeout(&mut self) -> Instant {
        self.channels.poll_timeout().min(self.app_due)
    }

    /// Channels, connections in TIME-WAIT, and ports that are kept.
    #[cfg(test)]
    pub fn kept(&self) -> [usize; 3] {
        self.channels.kept()
    }

    /// Returns the totals of the machine's bytes.
    pub fn counts(&self) -> Counts {
        self.channels.counts
    }

    /// Returns for each open stream across the path: the flow that counts it, the server's and the player's port of all
    /// but a flow's own first, the name of its congestion controller, its figures.
    pub fn open_streams(
        &self,
    ) -> impl Iterator<Item = (FlowId, Option<[u16; 2]>, Cow<'static, str>, tcp::Stats)> {
        self.channels.open_streams()
    }

    /// Returns the figures of its first stream, with the counts of all.
    pub fn tcp_stats(&self) -> Option<tcp::Stats> {
        self.channels.tcp_stats()
    }
}
