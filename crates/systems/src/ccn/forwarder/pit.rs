//! Pending Interests and the faces that wait for their Data.

use std::collections::{BTreeMap, BTreeSet};

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::ndn::{Data, Interest, Name};

use super::FaceId;

/// The key of equal Interests: their names, and the Data they accept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    name: Name,
    can_be_prefix: bool,
    must_be_fresh: bool,
}

impl Key {
    fn of(interest: &Interest) -> Self {
        Key {
            name: interest.name.clone(),
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
        }
    }

    /// Returns the keys of all Interests that a Data of that name answers: those of its own name, and if
    /// `and_prefixes` those of its prefixes.
    fn answered_by(name: &Name, and_prefixes: bool) -> impl Iterator<Item = Key> {
        let lengths = if and_prefixes { 0..name.len() + 1 } else { 0..0 };
        let prefixes = lengths.map(|length| (name.prefix(length), true));
        let names = std::iter::once((name.clone(), false)).chain(prefixes);
        names.flat_map(|(name, can_be_prefix)| {
            [false, true].map(|must_be_fresh| Key { name: name.clone(), can_be_prefix, must_be_fresh })
        })
    }
}

/// A face that waits.
struct Downstream {
    nonce: Option<u32>,
    expires: Instant,
}

/// An Interest that was sent.
struct Upstream {
    nonce: Option<u32>,
    at: Instant,
}

struct Entry {
    waiting: BTreeMap<FaceId, Downstream>,
    sent: BTreeMap<FaceId, Upstream>,
    expires: Instant,
}

/// The action for an Interest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pending {
    /// It is new, or to be expressed again.
    Forward,
    /// Others wait for the same, or it is repeated too soon.
    Aggregated,
    /// Its nonce has been here: it is in a loop, or is a copy.
    Duplicate,
    /// There is no room for it.
    Full,
}

/// The pending Interest table.
pub struct Pit {
    entries: BTreeMap<Key, Entry>,
    /// Number of those that accept Data with longer names.
    prefixes: usize,
    /// When each entry expires.
    due: BTreeSet<(Instant, Key)>,
    most: usize,
    suppression: Duration,
}

impl Pit {
    /// Returns a table of `most` entries. An Interest that is repeated within `suppression` after having been
    /// forwarded is not forwarded.
    pub fn new(most: usize, suppression: Duration) -> Self {
        Pit { entries: BTreeMap::new(), prefixes: 0, due: BTreeSet::new(), most, suppression }
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an Interest that arrived on `face`, to be waited for during `lifetime`.
    pub fn insert(&mut self, now: Instant, face: FaceId, interest: &Interest, lifetime: Duration) -> Pending {
        let key = Key::of(interest);
        let expires = now + lifetime;
        let waits = Downstream { nonce: interest.nonce, expires };
        if !self.entries.contains_key(&key) {
            if self.entries.len() >= self.most {
                return Pending::Full;
            }
            self.due.insert((expires, key.clone()));
            self.prefixes += usize::from(key.can_be_prefix);
            let entry = Entry { waiting: BTreeMap::from([(face, waits)]), sent: BTreeMap::new(), expires };
            self.entries.insert(key, entry);
            return Pending::Forward;
        }
        let Some(entry) = self.entries.get_mut(&key) else { return Pending::Full };
        let is_copy = entry.waiting.values().any(|one| one.nonce == interest.nonce)
            || entry.sent.values().any(|one| one.nonce == interest.nonce);
        if is_copy {
            return Pending::Duplicate;
        }
        // Other waiting faces do not keep it from being expressed again: a lost Data would never arrive for
        // any of them.
        let is_again = entry.waiting.insert(face, waits).is_some();
        if expires > entry.expires {
            self.due.remove(&(entry.expires, key.clone()));
            entry.expires = expires;
            self.due.insert((expires, key));
        }
        let last = entry.sent.values().map(|one| one.at).max();
        let too_soon = last.is_some_and(|at| now < at + self.suppression);
        if last.is_none() || is_again && !too_soon { Pending::Forward } else { Pending::Aggregated }
    }

    /// Notes that the Interest was sent by that face.
    pub fn forwarded(&mut self, now: Instant, face: FaceId, interest: &Interest) {
        let key = Key::of(interest);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.sent.insert(face, Upstream { nonce: interest.nonce, at: now });
        }
    }

    /// Notes Data from `from`, and returns the faces of all that wait for it, which wait no more. `None`
    /// without a pending Interest.
    pub fn satisfy(&mut self, now: Instant, from: FaceId, data: &Data) -> Option<Vec<FaceId>> {
        let mut faces = BTreeSet::new();
        let mut found = false;
        for key in Key::answered_by(&data.name, self.prefixes > 0) {
            let Some(entry) = self.remove(key) else { continue };
            found = true;
            let waits = entry.waiting.into_iter().filter(|(_, one)| one.expires > now);
            faces.extend(waits.map(|(face, _)| face).filter(|face| *face != from));
        }
        found.then(|| faces.into_iter().collect())
    }

    /// Notes the refusal of a sent Interest, and returns the faces that wait for it, which wait no more.
    pub fn refuse(&mut self, interest: &Interest) -> Vec<(FaceId, Option<u32>)> {
        let key = Key::of(interest);
        let is_ours = self
            .entries
            .get(&key)
            .is_some_and(|entry| entry.sent.values().any(|sent| sent.nonce == interest.nonce));
        if !is_ours {
            return Vec::new();
        }
        let Some(entry) = self.remove(key) else { return Vec::new() };
        entry.waiting.into_iter().map(|(face, waits)| (face, waits.nonce)).collect()
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        self.prefixes -= usize::from(key.can_be_prefix);
        self.due.remove(&(entry.expires, key));
        Some(entry)
    }

    /// Forgets a face.
    pub fn remove_face(&mut self, face: FaceId) {
        let (due, prefixes) = (&mut self.due, &mut self.prefixes);
        self.entries.retain(|key, entry| {
            entry.waiting.remove(&face);
            entry.sent.remove(&face);
            let stays = !entry.waiting.is_empty();
            if !stays {
                *prefixes -= usize::from(key.can_be_prefix);
                due.remove(&(entry.expires, key.clone()));
            }
            stays
        });
    }

    /// Drops the entries that have expired by `now`, and returns their number.
    pub fn expire(&mut self, now: Instant) -> usize {
        let before = self.entries.len();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.due.pop_first() else { break };
            self.prefixes -= usize::from(key.can_be_prefix);
            self.entries.remove(&key);
        }
        before - self.entries.len()
    }

    /// Returns when the next entry expires.
    pub fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }
}
