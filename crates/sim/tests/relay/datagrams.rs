//! Datagrams through a relay, for tests of the relays' drivers: each player's are sent to its server, which answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use streamgauge_base::{Chunk, Duration, Ecn, Event, Instant};
use streamgauge_systems::{App, Carrier, Channel, ChannelId, Input, Io, Peer};

/// Between two datagrams of a player.
const EACH: Duration = Duration::from_millis(5);

/// Returns the channel that a flow, or a relay, begins with.
pub fn begins(carrier: Carrier) -> Vec<Channel> {
    vec![Channel { id: ChannelId(0), carrier }]
}

/// Returns the carrier of a flow's two ends.
pub fn udp(port: u16) -> Carrier {
    Carrier::Udp { port, ecn: Ecn::NotEct }
}

/// The relay's observations.
#[derive(Default, Debug)]
pub struct Handed {
    /// Peers with a first datagram.
    pub accepted: Vec<Peer>,
    /// Why channels could not be opened.
    pub refused: Vec<String>,
}

/// A relay that begins with a listener of UDP at `port`, and hands datagrams on.
#[derive(Default)]
pub struct Passing {
    pub port: u16,
    /// Where else it tries to send from.
    pub tries: Option<u16>,
    pub other: BTreeMap<ChannelId, ChannelId>,
    /// Time when it closes its listener.
    pub until: Option<Instant>,
    pub handed: Arc<Mutex<Handed>>,
}

impl Passing {
    pub fn at(port: u16) -> Self {
        Passing { port, ..Passing::default() }
    }
}

impl App for Passing {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Accepted { channel, on } => {
                assert_eq!((on, io.peer(on)), (ChannelId(0), None));
                let peer = io.peer(channel).expect("a player's channel is of a flow");
                self.handed.lock().unwrap().accepted.push(peer);
                let up = io.open_to(peer, &udp(self.port));
                assert_eq!(
                    (io.peer(up), io.port(up), io.port(channel)),
                    (Some(peer), Some(self.port), Some(self.port))
                );
                if let Some(port) = self.tries {
                    io.open_to(peer, &udp(port));
                    // From that server it has one already, and there are no more flows than that.
                    io.open_to(peer, &udp(self.port));
                    io.open_to(Peer(9), &udp(self.port));
                }
                self.other.extend([(channel, up), (up, channel)]);
            }
            Input::Datagram { on: channel, bytes: datagram, .. } => {
                io.send(self.other[&channel], datagram.clone())
            }
            Input::Refused(_, why) => self.handed.lock().unwrap().refused.push(why.to_string()),
            _ => {}
        }
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            io.close(ChannelId(0));
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.until
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// A server that puts its number before each datagram that arrives, and fills up.
pub struct Answering(pub u8);

impl App for Answering {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        if let Input::Datagram { on: channel, bytes: datagram, .. } = input {
            io.send(channel, Chunk::with_filler([&[self.0], datagram.head()].concat(), 900));
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// A player that sends the numbers 0 to `count` and keeps the answers: the server and the number.
pub struct Asking {
    pub count: u8,
    sent: u8,
    at: Option<Instant>,
    pub came: Arc<Mutex<Vec<(u8, u8)>>>,
}

impl Asking {
    pub fn new(count: u8) -> Self {
        Asking { count, sent: 0, at: None, came: Arc::default() }
    }
}

impl App for Asking {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            // The first ones at once: they leave before any server can have answered.
            Input::Start => (0..3).for_each(|_| self.ask(now, io)),
            Input::Datagram { bytes: datagram, .. } => {
                assert!(datagram.len() == 902, "{datagram:?}");
                self.came.lock().unwrap().push((datagram.head()[0], datagram.head()[1]));
            }
            _ => {}
        }
        if self.at.is_some_and(|at| at <= now) {
            self.ask(now, io);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl Asking {
    fn ask(&mut self, now: Instant, io: &mut dyn Io) {
        self.at = None;
        if self.sent < self.count {
            io.send(ChannelId(0), Chunk::bytes([self.sent]));
            (self.sent, self.at) = (self.sent + 1, Some(now + EACH));
        }
    }
}
