//! Fragments that hosts send: which datagram each belongs to.

use std::net::Ipv4Addr;

use streamgauge_base::{PacketId, PacketInfo, Ports, Protocol};
use streamgauge_record::Frame;

/// Number of sets of remembered datagrams in transit.
const SETS: usize = 256;
const WAYS: usize = 4;

/// How long the rest of a datagram may take, ns; a host may use an identification again after that (Linux waits as
/// long for the rest, `net.ipv4.ipfrag_time`).
const PATIENCE_NS: i64 = 30_000_000_000;

/// The key that fragments of one datagram share (RFC 791 section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: Protocol,
    identification: u16,
    /// Packets of the trial and packets before it have numbers of their own.
    recorded: bool,
}

/// Facts that are the same for all fragments of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its number.
    pub id: PacketId,
    /// Hash of its connection, with ports once the first fragment has been seen.
    pub hash: u32,
    /// Those ports.
    pub ports: Ports,
    /// Its content, which only the first fragment reveals.
    pub info: PacketInfo,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    since: i64,
    has_first: bool,
    datagram: Datagram,
}

/// The datagrams with fragments seen so far. Memory is fixed: a datagram that is pushed out by others, or
/// with its first fragment last, is taken for two.
pub struct Fragments {
    sets: Box<[[Option<Entry>; WAYS]; SETS]>,
}

impl Fragments {
    /// Returns a set without datagrams.
    pub fn new() -> Self {
        Fragments { sets: Box::new([[None; WAYS]; SETS]) }
    }

    /// Returns the datagram of `frame`, a fragment that arrived at `at`: one that is known, or a new one made
    /// by `fresh`.
    pub fn datagram(
        &mut self,
        at: i64,
        frame: &Frame<'_>,
        recorded: bool,
        info: PacketInfo,
        fresh: impl FnOnce() -> PacketId,
    ) -> Datagram {
        let new = |id| Datagram { id, hash: frame.hash, ports: Ports::from_word(frame.ports), info };
        let (Some(source), Some(destination)) = (frame.source, frame.destination) else {
            return new(fresh());
        };
        let (protocol, identification) = (frame.protocol, frame.identification);
        let key = Key { source, destination, protocol, identification, recorded };
        let is_first = frame.fragment.offset() == 0;
        let set = &mut self.sets[set_of(&key)];
        let known = set
            .iter_mut()
            .flatten()
            .find(|entry| entry.key == key && at.saturating_sub(entry.since) < PATIENCE_NS);
        match known {
            // A second first fragment begins another datagram under the same identification.
            Some(entry) if !(is_first && entry.has_first) => {
                if is_first {
                    entry.has_first = true;
                    entry.datagram = new(entry.datagram.id);
                }
                entry.datagram
            }
            known => {
                let entry = Entry { key, since: at, has_first: is_first, datagram: new(fresh()) };
                match known {
                    Some(old) => *old = entry,
                    None => {
                        let oldest = set.iter_mut().min_by_key(|slot| slot.map_or(i64::MIN, |e| e.since));
                        if let Some(oldest) = oldest {
                            *oldest = Some(entry);
                        }
                    }
                }
                entry.datagram
            }
        }
    }
}

fn set_of(key: &Key) -> usize {
    let hash = u32::from(key.source).wrapping_mul(0x9e37_79b1) ^ u32::from(key.destination);
    // Hosts count identifications up, so neighbours fall into different sets.
    (hash.wrapping_mul(0x85eb_ca77) >> 16).wrapping_add(u32::from(key.identification)) as usize % SETS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamgauge_base::{Ecn, Fragment, Headers, PacketKind, TransportHeader};

    use super::*;

    fn fragment(identification: u16, offset: u16, more: bool) -> Frame<'static> {
        let headers = Headers {
            transport: TransportHeader::Udp,
            header_bytes: 8,
            payload_bytes: 100,
            payload_head: &[],
        };
        Frame {
            source: Some(Ipv4Addr::new(10, 1, 0, 1)),
            destination: Some(Ipv4Addr::new(10, 2, 0, 1)),
            ip_bytes: 128,
            ecn: Ecn::NotEct,
            protocol: Protocol::Udp,
            fragment: Fragment::part(offset, more),
            identification,
            hash: if offset == 0 { 1 } else { 2 },
            ports: 0,
            headers,
        }
    }

    struct Bed {
        table: Fragments,
        next: u64,
    }

    impl Bed {
        fn new() -> Self {
            Bed { table: Fragments::new(), next: 0 }
        }
        fn arrive(&mut self, at: i64, frame: &Frame<'_>) -> Datagram {
            let is_first = frame.fragment.offset() == 0;
            let info = PacketInfo {
                kind: if is_first { PacketKind::Media } else { PacketKind::Other },
                flags: 0,
                header_bytes: if is_first { 8 } else { 0 },
                payload_bytes: 100,
                seq: is_first.then_some(7),
                connection: None,
            };
            let next = &mut self.next;
            self.table.datagram(at, frame, true, info, || {
                *next += 1;
                PacketId(*next - 1)
            })
        }
    }

    #[test]
    fn later_fragments_are_as_the_first() {
        let mut bed = Bed::new();
        let first = bed.arrive(0, &fragment(9, 0, true));
        let other = bed.arrive(1, &fragment(10, 0, true));
        assert_eq!(bed.arrive(2, &fragment(9, 185, true)), first);
        assert_eq!(bed.arrive(3, &fragment(9, 370, false)), first);
        assert_ne!(first.id, other.id);
        assert_eq!((first.hash, first.info.kind), (1, PacketKind::Media));
    }

    #[test]
    fn a_first_fragment_that_comes_later_is_the_same_datagram() {
        let mut bed = Bed::new();
        let later = bed.arrive(0, &fragment(9, 185, false));
        let first = bed.arrive(1, &fragment(9, 0, true));
        assert_eq!(first.id, later.id);
        assert_eq!((later.info.kind, first.info.kind), (PacketKind::Other, PacketKind::Media));
    }

    #[test]
    fn identifications_are_used_again() {
        let mut bed = Bed::new();
        let first = bed.arrive(0, &fragment(9, 0, true));
        let again = bed.arrive(1, &fragment(9, 0, true));
        assert_ne!(first.id, again.id);
        assert_eq!(bed.arrive(2, &fragment(9, 185, false)).id, again.id);
        // The rest is too late: it belongs to another datagram.
        assert_ne!(bed.arrive(1 + PATIENCE_NS, &fragment(9, 370, false)).id, again.id);
    }

    proptest! {
        /// Datagrams sent one after the other, some fragments lost: those that are there share a number, and no two
        /// datagrams do.
        #[test]
        fn datagrams_in_order_keep_apart(
            lost in prop::collection::vec(any::<[bool; 3]>(), 1..2000), first in any::<u16>(),
        ) {
            let mut bed = Bed::new();
            let mut before = None;
            for (n, lost) in lost.iter().enumerate() {
                let identification = first.wrapping_add(n as u16);
                let mut ids = Vec::new();
                for (part, _) in lost.iter().enumerate().filter(|&(_, &lost)| !lost) {
                    let frame = fragment(identification, part as u16 * 185, part < 2);
                    ids.push(bed.arrive(n as i64 * 1_000_000, &frame).id);
                }
                ids.dedup();
                prop_assert!(ids.len() <= 1, "{:?}", ids);
                if let Some(&id) = ids.first() {
                    prop_assert_ne!(before.replace(id), Some(id));
                }
            }
        }
    }
}
