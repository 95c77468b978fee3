//! The numbers of one stream that its receiver lacks and has, and the fates of packets that follow from these.

use std::collections::{BTreeMap, BTreeSet};

use crate::ranges::NumberRanges;
use crate::sequence::nearest;

/// Numbers that are kept of each, of those that a receiver lacked or that were sent again: the last ones.
const MOST_KEPT: usize = 1 << 16;
/// A receiver that asks for numbers so near on either side would have asked for this one.
const NEAR: u64 = 4096;

/// The last feedback by which a number was missing; times are those at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Missing {
    /// When (ns).
    pub at_ns: i64,
    /// Packets sent before this time and not there were lost, if the path keeps the order (ns).
    pub until_ns: i64,
}

/// Feedback while it is read.
pub struct Stated {
    /// Its times.
    pub missing: Missing,
    /// Numbers that may still be taken from its packet.
    pub left: usize,
}

/// The time of feedback that the receiver's capture does not have.
pub const UNKNOWN: Missing = Missing { at_ns: i64::MIN, until_ns: i64::MIN };

/// Packets that are numbered together, as one end of a flow sends them.
#[derive(Debug)]
pub struct Stream {
    /// Its flow.
    pub flow: u32,
    /// The end that sends it.
    pub from: u8,
    /// Bits of a number in a packet.
    pub bits: u32,
    /// The highest number that was sent, extended.
    pub latest: u64,
    again: BTreeSet<u64>,
    missing: BTreeMap<u64, Missing>,
    arrived: NumberRanges,
    /// Numbers that SRT's receiver may skip, or that are behind the captured part of its list.
    pub doubtful: NumberRanges,
    /// SRT: all before it have arrived or were skipped.
    pub acknowledged: Option<u64>,
    /// SRT: the socket that it is sent to.
    pub socket: Option<u32>,
    /// Its receiver asks for each missing number, by itself.
    pub is_rist: bool,
    /// Several flows or sockets have these numbers: they show nothing.
    pub is_mixed: bool,
}

impl Stream {
    /// A stream whose first packet has the number `low`.
    pub fn new(flow: u32, from: u8, bits: u32, low: u64) -> Self {
        Stream {
            flow,
            from,
            bits,
            // One before the first, which then counts as new.
            latest: ((1u64 << bits) + low) - 1,
            again: BTreeSet::new(),
            missing: BTreeMap::new(),
            arrived: NumberRanges::default(),
            doubtful: NumberRanges::default(),
            acknowledged: None,
            socket: None,
            is_rist: false,
            is_mixed: false,
        }
    }

    /// A packet is sent; returns its number, extended.
    pub fn sent(&mut self, low: u64) -> u64 {
        let number = nearest(self.bits, self.latest, low);
        if number > self.latest {
            self.latest = number;
        } else {
            self.sent_again(number);
        }
        number
    }

    /// A packet of this number is sent again.
    pub fn sent_again(&mut self, number: u64) {
        self.again.insert(number);
        if self.again.len() > MOST_KEPT {
            self.again.pop_first();
        }
    }

    /// The receiver lacks the number.
    pub fn lacks(&mut self, low: u64, by: &mut Stated) {
        if by.left == 0 {
            return;
        }
        by.left -= 1;
        let by = by.missing;
        let number = nearest(self.bits, self.latest, low);
        let known = self.missing.entry(number).or_insert(by);
        known.at_ns = known.at_ns.max(by.at_ns);
        known.until_ns = known.until_ns.max(by.until_ns);
        if self.missing.len() > MOST_KEPT {
            self.missing.pop_first();
        }
    }

    /// The receiver has the number.
    pub fn has(&mut self, low: u64, by: &mut Stated) {
        if by.left == 0 {
            return;
        }
        by.left -= 1;
        let number = nearest(self.bits, self.latest, low);
        self.arrived.add(number, number);
    }

    /// Whether the receiver asked for numbers on either side, and so would have asked for this one.
    fn would_ask(&self, number: u64) -> bool {
        let before = self.missing.range(number.saturating_sub(NEAR)..number).next();
        let behind = self.missing.range(number + 1..number + NEAR).next();
        self.is_rist && before.is_some() && behind.is_some()
    }

    /// Whether the packet of this number that was sent at this time (ns) was lost; `Some(false)` if it arrived.
    /// `longest_ns` is the longest delay, of a path that does not keep the order. `None` if no feedback shows it.
    pub fn is_lost(&self, number: u64, at_ns: i64, longest_ns: Option<i64>) -> Option<bool> {
        let forgotten =
            self.again.len() == MOST_KEPT && self.again.first().is_some_and(|&first| number < first);
        let is_once = !self.again.contains(&number) && !forgotten;
        if is_once && self.arrived.contains(number) {
            return Some(false);
        }
        if let Some(missing) = self.missing.get(&number) {
            let is_before = match longest_ns {
                None => is_once || missing.until_ns > at_ns,
                Some(longest) => missing.at_ns.saturating_sub(longest) > at_ns,
            };
            return is_before.then_some(true);
        }
        if !is_once || self.doubtful.contains(number) {
            return None;
        }
        let is_there = self.acknowledged.is_some_and(|until| number < until) || self.would_ask(number);
        is_there.then_some(false)
    }
}
