//! Random loss. Nothing waits here: what is not lost leaves as it arrives.

use std::collections::VecDeque;

use streamgauge_base::{Cause, Duration, FateSink, Instant, Item, QueueDepth, StageId, Stream};

use crate::error::Problem;
use crate::schedule::{Schedule, ascending};
use crate::spec::{LossModel, LossSpec};
use crate::stage::{Arrival, Change, Departure, Stage};

/// A loss model that can be switched on and off. While it is off it draws nothing and keeps its state.
#[derive(Clone, Debug)]
pub struct Loss {
    id: StageId,
    on: bool,
    process: Process,
    random: Stream,
    /// Mean share of packets lost while it is on.
    ratio: f64,
    passed: VecDeque<Departure>,
}

#[derive(Clone, Debug)]
enum Process {
    Bernoulli { lose: Chance },
    Gilbert { bad: bool, leave_good: Chance, leave_bad: Chance },
}

/// A probability, where 0 and 1 are exact.
#[derive(Clone, Copy, Debug)]
struct Chance(u64);

impl Chance {
    fn new(probability: f64) -> Self {
        Chance(Stream::threshold(probability))
    }
    #[inline]
    fn draw(self, random: &mut Stream) -> bool {
        random.chance(self.0) || self.0 == u64::MAX
    }
}

impl Loss {
    /// The model as at time zero, its draws from `random` alone. A Gilbert chain starts in its stationary
    /// distribution, so that short trials lose what long ones do on average.
    pub fn new(id: StageId, spec: &LossSpec, mut random: Stream) -> Self {
        let ratio = spec.model.mean_ratio();
        let process = match spec.model {
            LossModel::Bernoulli { probability } => Process::Bernoulli { lose: Chance::new(probability) },
            LossModel::Gilbert { good_packets, bad_packets } => Process::Gilbert {
                bad: Chance::new(ratio).draw(&mut random),
                leave_good: Chance::new(1.0 / good_packets),
                leave_bad: Chance::new(1.0 / bad_packets),
            },
        };
        Loss { id, on: spec.initially_on(), process, random, ratio, passed: VecDeque::new() }
    }

    #[inline]
    fn loses(&mut self) -> bool {
        match &mut self.process {
            Process::Bernoulli { lose } => lose.draw(&mut self.random),
            Process::Gilbert { bad, leave_good, leave_bad } => {
                let lost = *bad;
                let leave = if lost { *leave_bad } else { *leave_good };
                *bad ^= leave.draw(&mut self.random);
                lost
            }
        }
    }

    fn arrival(&self, t_in: Instant, item: Item) -> Arrival {
        Arrival { item, stage: self.id, t_in, queue: QueueDepth::default(), marked: false }
    }
}

impl Stage for Loss {
    #[inline]
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        if self.on && self.loses() {
            fates.fate(&self.arrival(now, item).dropped(now, Cause::RandomLoss));
        } else {
            self.passed.push_back(Departure { item, at: now });
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        let departure = *self.passed.front()?;
        if departure.at > now {
            return None;
        }
        self.passed.pop_front();
        fates.fate(&self.arrival(departure.at, departure.item).delivered(departure.at));
        Some(departure)
    }

    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        if let Change::Loss(on) = change {
            self.on = on;
            fates.changed(self.id, now, "loss_ratio", if on { self.ratio } else { 0.0 }, "1");
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.passed.front().map(|departure| departure.at)
    }

    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        while let Some(departure) = self.passed.pop_front() {
            fates.fate(&self.arrival(departure.at, departure.item).held(now));
        }
    }
}

impl LossModel {
    /// Mean share of packets lost.
    pub fn mean_ratio(&self) -> f64 {
        match *self {
            LossModel::Bernoulli { probability } => probability,
            LossModel::Gilbert { good_packets, bad_packets } => bad_packets / (good_packets + bad_packets),
        }
    }

    fn check(&self) -> Result<(), Problem> {
        match *self {
            LossModel::Bernoulli { probability } if !(0.0..=1.0).contains(&probability) => {
                Err(Problem::Probability(probability))
            }
            LossModel::Bernoulli { .. } => Ok(()),
            LossModel::Gilbert { good_packets, bad_packets } => {
                for (which, mean) in [("good_packets", good_packets), ("bad_packets", bad_packets)] {
                    if !(1.0..f64::INFINITY).contains(&mean) {
                        return Err(Problem::MeanRun { which, mean });
                    }
                }
                Ok(())
            }
        }
    }
}

impl LossSpec {
    fn initially_on(&self) -> bool {
        self.switches.first().is_none_or(|&(at, on)| at > Duration::ZERO || on)
    }

    pub(crate) fn schedule(&self) -> Schedule {
        let first = (Duration::ZERO, Change::Loss(self.initially_on()));
        let later = self.switches.iter().filter(|(at, _)| *at > Duration::ZERO);
        Schedule::listed(std::iter::once(first).chain(later.map(|&(at, on)| (at, Change::Loss(on)))))
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.model.check()?;
        ascending("switches", &self.switches)
    }
}
