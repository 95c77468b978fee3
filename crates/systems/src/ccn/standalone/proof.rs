//! Proof that a sender of datagrams owns its address.
//!
//! A datagram's sender may be forged. As long as an address is not proven it is sent no more than arrived
//! from it: a forger cannot make the producer send a stranger more than the forger's own traffic. The proof
//! is an Interest for a name that cannot be guessed: the owner of that address refuses it with a Nack
//! (NDNLPv2, NoRoute), or answers it.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, RandomStream};
use streamgauge_wire::ndn::{Component, Interest, Name};

use crate::ccn::face::PitToken;
use crate::ccn::forwarder::FacePacket;

/// Interests that wait for the proof.
const MOST_HELD: usize = 16;

/// The Interest stays with the other end: forwarders pass on none with a name that begins with this.
const SCOPE: &[u8] = b"localhop";

/// State of an address that is not proven.
pub struct Unproven {
    /// That is asked for.
    name: Name,
    draws: RandomStream,
    received: u64,
    sent: u64,
    held: VecDeque<(Interest, Option<PitToken>)>,
}

impl Unproven {
    /// Returns the state of an address before its first datagram. `seed` must not be guessable.
    pub fn new(seed: u64) -> Self {
        let mut draws = RandomStream::named(seed, "ccn", "proof");
        let token = draws.bits().to_be_bytes();
        let name = Name::of([Component::generic(SCOPE), Component::generic(&token)]).unwrap_or_default();
        Unproven { name, draws, received: 0, sent: 0, held: VecDeque::new() }
    }

    /// Notes that this many bytes arrived.
    pub fn came(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Returns whether `datagrams` may be sent; all of them then count as sent.
    pub fn may_send(&mut self, datagrams: &[Chunk]) -> bool {
        let bytes: u64 = datagrams.iter().map(|datagram| datagram.len() as u64).sum();
        let fits = self.sent + bytes <= self.received;
        self.sent += if fits { bytes } else { 0 };
        fits
    }

    /// Keeps an Interest until the address is proven, and returns the one that proves it.
    pub fn hold(&mut self, interest: Interest, token: Option<PitToken>) -> FacePacket {
        if self.held.len() == MOST_HELD {
            self.held.pop_front();
        }
        self.held.push_back((interest, token));
        let nonce = Some(self.draws.bits() as u32);
        FacePacket::Interest(Interest { nonce, ..Interest::of(self.name.clone()) })
    }

    /// Returns whether a packet proves the address.
    pub fn is_proof(&self, packet: &FacePacket) -> bool {
        match packet {
            FacePacket::Nack(_, interest) => interest.name == self.name,
            FacePacket::Data(data) => data.name.starts_with(&self.name),
            FacePacket::Interest(_) => false,
        }
    }

    /// Returns the Interests that waited.
    pub fn held(self) -> VecDeque<(Interest, Option<PitToken>)> {
        self.held
    }
}
