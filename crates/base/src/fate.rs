//! What became of an item in a stage. Every item that enters a stage gets exactly one fate there.

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
    /// The item, with the ECN bits it left with.
    pub item: Item,
    /// The stage.
    pub stage: StageId,
    /// When it arrived.
    pub t_in: Instant,
    /// When it left: `Some` exactly if `outcome` is `Delivered`.
    pub t_out: Option<Instant>,
    /// How its stay ended.
    pub outcome: Outcome,
    /// Why it was dropped; `Cause::None` otherwise.
    pub cause: Cause,
    /// The stage's fill when it arrived.
    pub queue: QueueDepth,
    /// The stage set CE on it.
    pub marked: bool,
}

/// Takes fates as a path reports them, in order of path time.
pub trait FateSink {
    /// One item's stay in one stage has ended.
    fn fate(&mut self, fate: &Fate);
    /// A stage's setting changed at `at` (rate, loss, delay ...): `what` names it, `value` is in SI units.
    fn changed(&mut self, stage: StageId, at: Instant, what: &'static str, value: f64, unit: &'static str);
}

/// Throws every fate away.
impl FateSink for () {
    fn fate(&mut self, _: &Fate) {}
    fn changed(&mut self, _: StageId, _: Instant, _: &'static str, _: f64, _: &'static str) {}
}
