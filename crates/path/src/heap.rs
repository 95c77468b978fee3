//! Items that wait until times of their own, and leave in order of these.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use streamgauge_base::{FateSink, Instant, Item, QueueDepth, StageId};

use crate::stage::{Arrival, Departure};

/// Items that leave when each is due; those due at the same time in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct DueHeap {
    waiting: BinaryHeap<Waiting>,
    arrived: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Instant,
    number: u64,
    item: Item,
    t_in: Instant,
    queue: QueueDepth,
}

impl Waiting {
    fn arrival(&self, stage: StageId) -> Arrival {
        let Waiting { item, t_in, queue, .. } = *self;
        Arrival { item, stage, t_in, queue, marked: false }
    }
}

/// The greatest leaves first.
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Waiting {}

impl DueHeap {
    pub fn push(&mut self, now: Instant, item: Item, due: Instant) {
        let queue = QueueDepth {
            bytes: u32::try_from(self.bytes).unwrap_or(u32::MAX),
            packets: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
        };
        self.bytes += u64::from(item.bytes);
        self.waiting.push(Waiting { due, number: self.arrived, item, t_in: now, queue });
        self.arrived += 1;
    }

    pub fn pop(&mut self, now: Instant, stage: StageId, fates: &mut impl FateSink) -> Option<Departure> {
        if self.waiting.peek()?.due > now {
            return None;
        }
        let first = self.waiting.pop()?;
        self.bytes -= u64::from(first.item.bytes);
        fates.fate(&first.arrival(stage).delivered(first.due));
        Some(Departure { item: first.item, at: first.due })
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.peek().map(|first| first.due)
    }

    /// Ends the trial: reports all as held, in the order in which they would have left.
    pub fn finish(&mut self, now: Instant, stage: StageId, fates: &mut impl FateSink) {
        while let Some(first) = self.waiting.pop() {
            fates.fate(&first.arrival(stage).held(now));
        }
        self.bytes = 0;
    }
}
