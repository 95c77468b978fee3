//! The trait that every element of a path implements.

use streamgauge_base::{Cause, Duration, Fate, FateSink, Instant, Item, Outcome, QueueDepth, StageId};

use crate::spec::Change;

/// An item that has left a stage. The item is first, so that it is copied in the same pieces as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Departure {
    /// The item, with the ECN bits it left with.
    pub item: Item,
    /// Time when it left: the logical time, which may be earlier than the driver's `now`.
    pub at: Instant,
}

/// One stage of a path. Every item that enters gets exactly one fate: delivered, dropped, or held when the trial ends.
/// A stage that makes more items out of one reports them by [`FateSink::made`], and each of them gets a fate too.
///
/// `now` never decreases, and the caller removes the items that have left by `now` before it enqueues or applies
/// anything at `now`; [`Chain`](crate::Chain) ensures both.
pub trait Stage {
    /// Accepts `item`, which arrives at `now`.
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink);
    /// Returns the next item that has left by `now`, in order of departure. `None` does not mean that nothing happened
    /// (a queue manager may have dropped the packets that it examined), but a call at `next_event` always moves the
    /// stage past that time.
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure>;
    /// Changes a setting at `now` and reports it; a change that is not about this stage is ignored.
    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink);
    /// Returns when `dequeue` next has an event; `None` while that depends on arrivals or changes.
    fn next_event(&self) -> Option<Instant>;
    /// Returns how long an item that arrives from now on stays at least, while no setting changes.
    fn least_stay(&self) -> Duration {
        Duration::ZERO
    }
    /// Ends the trial at `now`: reports everything still inside as held and empties the stage.
    fn finish(&mut self, now: Instant, fates: &mut impl FateSink);
}

/// An item's arrival at a stage: the parts of a fate other than its outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub item: Item,
    pub stage: StageId,
    pub t_in: Instant,
    pub queue: QueueDepth,
    pub marked: bool,
}

impl Arrival {
    pub fn delivered(self, at: Instant) -> Fate {
        self.fate(at, Outcome::Delivered, Cause::None)
    }
    pub fn dropped(self, at: Instant, cause: Cause) -> Fate {
        self.fate(at, Outcome::Dropped, cause)
    }
    pub fn held(self, at: Instant) -> Fate {
        self.fate(at, Outcome::Held, Cause::None)
    }
    fn fate(self, at: Instant, outcome: Outcome, cause: Cause) -> Fate {
        let Arrival { item, stage, t_in, queue, marked } = self;
        Fate { item, stage, t_in, at, outcome, cause, queue, marked }
    }
}
