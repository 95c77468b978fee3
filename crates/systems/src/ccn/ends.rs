//! The two hosts of a flow: each has a forwarder, whose faces are its application and the other host.

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

/// A face that is gone is opened again for what is asked next, but only so long after it was opened before.
const REOPENS_AFTER: Duration = Duration::from_secs(1);

/// Least time between two events `forwarder`.
pub(super) const COUNTS_EACH: Duration = Duration::from_secs(1);

/// A forwarder with its face to the other host.
struct Node {
    forwarder: Forwarder,
    face: Face,
}

impl Node {
    /// Gives the forwarder what came by the network.
    fn input(&mut self, now: Instant, input: &Input<'_>, io: &mut dyn Io, events: &mut Outbox) {
        for packet in self.face.input(now, input, io, events) {
            self.forwarder.receive(now, NETWORK, packet);
        }
        if self.face.is_gone() {
            self.forwarder.remove_face(NETWORK);
        }
    }

    /// Sends what the forwarder has for the network; what it has for the application comes back.
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
    /// Has what `library` has, under `prefix`.
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
/// Events: `interest_window` (Interests that may be on their way; the smoothed round trip), `interest_timeout` (the segment;
/// of what, after how long), `object_fetched` (B; what, its Interests, how many expired, how long it took), `object_failed`
/// (times that a segment was asked for; why), `face_down` (why), `forwarder` (Interests that it passed on so far, and the other
/// counts; each second while something is asked for).
pub struct ConsumerHost {
    node: Node,
    proxy: Proxy,
    prefix: Name,
    /// When its face to the network was opened.
    opened: Instant,
    stopped: bool,
    /// When it was last given something to do, and when it last told its counts.
    now: Instant,
    told: Option<Instant>,
    events: Outbox,
}

impl ConsumerHost {
    /// Fetches what is under `prefix`. Nonces are drawn from `seed` and the flow `owner`.
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

    /// Keeps what became of each request until it is taken.
    pub fn keep_answered(&mut self) {
        self.proxy.keep_answered();
    }

    /// What became of the next request.
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

    /// Somebody asks: where the face is gone, another connection is tried.
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
            // Else who asks would wait until each Interest has expired as often as it may.
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
