//! The forwarder passes Interests on and Data back: faces, routes, pending Interests, stored Data (NDN
//! Developer's Guide, forwarding pipelines). It has no clock and no sockets: packets come with their face,
//! and go out with one.

mod fib;
mod pit;
mod store;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::ndn::{Data, Interest, NackReason, Name};

use self::fib::Fib;
use self::pit::{Pending, Pit};
use self::store::ContentStore;

pub use self::store::StorePolicy;

/// Longer lifetimes count as this: no consumer waits for an hour.
const LONGEST_LIFETIME: Duration = Duration::from_secs(60);

/// Settings of a forwarder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwarderSettings {
    /// Interests that are kept at most.
    pub most_pending: usize,
    /// An Interest that is repeated within this time after having been passed on is not passed on.
    pub suppression: Duration,
    /// It refuses Interests that it cannot handle; else it is silent.
    pub nacks: bool,
    /// Bytes of Data that are kept for later requests.
    pub store_bytes: u64,
    /// The order in which they are evicted.
    pub store_policy: StorePolicy,
}

/// One of a forwarder's ways to others: an application, or another forwarder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FaceId(pub u32);

/// A packet between faces.
#[derive(Clone, PartialEq, Debug)]
pub enum FacePacket {
    /// Asks.
    Interest(Interest),
    /// Answers.
    Data(Data),
    /// Refuses the Interest.
    Nack(NackReason, Interest),
}

/// Counts of its actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Interests that stored Data answered.
    pub store_hits: u64,
    /// Interests that were passed on.
    pub forwarded: u64,
    /// Interests that others had asked for already.
    pub aggregated: u64,
    /// Interests that had been here.
    pub duplicates: u64,
    /// Interests that no route leads for.
    pub no_route: u64,
    /// Interests for which there was no room.
    pub full: u64,
    /// Entries of unanswered Interests.
    pub expired: u64,
    /// Data without a pending Interest.
    pub unsolicited: u64,
}

/// A content-centric forwarder.
pub struct Forwarder {
    fib: Fib,
    pit: Pit,
    store: ContentStore,
    nacks: bool,
    counts: Counts,
    out: VecDeque<(FaceId, FacePacket)>,
}

impl Forwarder {
    /// Returns a forwarder without any route.
    pub fn new(settings: &ForwarderSettings) -> Self {
        Forwarder {
            fib: Fib::default(),
            pit: Pit::new(settings.most_pending, settings.suppression),
            store: ContentStore::new(settings.store_policy, settings.store_bytes),
            nacks: settings.nacks,
            counts: Counts::default(),
            out: VecDeque::new(),
        }
    }

    /// Interests for names under `prefix` go by `face`.
    pub fn route(&mut self, prefix: Name, face: FaceId) {
        self.fib.add(prefix, face);
    }

    /// Removes a face, with its routes and its pending Interests.
    pub fn remove_face(&mut self, face: FaceId) {
        self.fib.remove_face(face);
        self.pit.remove_face(face);
        self.out.retain(|(to, _)| *to != face);
    }

    /// Returns its counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns its counts besides forwarded Interests, in words.
    pub fn in_words(&self) -> String {
        let counts = &self.counts;
        format!(
            "{} out of the store ({} B, {} had to make room), {} asked for already, {} copies, {} without a route, {} \
             without room; {} expired, {} Data for nobody",
            counts.store_hits,
            self.store.bytes(),
            self.store.evicted(),
            counts.aggregated,
            counts.duplicates,
            counts.no_route,
            counts.full,
            counts.expired,
            counts.unsolicited
        )
    }

    /// Interests that are pending.
    pub fn pending(&self) -> usize {
        self.pit.len()
    }

    /// Returns the bytes that are stored, and Data that had to make room.
    pub fn stored(&self) -> (u64, u64) {
        (self.store.bytes(), self.store.evicted())
    }

    /// Returns the next packet to send, and by which face.
    pub fn next_packet(&mut self) -> Option<(FaceId, FacePacket)> {
        self.out.pop_front()
    }

    /// Returns when something expires.
    pub fn deadline(&self) -> Option<Instant> {
        self.pit.deadline()
    }

    /// Drops entries that have expired by `now`.
    pub fn expire(&mut self, now: Instant) {
        self.counts.expired += self.pit.expire(now) as u64;
    }

    /// Processes a packet that arrived on `face`.
    pub fn receive(&mut self, now: Instant, face: FaceId, packet: FacePacket) {
        self.expire(now);
        match packet {
            FacePacket::Interest(interest) => self.interest(now, face, interest),
            FacePacket::Data(data) => self.data(now, face, data),
            FacePacket::Nack(reason, interest) => self.nack(reason, &interest),
        }
    }

    fn refuse(&mut self, face: FaceId, reason: NackReason, interest: Interest) {
        if self.nacks {
            self.out.push_back((face, FacePacket::Nack(reason, interest)));
        }
    }

    fn interest(&mut self, now: Instant, face: FaceId, mut interest: Interest) {
        match interest.hop_limit {
            Some(0) => return,
            Some(hops) => interest.hop_limit = Some(hops - 1),
            None => {}
        }
        if let Some(data) = self.store.find(now, &interest) {
            self.counts.store_hits += 1;
            self.out.push_back((face, FacePacket::Data(data)));
            return;
        }
        let upstream = self.fib.lookup(&interest.name).iter().copied().find(|one| *one != face);
        let Some(upstream) = upstream.filter(|_| interest.hop_limit != Some(0)) else {
            self.counts.no_route += 1;
            return self.refuse(face, NackReason::NoRoute, interest);
        };
        let lifetime = interest.lifetime().min(LONGEST_LIFETIME);
        match self.pit.insert(now, face, &interest, lifetime) {
            Pending::Forward => {
                self.counts.forwarded += 1;
                self.pit.forwarded(now, upstream, &interest);
                self.out.push_back((upstream, FacePacket::Interest(interest)));
            }
            Pending::Aggregated => self.counts.aggregated += 1,
            Pending::Duplicate => {
                self.counts.duplicates += 1;
                self.refuse(face, NackReason::Duplicate, interest);
            }
            Pending::Full => {
                self.counts.full += 1;
                self.refuse(face, NackReason::Congestion, interest);
            }
        }
    }

    fn data(&mut self, now: Instant, face: FaceId, data: Data) {
        let Some(mut faces) = self.pit.satisfy(now, face, &data) else {
            self.counts.unsolicited += 1;
            return;
        };
        self.store.insert(now, &data);
        let last = faces.pop();
        for face in faces {
            self.out.push_back((face, FacePacket::Data(data.clone())));
        }
        // Most Data are for one face, and need no copy.
        self.out.extend(last.map(|face| (face, FacePacket::Data(data))));
    }

    fn nack(&mut self, reason: NackReason, interest: &Interest) {
        for (face, nonce) in self.pit.refuse(interest) {
            let mut theirs = interest.clone();
            theirs.nonce = nonce;
            self.refuse(face, reason, theirs);
        }
    }
}
