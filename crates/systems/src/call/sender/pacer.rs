//! Waiting packets: repeated ones leave before new ones.

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Duration, Instant};
use streamgauge_transport::media_rate::Probe;

use super::super::packet::{Place, ip_bytes};

/// Waiting packets leave within this time, at any pacing rate (libwebrtc's longest queue).
const LONGEST_QUEUE_S: f64 = 2.0;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub place: Place,
    pub payload: u32,
    /// The sequence number of the packet that it repeats.
    pub repeats: Option<u16>,
}

impl Waiting {
    pub fn ip_bytes(&self) -> u32 {
        ip_bytes(self.payload, self.repeats.is_some())
    }
}

/// A probe under way.
#[derive(Clone, Copy, Debug)]
struct Probing {
    number: u32,
    rate: BitRate,
    packets: u32,
    until: Instant,
}

#[derive(Default)]
pub(super) struct Pacer {
    repeated: VecDeque<Waiting>,
    fresh: VecDeque<Waiting>,
    bytes: u64,
    /// When the next may leave.
    next: Option<Instant>,
    probing: Option<Probing>,
    probes: u32,
}

impl Pacer {
    pub fn push(&mut self, packet: Waiting) {
        self.bytes += u64::from(packet.ip_bytes());
        if packet.repeats.is_some() { &mut self.repeated } else { &mut self.fresh }.push_back(packet);
    }

    /// Returns the bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how long the oldest fresh packet has waited.
    pub fn age(&self, now: Instant) -> Duration {
        self.fresh.front().map_or(Duration::ZERO, |oldest| now.saturating_since(oldest.place.captured))
    }

    /// Returns whether this repetition waits already.
    pub fn repeats(&self, sequence: u16) -> bool {
        self.repeated.iter().any(|packet| packet.repeats == Some(sequence))
    }

    pub fn is_empty(&self) -> bool {
        self.repeated.is_empty() && self.fresh.is_empty()
    }

    /// Begins a probe.
    pub fn begin(&mut self, now: Instant, probe: Probe) {
        let number = self.probes;
        self.probes += 1;
        let until = now + probe.lasts;
        self.probing = Some(Probing { number, rate: probe.rate, packets: probe.packets, until });
    }

    pub fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// Returns when the next packet may leave, if there is one.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        (!self.is_empty() || self.is_probing()).then(|| self.next.unwrap_or(now))
    }

    /// Returns the next packet, and the probe that it is part of; `None` if none waits.
    pub fn pop(&mut self) -> Option<Waiting> {
        let packet = self.repeated.pop_front().or_else(|| self.fresh.pop_front())?;
        self.bytes -= u64::from(packet.ip_bytes());
        Some(packet)
    }

    /// Notes that a packet left at `now`, which was due at `due`, while the pacing rate is `pacing`. Returns
    /// its probe's number.
    pub fn left(&mut self, now: Instant, due: Instant, bytes: u32, pacing: BitRate) -> Option<u32> {
        let mut rate = pacing.as_bps() as f64;
        rate = rate.max(self.bytes as f64 * 8.0 / LONGEST_QUEUE_S).max(1.0);
        let mut number = None;
        if let Some(probing) = &mut self.probing {
            (rate, number) = (probing.rate.as_bps() as f64, Some(probing.number));
            probing.packets = probing.packets.saturating_sub(1);
            if probing.packets == 0 && now >= probing.until {
                self.probing = None;
            }
        }
        // From when it was due: a late timer does not add up, but idle time is no credit.
        let from = if now.saturating_since(due) > Duration::from_millis(5) { now } else { due };
        self.next = Some(from + Duration::from_nanos((f64::from(bytes) * 8e9 / rate) as u64));
        number
    }

    /// Gives up waiting packets.
    pub fn clear(&mut self) {
        *self = Pacer { probes: self.probes, next: self.next, ..Pacer::default() };
    }
}
