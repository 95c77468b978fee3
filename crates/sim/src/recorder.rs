//! What a trial hands over while it runs.

use streamgauge_base::{Direction, Event, Fate, FlowId, Item, PacketInfo, StageId};

/// Takes a trial's rows and events. `()` takes nothing and costs nothing.
pub trait Recorder {
    /// False if rows are not wanted; packets are then not classified either.
    const PACKETS: bool;
    /// Whether the messages that packets carry are wanted, which are events.
    const MESSAGES: bool = Self::PACKETS;

    /// A packet's stay in one stage has ended. Rows come in the record's canonical order.
    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction);
    /// A stage of the path has made one item more; see [`FateSink::made`](streamgauge_base::FateSink::made).
    fn made(&mut self, stage: StageId, from: &Item, made: &Item);
    /// A packet of `bytes` Ethernet bytes was put into a path at `stage`.
    fn entered(&mut self, stage: StageId, flow: FlowId, bytes: u32);
    /// A packet was taken out of the path of `direction`.
    fn left(&mut self, direction: Direction, flow: FlowId, bytes: u32);
    /// A machine or the path said something.
    fn event(&mut self, event: Event);
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
