//! Packets lost on the way: at random, in bursts, or those that a list names.

mod bernoulli;
mod gilbert;
mod list;

use streamgauge_base::{Cause, Item, RandomStream, StageId};

use crate::chance::probability;
use crate::error::StageProblem;
use crate::passing::{Effect, Passing};
use crate::schedule::{Schedule, ascending, starts_on};
use crate::spec::Change;
use crate::spec::{LossModel, LossSpec};
use bernoulli::Bernoulli;
use gilbert::{Gilbert, GilbertElliott};
use list::List;

/// A loss model that can be switched on and off. While it is off it draws nothing and keeps its state.
pub type Loss = Passing<Losing>;

/// A loss model and its draws.
#[derive(Clone, Debug)]
pub struct Losing {
    process: Process,
    random: RandomStream,
    /// Mean share of packets lost while it is on.
    ratio: f64,
}

#[derive(Clone, Debug)]
enum Process {
    Bernoulli(Bernoulli),
    Gilbert(Gilbert),
    GilbertElliott(GilbertElliott),
    List(List),
}

impl Loss {
    /// Makes the model as at time zero; its draws use `random` alone.
    pub fn new(id: StageId, spec: &LossSpec, mut random: RandomStream) -> Self {
        let process = match spec.model {
            LossModel::Bernoulli { probability } => Process::Bernoulli(Bernoulli::new(probability)),
            LossModel::Gilbert { good_packets, bad_packets } => {
                Process::Gilbert(Gilbert::new(good_packets, bad_packets, &mut random))
            }
            LossModel::GilbertElliott { good_packets, bad_packets, loss_good, loss_bad } => {
                let process =
                    GilbertElliott::new(good_packets, bad_packets, loss_good, loss_bad, &mut random);
                Process::GilbertElliott(process)
            }
            LossModel::List { ref packets } => Process::List(List::new(packets.clone())),
        };
        let ratio = spec.model.mean_ratio().unwrap_or_default();
        Passing::with(id, starts_on(&spec.switches), Losing { process, random, ratio })
    }
}

impl Effect for Losing {
    #[inline]
    fn meet(&mut self, item: Item, _: &mut impl FnMut(Item)) -> Result<Item, Cause> {
        let lost = match &mut self.process {
            Process::Bernoulli(process) => process.loses(&mut self.random),
            Process::Gilbert(process) => process.loses(&mut self.random),
            Process::GilbertElliott(process) => process.loses(&mut self.random),
            Process::List(process) => process.loses(),
        };
        if lost { Err(Cause::RandomLoss) } else { Ok(item) }
    }

    fn set(&mut self, change: Change) -> bool {
        let Change::Loss(probability) = change else { return false };
        self.process = Process::Bernoulli(Bernoulli::new(probability));
        self.ratio = probability;
        true
    }

    /// Random loss is reported as its mean ratio, a list as the number of its packets still ahead.
    fn setting(&self, on: bool) -> (&'static str, f64, &'static str) {
        match &self.process {
            Process::List(list) => ("loss_list", if on { list.left() as f64 } else { 0.0 }, "packets"),
            _ => ("loss_ratio", if on { self.ratio } else { 0.0 }, "1"),
        }
    }
}

impl LossModel {
    /// Returns the mean share of packets lost; `None` for a list, which has none.
    pub fn mean_ratio(&self) -> Option<f64> {
        match *self {
            LossModel::Bernoulli { probability } => Some(probability),
            LossModel::Gilbert { good_packets, bad_packets } => {
                Some(bad_packets / (good_packets + bad_packets))
            }
            LossModel::GilbertElliott { good_packets, bad_packets, loss_good, loss_bad } => {
                Some((good_packets * loss_good + bad_packets * loss_bad) / (good_packets + bad_packets))
            }
            LossModel::List { .. } => None,
        }
    }

    fn check(&self) -> Result<(), StageProblem> {
        match *self {
            LossModel::Bernoulli { probability: p } => probability("probability", p),
            LossModel::Gilbert { good_packets, bad_packets } => check_runs(good_packets, bad_packets),
            LossModel::GilbertElliott { good_packets, bad_packets, loss_good, loss_bad } => {
                check_runs(good_packets, bad_packets)?;
                probability("loss_good", loss_good)?;
                probability("loss_bad", loss_bad)
            }
            LossModel::List { ref packets } => match packets.windows(2).position(|pair| pair[1] <= pair[0]) {
                Some(before) => {
                    Err(StageProblem::ListNotAscending { index: before + 1, packet: packets[before + 1] })
                }
                None => Ok(()),
            },
        }
    }
}

fn check_runs(good_packets: f64, bad_packets: f64) -> Result<(), StageProblem> {
    for (which, mean) in [("good_packets", good_packets), ("bad_packets", bad_packets)] {
        if !(1.0..f64::INFINITY).contains(&mean) {
            return Err(StageProblem::MeanRun { which, mean });
        }
    }
    Ok(())
}

impl LossSpec {
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::switched(&self.switches)
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        self.model.check()?;
        ascending("switches", &self.switches)
    }
}
