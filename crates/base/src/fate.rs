//! The fate of an item in a stage. Every item that enters a stage, or is made there, gets exactly one fate in it.

use crate::item::{Item, StageId};
use crate::time::Instant;

/// Why a stage dropped an item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// Not dropped.
    None = 0,
    /// The queue was full.
    QueueFull = 1,
    /// The random loss model.
    RandomLoss = 2,
    /// An active queue manager's choice.
    Aqm = 3,
    /// A firewall lets its protocol not through.
    Blocked = 4,
    /// It is longer than the MTU and may not be cut up, or than the token bucket it would have to pass.
    TooBig = 5,
}

/// How an item's stay in a stage ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Outcome {
    /// It left the stage.
    Delivered = 0,
    /// The stage dropped it.
    Dropped = 1,
    /// It was still inside when the trial ended.
    Held = 2,
}

/// How much a stage held at an arrival, before the arriving item itself. A packet occupies the queue until
/// its transmission ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueDepth {
    /// Ethernet bytes (IP bytes where the stage's `layer` is ip).
    pub bytes: u32,
    /// Packets.
    pub packets: u32,
}

/// One item's stay in one stage: one row of the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fate {
    /// The item as it left: with its ECN bits then, and corrupted or not.
    pub item: Item,
    /// The stage.
    pub stage: StageId,
    /// Time when it arrived.
    pub t_in: Instant,
    /// Time when its stay ended: it left, was dropped, or the trial ended.
    pub at: Instant,
    /// How its stay ended.
    pub outcome: Outcome,
    /// Why it was dropped; `Cause::None` otherwise.
    pub cause: Cause,
    /// The stage's fill when it arrived.
    pub queue: QueueDepth,
    /// The stage set CE on it.
    pub marked: bool,
}

impl Fate {
    /// Returns when it left; `None` if it did not.
    #[inline]
    pub fn t_out(&self) -> Option<Instant> {
        (self.outcome == Outcome::Delivered).then_some(self.at)
    }

    /// Returns when it was dropped; `None` if it was not.
    #[inline]
    pub fn t_drop(&self) -> Option<Instant> {
        (self.outcome == Outcome::Dropped).then_some(self.at)
    }
}

/// Receives fates as a path reports them, in order of path time.
pub trait FateSink {
    /// Records the end of one item's stay in one stage.
    fn fate(&mut self, fate: &Fate);
    /// Records that `stage` has made one more item, `made`, out of `from`: a duplicate, or each fragment beyond the
    /// first. It is reported before any fate of `made`, and before the fate of `from` in this stage. `from` is as it
    /// arrived, before it was cut; see [`Item::bytes_added_by`]. Every item made has a body of its own to be released:
    /// per stage, in + made = out + dropped + held.
    fn made(&mut self, stage: StageId, from: &Item, made: &Item);
    /// Records that a stage's setting changed at `at` (rate, loss, delay ...): `what` names it, `value` is in SI units.
    fn changed(&mut self, stage: StageId, at: Instant, what: &'static str, value: f64, unit: &'static str);
}

/// Throws every fate away.
impl FateSink for () {
    fn fate(&mut self, _: &Fate) {}
    fn made(&mut self, _: StageId, _: &Item, _: &Item) {}
    fn changed(&mut self, _: StageId, _: Instant, _: &'static str, _: f64, _: &'static str) {}
}
