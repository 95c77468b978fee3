//! Received packets until they are due, in order; those that are missing by then are skipped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use streamgauge_base::{Chunk, Instant};

use super::pictures::ReceivedPictures;
use crate::outbox::Outbox;

/// A received packet that is not yet due.
#[derive(Clone, Debug)]
pub struct Held {
    pub payload: Chunk,
    /// When it would have arrived without loss and queue: its timestamp by this end's clock.
    pub expected: Instant,
    pub arrived: Instant,
}

/// Packets by counts that extend their numbers, and the pictures in those that were delivered.
pub struct Delivery {
    held: BTreeMap<u64, Held>,
    /// The count of the next packet to be delivered.
    next: u64,
    /// Skipped packets that may still come.
    skipped: BTreeSet<u64>,
    /// How far back skipped packets are remembered.
    memory: u64,
    pub pictures: ReceivedPictures,
    delivered: Option<VecDeque<Chunk>>,
}

impl Delivery {
    pub fn new(pictures: ReceivedPictures, memory: u64) -> Self {
        let (held, skipped) = (BTreeMap::new(), BTreeSet::new());
        Delivery { held, next: 0, skipped, memory, pictures, delivered: None }
    }

    /// The first packet has this count.
    pub fn begin_at(&mut self, first: u64) {
        self.next = first;
    }

    /// Keeps delivered payloads from now on.
    pub fn keep_payloads(&mut self) {
        self.delivered = Some(VecDeque::new());
    }

    /// Returns the next delivered payload.
    pub fn take_payload(&mut self) -> Option<Chunk> {
        self.delivered.as_mut()?.pop_front()
    }

    /// Returns the count of the next packet to be delivered.
    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub fn has(&self, count: u64) -> bool {
        self.held.contains_key(&count)
    }

    /// Keeps a packet that was not delivered.
    pub fn hold(&mut self, count: u64, packet: Held) {
        self.held.insert(count, packet);
    }

    /// Notes a packet behind its turn; true if it was skipped, false if it had arrived before.
    pub fn came_late(&mut self, count: u64) -> bool {
        self.skipped.remove(&count)
    }

    /// Returns the first held packet: its count, and when it was expected.
    pub fn first(&self) -> Option<(u64, Instant)> {
        self.held.first_key_value().map(|(&count, held)| (count, held.expected))
    }

    /// Delivers the first held packet. Returns how many were skipped before it.
    pub fn deliver(&mut self, now: Instant, events: &mut Outbox) -> u64 {
        let Some((count, held)) = self.held.pop_first() else { return 0 };
        let skipped = count - self.next;
        if skipped > 0 {
            self.skipped.extend(self.next..count);
            self.skipped = self.skipped.split_off(&count.saturating_sub(self.memory));
            self.pictures.gap();
        }
        self.next = count + 1;
        let wait = held.arrived.saturating_since(held.expected);
        self.pictures.push(now, wait, held.payload.head(), events);
        if let Some(delivered) = &mut self.delivered {
            delivered.push_back(held.payload);
        }
        skipped
    }

    /// Ends the stream: packets that are held are given up.
    pub fn end(&mut self, now: Instant, why: &'static str, events: &mut Outbox) {
        self.pictures.end(now, why, events);
        self.held.clear();
    }
}
