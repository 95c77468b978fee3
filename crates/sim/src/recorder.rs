//! The output of a trial while it runs.

use streamgauge_base::{Direction, Event, Fate, FlowId, Instant, Item, PacketInfo, StageId};
use streamgauge_path::Change;

use crate::peers::PeerLink;
use crate::store::Body;

/// A request to a trial that keeps to a pace.
#[derive(Clone, Debug, PartialEq)]
pub enum Steer {
    /// Nothing.
    GoOn,
    /// Changes at a time: direction (0 down, 1 up), place of the stage in it, change.
    Change(Instant, Vec<(usize, usize, Change)>),
    /// The end, at a time.
    Stop(Instant),
}

/// Receives a trial's rows and events. `()` drops everything and costs nothing.
pub trait Recorder {
    /// False if rows are not needed; packets are then not classified either.
    const PACKETS: bool;
    /// Whether the messages in packets are recorded, as events.
    const MESSAGES: bool = Self::PACKETS;
    /// Whether the trial keeps to a pace and may be steered.
    const PACED: bool = false;
    /// Whether the packets' bytes are recorded.
    const FRAMES: bool = false;

    /// Records the end of a packet's stay in one stage. Rows are in the record's canonical order.
    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction);
    /// Records that a stage of the path has made one item more; see
    /// [`FateSink::made`](streamgauge_base::FateSink::made).
    fn made(&mut self, stage: StageId, from: &Item, made: &Item);
    /// Records that a packet of `bytes` Ethernet bytes was put into a path at `stage`.
    fn entered(&mut self, stage: StageId, flow: FlowId, bytes: u32);
    /// Records that a packet was removed from the path of `direction`.
    fn left(&mut self, direction: Direction, flow: FlowId, bytes: u32);
    /// Records an event of a machine or of the path.
    fn event(&mut self, event: Event);
    /// Runs before the trial continues to `now`, with everything until `done` finished: waits as the pace requires, and
    /// returns the requests to apply first. Asked where [`Recorder::PACED`].
    fn pace(&mut self, _now: Instant, _done: Instant, _held_bytes: [u32; 2]) -> Steer {
        Steer::GoOn
    }
    /// Records, with `FRAMES`, that this packet, or part of one, enters the path.
    fn sent(&mut self, _at: Instant, _link: &PeerLink, _item: &Item, _body: &Body) {}
    /// Records, with `FRAMES`, that it has left the path.
    fn arrived(&mut self, _at: Instant, _direction: Direction, _item: &Item, _body: &Body) {}
    /// Returns the bytes of the rows and events received so far, as they lie in memory without compression.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

impl Recorder for () {
    const PACKETS: bool = false;

    #[inline]
    fn row(&mut self, _: &Fate, _: &PacketInfo, _: Direction) {}
    #[inline]
    fn made(&mut self, _: StageId, _: &Item, _: &Item) {}
    #[inline]
    fn entered(&mut self, _: StageId, _: FlowId, _: u32) {}
    #[inline]
    fn left(&mut self, _: Direction, _: FlowId, _: u32) {}
    #[inline]
    fn event(&mut self, _: Event) {}
}
