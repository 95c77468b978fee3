//! The bytes of packets in flight: slots, which an item names by `Item::body`.

use streamgauge_base::{Ecn, Fragment, PacketInfo};

use crate::packet::FRAME_ROOM;

/// Number of a slot: the value in [`Item::body`](streamgauge_base::Item::body).
pub type Slot = u32;

/// Facts beside a frame's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The classifier's result.
    pub info: PacketInfo,
    /// ECN bits on arrival.
    pub ecn: Ecn,
    /// Its arrival, CLOCK_MONOTONIC ns.
    pub came: i64,
    /// Which part of its datagram the frame is.
    pub fragment: Fragment,
    /// Its IP bytes.
    pub ip_bytes: u32,
    /// The port it leaves by.
    pub egress: u8,
}

/// Slots that are made together. Memory is allocated in pieces of this many, small enough that the kernel's
/// work for one (128 KiB, locked) delays nothing by more than some ten microseconds.
const CHUNK: usize = 64;

struct Chunk {
    bytes: Box<[u8]>,
    slots: Box<[Entry]>,
}

#[derive(Clone, Copy)]
struct Entry {
    meta: Option<Meta>,
    length: u16,
    /// Items that are of this frame: the packet, its copies and its fragments.
    references: u32,
}

const EMPTY: Entry = Entry { meta: None, length: 0, references: 0 };

/// Storage of slots: more are made when they are needed, up to a limit.
pub struct Slab {
    chunks: Vec<Chunk>,
    free: Vec<Slot>,
    most: usize,
}

impl Slab {
    /// Returns room for `ready` packets, and for `most` once they are needed, both rounded up to whole
    /// pieces.
    pub fn new(ready: usize, most: usize) -> Self {
        let most = most.max(ready).next_multiple_of(CHUNK);
        let mut slab = Slab { chunks: Vec::new(), free: Vec::with_capacity(most), most };
        while slab.room() < ready {
            slab.grow();
        }
        slab
    }

    /// Raises the limit to `most` packets, where that is more than before.
    pub fn allow(&mut self, most: usize) {
        let most = most.next_multiple_of(CHUNK);
        if most > self.most {
            self.free.reserve(most - self.free.len());
            self.most = most;
        }
    }

    /// Returns the bytes that a packet takes.
    pub const fn bytes_a_packet() -> usize {
        FRAME_ROOM + size_of::<Entry>()
    }

    fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.room() as Slot;
        // From last to first, so that the first is used first.
        self.free.extend((first..first + CHUNK as Slot).rev());
        let (bytes, slots) = (vec![0; CHUNK * FRAME_ROOM], vec![EMPTY; CHUNK]);
        self.chunks.push(Chunk { bytes: bytes.into_boxed_slice(), slots: slots.into_boxed_slice() });
    }

    #[inline]
    fn entry(&mut self, slot: Slot) -> &mut Entry {
        &mut self.chunks[slot as usize / CHUNK].slots[slot as usize % CHUNK]
    }

    /// Keeps `frame`, at most [`FRAME_ROOM`] bytes, for one item; `None` if every slot that there may be is taken.
    #[inline]
    pub fn insert(&mut self, meta: Meta, frame: &[u8]) -> Option<Slot> {
        if self.free.is_empty() && self.room() < self.most {
            self.grow();
        }
        let slot = self.free.pop()?;
        let start = slot as usize % CHUNK * FRAME_ROOM;
        self.chunks[slot as usize / CHUNK].bytes[start..start + frame.len()].copy_from_slice(frame);
        *self.entry(slot) = Entry { meta: Some(meta), length: frame.len() as u16, references: 1 };
        Some(slot)
    }

    /// Returns the facts of the frame; `None` if the slot is empty.
    #[inline]
    pub fn meta(&self, slot: Slot) -> Option<Meta> {
        self.chunks.get(slot as usize / CHUNK)?.slots[slot as usize % CHUNK].meta
    }

    /// Returns the frame's bytes.
    #[inline]
    pub fn frame(&self, slot: Slot) -> &[u8] {
        let (chunk, at) = (&self.chunks[slot as usize / CHUNK], slot as usize % CHUNK);
        &chunk.bytes[at * FRAME_ROOM..][..usize::from(chunk.slots[at].length)]
    }

    /// Returns the frame's bytes to be changed, if there is only one item of it.
    #[inline]
    pub fn own_frame_mut(&mut self, slot: Slot) -> Option<&mut [u8]> {
        let (chunk, at) = (&mut self.chunks[slot as usize / CHUNK], slot as usize % CHUNK);
        let Entry { length, references, .. } = chunk.slots[at];
        (references == 1).then(|| &mut chunk.bytes[at * FRAME_ROOM..][..usize::from(length)])
    }

    /// Counts one more item of this frame.
    #[inline]
    pub fn hold(&mut self, slot: Slot) {
        self.entry(slot).references += 1;
    }

    /// Counts one item less of this frame; the slot is free after the last.
    #[inline]
    pub fn release(&mut self, slot: Slot) {
        let entry = self.entry(slot);
        entry.references -= 1;
        if entry.references == 0 {
            entry.meta = None;
            self.free.push(slot);
        }
    }

    /// Returns the allocated memory.
    pub fn bytes(&self) -> usize {
        self.room() * Slab::bytes_a_packet()
    }

    /// Frames that are kept.
    pub fn len(&self) -> usize {
        self.room() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use streamgauge_base::PacketKind;

    use super::*;

    fn meta() -> Meta {
        let (kind, header_bytes) = (PacketKind::Other, 0);
        let info = PacketInfo { kind, flags: 0, header_bytes, payload_bytes: 0, seq: None, connection: None };
        Meta { info, ecn: Ecn::NotEct, came: 0, fragment: Fragment::WHOLE, ip_bytes: 20, egress: 0 }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Vec<u8>),
        Hold(prop::sample::Index),
        Release(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Step::Insert),
            1 => any::<prop::sample::Index>().prop_map(Step::Hold),
            3 => any::<prop::sample::Index>().prop_map(Step::Release),
        ];
        prop::collection::vec(step, 0..600)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Slots of a limited number, each there until its last item has gone, from anywhere as drops and two
        /// directions do.
        #[test]
        fn behaves_as_a_map_with_counts(steps in steps()) {
            let mut slab = Slab::new(64, 128);
            let mut model: BTreeMap<Slot, (Vec<u8>, u32)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Insert(frame) => {
                        let slot = slab.insert(meta(), &frame);
                        prop_assert_eq!(slot.is_some(), model.len() < 128);
                        if let Some(slot) = slot {
                            prop_assert!(model.insert(slot, (frame, 1)).is_none(), "a slot that is taken");
                        }
                    }
                    Step::Hold(nth) if !model.is_empty() => {
                        let slot = *model.keys().nth(nth.index(model.len())).unwrap();
                        slab.hold(slot);
                        model.get_mut(&slot).unwrap().1 += 1;
                    }
                    Step::Release(nth) if !model.is_empty() => {
                        let slot = *model.keys().nth(nth.index(model.len())).unwrap();
                        slab.release(slot);
                        let count = &mut model.get_mut(&slot).unwrap().1;
                        *count -= 1;
                        if *count == 0 {
                            model.remove(&slot);
                            prop_assert!(slab.meta(slot).is_none());
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(slab.len(), model.len());
            }
            for (&slot, (frame, references)) in &model {
                prop_assert_eq!(slab.frame(slot), &frame[..]);
                prop_assert_eq!(slab.own_frame_mut(slot).is_some(), *references == 1);
            }
        }
    }

    #[test]
    fn memory_grows_with_need_and_not_beyond() {
        let mut slab = Slab::new(1, 100);
        assert_eq!(slab.room(), 64);
        let taken: Vec<_> = std::iter::from_fn(|| slab.insert(meta(), &[1])).collect();
        assert_eq!((taken.len(), slab.room()), (128, 128));
    }
}
