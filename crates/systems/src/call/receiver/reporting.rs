//! Reports of each packet's arrival, by transport-wide numbers or by source.

use std::collections::BTreeMap;

use streamgauge_base::{Ecn, Instant};
use streamgauge_wire::rtcp::congestion::{
    CongestionFeedback, OVER_RANGE, PacketReport, StreamReport, TransportWide,
};
use streamgauge_wire::rtcp::{Packet, ntp_middle};

use super::super::Ssrcs;
use super::super::packet::{CallPacket, unwrapped};

/// 250 us.
const TICK_NS: u64 = 250_000;
/// A report on more packets than this begins with later ones.
const MOST: u64 = 4096;

/// Arrivals of a source, by number: time and ECN bits.
type Came = BTreeMap<u64, (Instant, Ecn)>;

/// Arrivals since the last report.
pub(super) struct Reporting {
    is_wide: bool,
    ssrcs: Ssrcs,
    receiver: u32,
    /// For each source, or for all: the arrivals, and the number after the last reported one.
    came: [Came; 2],
    next: [Option<u64>; 2],
    count: u8,
}

impl Reporting {
    pub fn new(is_wide: bool, ssrcs: Ssrcs, receiver: u32) -> Self {
        Reporting { is_wide, ssrcs, receiver, came: Default::default(), next: [None; 2], count: 0 }
    }

    /// Notes a received packet.
    pub fn came(&mut self, at: Instant, ecn: Ecn, packet: &CallPacket) {
        let source = usize::from(!self.is_wide && packet.repeats.is_some());
        let low = if self.is_wide { packet.transport } else { packet.sequence };
        // Both ends begin with 0: losses before the first arrival are reported too.
        let number = unwrapped(low, self.next[source].unwrap_or(0));
        self.came[source].entry(number).or_insert((at, ecn));
    }

    /// Returns whether there is anything to report.
    pub fn is_due(&self) -> bool {
        self.came.iter().any(|came| !came.is_empty())
    }

    /// Returns the numbers from the first that was not reported, or arrived since, to the last that arrived.
    fn range(&mut self, source: usize) -> Option<(u64, Came)> {
        let came = std::mem::take(&mut self.came[source]);
        let (&first, &last) = (came.keys().next()?, came.keys().next_back()?);
        let begin = first.min(self.next[source].unwrap_or(0)).max((last + 1).saturating_sub(MOST));
        self.next[source] = Some(self.next[source].map_or(last + 1, |next| next.max(last + 1)));
        Some((begin, came))
    }

    /// Returns the report.
    pub fn report(&mut self, now: Instant) -> Packet {
        if self.is_wide { self.wide() } else { self.congestion(now) }
    }

    fn wide(&mut self) -> Packet {
        let (begin, came) = self.range(0).unwrap_or_default();
        let end = came.keys().next_back().map_or(begin, |last| last + 1);
        let ticks = |number: u64| came.get(&number).map(|(at, _)| (at.as_nanos() / TICK_NS) as u32);
        let arrivals = (begin..end).map(ticks).collect();
        let count = self.count;
        self.count = count.wrapping_add(1);
        let (sender_ssrc, media_ssrc) = (self.receiver, self.ssrcs.media);
        Packet::TransportWide(TransportWide { sender_ssrc, media_ssrc, count, base: begin as u16, arrivals })
    }

    fn congestion(&mut self, now: Instant) -> Packet {
        let mut streams = Vec::new();
        for (source, ssrc) in [self.ssrcs.media, self.ssrcs.repeated].into_iter().enumerate() {
            let Some((begin, came)) = self.range(source) else { continue };
            let end = came.keys().next_back().map_or(begin, |last| last + 1);
            let packets = (begin..end).map(|number| {
                let (at, ecn) = came.get(&number)?;
                let before = u128::from(now.saturating_since(*at).as_nanos()) * 1024 / 1_000_000_000;
                let before = u16::try_from(before).unwrap_or(OVER_RANGE).min(OVER_RANGE);
                Some(PacketReport { ecn: *ecn as u8, before })
            });
            streams.push(StreamReport { ssrc, begin: begin as u16, packets: packets.collect() });
        }
        Packet::CongestionFeedback(CongestionFeedback {
            sender_ssrc: self.receiver,
            at: ntp_middle(now),
            streams,
        })
    }
}
