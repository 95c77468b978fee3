//! Sent packets: reports are compared with them, and lost ones are sent again from them.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Ecn, Instant};
use streamgauge_transport::media_rate::PacketResult;
use streamgauge_wire::rtcp::congestion::{CongestionFeedback, NO_TIME, OVER_RANGE, TransportWide};

use super::super::packet::{Place, unwrapped};

/// Time for which packets are remembered.
const REMEMBERED: Duration = Duration::from_secs(10);

/// A packet as it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    /// Its source is that of repeated packets.
    pub is_repeated: bool,
    /// Its source's number, counted on.
    pub sequence: u64,
    /// Bytes of its media.
    pub payload: u32,
    pub place: Place,
    pub result: PacketResult,
    /// When it was sent again for the last time.
    pub repeated: Option<Instant>,
    /// It was reported; with an arrival, if the result has one.
    pub is_reported: bool,
}

/// Packets by their transport-wide numbers, which count up by one.
#[derive(Default)]
pub(super) struct History {
    packets: VecDeque<SentPacket>,
    next: u64,
    /// The transport-wide numbers of the last packets of each source, by their sequence numbers.
    of_source: [VecDeque<u64>; 2],
    sequences: [u64; 2],
    /// Sent and not yet reported, bytes.
    flying: u64,
}

/// 250 us, the unit of transport-wide feedback.
const TICK_NS: u64 = 250_000;

impl History {
    /// Returns the number that the next packet has.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the sequence number that the next packet of a source has.
    pub fn next_sequence(&self, is_repeated: bool) -> u64 {
        self.sequences[usize::from(is_repeated)]
    }

    /// Returns the bytes that were sent and not yet reported.
    pub fn flying(&self) -> u64 {
        self.flying
    }

    /// Remembers a packet, which has the next number.
    pub fn sent(&mut self, packet: SentPacket) {
        let now = packet.result.sent;
        while let Some(old) =
            self.packets.front().filter(|old| now.saturating_since(old.result.sent) > REMEMBERED)
        {
            if !old.is_reported {
                self.flying -= u64::from(old.result.bytes);
            }
            let numbers = &mut self.of_source[usize::from(old.is_repeated)];
            numbers.pop_front();
            self.packets.pop_front();
        }
        let source = usize::from(packet.is_repeated);
        self.of_source[source].push_back(self.next);
        self.sequences[source] += 1;
        self.flying += u64::from(packet.result.bytes);
        self.next += 1;
        self.packets.push_back(packet);
    }

    fn first(&self) -> u64 {
        self.next - self.packets.len() as u64
    }

    fn at(&mut self, number: u64) -> Option<&mut SentPacket> {
        let place = number.checked_sub(self.first())?;
        self.packets.get_mut(usize::try_from(place).ok()?)
    }

    /// Returns a media packet by its sequence number's lowest bits.
    pub fn media(&mut self, sequence: u16) -> Option<SentPacket> {
        let number = self.number_of(false, sequence)?;
        self.at(number).copied()
    }

    /// Notes that a media packet is sent again at `now`.
    pub fn repeats(&mut self, sequence: u16, now: Instant) {
        if let Some(number) = self.number_of(false, sequence)
            && let Some(packet) = self.at(number)
        {
            packet.repeated = Some(now);
        }
    }

    /// Returns the media packet that was sent last.
    pub fn last_media(&mut self) -> Option<SentPacket> {
        let number = *self.of_source[0].back()?;
        self.at(number).copied()
    }

    fn number_of(&self, is_repeated: bool, sequence: u16) -> Option<u64> {
        let source = usize::from(is_repeated);
        let sequence = unwrapped(sequence, self.sequences[source]);
        let first = self.sequences[source] - self.of_source[source].len() as u64;
        let place = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.of_source[source].get(place).copied()
    }

    /// Processes a report on a packet: when it arrived and with which ECN bits, if it did. `None` if that is
    /// no news.
    fn report(&mut self, number: u64, arrival: Option<(Instant, Option<Ecn>)>) -> Option<PacketResult> {
        let packet = self.at(number)?;
        if packet.is_reported && (packet.result.arrived.is_some() || arrival.is_none()) {
            return None;
        }
        let bytes = if packet.is_reported { 0 } else { u64::from(packet.result.bytes) };
        packet.is_reported = true;
        if let Some((at, ecn)) = arrival {
            packet.result.arrived = Some(at);
            packet.result.ecn = ecn.unwrap_or(packet.result.ecn);
        }
        let result = packet.result;
        self.flying -= bytes;
        Some(result)
    }

    /// Returns the new results in transport-wide feedback, in the order sent.
    pub fn wide(&mut self, wide: &TransportWide) -> Vec<PacketResult> {
        let base = unwrapped(wide.base, self.next);
        let arrivals = (base..).zip(&wide.arrivals);
        let arrived = |ticks: u32| (Instant::from_nanos(u64::from(ticks) * TICK_NS), None);
        arrivals.filter_map(|(number, ticks)| self.report(number, ticks.map(arrived))).collect()
    }

    /// Returns the new results in congestion control feedback, in the order sent.
    pub fn congestion(&mut self, feedback: &CongestionFeedback, ssrcs: [u32; 2]) -> Vec<PacketResult> {
        let at = (u128::from(feedback.at) * 1_000_000_000) >> 16;
        let mut found = Vec::new();
        for stream in &feedback.streams {
            let Some(source) = ssrcs.iter().position(|ssrc| *ssrc == stream.ssrc) else { continue };
            for (off, packet) in (0u16..).zip(&stream.packets) {
                let Some(number) = self.number_of(source == 1, stream.begin.wrapping_add(off)) else {
                    continue;
                };
                let arrival = match packet {
                    Some(packet) if matches!(packet.before, OVER_RANGE | NO_TIME) => continue,
                    Some(packet) => {
                        let before = u128::from(packet.before) * 1_000_000_000 / 1024;
                        let ns = u64::try_from(at.saturating_sub(before)).unwrap_or(0);
                        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(packet.ecn & 3)];
                        Some((Instant::from_nanos(ns), Some(ecn)))
                    }
                    None => None,
                };
                found.extend(self.report(number, arrival));
            }
        }
        found.sort_by_key(|result| result.number);
        found
    }
}
