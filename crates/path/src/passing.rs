//! Stages in which nothing waits: an item's fate is decided as it arrives, and passing items leave at that time.

use std::collections::VecDeque;

use streamgauge_base::{Cause, FateSink, Instant, Item, QueueDepth, StageId};

use crate::spec::Change;
use crate::stage::{Arrival, Departure, Stage};

/// The effect of such a stage on an item while it is switched on. While it is off, everything passes, and nothing is
/// drawn or counted.
pub trait Effect {
    /// Returns `item` as it leaves, or why it is dropped. Further items made of it leave after it, in the order in
    /// which `make` gets them.
    fn meet(&mut self, item: Item, make: &mut impl FnMut(Item)) -> Result<Item, Cause>;
    /// Applies another setting of its own, which turns it on; false if it has none such.
    fn set(&mut self, _change: Change) -> bool {
        false
    }
    /// Returns name, value in SI units and unit of the setting that `on` or off represents.
    fn setting(&self, on: bool) -> (&'static str, f64, &'static str);
}

/// A stage of one [`Effect`], which can be switched on and off. Order is kept.
#[derive(Clone, Debug)]
pub struct Passing<E> {
    id: StageId,
    on: bool,
    effect: E,
    passed: VecDeque<Departure>,
}

impl<E: Effect> Passing<E> {
    pub(crate) fn with(id: StageId, on: bool, effect: E) -> Self {
        Passing { id, on, effect, passed: VecDeque::new() }
    }

    fn arrival(&self, t_in: Instant, item: Item) -> Arrival {
        Arrival { item, stage: self.id, t_in, queue: QueueDepth::default(), marked: false }
    }
}

impl<E: Effect> Stage for Passing<E> {
    #[inline]
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        if !self.on {
            self.passed.push_back(Departure { item, at: now });
            return;
        }
        let place = self.passed.len();
        let (id, passed) = (self.id, &mut self.passed);
        let met = self.effect.meet(item, &mut |made| {
            fates.made(id, &item, &made);
            passed.push_back(Departure { item: made, at: now });
        });
        match met {
            // Nearly always nothing is made, and the end of the queue is the place.
            Ok(item) if self.passed.len() == place => self.passed.push_back(Departure { item, at: now }),
            Ok(item) => self.passed.insert(place, Departure { item, at: now }),
            Err(cause) => {
                debug_assert_eq!(self.passed.len(), place, "nothing is made of what is dropped");
                fates.fate(&self.arrival(now, item).dropped(now, cause));
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        let departure = *self.passed.front()?;
        if departure.at > now {
            return None;
        }
        self.passed.pop_front();
        fates.fate(&self.arrival(departure.at, departure.item).delivered(departure.at));
        Some(departure)
    }

    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        let on = if let Change::On(on) = change { Some(on) } else { self.effect.set(change).then_some(true) };
        let Some(on) = on else { return };
        self.on = on;
        let (what, value, unit) = self.effect.setting(on);
        fates.changed(self.id, now, what, value, unit);
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.passed.front().map(|departure| departure.at)
    }

    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        while let Some(departure) = self.passed.pop_front() {
            fates.fate(&self.arrival(departure.at, departure.item).held(now));
        }
    }
}
