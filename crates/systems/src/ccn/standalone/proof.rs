//! Whether who sends datagrams is where it says that it is.
//!
//! A datagram's sender may be forged. As long as an address is not proven it is sent no more than came from it, so that
//! nobody can have the producer send a stranger more than he sends himself. The proof is an Interest for a name that
//! nobody can guess: whoever has that address refuses it with a Nack (NDNLPv2, NoRoute), or answers it.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, RandomStream};
use streamgauge_wire::ndn::{Component, Interest, Name};

use crate::ccn::face::PitToken;
use crate::ccn::forwarder::FacePacket;

/// Interests that wait for the proof.
const MOST_HELD: usize = 16;

/// The Interest stays with the other end: forwarders pass none on whose name begins so.
const SCOPE: &[u8] = b"localhop";

/// What is known of an address that is not proven.
pub struct Unproven {
    /// That is asked for.
    name: Name,
    draws: RandomStream,
    received: u64,
    sent: u64,
    held: VecDeque<(Interest, Option<PitToken>)>,
}

impl Unproven {
    /// Of an address from which nothing has come. Nobody may guess `seed`.
    pub fn new(seed: u64) -> Self {
        let mut draws = RandomStream::named(seed, "ccn", "proof");
        let token = draws.bits().to_be_bytes();
        let name = Name::of([Component::generic(SCOPE), Component::generic(&token)]).unwrap_or_default();
        Unproven { name, draws, received: 0, sent: 0, held: VecDeque::new() }
    }

    /// So many bytes came.
    pub fn came(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Whether `datagrams` may be sent, all of which then count as sent.
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

    /// A packet that proves the address.
    pub fn is_proof(&self, packet: &FacePacket) -> bool {
        match packet {
            FacePacket::Nack(_, interest) => interest.name == self.name,
            FacePacket::Data(data) => data.name.starts_with(&self.name),
            FacePacket::Interest(_) => false,
        }
    }

    /// The Interests that waited.
    pub fn held(self) -> VecDeque<(Interest, Option<PitToken>)> {
        self.held
    }
}
