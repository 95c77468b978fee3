//! The access units of one track: when each is due, its received packets, whether it is whole.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};

use crate::reception::Place;

/// A timestamp so far ahead of all others is not the media's.
const MOST_AHEAD: Duration = Duration::from_secs(300);

/// Ticks from the media's start that leave room for all that a session may add: at the fastest clock that can be
/// described, 17 years.
const MOST_TICKS: i64 = i64::MAX / 4;

/// Interval between units, until two of them reveal it.
const USUAL_INTERVAL: Duration = Duration::from_millis(40);

/// RTP timestamps to times in the media (RFC 2326 section 12.33: `rtptime` is that of the range's start).
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    clock_rate: u32,
    /// The newest timestamp, and its ticks from the media's start.
    timestamp: u32,
    ticks: i64,
}

impl Timeline {
    /// Returns a timeline with the media's time `at` at `timestamp`.
    pub fn new(clock_rate: u32, timestamp: u32, at: Duration) -> Self {
        let ticks = u128::from(at.as_nanos()) * u128::from(clock_rate) / 1_000_000_000;
        Timeline { clock_rate, timestamp, ticks: i64::try_from(ticks).unwrap_or(i64::MAX).min(MOST_TICKS) }
    }

    fn ticks_of(&self, timestamp: u32) -> i64 {
        self.ticks + i64::from(timestamp.wrapping_sub(self.timestamp).cast_signed())
    }

    /// Returns the time of `timestamp`, taken for the one nearest to the newest. `None` before the media's
    /// start.
    pub fn at(&mut self, timestamp: u32) -> Option<Duration> {
        let ticks = self.ticks_of(timestamp);
        if ticks > self.ticks {
            (self.timestamp, self.ticks) = (timestamp, ticks);
        }
        let nanos = u128::try_from(ticks).ok()? * 1_000_000_000 / u128::from(self.clock_rate);
        Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
    }
}

/// An access unit received in part, or an expected one.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// When it is shown, in the media.
    pub at: Duration,
    /// Its number from the media's start.
    pub number: u64,
    /// The packets' RTP timestamp, if one arrived.
    pub timestamp: Option<u32>,
    /// Received packets.
    pub packets: u32,
    low: u32,
    high: u32,
    begins: bool,
    ends: bool,
    /// Arrival of the last of its packets.
    pub whole_at: Option<Instant>,
    /// Its outcome is known.
    pub settled: bool,
    /// It was shown.
    pub shown: bool,
    /// Its payloads by sequence number, if they are kept.
    pub payloads: Vec<(u32, Chunk)>,
}

impl Unit {
    fn take(&mut self, now: Instant, place: Place) {
        self.timestamp = Some(place.timestamp);
        if self.packets == 0 || place.sequence.wrapping_sub(self.low).cast_signed() < 0 {
            (self.low, self.begins) = (place.sequence, place.first);
        }
        if self.packets == 0 || place.sequence.wrapping_sub(self.high).cast_signed() > 0 {
            (self.high, self.ends) = (place.sequence, place.last);
        }
        self.packets += 1;
        self.judge(now);
    }

    fn judge(&mut self, now: Instant) {
        let whole = self.expected() == Some(self.packets);
        self.whole_at = whole.then(|| self.whole_at.unwrap_or(now));
    }

    /// Returns the sequence number of the first of its packets that arrived.
    pub fn first_sequence(&self) -> Option<u32> {
        (self.packets > 0).then_some(self.low)
    }

    /// Packets that it has, once its first and last have come.
    pub fn expected(&self) -> Option<u32> {
        (self.begins && self.ends).then(|| self.high.wrapping_sub(self.low).wrapping_add(1))
    }
}

/// The units that are not yet shown, or not yet given up, by the time at which they are due.
pub struct Units {
    timeline: Option<Timeline>,
    /// Units are this far apart and numbered by it; `None` if the description has no interval.
    interval: Option<Duration>,
    /// In order of time. With an interval, each number from the first to the last is there.
    held: VecDeque<Unit>,
    /// Number of units at the front that were due.
    fallen: usize,
    /// Play begins there.
    from: Duration,
    /// The first number after those that left.
    next_number: u64,
    /// The time after which everything left.
    left: Option<Duration>,
    /// The latest received time, and the least step between two.
    newest: Option<Duration>,
    step: Option<Duration>,
    /// Number of units shown after a unit that may be sent before it.
    ahead: usize,
}

impl Units {
    /// Units `interval` apart, if that is known.
    pub fn new(interval: Option<Duration>) -> Self {
        Units {
            timeline: None,
            interval: interval.filter(|interval| interval.as_nanos() > 0),
            held: VecDeque::new(),
            fallen: 0,
            from: Duration::ZERO,
            next_number: 0,
            left: None,
            newest: None,
            step: None,
            ahead: 0,
        }
    }

    /// Sets the number of units shown after another that may be sent before it.
    pub fn decodes_ahead(&mut self, units: u64) {
        self.ahead = usize::try_from(units).unwrap_or(usize::MAX);
    }

    /// Makes timestamps count by `timeline` from here on, unless they did before except for rounding.
    pub fn anchor(&mut self, timeline: Timeline) {
        let second = i64::from(timeline.clock_rate);
        let agrees = |known: Timeline| (known.ticks_of(timeline.timestamp) - timeline.ticks).abs() < second;
        if !self.timeline.is_some_and(agrees) {
            self.timeline = Some(timeline);
        }
    }

    /// Returns whether timestamps have a meaning yet.
    pub fn is_anchored(&self) -> bool {
        self.timeline.is_some()
    }

    /// Returns the media's time of `timestamp`, if timestamps have a meaning yet.
    pub fn time_of(&self, timestamp: u32) -> Option<Duration> {
        self.timeline?.at(timestamp)
    }

    /// Begins play at `from`; earlier units are not waited for.
    pub fn begin(&mut self, from: Duration) {
        self.from = from;
        if let Some(interval) = self.interval {
            self.next_number = from.as_nanos().div_ceil(interval.as_nanos());
        }
    }

    /// Returns the time between two units.
    pub fn interval(&self) -> Duration {
        self.interval.or(self.step).unwrap_or(USUAL_INTERVAL)
    }

    /// Units that the description counts in a second.
    pub fn are_numbered(&self) -> bool {
        self.interval.is_some()
    }

    /// Takes a packet that has not come before, with its payload if that is kept. Returns the unit if it has just
    /// become whole after it had fallen due. A unit that has left, or is before the start, takes nothing any more.
    pub fn take(&mut self, now: Instant, place: Place, payload: Option<Chunk>) -> Option<&mut Unit> {
        let at = self.timeline.as_mut()?.at(place.timestamp)?;
        let latest = self.newest.max(self.left).unwrap_or(self.from);
        if at > latest + MOST_AHEAD {
            return None;
        }
        let index = self.place(at, place.timestamp)?;
        if self.newest.is_none_or(|newest| at > newest) {
            if let Some(step) = self.newest.map(|newest| at.saturating_sub(newest)) {
                self.step = Some(self.step.map_or(step, |least| least.min(step)));
            }
            self.newest = Some(at);
        }
        let unit = &mut self.held[index];
        let before = unit.whole_at;
        unit.take(now, place);
        unit.payloads.extend(payload.map(|payload| (place.sequence, payload)));
        (before.is_none() && unit.whole_at.is_some() && index < self.fallen && !unit.settled).then_some(unit)
    }

    /// Declares the unit of `timestamp` as the first that was sent: none before it was lost. Without effect
    /// once play has begun.
    pub fn begins_with(&mut self, timestamp: u32) {
        if self.fallen > 0 || self.left.is_some() {
            return;
        }
        let first = self.held.iter().position(|unit| unit.timestamp == Some(timestamp)).unwrap_or(0);
        let lacking = self.held.iter().take(first).take_while(|unit| unit.packets == 0).count();
        self.held.drain(..lacking);
        self.next_number = self.held.front().map_or(self.next_number, |unit| unit.number);
    }

    /// Notes that the packet before `sequence` ended its unit: `sequence` begins one, despite its appearance.
    pub fn begins_at(&mut self, now: Instant, sequence: u32) {
        if let Some(unit) = self.held.iter_mut().find(|unit| unit.packets > 0 && unit.low == sequence) {
            unit.begins = true;
            unit.judge(now);
        }
    }

    /// Returns the unit of time `at`, made if it is not there. `None` if it has left.
    fn place(&mut self, at: Duration, timestamp: u32) -> Option<usize> {
        if let Some(interval) = self.interval {
            let step = interval.as_nanos();
            let number = at.as_nanos().saturating_add(step / 2) / step;
            let first = self.held.front().map_or(self.next_number, |unit| unit.number);
            let index = usize::try_from(number.checked_sub(first)?).ok()?;
            while self.held.len() <= index {
                self.extend();
            }
            if self.held[index].timestamp.is_none_or(|there| there == timestamp) {
                return Some(index);
            }
            // Two units of one number: they are not as far apart as described.
            self.interval = None;
            let mut index = 0;
            self.held.retain(|unit| {
                index += 1;
                index <= self.fallen || unit.packets > 0
            });
        }
        let index = self.held.partition_point(|unit| unit.at < at);
        let same = |unit: &&Unit| unit.timestamp == Some(timestamp);
        if let Some(near) = (index.saturating_sub(1)..self.held.len().min(index + 2))
            .find(|&near| self.held.get(near).filter(same).is_some())
        {
            return Some(near);
        }
        if self.left.is_some_and(|left| at <= left) || index < self.fallen {
            // Its place in the order is past. Without numbers it was not expected.
            return None;
        }
        self.held.insert(index, Unit { at, ..Unit::default() });
        Some(index)
    }

    fn extend(&mut self) {
        let Some(interval) = self.interval else { return };
        let number = self.held.back().map_or(self.next_number, |unit| unit.number + 1);
        self.held.push_back(Unit { at: interval * number, number, ..Unit::default() });
    }

    /// Returns when the next unit falls due. `None` if it is not known when that will be.
    pub fn next_at(&self) -> Option<Duration> {
        if let Some(unit) = self.held.get(self.fallen) {
            return Some(unit.at);
        }
        if let Some(interval) = self.interval {
            return Some(interval * self.held.back().map_or(self.next_number, |unit| unit.number + 1));
        }
        Some(self.held.back().map(|unit| unit.at).or(self.left)? + self.interval())
    }

    /// Returns the number of the next to fall due.
    pub fn next_number(&self) -> u64 {
        self.next_number + self.fallen as u64
    }

    /// Returns the next due unit, if a part of it or of a later one arrived.
    pub fn next(&self) -> Option<&Unit> {
        self.held.get(self.fallen)
    }

    /// Returns whether no part of a unit after the next one has arrived.
    pub fn is_dry(&self) -> bool {
        self.held.len() <= self.fallen.saturating_add(1).saturating_add(self.ahead)
    }

    /// Takes the next due unit. Without anything of it or after it, that makes a unit only where they are
    /// numbered.
    pub fn fall(&mut self) -> Option<&mut Unit> {
        if self.fallen == self.held.len() {
            self.extend();
        }
        let (numbered, number) = (self.interval.is_some(), self.next_number());
        let unit = self.held.get_mut(self.fallen)?;
        if !numbered {
            unit.number = number;
        }
        self.fallen += 1;
        Some(unit)
    }

    /// Returns the oldest that has fallen due and not left.
    pub fn oldest(&self) -> Option<&Unit> {
        self.held.front().filter(|_| self.fallen > 0)
    }

    /// Returns how much of the media is whole, from the next to fall due up to the first that is not.
    pub fn whole(&self) -> Duration {
        let whole = self.held.iter().skip(self.fallen).take_while(|unit| unit.whole_at.is_some());
        self.interval() * whole.count() as u64
    }

    /// Returns the time of the last that is held.
    pub fn last_at(&self) -> Option<Duration> {
        self.held.back().map(|unit| unit.at)
    }

    /// Returns whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Removes the oldest.
    pub fn leave(&mut self) -> Option<Unit> {
        let unit = self.held.pop_front()?;
        self.fallen = self.fallen.checked_sub(1)?;
        self.next_number = unit.number + 1;
        self.left = Some(unit.at);
        Some(unit)
    }

    /// Returns the start of the newest unit with a received part.
    pub fn newest(&self) -> Option<Duration> {
        self.newest
    }

    /// Returns the end of the newest unit with a received part.
    pub fn newest_end(&self) -> Option<Duration> {
        Some(self.newest? + self.interval())
    }
}
