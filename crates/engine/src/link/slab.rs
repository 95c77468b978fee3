//! The bytes of packets in flight: a fixed number of slots, found by packet id.

use streamgauge_base::{Ecn, PacketId, PacketInfo};

use crate::packet::FRAME_ROOM;

/// Which slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

/// What is kept beside a frame's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The packet.
    pub id: PacketId,
    /// What the classifier found.
    pub info: PacketInfo,
    /// ECN bits on arrival.
    pub ecn: Ecn,
    /// The port it leaves by.
    pub egress: u8,
    /// The frame's length in bytes.
    pub length: u16,
}

/// Fixed storage. Nothing is allocated after `new`.
pub struct Slab {
    bytes: Box<[u8]>,
    meta: Vec<Option<Meta>>,
    free: Vec<u32>,
    /// Open addressing with linear probing: `EMPTY`, or a slot. Twice as many entries as slots.
    index: Box<[u32]>,
}

const EMPTY: u32 = u32::MAX;

impl Slab {
    /// Room for `slots` packets.
    pub fn new(slots: usize) -> Self {
        let table = (slots * 2).next_power_of_two();
        Slab {
            bytes: vec![0; slots * FRAME_ROOM].into_boxed_slice(),
            meta: vec![None; slots],
            free: (0..slots as u32).rev().collect(),
            index: vec![EMPTY; table].into_boxed_slice(),
        }
    }

    fn home(&self, id: PacketId) -> usize {
        // Fibonacci hashing: ids are consecutive numbers.
        (id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.index.len() - 1)
    }

    fn position(&self, id: PacketId) -> Option<usize> {
        let mask = self.index.len() - 1;
        let mut at = self.home(id);
        while self.index[at] != EMPTY {
            if self.meta[self.index[at] as usize].is_some_and(|meta| meta.id == id) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Keeps `frame`, at most [`FRAME_ROOM`] bytes; `None` if every slot is taken.
    pub fn insert(&mut self, meta: Meta, frame: &[u8]) -> Option<Slot> {
        let slot = self.free.pop()?;
        let start = slot as usize * FRAME_ROOM;
        self.bytes[start..start + frame.len()].copy_from_slice(frame);
        let mask = self.index.len() - 1;
        let mut at = self.home(meta.id);
        while self.index[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.index[at] = slot;
        self.meta[slot as usize] = Some(Meta { length: frame.len() as u16, ..meta });
        Some(Slot(slot))
    }

    /// Where the packet is, and what is known of it.
    pub fn find(&self, id: PacketId) -> Option<(Slot, Meta)> {
        let slot = self.index[self.position(id)?];
        self.meta[slot as usize].map(|meta| (Slot(slot), meta))
    }

    /// The frame's bytes.
    pub fn frame(&self, slot: Slot) -> &[u8] {
        let start = slot.0 as usize * FRAME_ROOM;
        let length = self.meta[slot.0 as usize].map_or(0, |meta| usize::from(meta.length));
        &self.bytes[start..start + length]
    }

    /// The frame's bytes, to be marked.
    pub fn frame_mut(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.0 as usize * FRAME_ROOM;
        let length = self.meta[slot.0 as usize].map_or(0, |meta| usize::from(meta.length));
        &mut self.bytes[start..start + length]
    }

    /// Forgets the packet, if it is here.
    pub fn remove(&mut self, id: PacketId) {
        let Some(mut hole) = self.position(id) else { return };
        let slot = self.index[hole];
        self.meta[slot as usize] = None;
        self.free.push(slot);
        self.index[hole] = EMPTY;
        // Close the gap: whoever was pushed past the hole by it moves back.
        let mask = self.index.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.index[at] != EMPTY {
            let home = self.meta[self.index[at] as usize].map_or(at, |meta| self.home(meta.id));
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[at];
                self.index[at] = EMPTY;
                hole = at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Packets in flight.
    pub fn len(&self) -> usize {
        self.meta.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use streamgauge_base::{PacketKind, Stream};

    use super::*;

    fn meta(id: u64) -> Meta {
        let info = PacketInfo { kind: PacketKind::Other, flags: 0, payload_bytes: 0, seq: None };
        Meta { id: PacketId(id), info, ecn: Ecn::NotEct, egress: 0, length: 0 }
    }

    #[test]
    fn behaves_as_a_map_of_limited_size() {
        let mut slab = Slab::new(100);
        let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut random = Stream::named(1, "slab", "test");
        for id in 0..20_000u64 {
            if random.below(2) == 0 {
                let frame = id.to_le_bytes()[..1 + random.below(8) as usize].to_vec();
                let inserted = slab.insert(meta(id), &frame).is_some();
                assert_eq!(inserted, model.len() < 100);
                if inserted {
                    model.insert(id, frame);
                }
            } else if !model.is_empty() {
                // From anywhere, as two directions and drops do.
                let nth = random.below(model.len() as u64) as usize;
                let gone = *model.keys().nth(nth).unwrap();
                model.remove(&gone);
                slab.remove(PacketId(gone));
                assert!(slab.find(PacketId(gone)).is_none());
            }
            assert_eq!(slab.len(), model.len());
            if id % 100 == 0 {
                for (&id, frame) in &model {
                    let (slot, _) = slab.find(PacketId(id)).unwrap();
                    assert_eq!(slab.frame(slot), frame);
                }
            }
        }
    }
}
