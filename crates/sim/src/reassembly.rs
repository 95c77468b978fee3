//! A receiving host's handling of fragments and of corrupted packets, as in Linux.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use streamgauge_base::{Duration, IPV4_HEADER_BYTES, Instant, Item, PacketId};

use crate::store::{Handle, Store};

/// How long a host waits for the rest of a datagram, from its first fragment on (`net.ipv4.ipfrag_time`; RFC 791
/// section 3.2 leaves it open and RFC 1122 section 3.3.2 asks for 60 to 120 s).
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts of the hosts at one end of the path, other than of deliveries; the names are those of the kernel's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HostCounts {
    /// Datagrams put together from fragments (Ip ReasmOKs).
    pub reassembled: u64,
    /// Datagrams given up because a fragment did not arrive in time, or two of them overlapped (Ip ReasmFails).
    pub reassembly_failed: u64,
    /// Datagrams and segments thrown away for their checksum (UdpInCsumErrors, TcpInCsumErrors, IcmpInCsumErrors).
    pub checksum_errors: u64,
}

/// The receiving hosts of one direction.
#[derive(Debug, Default)]
pub struct Reassembly {
    /// By packet number, in place of source, destination, protocol and identification: copies share it.
    open: BTreeMap<PacketId, Datagram>,
    /// In order of time; some may be complete already, or be followed by another of the same number.
    deadlines: VecDeque<(Instant, PacketId)>,
    pub counts: HostCounts,
}

#[derive(Debug)]
struct Datagram {
    deadline: Instant,
    /// It holds a reference.
    body: Handle,
    corrupted: bool,
    /// Bytes of the datagram's payload that are here, as ranges in order that do not overlap.
    have: Vec<(u32, u32)>,
    /// The payload's length, once the last fragment is here.
    length: Option<u32>,
}

/// The relation of a fragment to those that are here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    New(usize),
    Duplicate,
    Overlap,
}

impl Datagram {
    /// Compares a fragment: it is a duplicate if every byte of it is here; one that overlaps otherwise is an attack or
    /// another datagram (RFC 5722 section 3, which Linux follows for IPv4 too).
    fn fit(&self, from: u32, to: u32) -> Fit {
        let at = self.have.partition_point(|range| range.1 <= from);
        match self.have.get(at) {
            Some(&(start, end)) if start <= from && to <= end => Fit::Duplicate,
            Some(&(start, _)) if start < to => Fit::Overlap,
            _ => Fit::New(at),
        }
    }

    fn add(&mut self, at: usize, from: u32, to: u32) {
        // One run of bytes that arrived in order is one range.
        match at.checked_sub(1).map(|before| &mut self.have[before]) {
            Some(before) if before.1 == from => before.1 = to,
            _ => self.have.insert(at, (from, to)),
        }
    }

    fn is_complete(&self) -> bool {
        self.length == Some(self.have.iter().map(|(from, to)| to - from).sum())
    }
}

impl Reassembly {
    /// Handles `item`, corrupted or a fragment, which arrives at `now`. The body to be delivered, if it completes one;
    /// its reference is then the caller's, and all others are released.
    pub fn arrive(&mut self, now: Instant, item: &Item, store: &mut Store) -> Option<Handle> {
        self.expire(now, store);
        if item.fragment.is_whole() {
            return self.checked(item.body, item.corrupted, store);
        }
        let from = u32::from(item.fragment.offset()) * 8;
        let to = from + item.ip_bytes.saturating_sub(IPV4_HEADER_BYTES);
        let datagram = self.open.entry(item.id).or_insert_with(|| {
            let deadline = now + PATIENCE;
            self.deadlines.push_back((deadline, item.id));
            store.hold(item.body);
            Datagram { deadline, body: item.body, corrupted: false, have: Vec::new(), length: None }
        });
        store.release(item.body);
        match datagram.fit(from, to) {
            Fit::New(at) => datagram.add(at, from, to),
            Fit::Duplicate => return None,
            Fit::Overlap => {
                self.give_up(item.id, store);
                return None;
            }
        }
        datagram.corrupted |= item.corrupted;
        if !item.fragment.more() {
            datagram.length = Some(to);
        }
        if !datagram.is_complete() {
            return None;
        }
        let datagram = self.open.remove(&item.id)?;
        self.counts.reassembled += 1;
        self.checked(datagram.body, datagram.corrupted, store)
    }

    fn checked(&mut self, body: Handle, corrupted: bool, store: &mut Store) -> Option<Handle> {
        if !corrupted {
            return Some(body);
        }
        self.counts.checksum_errors += 1;
        store.release(body);
        None
    }

    fn expire(&mut self, now: Instant, store: &mut Store) {
        while let Some(&(deadline, id)) = self.deadlines.front()
            && deadline <= now
        {
            self.deadlines.pop_front();
            if self.open.get(&id).is_some_and(|datagram| datagram.deadline == deadline) {
                self.give_up(id, store);
            }
        }
    }

    fn give_up(&mut self, id: PacketId, store: &mut Store) {
        if let Some(datagram) = self.open.remove(&id) {
            self.counts.reassembly_failed += 1;
            store.release(datagram.body);
        }
    }

    /// Ends the trial at `now`: an incomplete datagram is neither a success nor a failure.
    pub fn finish(&mut self, now: Instant, store: &mut Store) {
        self.expire(now, store);
        while let Some((_, datagram)) = self.open.pop_first() {
            store.release(datagram.body);
        }
        self.deadlines.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamgauge_base::{Chunk, FlowId, Fragment, PacketInfo, PacketKind};

    use super::*;
    use crate::store::{Body, NO_RELAY, Ports};

    struct Bed {
        store: Store,
        hosts: Reassembly,
    }

    impl Bed {
        fn new() -> Self {
            Bed { store: Store::default(), hosts: Reassembly::default() }
        }

        /// Cuts a datagram of `payload` IP payload bytes at `cuts` (units of 8 bytes); the body has a reference for
        /// each piece.
        fn cut(&mut self, id: u64, payload: u32, cuts: &[u16]) -> Vec<Item> {
            let (kind, header_bytes) = (PacketKind::Media, 8);
            let info = PacketInfo {
                kind,
                flags: 0,
                header_bytes,
                payload_bytes: payload - 8,
                seq: None,
                connection: None,
            };
            let body = Body::Datagram(Ports { from: 1, to: 2, user: NO_RELAY }, Chunk::filler(payload - 8));
            let body = self.store.insert(body, info, cuts.len() as u32 + 1);
            let starts = std::iter::once(0).chain(cuts.iter().copied());
            let ends = cuts.iter().map(|&cut| u32::from(cut) * 8).chain([payload]);
            let piece = |(start, end): (u16, u32)| Item {
                body,
                fragment: Fragment::part(start, end < payload),
                ..Item::new(PacketId(id), FlowId(0), end - u32::from(start) * 8 + IPV4_HEADER_BYTES)
            };
            starts.zip(ends).map(piece).collect()
        }

        fn arrive(&mut self, at_s: u64, item: &Item) -> bool {
            let arrived = self.hosts.arrive(Instant::ZERO + Duration::from_secs(at_s), item, &mut self.store);
            arrived.map(|body| self.store.release(body)).is_some()
        }
    }

    #[test]
    fn a_datagram_is_given_up_thirty_seconds_after_its_first_fragment() {
        let mut bed = Bed::new();
        let pieces = bed.cut(0, 4008, &[185, 370]);
        assert!(!bed.arrive(0, &pieces[0]) && !bed.arrive(29, &pieces[2]));
        // Too late: it starts a new datagram, and that is not complete.
        assert!(!bed.arrive(30, &pieces[1]));
        assert_eq!(bed.hosts.counts, HostCounts { reassembly_failed: 1, ..Default::default() });
        assert_eq!(bed.store.len(), 1);
        bed.hosts.finish(Instant::ZERO + Duration::from_secs(31), &mut bed.store);
        assert_eq!((bed.store.len(), bed.hosts.counts.reassembly_failed), (0, 1));
    }

    #[test]
    fn one_corrupted_fragment_spoils_the_datagram_and_overlaps_end_it() {
        let mut bed = Bed::new();
        let mut pieces = bed.cut(0, 2000, &[100]);
        pieces[1].corrupted = true;
        assert!(pieces.iter().all(|piece| !bed.arrive(0, piece)));
        let one = HostCounts { reassembled: 1, checksum_errors: 1, ..Default::default() };
        assert_eq!((bed.hosts.counts, bed.store.len()), (one, 0));
        // Two copies, cut at different places on their ways.
        let mut pieces = bed.cut(1, 2000, &[100]);
        bed.store.hold(pieces[0].body);
        pieces[1].fragment = Fragment::part(99, false);
        pieces[1].ip_bytes += 8;
        assert!(pieces.iter().all(|piece| !bed.arrive(1, piece)));
        assert_eq!(bed.hosts.counts, HostCounts { reassembly_failed: 1, ..one });
    }

    #[test]
    fn a_corrupted_packet_is_thrown_away() {
        let mut bed = Bed::new();
        let mut whole = bed.cut(0, 100, &[]).remove(0);
        whole.corrupted = true;
        assert!(!bed.arrive(0, &whole));
        assert_eq!((bed.hosts.counts.checksum_errors, bed.store.len()), (1, 0));
    }

    proptest! {
        /// Cut anywhere and again, in any order, some pieces twice: whole exactly when every byte is there, once,
        /// and nothing is left.
        #[test]
        fn any_order_and_any_duplicates(
            cuts in prop::collection::btree_set(1u16..500, 0..12),
            order in prop::collection::vec(any::<prop::sample::Index>(), 12),
            twice in any::<prop::sample::Index>(),
            lost in any::<Option<prop::sample::Index>>(),
        ) {
            let cuts: Vec<u16> = cuts.into_iter().collect();
            prop_assume!(!cuts.is_empty());
            let mut bed = Bed::new();
            let mut pieces = bed.cut(0, 4008, &cuts);
            if let Some(lost) = lost {
                let lost = pieces.remove(lost.index(pieces.len()));
                bed.store.release(lost.body);
            }
            for (index, other) in order.iter().enumerate().take(pieces.len()) {
                let other = other.index(pieces.len());
                pieces.swap(index, other);
            }
            // A duplicate right behind its original finds it there.
            let twice = twice.index(pieces.len());
            bed.store.hold(pieces[twice].body);
            pieces.insert(twice, pieces[twice]);
            let delivered = pieces.iter().filter(|piece| bed.arrive(0, piece)).count();
            // The last piece's duplicate opens the datagram again.
            prop_assert_eq!(delivered, usize::from(lost.is_none()));
            bed.hosts.finish(Instant::ZERO, &mut bed.store);
            prop_assert_eq!(bed.store.len(), 0);
            prop_assert_eq!(bed.hosts.counts.reassembled, delivered as u64);
            prop_assert_eq!(bed.hosts.counts.reassembly_failed, 0);
        }
    }
}
