//! Data that have passed and may be requested again: the content store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use streamgauge_base::{Duration, Instant};
use streamgauge_wire::ndn::{Data, Interest, Name};

/// The order in which Data are evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorePolicy {
    /// The least recently used.
    Lru,
    /// The least frequently used; of those the least recently used.
    Lfu,
}

impl StorePolicy {
    /// Each by its name in scenarios.
    pub const NAMED: [(&'static str, StorePolicy); 2] =
        [("lru", StorePolicy::Lru), ("lfu", StorePolicy::Lfu)];
}

/// Longer counts as this, a year.
const LONGEST_FRESH_MS: u64 = 365 * 86_400_000;

struct Stored {
    data: Data,
    bytes: u64,
    fresh_until: Instant,
    rank: (u64, u64),
}

/// Data by its name, up to some bytes.
pub struct ContentStore {
    policy: StorePolicy,
    most_bytes: u64,
    bytes: u64,
    stored: BTreeMap<Name, Stored>,
    /// Names in order of eviction: by number of uses, where that counts, and by last use.
    ranks: BTreeMap<(u64, u64), Name>,
    uses: u64,
    evicted: u64,
}

impl ContentStore {
    /// Returns a store of `most_bytes` of content and names; 0 stores nothing.
    pub fn new(policy: StorePolicy, most_bytes: u64) -> Self {
        ContentStore {
            policy,
            most_bytes,
            bytes: 0,
            stored: BTreeMap::new(),
            ranks: BTreeMap::new(),
            uses: 0,
            evicted: 0,
        }
    }

    /// Returns the bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many Data had to make room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Stores Data that passed.
    pub fn insert(&mut self, now: Instant, data: &Data) {
        let bytes = data.content.len() as u64 + data.name.as_bytes().len() as u64;
        if bytes > self.most_bytes {
            return;
        }
        self.remove(&data.name);
        while self.bytes + bytes > self.most_bytes {
            let Some((_, name)) = self.ranks.first_key_value() else { break };
            let name = name.clone();
            self.remove(&name);
            self.evicted += 1;
        }
        self.uses += 1;
        let rank = (u64::from(self.policy == StorePolicy::Lfu), self.uses);
        let fresh_until = now + Duration::from_millis(data.freshness_ms.unwrap_or(0).min(LONGEST_FRESH_MS));
        self.ranks.insert(rank, data.name.clone());
        self.stored.insert(data.name.clone(), Stored { data: data.clone(), bytes, fresh_until, rank });
        self.bytes += bytes;
    }

    fn remove(&mut self, name: &Name) {
        if let Some(stored) = self.stored.remove(name) {
            self.ranks.remove(&stored.rank);
            self.bytes -= stored.bytes;
        }
    }

    /// Returns the Data for `interest`.
    pub fn find(&mut self, now: Instant, interest: &Interest) -> Option<Data> {
        let is_fresh = |stored: &Stored| !interest.must_be_fresh || stored.fresh_until > now;
        let name = match interest.can_be_prefix {
            false => self.stored.get(&interest.name).filter(|one| is_fresh(one))?.data.name.clone(),
            true => {
                let behind = self.stored.range(interest.name.clone()..);
                let mut found = behind
                    .take_while(|(name, _)| name.starts_with(&interest.name))
                    .filter(|(_, stored)| is_fresh(stored));
                found.next()?.0.clone()
            }
        };
        self.uses += 1;
        let stored = self.stored.get_mut(&name)?;
        self.ranks.remove(&stored.rank);
        stored.rank = match self.policy {
            StorePolicy::Lru => (0, self.uses),
            StorePolicy::Lfu => (stored.rank.0 + 1, self.uses),
        };
        self.ranks.insert(stored.rank, name);
        Some(stored.data.clone())
    }
}
