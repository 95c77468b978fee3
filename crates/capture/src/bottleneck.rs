//! The bottleneck of one direction, from packets that passed both captures: its rate and its queue.
//!
//! Packets leave a busy bottleneck one behind the other. A packet that arrived before the last one left had to wait, so
//! the time between both departures is its own transmission time. Only long waits count, so that small delays after the
//! bottleneck do not look like a queue. Bytes are Ethernet's: IP and 14.

use std::collections::VecDeque;

use crate::first_look::Mechanism;
use crate::path_course::PathCourse;
use crate::queue_model::{
    Arrival, MOST_ARRIVALS as MOST_KEPT, QueueLevels, ServedQueue, Unseen, complete, placed, served,
};
use crate::samples::Samples;

/// Bins of the rate over time that are kept.
const MOST_BINS: usize = 2048;
const NARROWEST: i64 = 100_000_000;
/// Arrivals that are kept to look up the queue at a loss.
const MOST_ARRIVALS: usize = 1 << 18;
const ETHERNET: u64 = 14;
/// A packet's queue was long if it waited this part of the longest wait, or so long (ns): jitter is less.
const LONG_WAIT: i64 = 4;
const JITTER_NS: i64 = 20_000_000;
/// Bytes after which the rate of a part of the course is known.
const BURST_BYTES: u64 = 15_000;
/// Parts of a busy time that differ by less from their median have one rate; so many are needed.
const STEADY: f64 = 0.1;
const FEWEST_STRETCHES: u64 = 3;
/// Busy bytes from which on a rate is given.
const FEWEST_BYTES: u64 = 20_000;

/// A packet that passed.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// When it arrived at the path, on A's clock (ns).
    pub in_ns: i64,
    /// When it left, on A's clock.
    pub out_ns: i64,
    /// IP bytes.
    pub ip_bytes: u32,
}

/// Busy bytes and time.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    bytes: u64,
    ns: i64,
}

/// Follows one direction.
#[derive(Clone, Debug, Default)]
pub struct BottleneckEstimate {
    last: Option<Passed>,
    least: Option<(i64, u64)>,
    busy: Busy,
    from_ns: Option<i64>,
    width_ns: i64,
    bins: Vec<Busy>,
    inside: VecDeque<(i64, u64)>,
    held: u64,
    arrivals: VecDeque<(i64, u64)>,
    /// The most bytes that were held together with an accepted packet.
    accepted: u64,
    /// The bytes that would have been held with a lost packet, of losses at a full queue.
    refused: Samples,
    /// The last packet waited long.
    is_long: bool,
    /// The longest wait when `busy` began.
    basis_ns: i64,
    /// The fastest rate over some packets in a row, and those in hand.
    fastest_bps: f64,
    stretch: Busy,
    /// The rates of such parts (bit/s).
    rates: Samples,
    /// All arrivals at the path, the first ones.
    kept: Vec<Arrival>,
    is_kept_whole: bool,
    unseen: Vec<Unseen>,
    served: Option<ServedQueue>,
    placed: Option<QueueLevels>,
    /// Delay without a queue, and losses at a queue that is not full, over time.
    pub path_course: PathCourse,
    /// Longest wait in the queue (ns).
    pub longest_ns: i64,
    /// Losses at a queue that was at least half as full as ever.
    pub full_losses: u64,
    /// Losses at an emptier queue.
    pub other_losses: u64,
}

impl BottleneckEstimate {
    /// Takes a packet that passed, in order of departure.
    pub fn pass(&mut self, packet: Passed) {
        let bytes = u64::from(packet.ip_bytes) + ETHERNET;
        let delay = packet.out_ns - packet.in_ns;
        self.keep(Arrival {
            in_ns: packet.in_ns,
            delay_ns: Some(delay),
            bytes: bytes as u32,
            is_measured: true,
        });
        if self.least.is_none_or(|(least, _)| delay < least) {
            self.least = Some((delay, bytes));
        }
        let (least, least_bytes) = self.least.unwrap_or((delay, bytes));
        self.longest_ns = self.longest_ns.max(delay - least);
        let waited = delay - least;
        if self.basis_ns < JITTER_NS && waited > self.basis_ns.saturating_mul(2) {
            // The presumed queue so far was noise beside this one.
            (self.basis_ns, self.busy, self.stretch, self.fastest_bps) =
                (waited, Busy::default(), Busy::default(), 0.0);
            self.rates = Samples::default();
            self.bins.clear();
            self.from_ns = None;
        }
        let is_long = waited >= (self.longest_ns / LONG_WAIT).min(JITTER_NS);
        // Nothing was before it in a queue: the last packet had left by then.
        let is_alone = self.last.is_none_or(|last| packet.in_ns + least > last.out_ns);
        self.path_course.pass(packet.in_ns, is_alone.then_some(delay));
        if let Some(last) = self.last {
            let gap = packet.out_ns - last.out_ns;
            // It arrived at the bottleneck before the last one was gone.
            if packet.in_ns + least <= last.out_ns && gap >= 0 && is_long && self.is_long {
                self.busy.bytes += bytes;
                self.busy.ns += gap;
                self.bin(packet.out_ns, bytes, gap);
                self.stretch(bytes, gap);
            } else {
                self.stretch = Busy::default();
            }
        }
        self.is_long = is_long;
        self.last = Some(packet);
        let own = self.least_transmission_ns_of(least_bytes);
        while let Some(&(left, gone)) = self.inside.front()
            && left <= packet.in_ns
        {
            self.inside.pop_front();
            self.held -= gone;
        }
        if self.arrivals.len() == MOST_ARRIVALS {
            self.arrivals.pop_front();
        }
        self.held += bytes;
        self.arrivals.push_back((packet.in_ns, self.held));
        self.accepted = self.accepted.max(self.held);
        // The end of its transmission, on the clock of arrivals: without the way behind it.
        self.inside.push_back((packet.out_ns - (least - own).max(0), bytes));
    }

    fn keep(&mut self, arrival: Arrival) {
        if self.kept.len() < MOST_KEPT {
            self.kept.push(arrival);
            self.is_kept_whole = true;
        } else {
            self.is_kept_whole = false;
        }
    }

    /// A packet passed that one capture missed: the receiver's, or the sender's if the time is that of its departure.
    pub fn miss(&mut self, at_ns: i64, is_departure: bool, ip_bytes: u32) {
        if self.unseen.len() < MOST_KEPT && self.kept.len() < MOST_KEPT {
            self.unseen.push(Unseen { at_ns, is_departure, bytes: ip_bytes.saturating_add(ETHERNET as u32) });
        }
    }

    /// Finds the results of all packets together. Call it once, at the end.
    pub fn settle(&mut self, without: Option<Mechanism>) {
        if without == Some(Mechanism::MedianRate) {
            self.rates = Samples::default();
        }
        let mut kept = std::mem::take(&mut self.kept);
        complete(&mut kept, &std::mem::take(&mut self.unseen));
        let is_tried = self.steady_bps().is_none() && without != Some(Mechanism::QueueModel);
        if let Some(rate_bps) = self.rate_bps(0.0).filter(|_| is_tried) {
            self.served = served(&kept, rate_bps);
        }
        let levels = match (self.served, self.least) {
            (Some(served), _) => {
                self.longest_ns = served.longest_ns;
                Some(served.levels)
            }
            (None, Some((least, least_bytes))) if without != Some(Mechanism::Placement) => {
                let own = self.least_transmission_ns_of(least_bytes).min(least.max(0));
                placed(&kept, least - own, own)
            }
            (None, _) => None,
        };
        if let (Some(levels), true) = (levels, self.is_kept_whole) {
            [self.full_losses, self.other_losses] = levels.losses;
        }
        self.placed = levels;
    }

    /// Adds a packet of a busy time to those in a row.
    fn stretch(&mut self, bytes: u64, ns: i64) {
        self.stretch.bytes += bytes;
        self.stretch.ns += ns;
        if self.stretch.bytes >= BURST_BYTES && self.stretch.ns > 0 {
            let rate = self.stretch.bytes as f64 * 8e9 / self.stretch.ns as f64;
            self.fastest_bps = self.fastest_bps.max(rate);
            self.rates.push(rate as i64);
            self.stretch = Busy::default();
        }
    }

    /// The transmission of so many bytes at the fastest rate (ns): the least delay was measured then. 0 without a rate.
    fn least_transmission_ns_of(&self, bytes: u64) -> i64 {
        if self.fastest_bps > 0.0 { (bytes as f64 * 8e9 / self.fastest_bps).round() as i64 } else { 0 }
    }

    /// A packet was lost that arrived at this time.
    pub fn lose(&mut self, in_ns: i64, ip_bytes: u32) {
        let bytes = u64::from(ip_bytes) + ETHERNET;
        self.keep(Arrival { in_ns, delay_ns: None, bytes: bytes as u32, is_measured: true });
        if self.arrivals.front().is_none_or(|&(at, _)| at > in_ns) {
            return; // from before the kept packets
        }
        let after = self.arrivals.partition_point(|&(at, _)| at <= in_ns);
        let held = after.checked_sub(1).and_then(|at| self.arrivals.get(at)).map_or(0, |&(_, held)| held);
        if held * 2 > self.accepted {
            self.full_losses += 1;
            let with = held + bytes;
            self.refused.push(with as i64);
        } else {
            self.other_losses += 1;
            self.path_course.lose(in_ns);
        }
    }

    fn bin(&mut self, at_ns: i64, bytes: u64, ns: i64) {
        let from_ns = *self.from_ns.get_or_insert(at_ns);
        self.width_ns = self.width_ns.max(NARROWEST);
        let mut bin = ((at_ns - from_ns).max(0) / self.width_ns) as usize;
        while bin >= MOST_BINS {
            let sum = |two: &[Busy]| {
                two.iter().fold(Busy::default(), |a, b| Busy { bytes: a.bytes + b.bytes, ns: a.ns + b.ns })
            };
            self.bins = self.bins.chunks(2).map(sum).collect();
            self.width_ns = self.width_ns.saturating_mul(2);
            bin = ((at_ns - from_ns).max(0) / self.width_ns) as usize;
        }
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, Busy::default());
        }
        self.bins[bin].bytes += bytes;
        self.bins[bin].ns += ns;
    }

    /// The rate in bit/s while it was busy; `None` if it hardly was. Packets that no capture has are `missed_share` of
    /// those that it has: they passed in the same time.
    pub fn rate_bps(&self, missed_share: f64) -> Option<f64> {
        let Busy { bytes, ns } = self.busy;
        if bytes < FEWEST_BYTES || ns <= 0 {
            return None;
        }
        if let Some(served) = self.served {
            return Some(served.rate_bps);
        }
        // Most parts miss no packet.
        self.steady_bps().or(Some(bytes as f64 * 8e9 / ns as f64 * (1.0 + missed_share)))
    }

    /// The median rate of parts of busy times, if most parts are near to it.
    fn steady_bps(&self) -> Option<f64> {
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| self.rates.quantile(part).unwrap_or(0) as f64);
        (self.rates.count() >= FEWEST_STRETCHES && high - low <= STEADY * middle).then_some(middle)
    }

    /// The rate over time: s since `zero_ns` and bit/s, where it was busy for at least a fifth of the bin.
    pub fn course(&self, zero_ns: i64) -> Vec<(f64, f64)> {
        let Some(from_ns) = self.from_ns else { return Vec::new() };
        let at = |bin: usize| (from_ns - zero_ns + bin as i64 * self.width_ns) as f64 / 1e9;
        let is_busy = |busy: &Busy| busy.ns * 5 >= self.width_ns;
        let bins = self.bins.iter().enumerate().filter(|(_, busy)| is_busy(busy));
        bins.map(|(bin, busy)| (at(bin), busy.bytes as f64 * 8e9 / busy.ns as f64)).collect()
    }

    /// Returns bounds on the queue's limit in bytes, the packet in transmission included: the most that was accepted,
    /// the least that was refused. The second is there only if losses were at a full queue.
    pub fn limit_bytes(&self) -> (u64, Option<u64>) {
        if let Some(levels) = self.placed {
            return (levels.accepted, levels.refused);
        }
        let refused = self.refused.quantile(0.25).map(|bytes| bytes as u64);
        (self.accepted, refused.filter(|&refused| refused >= self.accepted))
    }

    /// The time in transmission of the packet with the least delay (ns); 0 without a rate.
    pub fn least_transmission_ns(&self) -> i64 {
        let is_known = self.rate_bps(0.0).is_some();
        self.least.filter(|_| is_known).map_or(0, |(_, bytes)| self.least_transmission_ns_of(bytes))
    }
}
