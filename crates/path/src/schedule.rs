//! Settings that change at given times.

use std::vec;

use streamgauge_base::{Duration, Instant};

use crate::error::StageProblem;
use crate::stage::Change;

/// A stage's settings over time: the value at time zero, then every change, each at its exact time.
#[derive(Clone, Debug)]
pub struct Schedule {
    next: Option<(Instant, Change)>,
    rest: Rest,
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
    /// Nothing to say, now or later.
    pub fn none() -> Self {
        Schedule::listed([])
    }

    /// A value that holds throughout.
    pub fn once(value: Change) -> Self {
        Schedule::listed([(Duration::ZERO, value)])
    }

    /// Values at times that ascend.
    pub fn listed(changes: impl IntoIterator<Item = (Duration, Change)>) -> Self {
        let changes: Vec<_> = changes.into_iter().collect();
        Schedule::of(Rest::Listed(changes.into_iter()))
    }

    /// On or off, from `switches` on: on at time zero unless the first of them is there.
    pub(crate) fn switched(list: &[(Duration, bool)]) -> Self {
        Schedule::listed(switches(list))
    }

    /// `first` for half a period, `second` for the rest of it, and again. An edge is computed from the period
    /// alone, so none drifts.
    pub fn alternating(first: Change, second: Change, period: Duration) -> Self {
        Schedule::of(Rest::Alternating { values: [first, second], period, edges: 0 })
    }

    fn of(rest: Rest) -> Self {
        let mut schedule = Schedule { next: None, rest };
        schedule.pop();
        schedule
    }

    /// When the next change is due; `FAR_FUTURE` after the last.
    pub fn next_at(&self) -> Instant {
        self.next.map_or(Instant::FAR_FUTURE, |(at, _)| at)
    }

    /// Takes the next change.
    pub fn pop(&mut self) -> Option<(Instant, Change)> {
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

/// Whether what `switches` turns on and off is on at time zero.
pub(crate) fn starts_on(switches: &[(Duration, bool)]) -> bool {
    switches.first().is_none_or(|&(at, on)| at > Duration::ZERO || on)
}

/// The state at time zero and every switch after it.
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
