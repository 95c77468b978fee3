//! Propagation delay. Order is kept: what entered first leaves first, also when the delay falls.

use std::collections::VecDeque;

use streamgauge_base::{Duration, FateSink, Instant, Item, QueueDepth, StageId};

use crate::error::Problem;
use crate::schedule::{Schedule, ascending};
use crate::spec::DelaySpec;
use crate::stage::{Arrival, Change, Departure, Stage};

/// A pipe of some length. An item's delay is the one in force when it enters; a later change does not touch
/// what is under way, and an item that would overtake the one before it leaves together with it.
#[derive(Clone, Debug)]
pub struct Delay {
    id: StageId,
    delay: Duration,
    flying: VecDeque<Flying>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    item: Item,
    t_in: Instant,
    due: Instant,
    queue: QueueDepth,
}

impl Delay {
    /// An empty pipe.
    pub fn new(id: StageId, delay: Duration) -> Self {
        Delay { id, delay, flying: VecDeque::new(), bytes: 0 }
    }

    fn arrival(&self, flying: &Flying) -> Arrival {
        let Flying { item, t_in, queue, .. } = *flying;
        Arrival { item, stage: self.id, t_in, queue, marked: false }
    }
}

impl Stage for Delay {
    #[inline]
    fn enqueue(&mut self, now: Instant, item: Item, _fates: &mut impl FateSink) {
        let before = self.flying.back().map_or(Instant::ZERO, |last| last.due);
        let queue = QueueDepth {
            bytes: u32::try_from(self.bytes).unwrap_or(u32::MAX),
            packets: u32::try_from(self.flying.len()).unwrap_or(u32::MAX),
        };
        self.bytes += u64::from(item.bytes);
        self.flying.push_back(Flying { item, t_in: now, due: before.max(now + self.delay), queue });
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        let flying = *self.flying.front()?;
        if flying.due > now {
            return None;
        }
        self.flying.pop_front();
        self.bytes -= u64::from(flying.item.bytes);
        fates.fate(&self.arrival(&flying).delivered(flying.due));
        Some(Departure { item: flying.item, at: flying.due })
    }

    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        if let Change::Delay(delay) = change {
            self.delay = delay;
            fates.changed(self.id, now, "delay", delay.as_secs_f64(), "s");
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.flying.front().map(|flying| flying.due)
    }

    #[inline]
    fn least_stay(&self) -> Duration {
        self.delay
    }

    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        while let Some(flying) = self.flying.pop_front() {
            fates.fate(&self.arrival(&flying).held(now));
        }
        self.bytes = 0;
    }
}

impl DelaySpec {
    /// The delay at time zero.
    pub fn initial(&self) -> Duration {
        match self.steps.first() {
            Some(&(Duration::ZERO, delay)) => delay,
            _ => self.delay,
        }
    }

    pub(crate) fn schedule(&self) -> Schedule {
        let first = (Duration::ZERO, Change::Delay(self.initial()));
        let later = self.steps.iter().filter(|(at, _)| *at > Duration::ZERO);
        Schedule::listed(std::iter::once(first).chain(later.map(|&(at, delay)| (at, Change::Delay(delay)))))
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        ascending("steps", &self.steps)
    }
}
