//! Propagation delay: constant in this file, jittered or different for each flow in `varying`.

mod jitter;
mod varying;

use std::collections::VecDeque;

use streamgauge_base::{Duration, FateSink, Instant, Item, QueueDepth, StageId};

use crate::error::StageProblem;
use crate::schedule::{Schedule, ascending, switches};
use crate::spec::Change;
use crate::spec::DelaySpec;
use crate::stage::{Arrival, Departure, Stage};
pub use varying::VaryingDelay;

/// A pipe of some length. An item's delay is the one in force when it enters; a later change does not touch items under
/// way, and an item that would overtake the one before it leaves together with it.
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

impl Flying {
    fn arrival(&self, stage: StageId) -> Arrival {
        let Flying { item, t_in, queue, .. } = *self;
        Arrival { item, stage, t_in, queue, marked: false }
    }
}

impl Delay {
    /// Makes an empty pipe.
    pub fn new(id: StageId, delay: Duration) -> Self {
        Delay { id, delay, flying: VecDeque::new(), bytes: 0 }
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
        fates.fate(&flying.arrival(self.id).delivered(flying.due));
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
            fates.fate(&flying.arrival(self.id).held(now));
        }
        self.bytes = 0;
    }
}

impl DelaySpec {
    /// Returns the delay at time zero, without the addition of jitter or of a flow's extra.
    pub fn initial(&self) -> Duration {
        match self.steps.first() {
            Some(&(Duration::ZERO, delay)) => delay,
            _ => self.delay,
        }
    }

    /// Returns whether every packet's delay is the one in force when it enters.
    pub(crate) fn is_plain(&self) -> bool {
        self.jitter.is_none() && self.flows.is_empty()
    }

    pub(crate) fn schedule(&self) -> Schedule {
        let first = (Duration::ZERO, Change::Delay(self.initial()));
        let later = self.steps.iter().filter(|(at, _)| *at > Duration::ZERO);
        let steps = std::iter::once(first).chain(later.map(|&(at, delay)| (at, Change::Delay(delay))));
        let Some(jitter) = &self.jitter else { return Schedule::listed(steps) };
        let mut changes: Vec<_> = steps.chain(switches(&jitter.switches)).collect();
        changes.sort_by_key(|&(at, _)| at);
        Schedule::listed(changes)
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        ascending("steps", &self.steps)?;
        if let Some(jitter) = &self.jitter {
            jitter.distribution.check()?;
            ascending("switches", &jitter.switches)?;
        }
        for (index, &(flow, _)) in self.flows.iter().enumerate() {
            if self.flows[..index].iter().any(|&(other, _)| other == flow) {
                return Err(StageProblem::FlowTwice { flow });
            }
        }
        Ok(())
    }
}
