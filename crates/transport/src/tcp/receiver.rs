//! The receiving half: reassembly, the window, and when to acknowledge.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Ecn, Instant};

use super::accurate_ecn::MarksReceived;
use super::ack_policy::{AckPolicy, Moment};
use super::byte_queue::ByteQueue;
use super::config::Config;
use super::segment::SackBlocks;
use super::seq::Maybe;
use super::window_growth::{FIRST_WINDOW, first_told, tells_window};

/// Bytes that arrived ahead of a gap: `[left, right)`.
type Range = (u64, u64);
/// How many ranges are remembered by recency; older ones are reported from the lowest up.
const RECENT: usize = 4;
/// The buffer that a receiver holds for each byte of offered window, as a divisor of the excess: Linux's buffer is
/// twice a program's request, and a full segment's payload counts for 160/256 of it (`scaling_ratio`, since 6.6;
/// measured: 2,304 B of memory for 1,448). Data that waits for the reader therefore does not reduce the window at
/// first.
const SLACK_SHARE: u64 = 4;

/// Receiving state. Sequence numbers are 64 bits wide.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// In order and unread.
    queue: ByteQueue,
    /// The next sequence number expected, a FIN counted.
    next: u64,
    /// Right edge of the window as advertised; it never moves left.
    edge: u64,
    /// The largest window.
    limit: u64,
    mss: u64,
    /// Whether the window is that of Linux 6.1.
    tells: bool,
    /// Ahead of a gap, ascending and apart.
    ranges: VecDeque<Range>,
    /// From the first gap on.
    ahead: Option<Box<Ahead>>,
    /// The range that the last segment repeated (RFC 2883); empty for nothing.
    duplicate: Range,
    fin: Maybe,
    /// `next` when an acknowledgement was last sent.
    acknowledged: u64,
    policy: AckPolicy,
    /// The state of echoing congestion experienced.
    echo: Echo,
    /// The same where feedback is accurate.
    marks: MarksReceived,
}

/// Data ahead of a gap.
#[derive(Clone, Debug, Default)]
struct Ahead {
    /// Those segments that hold real bytes, ascending by sequence number.
    held: Vec<(u64, Chunk)>,
    /// A sequence number in each range of late, most recent first; 0 for none.
    recent: [u64; RECENT],
}

/// The receiver's half of ECN (RFC 3168 section 6.1.3), with the acknowledgements that Linux does not delay.
#[derive(Clone, Copy, Debug, Default)]
struct Echo {
    /// Whether acknowledgements carry the echo until the sender has answered.
    says: bool,
    /// Whether some segment could have been marked.
    capable: bool,
    /// Segments that were marked.
    marked: u64,
}

/// Acknowledgements at once after a mark: the sender's window may be next to nothing.
const QUICK_AFTER_MARK: u8 = 2;

impl Receiver {
    /// Makes the receiver of a stream that starts at sequence number `start`.
    pub fn new(start: u64, config: &Config) -> Self {
        Receiver {
            queue: ByteQueue::new(start),
            next: start,
            edge: start + u64::from(first_window(config)),
            limit: config.receive_window,
            mss: u64::from(config.mss),
            tells: tells_window(config),
            ranges: VecDeque::new(),
            ahead: None,
            duplicate: (0, 0),
            fin: Maybe::NONE,
            acknowledged: start,
            policy: AckPolicy::new(start, config),
            echo: Echo::default(),
            marks: MarksReceived::default(),
        }
    }

    /// Evaluates the ECN bits of arrived data; `answered`: the sender reports that it has reduced its window.
    pub fn look_at_mark(&mut self, ecn: Ecn, answered: bool) {
        if answered {
            self.echo.says = false;
            self.policy.demand();
        }
        let quick = match ecn {
            Ecn::Ce => {
                self.echo.marked += 1;
                !std::mem::replace(&mut self.echo.says, true)
            }
            // A segment sent again: something was lost.
            Ecn::NotEct => self.echo.capable,
            Ecn::Ect0 | Ecn::Ect1 => false,
        };
        self.echo.capable |= ecn != Ecn::NotEct;
        if quick {
            self.policy.hurry_for(QUICK_AFTER_MARK);
        }
    }
    /// Counts a data packet by the ECN bits with which it arrived (RFC 9768).
    pub fn count_mark(&mut self, ecn: Ecn) {
        if self.marks.arrived(ecn) {
            self.policy.demand();
        }
    }
    /// Returns the ACE field of the segment that leaves.
    pub fn report_marks(&mut self) -> u8 {
        self.marks.acknowledged()
    }
    /// Returns whether acknowledgements report that congestion was experienced.
    #[inline]
    pub fn echoes_congestion(&self) -> bool {
        self.echo.says
    }
    /// Returns the segments that arrived marked.
    pub fn marked(&self) -> u64 {
        self.echo.marked + self.marks.total()
    }

    /// Returns the acknowledgement number.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Returns the highest acknowledgement number sent.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
    /// Returns the in-order bytes that wait for the reader.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.queue.len()
    }
    /// Returns whether everything up to the peer's FIN has arrived.
    #[inline]
    pub fn finished(&self) -> bool {
        self.fin.get().is_some_and(|fin| self.next > fin)
    }
    /// Returns whether an acknowledgement must leave now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        self.policy.is_due()
    }
    /// Returns when a delayed acknowledgement falls due.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.policy.deadline()
    }
    /// Asks for an acknowledgement.
    #[inline]
    pub fn demand_ack(&mut self) {
        self.policy.demand();
    }
    /// Notes that data is sent, which carries the next acknowledgement.
    #[inline]
    pub fn data_sent(&mut self, now: Instant) {
        self.policy.data_sent(now);
    }
    /// Handles the timers of acknowledgements that have expired. `rto` is this end's own timeout.
    pub fn handle_timeout(&mut self, now: Instant, rto: Duration) {
        self.policy.handle_timeout(now, rto);
    }

    /// Handles a segment with payload or FIN; true if in-order data or the FIN became available.
    pub fn receive(&mut self, at: Moment, seq: u64, payload: &Chunk, fin: bool) -> bool {
        let data_end = seq + payload.len() as u64;
        let end = data_end + u64::from(fin);
        if end <= self.next {
            self.duplicate = (seq, end);
            self.policy.hurry();
            return false;
        }
        if data_end > self.edge {
            // Outside our window; the acknowledgement shows the peer where that ends.
            self.policy.hurry();
            return false;
        }
        if fin {
            self.fin = Maybe::some(data_end);
        }
        // Repeated data occupies room for a moment, too.
        let held = self.held();
        let next = (seq <= self.next).then_some(data_end);
        self.policy.arrived(at, payload.len() as u64, next, held + payload.len() as u64);
        if seq > self.next {
            self.hold(seq, end, payload);
            self.policy.ahead(self.span(), held);
            self.decide(at);
            return false;
        }
        if seq < self.next {
            self.duplicate = (seq, self.next);
            self.policy.demand();
        }
        let mut data = payload.clone();
        let fresh = if seq < self.next { data.split_off((self.next - seq) as usize) } else { data };
        self.queue.push(fresh);
        self.next = end;
        if !self.ranges.is_empty() {
            self.close_gap();
            if self.ranges.is_empty() {
                self.policy.demand();
            }
        }
        if self.finished() {
            self.policy.demand();
        }
        self.decide(at);
        true
    }

    fn decide(&mut self, at: Moment) {
        let held = self.held();
        self.policy.decide(at, self.next - self.acknowledged, self.next, !self.ranges.is_empty(), held);
    }

    /// Returns the bytes in the buffer, if these count.
    fn held(&self) -> u64 {
        if self.policy.counts_memory() { self.queue.len() + self.ahead_bytes() } else { 0 }
    }

    /// Returns the bytes that have arrived ahead of a gap.
    fn ahead_bytes(&self) -> u64 {
        self.ranges.iter().map(|&(left, right)| right - left).sum()
    }

    /// Returns the span from the next sequence number expected to the end of the data ahead of a gap.
    fn span(&self) -> u64 {
        self.ranges.back().map_or(0, |&(_, right)| right - self.next)
    }

    /// Keeps a segment that is ahead of a gap.
    fn hold(&mut self, seq: u64, end: u64, payload: &Chunk) {
        // Arrivals ahead of a gap mostly continue the highest range.
        let mut at = match self.ranges.back() {
            Some(&(left, _)) if left <= seq => self.ranges.len(),
            _ => self.ranges.partition_point(|&(left, _)| left <= seq),
        };
        let mut merged = (seq, end);
        if at > 0 && self.ranges[at - 1].1 >= seq {
            at -= 1;
            let (left, right) = self.ranges[at];
            if right >= end {
                self.duplicate = (seq, end);
                self.note_recent(left, right, seq);
                return;
            }
            merged.0 = left;
            self.ranges[at].1 = end;
        } else {
            self.ranges.insert(at, merged);
        }
        while let Some(&(left, right)) = self.ranges.get(at + 1) {
            if left > merged.1 {
                break;
            }
            merged.1 = merged.1.max(right);
            self.ranges.remove(at + 1);
        }
        self.ranges[at] = merged;
        self.note_recent(merged.0, merged.1, seq);
        if !payload.head().is_empty() {
            let held = &mut self.ahead.get_or_insert_default().held;
            let slot = held.partition_point(|&(start, _)| start <= seq);
            held.insert(slot, (seq, payload.clone()));
        }
    }

    /// Makes the range `[left, right)`, in which `seq` just arrived, the most recent (RFC 2018 section 4).
    fn note_recent(&mut self, left: u64, right: u64, seq: u64) {
        let recent = &mut self.ahead.get_or_insert_default().recent;
        let mut kept = [0; RECENT];
        kept[0] = seq;
        let others = recent.iter().filter(|&&point| point != 0 && !(left..right).contains(&point));
        for (slot, &point) in kept[1..].iter_mut().zip(others) {
            *slot = point;
        }
        *recent = kept;
    }

    /// Moves the data that has become contiguous into the queue.
    fn close_gap(&mut self) {
        while let Some(&(left, right)) = self.ranges.front() {
            if left > self.next {
                break;
            }
            self.ranges.pop_front();
            if right > self.next {
                self.deliver(right);
            }
        }
        if self.ranges.is_empty()
            && let Some(ahead) = &mut self.ahead
        {
            ahead.recent = [0; RECENT];
            ahead.held.clear();
        }
    }

    fn deliver(&mut self, end: u64) {
        let data_end = self.fin.get().map_or(end, |fin| fin.min(end));
        let held = self.ahead.as_mut().map(|ahead| &mut ahead.held);
        let count = held.as_ref().map_or(0, |held| held.partition_point(|&(start, _)| start < data_end));
        for (start, mut chunk) in held.into_iter().flat_map(|held| held.drain(..count)) {
            let at = self.queue.end();
            if start + chunk.len() as u64 <= at {
                continue;
            }
            if start > at {
                push_filler(&mut self.queue, start - at);
            } else if start < at {
                chunk = chunk.split_off((at - start) as usize);
            }
            self.queue.push(chunk);
        }
        let at = self.queue.end();
        push_filler(&mut self.queue, data_end.saturating_sub(at));
        self.next = end;
    }

    /// Reads up to `max` bytes.
    pub fn read(&mut self, max: usize) -> Option<Chunk> {
        let chunk = self.queue.take(max)?;
        self.policy.read(chunk.len() as u64, self.queue.len(), self.next - self.acknowledged, self.span());
        // A window update is worth a segment once the window doubles by it, as in Linux.
        if self.tells {
            if !self.finished() && self.policy.doubles(self.next, self.held()) {
                self.policy.demand();
            }
            return Some(chunk);
        }
        let open = self.edge - self.next.min(self.edge);
        if 2 * open <= self.limit && !self.finished() {
            let edge = self.next_edge();
            if edge > self.edge && edge - self.next >= 2 * open {
                self.policy.demand();
            }
        }
        Some(chunk)
    }

    /// Returns the right edge to advertise: moved only by a worthwhile step, against silly windows (RFC 9293 section
    /// 3.8.6.2.2). The window counts from the next expected byte, and the buffer from the last byte read (Linux's
    /// `__tcp_select_window`).
    fn next_edge(&self) -> u64 {
        let room = self.queue.start() + self.limit + self.limit / SLACK_SHARE;
        let edge = (self.next + self.limit).min(room.saturating_sub(self.ahead_bytes()).max(self.next));
        if edge.saturating_sub(self.edge) >= self.mss.min(self.limit / 2) { edge } else { self.edge }
    }

    /// Returns the window to send, in bytes from `next`. An acknowledgement leaves with it.
    pub fn acknowledge(&mut self) -> u32 {
        if self.policy.counts_memory() {
            let window = self.policy.window(self.next, self.held());
            self.edge = if self.tells { self.next + u64::from(window) } else { self.next_edge() };
        } else {
            self.edge = self.next_edge();
        }
        self.acknowledged = self.next;
        self.policy.sent();
        self.edge.saturating_sub(self.next).min(u64::from(u32::MAX)) as u32
    }

    /// Returns whether `take_sack` has a block to report.
    #[inline]
    pub fn has_sack(&self) -> bool {
        self.duplicate.1 > 0 || !self.ranges.is_empty()
    }

    /// Returns the SACK blocks to send: a repeated stretch first if there is one (RFC 2883), then ranges, most recently
    /// extended first (RFC 2018 section 4).
    pub fn take_sack(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let (left, right) = std::mem::take(&mut self.duplicate);
        if right > 0 {
            blocks.push(left as u32, right as u32);
        }
        if self.ranges.is_empty() {
            return blocks;
        }
        let mut reported = [u64::MAX; RECENT];
        let recent = self.ahead.as_ref().map_or([0; RECENT], |ahead| ahead.recent);
        for (i, &point) in recent.iter().enumerate().filter(|&(_, &point)| point != 0) {
            let at = self.ranges.partition_point(|&(left, _)| left <= point);
            if at == 0 || self.ranges[at - 1].1 <= point {
                continue;
            }
            let (left, right) = self.ranges[at - 1];
            reported[i] = left;
            blocks.push(left as u32, right as u32);
        }
        for &(left, right) in self.ranges.iter().take(SackBlocks::MAX + RECENT) {
            if blocks.as_slice().len() == SackBlocks::MAX {
                break;
            }
            if !reported.contains(&left) {
                blocks.push(left as u32, right as u32);
            }
        }
        blocks
    }
}

/// Returns the window that a SYN offers.
pub fn first_window(config: &Config) -> u32 {
    let window = config.receive_window.min(u64::from(u32::MAX)) as u32;
    if tells_window(config) { first_told(window.min(FIRST_WINDOW), config.mss) } else { window }
}

fn push_filler(queue: &mut ByteQueue, mut bytes: u64) {
    while bytes > 0 {
        let part = bytes.min(u64::from(u32::MAX)) as u32;
        queue.push(Chunk::filler(part));
        bytes -= u64::from(part);
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
