//! Outstanding data: the segments that arrived, are lost, or were sent again (RFC 6675). Judging them lost is in
//! `rack`.
//!
//! Counts are of segments, as in Linux, and are reported in bytes as if each were full: a short segment uses as much of
//! the congestion window as a full one.
//!
//! Every operation is O(1) amortised over the life of a segment. An acknowledgement pops from the front; a
//! SACK block is walked only where it differs from a block of the previous acknowledgement; a cursor passes
//! over each segment once to judge it lost and once to send it again.

mod rack;

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

use super::clock::stamp;
use super::rate_sample::{RateSample, Sampler};
use rack::Rack;

/// The receiver holds it (SACK).
pub(super) const SACKED: u8 = 1;
/// Judged lost.
pub(super) const LOST: u8 = 2;
/// Sent again since it was judged lost, and that copy is in flight.
pub(super) const RESENT: u8 = 4;
/// Sent more than once, so that its round trip has no meaning (Karn).
pub(super) const AMBIGUOUS: u8 = 8;
/// Ends with a FIN, which uses one sequence number.
const FIN: u8 = 16;

/// One segment outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First sequence number.
    pub start: u64,
    /// Sequence numbers used, a FIN included.
    pub len: u32,
    pub(super) state: u8,
    /// Which of all transmissions it was last sent by, and when.
    pub(super) sent: Transmission,
}

impl Sent {
    /// Returns one past its last sequence number.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    /// Returns whether it ends with a FIN.
    pub fn has_fin(&self) -> bool {
        self.state & FIN != 0
    }
    /// Returns whether it was sent more than once.
    pub fn was_resent(&self) -> bool {
        self.is(AMBIGUOUS)
    }
    /// Returns whether the receiver has reported it.
    pub fn is_sacked(&self) -> bool {
        self.is(SACKED)
    }
    /// Returns when it was sent last.
    pub fn sent_at(&self) -> Instant {
        self.sent.1
    }
    pub(super) fn is(&self, bit: u8) -> bool {
        self.state & bit != 0
    }
}

/// The number and the time of a transmission. Numbers count up: they put those of one burst in order.
pub(super) type Transmission = (u64, Instant);

/// The information in an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Learned {
    /// Segments newly known to have arrived.
    pub delivered: u32,
    /// Whether the cumulative acknowledgement covers a segment that was sent more than once.
    pub ambiguous: bool,
    /// A SACK block covers a segment that none covered before.
    pub sacked: bool,
    /// Whether a segment below `high` that was sent only once has arrived.
    pub original: bool,
    /// Time when the first and the last of the newly arrived segments that were sent once had been sent.
    pub sent: Option<(Instant, Instant)>,
    /// The lowest segment that was sent only once and arrived after something behind it.
    pub reordered: Option<u64>,
    /// The last sent of the newly arrived segments.
    pub(super) newest: Option<Transmission>,
    /// The one looked at last, and when it had been sent.
    pub(super) last: Option<(Place, Instant)>,
    high: u64,
    echo: Option<u32>,
    /// Data sent again after that is answered too soon: the answer is to the copy before.
    latest_copy: Instant,
    fack: u64,
}

/// The order in which Linux examines arrived segments: first the SACKed ones, then the acknowledged ones, each in
/// sequence.
pub(super) type Place = (bool, u64);

impl Learned {
    fn arrived(&mut self, sent: &Sent) {
        self.delivered += 1;
        let (_, at) = sent.sent;
        if !sent.is(AMBIGUOUS) {
            let first = self.sent.map_or(at, |(first, _)| first);
            self.sent = Some((first, at));
            self.original |= sent.end() <= self.high;
            if sent.start < self.fack {
                self.note_reordered(sent.start);
            }
        }
    }

    /// Notes the newest arrival, which reveals losses; `acknowledged`: by the acknowledgement number.
    fn note_newest(&mut self, sent: &Sent, acknowledged: bool) {
        let (_, at) = sent.sent;
        if sent.is(AMBIGUOUS) && at > self.latest_copy {
            return;
        }
        self.newest = self.newest.max(Some(sent.sent));
        let place = (acknowledged, sent.start);
        if self.last.is_none_or(|(last, _)| place > last) {
            self.last = Some((place, at));
        }
    }

    fn note_reordered(&mut self, start: u64) {
        self.reordered = Some(self.reordered.map_or(start, |known| known.min(start)));
    }
}

/// The state of repairing losses.
#[derive(Clone, Debug, Default)]
pub(super) struct Repair {
    /// The blocks of the last acknowledgement that had any.
    pub known: [(u64, u64); 4],
    /// Segments sent again, in that order: number and transmission. Stale entries are skipped.
    pub again: VecDeque<(u64, Transmission)>,
}

/// The segments outstanding, oldest first, and counts of them.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    pub(super) ring: VecDeque<Sent>,
    /// Index of the ring's front, counted from the connection's start; cursors count alike.
    pub(super) base: u64,
    /// Bytes that a segment counts for.
    unit: u32,
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) resent: u32,
    /// Segments judged lost since the start, again and again.
    pub(super) lost_ever: u64,
    pub(super) transmissions: u64,
    /// Everything before it has been SACKed or judged lost.
    pub(super) judged: u64,
    /// No lost segment before it, and none from `lost_end` on, waits to be sent again.
    pub(super) resend: u64,
    pub(super) lost_end: u64,
    /// One past the highest sequence number SACKed.
    fack: u64,
    /// Only while it is of use.
    pub(super) repair: Option<Box<Repair>>,
    pub(super) rack: Rack,
    /// Measures the delivery rate, for a controller that asks for it.
    sampler: Option<Box<Sampler>>,
}

impl Scoreboard {
    /// Makes an empty scoreboard; a segment counts for `unit` bytes.
    pub fn new(unit: u32) -> Self {
        Scoreboard {
            ring: VecDeque::new(),
            base: 0,
            unit,
            sacked: 0,
            lost: 0,
            resent: 0,
            lost_ever: 0,
            transmissions: 0,
            judged: 0,
            resend: 0,
            lost_end: 0,
            fack: 0,
            repair: None,
            rack: Rack::default(),
            sampler: None,
        }
    }

    fn bytes(&self, segments: u64) -> u64 {
        segments * u64::from(self.unit)
    }
    /// Returns the segments sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.ring.len() as u32
    }
    /// Returns the segments thought to be in the network.
    pub fn in_flight(&self) -> u32 {
        self.outstanding() + self.resent - self.sacked - self.lost
    }
    /// Returns RFC 6675's pipe: bytes thought to be in the network.
    pub fn pipe(&self) -> u64 {
        self.bytes(u64::from(self.in_flight()))
    }
    /// Returns the segments judged lost and not yet known to have arrived.
    pub fn lost(&self) -> u32 {
        self.lost
    }
    /// Returns the segments that the receiver has reported beyond a gap.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }
    /// Copies in flight.
    pub fn resent_in_flight(&self) -> u32 {
        self.resent
    }
    /// Returns whether something judged lost has not been sent again.
    pub fn waits_to_resend(&self) -> bool {
        self.lost > self.resent
    }
    /// Returns the bytes judged lost since the connection began; a copy judged lost too counts again.
    pub fn lost_ever(&self) -> u64 {
        self.bytes(self.lost_ever)
    }
    /// Returns whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
    /// Returns the oldest segment outstanding.
    pub fn oldest(&self) -> Option<&Sent> {
        self.ring.front()
    }
    /// Returns the outstanding segment that was first sent last.
    pub fn last(&self) -> Option<&Sent> {
        self.ring.back()
    }
    /// Copies are in flight, or the oldest segment has been sent more than once.
    pub fn any_resent(&self) -> bool {
        self.resent > 0 || self.oldest().is_some_and(Sent::was_resent)
    }

    /// Frees the memory that a busy connection needs, as nothing is outstanding or waits to be sent.
    pub fn rest(&mut self) {
        debug_assert!(self.is_empty());
        self.ring = VecDeque::new();
        self.repair = None;
        if let Some(sampler) = &mut self.sampler {
            sampler.rest();
        }
    }

    /// Starts to measure delivery rates. Nothing may be outstanding.
    pub fn sample_rates(&mut self) {
        debug_assert!(self.is_empty());
        self.sampler = Some(Box::new(Sampler::new()));
    }
    /// Returns the delivery rate from the acknowledgement just handled; `min_rtt` is the least round trip so far.
    pub fn rate_sample(&mut self, now: Instant, min_rtt: Duration) -> Option<RateSample> {
        let lost = self.lost_ever();
        self.sampler.as_mut()?.finish(now, min_rtt, lost)
    }
    /// Notes that the writer has less to send than a segment while the window has room.
    pub fn starve(&mut self) {
        let in_flight = self.pipe();
        if let Some(sampler) = &mut self.sampler {
            sampler.starve(in_flight);
        }
    }
    /// Returns whether the writer held back the data that is sent now; only known while rates are measured.
    pub fn is_app_limited(&self) -> bool {
        self.sampler.as_ref().is_some_and(|sampler| sampler.is_app_limited())
    }

    /// Adds a segment that is sent for the first time.
    pub fn push(&mut self, start: u64, len: u32, fin: bool, at: Instant) {
        let alone = self.ring.is_empty();
        let state = if fin { FIN } else { 0 };
        self.ring.push_back(Sent { start, len, state, sent: (self.transmissions, at) });
        self.transmissions += 1;
        if self.sampler.is_some() {
            let (lost, in_flight) = (self.lost_ever(), self.pipe());
            if let Some(sampler) = &mut self.sampler {
                sampler.sent(at, alone, lost, in_flight);
            }
        }
    }

    /// Begins an acknowledgement with a timestamp that echoes `echo`; `high` is the end of the data under repair. No
    /// copy sent after `latest_copy` can have been answered yet.
    pub fn learn(&self, high: u64, echo: Option<u32>, latest_copy: Instant) -> Learned {
        let fack = if self.sacked > 0 { self.fack } else { 0 };
        Learned {
            delivered: 0,
            ambiguous: false,
            sacked: false,
            original: false,
            sent: None,
            reordered: None,
            newest: None,
            last: None,
            high,
            echo,
            latest_copy,
            fack,
        }
    }

    /// Applies the cumulative acknowledgement `ack`.
    pub fn acknowledge(&mut self, ack: u64, learned: &mut Learned) {
        while let Some(front) = self.ring.front_mut() {
            if front.end() > ack {
                if front.start < ack {
                    // Part of a segment, after a receiver trimmed it: the rest stays as it is.
                    front.len = (front.end() - ack) as u32;
                    front.start = ack;
                }
                break;
            }
            let front = *front;
            self.ring.pop_front();
            self.base += 1;
            self.forget(&front, learned);
            if let Some(sampler) = &mut self.sampler {
                sampler.left();
            }
        }
        if learned.ambiguous {
            // Segments behind a hole that was filled waited for it; their time since sending is no round
            // trip.
            learned.sent = None;
        }
        self.judged = self.judged.max(self.base);
        self.resend = self.resend.max(self.base);
    }

    fn forget(&mut self, sent: &Sent, learned: &mut Learned) {
        learned.ambiguous |= sent.is(AMBIGUOUS);
        if sent.is(SACKED) {
            self.sacked -= 1;
            return;
        }
        learned.arrived(sent);
        let first = sent.is(AMBIGUOUS) && learned.echo.is_some_and(|echo| before(echo, stamp(sent.sent.1)));
        if !first {
            // Otherwise its first copy arrived: the fate of the last is unknown.
            learned.note_newest(sent, true);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.arrived(0, u64::from(self.unit), sent.sent.0, sent.sent.1);
        }
        if sent.is(LOST) {
            self.lost -= 1;
        }
        if sent.is(RESENT) {
            self.resent -= 1;
        }
    }

    /// Applies the SACK block `[left, right)`. Blocks at or below the cumulative acknowledgement (RFC 2883) teach
    /// nothing and change nothing.
    pub fn sack(&mut self, left: u64, right: u64, learned: &mut Learned) {
        let mut from = left;
        for &(known_left, known_right) in self.repair.iter().flat_map(|repair| &repair.known) {
            if known_left <= from && from < known_right {
                from = known_right;
            }
        }
        if from >= right {
            return;
        }
        let mut i = match self.ring.back() {
            // The usual block grows at its right end, near the newest segment.
            Some(last) if last.start == from => self.ring.len() - 1,
            _ => self.ring.partition_point(|sent| sent.start < from),
        };
        while let Some(sent) = self.ring.get_mut(i) {
            if sent.end() > right {
                break;
            }
            if !sent.is(SACKED) {
                learned.arrived(sent);
                learned.note_newest(sent, false);
                learned.sacked = true;
                if let Some(sampler) = &mut self.sampler {
                    sampler.arrived(i, u64::from(self.unit), sent.sent.0, sent.sent.1);
                }
                self.sacked += 1;
                self.lost -= u32::from(sent.is(LOST));
                self.resent -= u32::from(sent.is(RESENT));
                sent.state = (sent.state & !(LOST | RESENT)) | SACKED;
                self.fack = if self.sacked == 1 { sent.end() } else { self.fack.max(sent.end()) };
            }
            i += 1;
        }
    }

    /// Ends the blocks of one acknowledgement: the next compares with `blocks`.
    pub fn remember(&mut self, blocks: impl Iterator<Item = (u64, u64)>) {
        let known = &mut self.repair.get_or_insert_default().known;
        *known = Default::default();
        for (slot, block) in known.iter_mut().zip(blocks) {
            *slot = block;
        }
    }

    /// Notes that the receiver reports `segments` that it has twice.
    pub fn repeated(&mut self, segments: u32, learned: &mut Learned) {
        learned.delivered += segments;
        let bytes = self.bytes(u64::from(segments));
        if let Some(sampler) = &mut self.sampler {
            sampler.repeated(bytes);
        }
    }

    /// Notes that the receiver has `[left, right)` twice (RFC 2883): the part of it still outstanding needs no copy.
    /// Returns how many segments that end above `above` had been sent again.
    pub fn duplicated(&mut self, left: u64, right: u64, above: u64, learned: &mut Learned) -> u32 {
        let mut resent = 0;
        let mut i = self.ring.partition_point(|sent| sent.start < left);
        while let Some(sent) = self.ring.get_mut(i) {
            if sent.end() > right {
                break;
            }
            if sent.is(AMBIGUOUS) {
                resent += u32::from(sent.end() > above);
                if sent.is(SACKED) && sent.start < self.fack {
                    learned.note_reordered(sent.start);
                }
            }
            i += 1;
        }
        resent
    }

    /// Returns how far ahead of the segment at `start` something has arrived, in segments.
    pub fn overtaken_by(&self, start: u64) -> u32 {
        (self.fack.saturating_sub(start)).div_ceil(u64::from(self.unit)).min(u64::from(u32::MAX)) as u32
    }

    /// Returns the oldest lost segment that waits to be sent again, and whether it is the oldest outstanding.
    pub fn next_lost(&mut self) -> Option<(Sent, bool)> {
        while self.resend < self.lost_end {
            let sent = self.ring.get((self.resend - self.base) as usize)?;
            if sent.is(LOST) && !sent.is(RESENT) {
                return Some((*sent, self.resend == self.base));
            }
            self.resend += 1;
        }
        None
    }

    /// Notes that the segment returned by `next_lost` is sent again at `now`.
    pub fn resent(&mut self, now: Instant) {
        let at = (self.resend - self.base) as usize;
        self.stamp(at, now);
        let sent = &mut self.ring[at];
        sent.state |= RESENT;
        let transmission = sent.sent;
        self.repair.get_or_insert_default().again.push_back((self.resend, transmission));
        self.resent += 1;
        self.resend += 1;
    }

    /// Notes that the last segment is sent again at `now` as a probe. It stays one in flight, as in Linux.
    pub fn probed(&mut self, now: Instant) {
        if let Some(at) = self.ring.len().checked_sub(1) {
            self.stamp(at, now);
        }
    }

    fn stamp(&mut self, at: usize, now: Instant) {
        let sent = &mut self.ring[at];
        sent.state |= AMBIGUOUS;
        sent.sent = (self.transmissions, now);
        self.transmissions += 1;
        let (lost, in_flight) = (self.lost_ever(), self.pipe());
        if let Some(sampler) = &mut self.sampler {
            sampler.sent_again(at, lost, in_flight);
        }
    }
}

/// Returns whether `a` is an earlier reading of the timestamp clock than `b`, which wraps.
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
