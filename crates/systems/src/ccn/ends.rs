//! The two hosts of a flow: each has a forwarder with two faces, its application and the other host.

use std::sync::Arc;

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_wire::ndn::Name;

use super::consumer::FetchReport;
use super::face::Face;
use super::forwarder::{FaceId, FacePacket, Forwarder};
use super::producer::Producer;
use super::proxy::Proxy;
use super::spec::CcnSettings;
use crate::app::{App, Input, Io};
use crate::http::Library;
use crate::outbox::Outbox;
use crate::standalone::Answered;

/// The forwarder's face to the host's own application, and to the other host.
const APPLICATION: FaceId = FaceId(0);
const NETWORK: FaceId = FaceId(1);

/// A face that is down is opened again for the next request, but only this long after it was last opened.
const REOPENS_AFTER: Duration = Duration::from_secs(1);

/// Least time between two events `forwarder`.
pub(super) const COUNTS_EACH: Duration = Duration::from_secs(1);

/// A forwarder with its face to the other host.
struct Node {
    forwarder: Forwarder,
    face: Face,
}

impl Node {
    /// Gives the forwarder arrivals from the network.
    fn input(&mut self, now: Instant, input: &Input<'_>, io: &mut dyn Io, events: &mut Outbox) {
        for packet in self.face.input(now, input, io, events) {
            self.forwarder.receive(now, NETWORK, packet);
        }
        if self.face.is_gone() {
            self.forwarder.remove_face(NETWORK);
        }
    }

    /// Sends the forwarder's packets for the network; returns those for the application.
    fn output(&mut self, io: &mut dyn Io) -> Vec<FacePacket> {
        let mut inside = Vec::new();
        while let Some((face, packet)) = self.forwarder.next_packet() {
            match face {
                NETWORK => self.face.send(&packet, io),
                _ => inside.push(packet),
            }
        }
        inside
    }
}

/// The producer's host.
///
/// Events: `face_down` (why).
pub struct ProducerHost {
    node: Node,
    producer: Producer,
    events: Outbox,
}

impl ProducerHost {
    /// Serves the content of `library`, under `prefix`.
    pub fn new(prefix: Name, library: Arc<dyn Library>, settings: &CcnSettings, face: Face) -> Self {
        let mut forwarder = Forwarder::new(&settings.forwarder(0));
        forwarder.route(prefix.clone(), APPLICATION);
        ProducerHost {
            node: Node { forwarder, face },
            producer: Producer::new(prefix, library, settings),
            events: Outbox::default(),
        }
    }
}

impl App for ProducerHost {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.node.forwarder.expire(now);
        self.node.input(now, &input, io, &mut self.events);
        loop {
            let asked = self.node.output(io);
            if asked.is_empty() {
                break;
            }
            for packet in asked {
                if let FacePacket::Interest(interest) = packet
                    && let Some(answer) = self.producer.answer(now, &interest, io.keeps_filler())
                {
                    self.node.forwarder.receive(now, APPLICATION, answer);
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node.forwarder.deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}

/// The consumer's host, without its player: HTTP in, Interests out.
///
/// Events: `interest_window` (Interests that may be in flight; the smoothed round trip), `interest_timeout`
/// (the segment; its object, and the elapsed time), `object_fetched` (B; its name, its Interests, how many
/// expired, its duration), `object_failed` (tries of a segment; the reason), `face_down` (the reason),
/// `forwarder` (Interests that it passed on so far, and the other counts; each second while anything is
/// requested).
pub struct ConsumerHost {
    node: Node,
    proxy: Proxy,
    prefix: Name,
    /// When its face to the network was opened.
    opened: Instant,
    stopped: bool,
    /// When it last had an input, and when it last reported its counts.
    now: Instant,
    told: Option<Instant>,
    events: Outbox,
}

impl ConsumerHost {
    /// Fetches objects under `prefix`. Nonces are drawn from `seed` and the flow `owner`.
    pub fn new(prefix: Name, settings: &CcnSettings, face: Face, owner: &str, seed: u64) -> Self {
        let mut forwarder = Forwarder::new(&settings.forwarder(settings.store_bytes));
        forwarder.route(prefix.clone(), NETWORK);
        ConsumerHost {
            node: Node { forwarder, face },
            proxy: Proxy::new(prefix.clone(), settings.clone(), owner, seed),
            prefix,
            opened: Instant::ZERO,
            stopped: false,
            now: Instant::ZERO,
            told: None,
            events: Outbox::default(),
        }
    }

    /// Keeps the result of each request until it is taken.
    pub fn keep_answered(&mut self) {
        self.proxy.keep_answered();
    }

    /// Closes from now on connections that ask for nothing, or too slowly.
    pub fn lose_patience(&mut self) {
        self.proxy.lose_patience();
    }

    /// Returns the result of the next request.
    pub fn next_answered(&mut self) -> Option<Answered> {
        self.proxy.next_answered()
    }

    /// Interests for segments and metadata so far.
    pub fn asked(&self) -> FetchReport {
        self.proxy.asked()
    }

    fn say_counts(&mut self, now: Instant) {
        if self.told.is_some_and(|told| now.saturating_since(told) < COUNTS_EACH) {
            return;
        }
        self.told = Some(now);
        let forwarder = &self.node.forwarder;
        self.events.say(now, "forwarder", forwarder.counts().forwarded as f64, "1", forwarder.in_words());
    }

    /// Handles a request: where the face is down, another connection is tried.
    fn reopen(&mut self, now: Instant, io: &mut dyn Io) {
        if now.saturating_since(self.opened) >= REOPENS_AFTER && self.node.face.reopen(io) {
            self.opened = now;
            self.node.forwarder.route(self.prefix.clone(), NETWORK);
        }
    }

    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        loop {
            self.proxy.work(now, io, &mut self.events);
            while let Some(interest) = self.proxy.next_interest() {
                self.reopen(now, io);
                self.node.forwarder.receive(now, APPLICATION, FacePacket::Interest(interest));
            }
            let came = self.node.output(io);
            if came.is_empty() {
                break;
            }
            for packet in came {
                match packet {
                    FacePacket::Data(data) => self.proxy.data(now, &data),
                    FacePacket::Nack(reason, interest) => self.proxy.nack(reason, &interest.name),
                    FacePacket::Interest(_) => {}
                }
            }
        }
    }
}

impl App for ConsumerHost {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if self.stopped {
            return;
        }
        self.now = now;
        self.node.forwarder.expire(now);
        match input {
            Input::Accepted { channel, .. } => self.proxy.accepted(channel),
            Input::Closed(channel, why) if self.proxy.has(channel) => self.proxy.closed(now, channel, why),
            Input::Readable(channel) | Input::Writable(channel) if self.proxy.has(channel) => {}
            Input::Stop => {
                self.stopped = true;
                return self.proxy.stop(io);
            }
            _ => self.node.input(now, &input, io, &mut self.events),
        }
        if let Input::Refused(_, why) = input
            && self.node.face.is_gone()
        {
            // Else a request would wait until each Interest has expired as often as it may.
            self.proxy.nobody_there(&why.to_string());
        }
        self.work(now, io);
        self.say_counts(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        self.node.forwarder.deadline().into_iter().chain(self.proxy.deadline(self.now)).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
