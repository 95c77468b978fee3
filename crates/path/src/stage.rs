//! The trait that every element of a path implements.

use streamgauge_base::{BitRate, Duration, FateSink, Instant, Item};

/// An item that has left a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The item, with the ECN bits it left with.
    pub item: Item,
    /// When it left: the logical time, which may be earlier than the driver's `now`.
    pub at: Instant,
}

/// A setting that changes at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// The bottleneck's rate.
    Rate(BitRate),
    /// One-way propagation delay.
    Delay(Duration),
    /// The random loss model is on or off.
    Loss(bool),
}

/// One stage of a path. `now` never goes back. Every item that enters gets exactly one fate per copy:
/// delivered, dropped, or held when the trial ends.
pub trait Stage {
    /// Takes `item`, which arrives at `now`.
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink);
    /// The next item that has left by `now`, in order of departure.
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure>;
    /// Changes a setting at `now`.
    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink);
    /// When `dequeue` will next have something to do; `None` while the stage is empty.
    fn next_event(&self) -> Option<Instant>;
    /// The trial ends at `now`: reports everything still inside as held and empties the stage.
    fn finish(&mut self, now: Instant, fates: &mut impl FateSink);
}
