//! A link that carries packets up to some length: IP fragmentation (RFC 791 section 3.2).

use streamgauge_base::{Cause, Fragment, IPV4_HEADER_BYTES, Item, StageId};

use crate::error::StageProblem;
use crate::passing::{Effect, Passing};
use crate::schedule::{Schedule, ascending, starts_on};
use crate::spec::MtuSpec;

/// Fragments packets longer than the MTU, or drops them where their header forbids that.
///
/// Every fragment has an IP header without options and an Ethernet header of its own. A real router also answers a
/// packet that it may not cut up with ICMP "fragmentation needed" (RFC 1191 section 4); this one is silent, as many a
/// firewall makes it (a "black hole", RFC 2923 section 2.1). A corrupted packet has one wrong bit, which stays in the
/// first fragment: one in each could cancel in the checksum, and the datagram would pass as sound.
pub type Mtu = Passing<Cutting>;

/// Its length.
#[derive(Clone, Debug)]
pub struct Cutting {
    mtu: u32,
}

impl Mtu {
    /// Makes the stage as at time zero.
    pub fn new(id: StageId, spec: &MtuSpec) -> Self {
        Passing::with(id, starts_on(&spec.switches), Cutting { mtu: spec.bytes })
    }
}

impl Effect for Cutting {
    fn meet(&mut self, item: Item, make: &mut impl FnMut(Item)) -> Result<Item, Cause> {
        if item.ip_bytes <= self.mtu {
            return Ok(item);
        }
        if item.fragment.dont_fragment() {
            return Err(Cause::TooBig);
        }
        let payload = item.ip_bytes - IPV4_HEADER_BYTES;
        let most = (self.mtu - IPV4_HEADER_BYTES) & !7;
        let part = |from: u32| {
            let bytes = most.min(payload - from);
            let last = from + bytes == payload;
            let offset = item.fragment.offset() + (from / 8) as u16;
            let ip_bytes = bytes + IPV4_HEADER_BYTES;
            Item {
                fragment: Fragment::part(offset, !last || item.fragment.more()),
                ip_bytes,
                bytes: ip_bytes + (item.bytes - item.ip_bytes),
                corrupted: item.corrupted && from == 0,
                ..item
            }
        };
        for from in (most..payload).step_by(most as usize) {
            make(part(from));
        }
        Ok(part(0))
    }

    fn setting(&self, on: bool) -> (&'static str, f64, &'static str) {
        ("mtu", f64::from(if on { self.mtu } else { LONGEST }), "B")
    }
}

/// The longest IP packet, which the link carries while the stage is off.
const LONGEST: u32 = 65_535;

/// The length that every link must carry whole (RFC 791 section 3.2).
const SHORTEST: u32 = 68;

impl MtuSpec {
    /// Returns the MTU at time zero, if there is one then.
    pub fn initial(&self) -> Option<u32> {
        starts_on(&self.switches).then_some(self.bytes)
    }

    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::switched(&self.switches)
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        if !(SHORTEST..=LONGEST).contains(&self.bytes) {
            return Err(StageProblem::Mtu(self.bytes));
        }
        ascending("switches", &self.switches)
    }
}
