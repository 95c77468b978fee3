//! Settings that change at given times.

use std::collections::VecDeque;
use std::vec;

use streamgauge_base::{Duration, Instant};

use crate::error::StageProblem;
use crate::spec::Change;

/// A stage's settings over time: the value at time zero, then every change, each at its exact time.
#[derive(Clone, Debug)]
pub struct Schedule {
    next: Option<(Instant, Change)>,
    rest: Rest,
    /// Changes beside those of the stage's own settings, ascending; at one time they are behind them.
    added: VecDeque<(Instant, Change)>,
}

#[derive(Clone, Debug)]
enum Rest {
    Listed(vec::IntoIter<(Duration, Change)>),
    /// The two values in turn; `edges` have been passed.
    Alternating {
        values: [Change; 2],
        period: Duration,
        edges: u64,
    },
}

impl Schedule {
    /// Makes a schedule without changes, now or later.
    pub fn none() -> Self {
        Schedule::listed([])
    }

    /// Makes a schedule of one value throughout.
    pub fn once(value: Change) -> Self {
        Schedule::listed([(Duration::ZERO, value)])
    }

    /// Values at times that ascend.
    pub fn listed(changes: impl IntoIterator<Item = (Duration, Change)>) -> Self {
        let changes: Vec<_> = changes.into_iter().collect();
        Schedule::of(Rest::Listed(changes.into_iter()))
    }

    /// Makes a schedule that is on or off by `switches`: on at time zero unless the first of them is there.
    pub(crate) fn switched(list: &[(Duration, bool)]) -> Self {
        Schedule::listed(switches(list))
    }

    /// Makes a schedule of `first` for half a period, `second` for the rest of it, and again. An edge is computed from
    /// the period alone, so none drifts.
    pub fn alternating(first: Change, second: Change, period: Duration) -> Self {
        Schedule::of(Rest::Alternating { values: [first, second], period, edges: 0 })
    }

    fn of(rest: Rest) -> Self {
        let mut schedule = Schedule { next: None, rest, added: VecDeque::new() };
        schedule.pop();
        schedule
    }

    /// Returns the same with one change more, which is behind others of its time.
    pub fn add(&mut self, at: Instant, change: Change) {
        let place = self.added.partition_point(|&(earlier, _)| earlier <= at);
        self.added.insert(place, (at, change));
    }

    /// Returns when the next change is due; `FAR_FUTURE` after the last.
    pub fn next_at(&self) -> Instant {
        let own = self.next.map_or(Instant::FAR_FUTURE, |(at, _)| at);
        self.added.front().map_or(own, |&(at, _)| own.min(at))
    }

    /// Removes and returns the next change.
    pub fn pop(&mut self) -> Option<(Instant, Change)> {
        if let Some(&(added, _)) = self.added.front()
            && self.next.is_none_or(|(own, _)| added < own)
        {
            return self.added.pop_front();
        }
        let following = match &mut self.rest {
            Rest::Listed(changes) => changes.next().map(|(at, change)| (Instant::ZERO + at, change)),
            Rest::Alternating { values, period, edges } => {
                let half = if *edges % 2 == 0 { Duration::ZERO } else { period.div(2) };
                let at = Instant::ZERO + *period * (*edges / 2) + half;
                let change = values[(*edges % 2) as usize];
                *edges += 1;
                (at < Instant::FAR_FUTURE).then_some((at, change))
            }
        };
        std::mem::replace(&mut self.next, following)
    }
}

/// Returns whether the part that `switches` turns on and off is on at time zero.
pub(crate) fn starts_on(switches: &[(Duration, bool)]) -> bool {
    switches.first().is_none_or(|&(at, on)| at > Duration::ZERO || on)
}

/// Returns the state at time zero and every switch after it.
pub(crate) fn switches(list: &[(Duration, bool)]) -> impl Iterator<Item = (Duration, Change)> {
    let first = (Duration::ZERO, starts_on(list));
    let later = list.iter().copied().filter(|&(at, _)| at > Duration::ZERO);
    std::iter::once(first).chain(later).map(|(at, on)| (at, Change::On(on)))
}

/// Checks that the times of `list` ascend.
pub(crate) fn ascending<T>(list: &'static str, entries: &[(Duration, T)]) -> Result<(), StageProblem> {
    match entries.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
        Some(before) => {
            Err(StageProblem::NotAscending { list, index: before + 1, at: entries[before + 1].0 })
        }
        None => Ok(()),
    }
}
