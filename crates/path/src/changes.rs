//! The settings that a stage accepts while it runs.

use streamgauge_base::Duration;

use crate::chance::probability;
use crate::error::StageProblem;
use crate::spec::Change;
use crate::spec::{BottleneckSpec, Limit, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec};

/// A delay or jitter beyond it is a mistake in a unit.
const LONGEST: Duration = Duration::from_secs(3600);

impl StageSpec {
    /// Returns whether the stage accepts `change`: of its kind, and with a valid value.
    pub fn takes(&self, change: Change) -> Result<(), StageProblem> {
        match (&self.kind, change) {
            (StageKind::Bottleneck(bottleneck), Change::Rate(_) | Change::Limit(_) | Change::Ecn(_)) => {
                bottleneck.takes(change)
            }
            (StageKind::Delay(_), Change::Delay(time)) => within_an_hour("delay", time),
            (StageKind::Delay(_), Change::Jitter(time)) => within_an_hour("jitter", time),
            (StageKind::Loss(_), Change::Loss(share)) => probability("loss", share),
            (StageKind::Bottleneck(_) | StageKind::Delay(_), Change::On(_)) => {
                refused("on", "a stage that can be switched, such as loss", &self.name)
            }
            (_, Change::On(_)) => Ok(()),
            (_, Change::Rate(_)) => refused("rate", "a bottleneck", &self.name),
            (_, Change::Limit(_)) => refused("limit", "a bottleneck", &self.name),
            (_, Change::Ecn(_)) => refused("ecn", "a bottleneck", &self.name),
            (_, Change::Delay(_)) => refused("delay", "a delay", &self.name),
            (_, Change::Jitter(_)) => refused("jitter", "a delay", &self.name),
            (_, Change::Loss(_)) => refused("loss", "a loss", &self.name),
        }
    }
}

impl BottleneckSpec {
    fn takes(&self, change: Change) -> Result<(), StageProblem> {
        match change {
            Change::Rate(rate) => {
                if matches!(self.rate, RateSpec::Opportunities(_)) {
                    return refused(
                        "rate",
                        "a bottleneck whose rate no trace of opportunities sets",
                        "this one",
                    );
                }
                let rate = RateSpec::Constant(rate);
                // A rate of 0 holds everything until the next change.
                match self.shaper {
                    ShaperSpec::Cbq(_) | ShaperSpec::Sleeping(_) => self.shaper.check(&rate, self.layer),
                    ShaperSpec::Serial | ShaperSpec::TokenBucket(_) => Ok(()),
                }
            }
            Change::Limit(limit) => {
                if matches!(self.queue, QueueSpec::Nistnet(_) | QueueSpec::Drd(_)) {
                    return refused("limit", "another queue than NIST Net's", "this one");
                }
                let highest = self.rate.rates().into_iter().max().unwrap_or(self.rate.initial());
                match limit {
                    // The rate may be another by then.
                    Limit::Time(time) => within_an_hour("limit", time),
                    limit => limit.check(self.layer, highest),
                }
            }
            Change::Ecn(_) => match self.queue {
                QueueSpec::Droptail(_) | QueueSpec::Nistnet(_) | QueueSpec::Drd(_) => {
                    refused("ecn", "a queue that manages itself, such as codel", "this one")
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn within_an_hour(key: &'static str, time: Duration) -> Result<(), StageProblem> {
    if time <= LONGEST {
        return Ok(());
    }
    Err(StageProblem::value(key, "at most an hour", format!("{time:?}")))
}

fn refused(key: &'static str, expected: &str, given: &str) -> Result<(), StageProblem> {
    Err(StageProblem::value(key, expected, given.to_owned()))
}
