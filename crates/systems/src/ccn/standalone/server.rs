//! The producer among forwarders and consumers of a real network: each client is a face.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::ndn::{self, Interest, LpPacket, NackReason, Name, Reader, ReassemblyLimits};

use crate::app::{App, ChannelId, CloseReason, Input, Io};
use crate::ccn::face::{Face, PitToken};
use crate::ccn::forwarder::FacePacket;
use crate::ccn::producer::Producer;
use crate::ccn::spec::{CcnPreset, CcnSettings};
use crate::ccn::standalone::proof::Unproven;
use crate::dash::LadderShelf;
use crate::media;
use crate::outbox::Outbox;
use crate::standalone::{Clients, ContentFault, Served, Service, TurnAway, names};

/// The client's connection.
const FIRST: ChannelId = ChannelId(0);

/// The port of NDN over TCP and UDP (named-data.net), which needs no privilege.
pub const PORT: u16 = 6363;

/// Answers that wait for a connection; until they have gone no further Interest is read of it.
const MOST_ANSWERS: usize = 16;

/// A face over UDP is idle after this time at the latest: no peer closes it, and the sender of a datagram may
/// be forged.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Limits of Interests that arrive in parts; a consumer's are small.
const PARTS: ReassemblyLimits =
    ReassemblyLimits { packets: 8, bytes: 32 << 10, age: Duration::from_millis(500) };

/// The producer's constants. Times in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CcnServerSettings {
    /// The prefix of all names, as an NDN URI.
    pub prefix: String,
    /// Content of a Data packet, in bytes.
    pub chunk_bytes: u32,
    /// How long stored Data counts as fresh (NDN Packet Format Specification 0.3, FreshnessPeriod).
    pub freshness: Duration,
    /// It refuses Interests that it cannot answer; else it is silent.
    pub nacks: bool,
    /// A face without arrivals for this time is closed, over UDP after 60 s at the latest; 600 s is usual for
    /// faces over TCP that others open (ndnd 1.5).
    pub idle: Duration,
    /// Over UDP an address is sent no more than arrived from it, until it is proven: its owner answers an
    /// Interest of ours. Else any datagram is answered, also one with a forged sender.
    pub prove_addresses: bool,
    /// Shared by all clients of a server.
    #[serde(skip)]
    shelf: LadderShelf,
}

impl CcnServerSettings {
    fn constants(&self) -> CcnSettings {
        CcnSettings {
            chunk_bytes: self.chunk_bytes,
            freshness: self.freshness,
            nacks: self.nacks,
            ..CcnSettings::of(CcnPreset::NdnToday)
        }
    }
}

/// The producer of one client.
struct ProducerFace {
    prefix: Name,
    producer: Producer,
    face: Face,
    over: &'static str,
    nacks: bool,
    idle: Duration,
    /// Over UDP, until the client's address is proven.
    unproven: Option<Unproven>,
    heard: Instant,
    is_lost: bool,
    interests: u64,
    data: u64,
    refused: u64,
    events: Outbox,
}

impl ProducerFace {
    /// Answers Interests as long as the connection takes the answers.
    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        while self.face.waiting() < MOST_ANSWERS {
            let Some((packet, token)) = self.face.next(now, io, &mut self.events) else { break };
            self.came(now, packet, token, io);
        }
    }

    fn came(&mut self, now: Instant, packet: FacePacket, token: Option<PitToken>, io: &mut dyn Io) {
        self.heard = now;
        if let Some(unproven) = self.unproven.take_if(|unproven| unproven.is_proof(&packet)) {
            for (interest, token) in unproven.held() {
                self.answer_to(now, interest, token, io);
            }
            return;
        }
        let FacePacket::Interest(interest) = packet else { return };
        self.interests += 1;
        self.answer_to(now, interest, token, io);
    }

    fn answer_to(&mut self, now: Instant, interest: Interest, token: Option<PitToken>, io: &mut dyn Io) {
        let Some(answer) = self.answer(now, interest.clone(), io.keeps_filler()) else { return };
        if let Some(unproven) = self.unproven.as_mut().filter(|_| !self.face.is_gone()) {
            let datagrams = self.face.datagrams_of(&answer, token.clone());
            if !unproven.may_send(&datagrams) {
                let asks = self.face.datagrams_of(&unproven.hold(interest, token), None);
                if unproven.may_send(&asks) {
                    asks.into_iter().for_each(|datagram| io.send(FIRST, datagram));
                }
                return;
            }
            datagrams.into_iter().for_each(|datagram| io.send(FIRST, datagram));
        } else {
            self.face.answer(&answer, token, io);
        }
        match &answer {
            FacePacket::Data(data) if !data.is_no() => self.data += 1,
            _ => self.refused += 1,
        }
    }

    fn answer(&self, now: Instant, interest: Interest, keeps_filler: bool) -> Option<FacePacket> {
        if interest.hop_limit == Some(0) {
            return None;
        }
        if !interest.name.starts_with(&self.prefix) {
            return self.nacks.then_some(FacePacket::Nack(NackReason::NoRoute, interest));
        }
        self.producer.answer(now, &interest, keeps_filler)
    }
}

impl App for ProducerFace {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.heard = now,
            Input::Timeout if now >= self.heard + self.idle && !self.face.is_gone() => {
                self.is_lost = true;
                self.face.fail(io);
            }
            Input::Datagram { on: FIRST, bytes: datagram, .. } => {
                self.unproven.iter_mut().for_each(|unproven| unproven.came(datagram.len()));
                if let Some((packet, token)) = self.face.datagram(now, datagram) {
                    self.came(now, packet, token, io);
                }
            }
            // A stream is read where there is room for the answers.
            Input::Readable(_) => {}
            // A client that has asked and finished gets its answers first.
            Input::Closed(FIRST, CloseReason::Finished) => {
                self.work(now, io);
                self.face.input(now, &input, io, &mut self.events);
            }
            _ => {
                self.face.input(now, &input, io, &mut self.events);
            }
        }
        self.work(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.face.is_gone()).then(|| self.heard + self.idle)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}

impl Served for ProducerFace {
    fn plays_over(&self) -> Option<&'static str> {
        (self.data > 0).then_some(self.over)
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("interests_received", self.interests),
            ("data_sent", self.data),
            ("interests_refused", self.refused),
            ("packets_dropped", self.face.dropped()),
        ]
    }

    fn in_words(&self) -> String {
        format!("{} Interests, {} Data, {} refused", self.interests, self.data, self.refused)
    }

    fn has_lost_its_client(&self) -> bool {
        self.is_lost
    }

    fn awaits_rest(&self) -> bool {
        self.face.awaits_rest()
    }

    fn may_wait_to_ask(&self) -> bool {
        true
    }

    fn is_proven(&self) -> bool {
        self.unproven.is_none()
    }

    fn may_be_quiet(&self) -> bool {
        true
    }
}

/// Returns the Interest that a packet carries with a Nack (Congestion).
fn refusal(packet: Chunk) -> Option<Chunk> {
    let packet = LpPacket::read(packet).ok().filter(|packet| !packet.is_fragmented())?;
    let Ok(ndn::Packet::Interest(interest)) = ndn::Packet::read(&packet.fragment?) else { return None };
    let nack = LpPacket::nack(NackReason::Congestion, interest.write());
    Some(LpPacket { pit_token: packet.pit_token, ..nack }.write())
}

/// Returns the first Interest of a stream so.
fn no_room() -> impl FnMut(Chunk) -> Option<Vec<u8>> {
    let mut reader = Reader::default();
    move |came| {
        reader.push(came);
        let nack = reader.next()?.ok().and_then(refusal);
        Some(nack.map_or_else(Vec::new, |nack| nack.head().to_vec()))
    }
}

impl CcnServerSettings {
    fn producer(
        &self,
        library: Arc<dyn media::Library>,
        face: Face,
        (over, unproven): (&'static str, Option<Unproven>),
        idle: Duration,
    ) -> Box<dyn Served> {
        // `check` has read it.
        let prefix: Name = self.prefix.parse().unwrap_or_default();
        let producer = Producer::new(prefix.clone(), self.shelf.shown(library), &self.constants());
        Box::new(ProducerFace {
            prefix,
            producer: producer.with_versions(),
            face,
            over,
            nacks: self.nacks,
            idle,
            unproven,
            heard: Instant::ZERO,
            is_lost: false,
            interests: 0,
            data: 0,
            refused: 0,
            events: Outbox::default(),
        })
    }
}

impl Clients for CcnServerSettings {
    fn machine(&self, library: Arc<dyn media::Library>, _: &str, _: u64) -> Box<dyn Served> {
        self.producer(library, Face::tcp(FIRST, false), ("tcp", None), self.idle)
    }

    fn turn_away(&self) -> Box<dyn App> {
        Box::new(TurnAway::on(FIRST, no_room()))
    }

    /// Returns whether it may begin with an Interest, or a part of one.
    fn begins(&self, datagram: &Chunk) -> bool {
        LpPacket::read(datagram.clone()).is_ok_and(|packet| {
            let part = packet.is_fragmented();
            let inside = packet.fragment.filter(|_| packet.nack.is_none());
            inside.is_some_and(|inside| {
                part || matches!(ndn::Packet::read(&inside), Ok(ndn::Packet::Interest(_)))
            })
        })
    }

    fn datagram_machine(&self, library: Arc<dyn media::Library>, _: &str, seed: u64) -> Box<dyn Served> {
        let idle = self.idle.min(LONGEST_SILENCE);
        let unproven = self.prove_addresses.then(|| Unproven::new(seed));
        self.producer(library, Face::datagrams(FIRST, seed, PARTS), ("udp", unproven), idle)
    }

    fn turn_away_datagram(&self, datagram: &Chunk) -> Option<Chunk> {
        // Without any proof no answer is longer than its request.
        let fits = |answer: &Chunk| !self.prove_addresses || answer.len() <= datagram.len();
        refusal(datagram.clone()).filter(fits)
    }
}

impl Service for CcnServerSettings {
    const SCHEME: &'static str = "ndn";
    const PORTS: [u16; 2] = [PORT, PORT];
    const PRESETS: &'static [&'static str] = &names(&CcnPreset::NAMED);
    const DATAGRAMS: bool = true;

    fn preset(name: &str) -> Option<Self> {
        let (_, preset) = CcnPreset::NAMED.iter().find(|(known, _)| *known == name)?;
        let CcnSettings { chunk_bytes, freshness, nacks, .. } = CcnSettings::of(*preset);
        let (prefix, idle) = ("/clip".into(), Duration::from_secs(600));
        let (prove_addresses, shelf) = (true, LadderShelf::default());
        Some(CcnServerSettings { prefix, chunk_bytes, freshness, nacks, idle, prove_addresses, shelf })
    }

    fn check(&self) -> Result<(), ContentFault> {
        let wrong =
            |why: String| ("prefix", format!("{:?} is no name: {why}; write it as /clip", self.prefix));
        self.prefix.parse::<Name>().map_err(|problem| wrong(problem.to_string()))?;
        if self.idle < Duration::from_secs(1) {
            return Err(("idle", "a face is idle after 1 s at the earliest".into()));
        }
        self.constants().check()
    }

    fn give_up_after(&mut self, silence: Duration) {
        self.idle = silence;
    }
}
