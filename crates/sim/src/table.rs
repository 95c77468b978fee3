//! Which channels an end has, found by their numbers and by their packets' ports.

use std::collections::BTreeMap;

use streamgauge_base::Instant;
use streamgauge_systems::ChannelId;

/// With at most this many entries, looking at each is faster than an index.
const FEW: usize = 8;

/// Addresses of the connection that a packet belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address {
    pub protocol: u8,
    /// Our port.
    pub own: u16,
    /// The other end's; 0 for any.
    pub peer: u16,
    /// The other end, as [`PeerLinks`](crate::peers::PeerLinks) numbers them; 0 too for any.
    pub whom: u32,
}

/// The channels of one end, in order of their numbers.
#[derive(Debug)]
pub struct Table<T> {
    entries: Vec<Entry<T>>,
    /// Time when the first is due, unless that is `stale`.
    earliest: Instant,
    /// Once there are several; most ends have one channel all their life.
    several: Option<Box<Several>>,
}

#[derive(Debug, Default)]
struct Several {
    /// Time when each is due; apart, as it is looked through. For one alone `earliest` has the time.
    due: Vec<Instant>,
    /// `earliest` is no longer the least of these.
    stale: bool,
    /// Index of all entries; empty while they are few.
    by_address: BTreeMap<Address, ChannelId>,
}

#[derive(Debug)]
pub struct Entry<T> {
    pub id: ChannelId,
    pub address: Address,
    /// The port of the other end that its packets are sent to; 0 if that is not known.
    pub to: u16,
    /// Hash of packets that leave here.
    pub hash: u32,
    pub carrier: T,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { entries: Vec::new(), earliest: Instant::FAR_FUTURE, several: None }
    }
}

impl<T> Table<T> {
    /// Reserves room for exactly `more`.
    pub fn reserve(&mut self, more: usize) {
        self.entries.reserve_exact(more);
    }

    /// Numbers ascend.
    pub fn push(&mut self, entry: Entry<T>) {
        debug_assert!(self.entries.last().is_none_or(|last| last.id < entry.id));
        if self.several.is_none() && self.entries.len() == 1 {
            self.several = Some(Box::new(Several { due: vec![self.earliest], ..Several::default() }));
        }
        if let Some(several) = &mut self.several {
            if self.entries.len() >= FEW {
                if several.by_address.is_empty() {
                    let all = self.entries.iter().map(|entry| (entry.address, entry.id));
                    several.by_address = all.collect();
                }
                several.by_address.insert(entry.address, entry.id);
            }
            if let [only] = &mut several.due[..]
                && !several.stale
            {
                *only = self.earliest;
            }
            several.due.push(Instant::FAR_FUTURE);
        }
        self.entries.push(entry);
    }

    pub fn remove(&mut self, at: usize) -> Entry<T> {
        let entry = self.entries.remove(at);
        let Some(several) = &mut self.several else {
            // It was the only one.
            self.earliest = Instant::FAR_FUTURE;
            return entry;
        };
        several.due.remove(at);
        several.stale = true;
        if self.entries.len() <= FEW {
            several.by_address.clear();
        } else {
            several.by_address.remove(&entry.address);
        }
        entry
    }

    /// Returns the place of the channel `id`.
    #[inline]
    pub fn of(&self, id: ChannelId) -> Option<usize> {
        // Until an entry has been removed, each is at its number.
        let guess = id.0 as usize;
        if self.entries.get(guess).is_some_and(|entry| entry.id == id) {
            return Some(guess);
        }
        self.entries.binary_search_by_key(&id, |entry| entry.id).ok()
    }

    /// Returns the place of the channel with this address.
    #[inline]
    pub fn find(&self, address: Address) -> Option<usize> {
        if self.entries.len() <= FEW {
            return self.entries.iter().position(|entry| entry.address == address);
        }
        self.of(*self.several.as_ref()?.by_address.get(&address)?)
    }

    #[inline]
    pub fn get(&self, at: usize) -> &Entry<T> {
        &self.entries[at]
    }

    #[inline]
    pub fn get_mut(&mut self, at: usize) -> &mut Entry<T> {
        &mut self.entries[at]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.entries.iter()
    }

    /// Makes the channel due at `due`, and at no other time.
    #[inline]
    pub fn set_due(&mut self, at: usize, due: Instant) {
        let Some(several) = &mut self.several else {
            self.earliest = due;
            return;
        };
        if self.entries.len() == 1 {
            (self.earliest, several.stale) = (due, false);
            return;
        }
        let before = std::mem::replace(&mut several.due[at], due);
        if due <= self.earliest {
            self.earliest = due;
        } else {
            several.stale |= before <= self.earliest;
        }
    }

    /// Returns when the first of them is due.
    #[inline]
    pub fn earliest(&mut self) -> Instant {
        if let Some(several) = self.several.as_mut().filter(|several| several.stale) {
            several.stale = false;
            self.earliest = several.due.iter().copied().min().unwrap_or(Instant::FAR_FUTURE);
        }
        self.earliest
    }

    /// Returns when the one at that place is due.
    #[inline]
    pub fn due_at(&self, at: usize) -> Instant {
        match &self.several {
            Some(several) if several.stale || self.entries.len() > 1 => several.due[at],
            _ => self.earliest,
        }
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::RandomStream;

    use super::*;

    fn address(own: u16, peer: u16) -> Address {
        Address { protocol: 6, own, peer, whom: 0 }
    }

    /// Compares with the plainest table there is, around the number at which the index is made and dropped.
    #[test]
    fn whatever_comes_and_goes_is_found_by_number_and_by_address_and_in_time() {
        let mut draws = RandomStream::named(1, "table", "test");
        let (mut table, mut plain) = (Table::default(), BTreeMap::<u32, (u16, u64)>::new());
        for id in 0..4_000u32 {
            let port = id as u16;
            let entry = Entry {
                id: ChannelId(id),
                address: address(port, 80),
                to: 80,
                hash: id,
                carrier: u64::from(id),
            };
            table.push(entry);
            plain.insert(id, (port, u64::MAX));
            let keep = draws.below(20) as usize;
            while plain.len() > keep {
                let (&id, _) = plain.iter().nth(draws.below(plain.len() as u64) as usize).unwrap();
                let gone = table.remove(table.of(ChannelId(id)).unwrap());
                assert_eq!(gone.carrier, u64::from(id));
                plain.remove(&id);
            }
            if let Some((&id, (_, due))) = plain.iter_mut().next_back() {
                *due = draws.below(1_000);
                table.set_due(table.of(ChannelId(id)).unwrap(), Instant::from_nanos(*due));
            }
            let earliest = plain.values().map(|(_, due)| Instant::from_nanos(*due)).min();
            assert_eq!(table.earliest(), earliest.unwrap_or(Instant::FAR_FUTURE));
            assert_eq!(table.len(), plain.len());
            for (&id, &(port, due)) in &plain {
                let at = table.find(address(port, 80)).unwrap();
                assert_eq!((table.get(at).id, table.of(ChannelId(id))), (ChannelId(id), Some(at)));
                assert_eq!(table.due_at(at), Instant::from_nanos(due));
            }
            assert_eq!(table.find(address(port.wrapping_add(1), 80)), None);
        }
    }
}
