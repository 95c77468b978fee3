//! One interface of the router: a ring in, batches out.

use streamgauge_base::{Direction, FlowId};

use super::egress::Altered;
use super::slab::{Slab, Slot};
use super::stats::PortStats;
use crate::packet::{MAX_BATCH, Parts, Ring};

/// A packet that has left its path and waits for the system call.
#[derive(Clone, Copy, Debug)]
pub struct Outbound {
    /// Its bytes.
    pub slot: Slot,
    /// How it differs from those.
    pub altered: Option<Altered>,
    /// Its flow.
    pub flow: FlowId,
    /// Its direction.
    pub direction: Direction,
    /// Ethernet bytes as the path counts them.
    pub bytes: u32,
    /// Logical departure on CLOCK_MONOTONIC, ns.
    pub due: i64,
    /// It belongs to the trial.
    pub recorded: bool,
}

impl Outbound {
    /// Its bytes as they go out.
    #[inline]
    pub fn parts<'a>(&'a self, slab: &'a Slab) -> Parts<'a> {
        let frame = slab.frame(self.slot);
        self.altered.as_ref().map_or_else(|| Parts::whole(frame), |altered| altered.parts(frame))
    }
}

/// An interface.
pub struct Port {
    /// Arriving frames.
    pub ring: Ring,
    /// Frames to be sent next.
    pub out: Vec<Outbound>,
    /// Since the last reset.
    pub stats: PortStats,
    drops_before: u64,
}

impl Port {
    /// Returns a port around an open ring.
    pub fn new(ring: Ring) -> Self {
        Port { ring, out: Vec::with_capacity(MAX_BATCH), stats: PortStats::default(), drops_before: 0 }
    }

    /// Reads the kernel's count of lost frames.
    pub fn read_drops(&mut self) {
        self.stats.ring_drops = self.ring.drops() - self.drops_before;
    }

    /// Counts from zero.
    pub fn reset(&mut self) {
        self.drops_before = self.ring.drops();
        self.stats = PortStats::default();
    }
}
