//! Stages in a row, advanced in order of time.

use std::collections::VecDeque;

use streamgauge_base::{Duration, FateSink, Instant, Item};

use crate::schedule::Schedule;
use crate::spec::Change;
use crate::stage::{Departure, Stage};

/// Stages in a row: an item that leaves one enters the next at that very time.
///
/// Everything happens in order of logical time, however late or seldom a driver calls, and is reported in that order.
/// At one and the same time departures are first, those nearest the end before the others; then changes of settings;
/// then arrivals from outside. Each stage shows one time, that of its head, so the cost of a packet does not depend on
/// how many others are inside.
#[derive(Clone, Debug)]
pub struct Chain<S> {
    stages: Vec<S>,
    /// One head per stage.
    heads: Vec<Head>,
    schedules: Vec<Schedule>,
    /// The earliest of `schedules`.
    next_change: Instant,
    /// The earliest of `heads` and `next_change`.
    next: Instant,
    /// Time when `dequeue` may first return something.
    wake: Instant,
    /// Time of the last thing that happened.
    now: Instant,
    clamped: u64,
    /// Items that have left the last stage and wait for the driver.
    ready: VecDeque<Departure>,
    bottleneck: usize,
}

/// The part of a stage's state that orders the chain's events.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The stage's `next_event`, `FAR_FUTURE` for none.
    at: Instant,
    /// Least time that an item spends in the stages behind this one, while no setting changes.
    behind: Duration,
}

impl<S: Stage> Chain<S> {
    /// Makes a chain of `stages`, at least one, each with its settings over time. `bottleneck` is the index of the one
    /// at which [`Chain::enqueue_at_bottleneck`] enters.
    pub fn of(stages: Vec<(S, Schedule)>, bottleneck: usize) -> Self {
        assert!(bottleneck < stages.len(), "stage {bottleneck} of {} stages", stages.len());
        let (stages, schedules): (Vec<S>, Vec<Schedule>) = stages.into_iter().unzip();
        let mut chain = Chain {
            heads: vec![Head { at: Instant::FAR_FUTURE, behind: Duration::ZERO }; stages.len()],
            stages,
            schedules,
            next_change: Instant::ZERO,
            next: Instant::ZERO,
            wake: Instant::ZERO,
            now: Instant::ZERO,
            clamped: 0,
            ready: VecDeque::new(),
            bottleneck,
        };
        chain.next_change = chain.earliest_change();
        chain.measure();
        chain.refresh();
        chain
    }

    /// Lets `item` arrive at the first stage at `now`.
    ///
    /// Time does not decrease: if the path has already settled something at a later time, the item arrives at that
    /// time, and [`Chain::clamped`] counts it.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        self.arrive(0, now, item, fates);
    }

    /// Lets `item` arrive at the bottleneck at `now`, past the stages before it; otherwise as [`Chain::enqueue`]. On a
    /// path without a bottleneck it enters at the first stage.
    #[inline]
    pub fn enqueue_at_bottleneck(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        self.arrive(self.bottleneck, now, item, fates);
    }

    /// Returns when the driver must call [`Chain::dequeue`] next: nothing leaves the path earlier, and no setting
    /// changes, unless something is enqueued first. `None` for not before that.
    ///
    /// A call at this time may still return nothing (a packet that was expected has been dropped, a setting
    /// has changed), and a later call is harmless, because departures carry their logical times. Ask again
    /// after each enqueue and once dequeue has returned `None`. It only reads a field.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        (self.wake < Instant::FAR_FUTURE).then_some(self.wake)
    }

    /// Lets things happen in order of time, up to `now`, until something leaves the path, and returns that.
    /// Call it until it returns `None`.
    #[inline]
    pub fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        if !self.ready.is_empty() {
            let departure = self.ready.pop_front();
            self.wake = self.earliest_departure();
            return departure;
        }
        if self.next > now {
            return None;
        }
        let mut departure = None;
        while departure.is_none() && self.is_due(now) {
            departure = self.step(fates);
        }
        self.wake = self.earliest_departure();
        departure
    }

    /// Ends the trial at `now`: performs everything that is due by then and reports the items still inside as held.
    /// Items that have left by `now` can still be dequeued.
    pub fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        self.advance(now, fates);
        for (stage, head) in self.stages.iter_mut().zip(&mut self.heads) {
            stage.finish(now, fates);
            head.at = Instant::FAR_FUTURE;
        }
        self.now = self.now.max(now);
        self.refresh();
    }

    /// Schedules `change` at the stage at `index` at `at`, or once the path's time is past that; returns when. The
    /// driver asks for [`Chain::next_event`] again.
    pub fn schedule(&mut self, index: usize, at: Instant, change: Change) -> Instant {
        let at = at.max(self.now);
        self.schedules[index].add(at, change);
        self.next_change = self.earliest_change();
        self.refresh();
        at
    }

    /// Returns the time of the last arrival, departure or change. An arrival at an earlier time would be clamped to it.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns how many arrivals were clamped.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Returns the stages, first to last.
    pub fn stages(&self) -> &[S] {
        &self.stages
    }

    #[inline]
    fn arrive(&mut self, index: usize, now: Instant, item: Item, fates: &mut impl FateSink) {
        if self.next <= now {
            self.advance(now, fates);
        }
        if now < self.now {
            self.clamped += 1;
        }
        self.now = self.now.max(now);
        self.give(index, self.now, item, fates);
        self.refresh_next();
        if self.next <= self.now {
            self.advance(self.now, fates);
        }
        self.wake = self.earliest_departure();
    }

    #[inline]
    fn is_due(&self, until: Instant) -> bool {
        self.next <= until && self.next < Instant::FAR_FUTURE
    }

    /// Lets everything happen that is due by `until`.
    fn advance(&mut self, until: Instant, fates: &mut impl FateSink) {
        while self.is_due(until) {
            if let Some(departure) = self.step(fates) {
                self.ready.push_back(departure);
            }
        }
    }

    /// Performs the next event, and returns the item that leaves the last stage by it.
    #[inline]
    fn step(&mut self, fates: &mut impl FateSink) -> Option<Departure> {
        let at = self.next;
        self.now = self.now.max(at);
        let departure = match self.heads.iter().rposition(|head| head.at <= at) {
            Some(index) => self.release(index, at, fates),
            None => {
                self.change(at, fates);
                None
            }
        };
        self.refresh_next();
        departure
    }

    /// Performs the next event of the stage at `index`, at `at`.
    #[inline]
    fn release(&mut self, index: usize, at: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        let departure = self.stages[index].dequeue(at, fates);
        self.heads[index].at = self.stages[index].next_event().unwrap_or(Instant::FAR_FUTURE);
        if index + 1 == self.stages.len() {
            return departure;
        }
        if let Some(departure) = departure {
            self.give(index + 1, departure.at, departure.item, fates);
        }
        None
    }

    #[inline]
    fn give(&mut self, index: usize, at: Instant, item: Item, fates: &mut impl FateSink) {
        let stage = &mut self.stages[index];
        stage.enqueue(at, item, fates);
        self.heads[index].at = stage.next_event().unwrap_or(Instant::FAR_FUTURE);
    }

    #[cold]
    fn change(&mut self, at: Instant, fates: &mut impl FateSink) {
        for index in 0..self.stages.len() {
            while self.schedules[index].next_at() <= at {
                let Some((_, change)) = self.schedules[index].pop() else { break };
                self.stages[index].apply(at, change, fates);
                self.heads[index].at = self.stages[index].next_event().unwrap_or(Instant::FAR_FUTURE);
            }
        }
        self.next_change = self.earliest_change();
        self.measure();
    }

    /// Measures stays after settings were made or changed.
    fn measure(&mut self) {
        let mut stay = Duration::ZERO;
        for (stage, head) in self.stages.iter().zip(&mut self.heads).rev() {
            head.behind = stay;
            stay += stage.least_stay();
        }
    }

    fn earliest_change(&self) -> Instant {
        self.schedules.iter().map(Schedule::next_at).min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn refresh(&mut self) {
        self.refresh_next();
        self.wake = self.earliest_departure();
    }

    #[inline]
    fn refresh_next(&mut self) {
        self.next = self.heads.iter().fold(self.next_change, |earliest, head| earliest.min(head.at));
    }

    /// Returns the earliest departure: an item inside a stage leaves the path after its stay in each stage behind; that
    /// saves the driver a call for every packet and stage. A change of settings can shorten it, so it is a time to look
    /// again.
    #[inline]
    fn earliest_departure(&self) -> Instant {
        if let Some(departure) = self.ready.front() {
            return departure.at;
        }
        self.heads.iter().fold(self.next_change, |earliest, head| earliest.min(head.at + head.behind))
    }
}
