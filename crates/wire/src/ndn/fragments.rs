//! Packets cut into LpPackets that fit a link, and put together again (NDNLPv2, "Indexed Fragmentation-Reassembly").

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Chunk, Duration, Instant};

use super::fault::{Fault, Problem};
use super::lp::LpPacket;
use super::types::{MOST_FRAGMENTS, MOST_PACKET_BYTES};

/// Limit of the bytes of a fragment that are types and lengths of LpPacket and Fragment, Sequence, FragIndex
/// and FragCount.
const OVERHEAD: usize = 4 + 4 + 10 + 4 + 4;

/// Cuts packets for one link. It counts the fragments that it makes.
#[derive(Clone, Debug)]
pub struct Fragmenter {
    most_bytes: usize,
    sequence: u64,
}

impl Fragmenter {
    /// Makes packets of at most `most_bytes`, and of at most [`MOST_PACKET_BYTES`]. The first fragment has
    /// number `sequence`; a restarted link needs another one than before, to distinguish old fragments from
    /// new ones.
    pub fn of(most_bytes: usize, sequence: u64) -> Self {
        Fragmenter { most_bytes: most_bytes.min(MOST_PACKET_BYTES), sequence }
    }

    /// Returns the packet as it is if it fits, else its fragments. Its other header fields are in the first
    /// of them.
    ///
    /// # Errors
    /// [`Fault::NoRoom`] if header fields alone fill a fragment, [`Fault::TooLong`] if a packet needs more
    /// than [`MOST_FRAGMENTS`] or [`MOST_PACKET_BYTES`].
    pub fn cut(&mut self, packet: &LpPacket) -> Result<Vec<Chunk>, Problem> {
        let whole = packet.write();
        if whole.len() <= self.most_bytes {
            return Ok(vec![whole]);
        }
        let mut rest = packet.fragment.clone().unwrap_or_default();
        let mut fields = Vec::new();
        packet.put_fields(&mut fields);
        let room = self.most_bytes.saturating_sub(OVERHEAD);
        let first = room.saturating_sub(fields.len());
        if first == 0 || rest.is_empty() {
            return Err(Fault::NoRoom { bytes: self.most_bytes as u64 }.at(0));
        }
        let count = 1 + rest.len().saturating_sub(first).div_ceil(room) as u64;
        if count > MOST_FRAGMENTS || rest.len() > MOST_PACKET_BYTES {
            let limit = (first as u64 + room as u64 * (MOST_FRAGMENTS - 1)).min(MOST_PACKET_BYTES as u64);
            return Err(Fault::TooLong { bytes: rest.len() as u64, limit }.at(0));
        }
        let mut fragments = Vec::with_capacity(count as usize);
        let mut header = LpPacket { fragment: None, ..packet.clone() };
        for index in 0..count {
            let after = rest.split_off(if index == 0 { first } else { room });
            let fragment = LpPacket {
                sequence: Some(self.sequence),
                frag_index: Some(index),
                frag_count: Some(count),
                fragment: Some(std::mem::replace(&mut rest, after)),
                ..std::mem::take(&mut header)
            };
            fragments.push(fragment.write());
            self.sequence = self.sequence.wrapping_add(1);
        }
        Ok(fragments)
    }
}

/// Limits of a [`Reassembler`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReassemblyLimits {
    /// Packets received in part; each has at most [`MOST_FRAGMENTS`].
    pub packets: usize,
    /// Bytes of these, filler included so that virtual and real time agree.
    pub bytes: usize,
    /// For how long after the first fragment.
    pub age: Duration,
}

impl Default for ReassemblyLimits {
    /// 64 packets, 256 kB, and 500 ms as in NFD.
    fn default() -> Self {
        ReassemblyLimits { packets: 64, bytes: 256 << 10, age: Duration::from_millis(500) }
    }
}

/// Reassembles the packets that one peer cut. At a limit, the oldest is dropped; a fragment that contradicts
/// earlier ones, or that is a duplicate, is dropped.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    /// In the order of their first fragments.
    partial: VecDeque<Partial>,
    /// Bytes of all.
    bytes: usize,
    dropped: u64,
}

#[derive(Clone, Debug)]
struct Partial {
    /// Sequence of the fragment with index 0.
    base: u64,
    count: u64,
    since: Instant,
    bytes: usize,
    fragments: BTreeMap<u64, LpPacket>,
}

impl Reassembler {
    /// Returns a reassembler with these limits.
    pub fn of(limits: ReassemblyLimits) -> Self {
        Reassembler { limits, ..Reassembler::default() }
    }

    /// Fragments that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of packets received in part.
    pub fn waiting(&self) -> usize {
        self.partial.len()
    }

    /// Returns the bytes that it keeps.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a received packet; one that is no fragment is handed back. Returns the whole packet that it
    /// completes, with the header fields of the first fragment, and the highest CongestionMark of any.
    pub fn push(&mut self, now: Instant, packet: LpPacket) -> Option<LpPacket> {
        self.expire(now);
        if !packet.is_fragmented() {
            return Some(LpPacket { sequence: None, frag_index: None, frag_count: None, ..packet });
        }
        let (index, count) = (packet.frag_index.unwrap_or(0), packet.frag_count.unwrap_or(1));
        let bytes = packet.fragment.as_ref().map_or(0, Chunk::len);
        let (true, Some(sequence)) = (index < count && count <= MOST_FRAGMENTS && bytes > 0, packet.sequence)
        else {
            self.dropped += 1;
            return None;
        };
        let base = sequence.wrapping_sub(index);
        let at = self.partial.iter().position(|partial| partial.overlaps(base, count));
        let at = match at {
            Some(at) if self.partial[at].takes(base, count, index, bytes) => at,
            None if bytes <= MOST_PACKET_BYTES => {
                self.partial.push_back(Partial {
                    base,
                    count,
                    since: now,
                    bytes: 0,
                    fragments: BTreeMap::new(),
                });
                self.partial.len() - 1
            }
            _ => {
                self.dropped += 1;
                return None;
            }
        };
        let partial = &mut self.partial[at];
        partial.bytes += bytes;
        self.bytes += bytes;
        partial.fragments.insert(index, packet);
        if partial.fragments.len() as u64 == count {
            let whole = self.remove(at)?.whole();
            self.dropped += if whole.is_none() { count } else { 0 };
            return whole;
        }
        while self.partial.len() > self.limits.packets || self.bytes > self.limits.bytes {
            self.drop_oldest();
        }
        None
    }

    /// Drops packets that have waited for too long.
    pub fn expire(&mut self, now: Instant) {
        while self.partial.front().is_some_and(|first| now.saturating_since(first.since) > self.limits.age) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.remove(0);
        self.dropped += oldest.map_or(0, |oldest| oldest.fragments.len() as u64);
    }

    fn remove(&mut self, at: usize) -> Option<Partial> {
        let partial = self.partial.remove(at)?;
        self.bytes -= partial.bytes;
        Some(partial)
    }
}

impl Partial {
    /// Returns whether some number belongs to both.
    fn overlaps(&self, base: u64, count: u64) -> bool {
        base.wrapping_sub(self.base) < self.count || self.base.wrapping_sub(base) < count
    }

    fn takes(&self, base: u64, count: u64, index: u64, bytes: usize) -> bool {
        (self.base, self.count) == (base, count)
            && !self.fragments.contains_key(&index)
            && self.bytes + bytes <= MOST_PACKET_BYTES
    }

    /// Returns all in one; `None` if there are real bytes behind filler.
    fn whole(self) -> Option<LpPacket> {
        let mut head = Vec::with_capacity(
            self.fragments.values().filter_map(|p| Some(p.fragment.as_ref()?.head().len())).sum(),
        );
        let mut filler = 0;
        for chunk in self.fragments.values().filter_map(|packet| packet.fragment.as_ref()) {
            if filler > 0 && !chunk.head().is_empty() {
                return None;
            }
            head.extend(chunk.head());
            filler += chunk.len() - chunk.head().len();
        }
        let congestion_mark = self.fragments.values().filter_map(|packet| packet.congestion_mark).max();
        let first = self.fragments.into_values().next()?;
        Some(LpPacket {
            sequence: None,
            frag_index: None,
            frag_count: None,
            congestion_mark,
            fragment: Some(Chunk::with_filler(head, filler as u32)),
            ..first
        })
    }
}
