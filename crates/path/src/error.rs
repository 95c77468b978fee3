//! Faults of a path's specification.

use streamgauge_base::{Direction, Duration};

/// A path that cannot be built.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SpecError {
    /// A direction without stages.
    #[error("path.{direction}: no stages; give at least one (a delay of zero is the plain wire)", direction = name(.0))]
    NoStages(Direction),
    /// Stage ids have 8 bits.
    #[error("path.{direction}: {1} stages are too many; both directions together have at most 256", direction = name(.0))]
    TooManyStages(Direction, usize),
    /// Random streams and the record use the name.
    #[error("path.{direction}: two stages are called {1:?}; names are unique within it", direction = name(.0))]
    DuplicateName(Direction, String),
    /// One stage's settings.
    #[error("path.{way}.{stage}: {problem}", way = name(.direction))]
    Stage {
        /// The direction it is in.
        direction: Direction,
        /// Its name.
        stage: String,
        /// The fault.
        problem: StageProblem,
    },
}

/// Faults of a stage's settings.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StageProblem {
    /// The name is empty.
    #[error("a stage needs a name")]
    EmptyName,
    /// Ports that a firewall cannot use.
    #[error("ports: {0}")]
    Ports(String),
    /// Not a probability.
    #[error("{of}: a probability lies between 0 and 1, not {probability}")]
    Probability {
        /// The setting's name.
        of: &'static str,
        /// As given.
        probability: f64,
    },
    /// Not the mean length of a run.
    #[error("{which}: a run has at least one packet, so its mean cannot be {mean}")]
    MeanRun {
        /// `good_packets` or `bad_packets`.
        which: &'static str,
        /// As given.
        mean: f64,
    },
    /// A list of packets that does not ascend.
    #[error("packets: entry {index} is packet {packet}, which is not later than the entry before it")]
    ListNotAscending {
        /// Counted from 0.
        index: usize,
        /// The packet's number.
        packet: u64,
    },
    /// Its mean would be infinite.
    #[error("jitter: a Pareto distribution's shape must be above 1, for a mean; got {0}")]
    ParetoShape(f64),
    /// No gamma distribution.
    #[error("jitter: a gamma distribution's shape is above 0, not {0}")]
    GammaShape(f64),
    /// Nothing to draw between.
    #[error("jitter: a table has at least two quantiles, the least and the greatest, not {0}")]
    ShortTable(usize),
    /// Quantiles that fall.
    #[error("jitter: quantile {index} is {value:?}, less than the one before it")]
    TableDescends {
        /// Counted from 0.
        index: usize,
        /// As given.
        value: Duration,
    },
    /// A mistake in a unit.
    #[error("jitter: a {which} of {size:?} is more than an hour")]
    JitterTooLarge {
        /// The setting's name.
        which: &'static str,
        /// As given.
        size: Duration,
    },
    /// A flow with two extra delays.
    #[error("flows: flow {flow} has two extra delays; give one")]
    FlowTwice {
        /// Its index.
        flow: u16,
    },
    /// Neither or both ways to choose.
    #[error("say either the probability with which a packet waits or that every n-th does (`every`)")]
    ReorderChoice,
    /// Not a number of packets.
    #[error("every: every n-th packet waits, so n is at least 1")]
    EveryZeroth,
    /// Not an MTU.
    #[error("an MTU lies between 68 (RFC 791) and 65535 bytes, got {0}")]
    Mtu(u32),
    /// Copies have 8 bits for their numbers.
    #[error("{0} duplicating stages in a direction are too many; there are at most 8")]
    TooManyDuplicates(usize),
    /// A list of rates with nothing in it.
    #[error("the rate has no steps; the first is at 0")]
    NoSteps,
    /// No rate at the start.
    #[error("the rate's first step is at {0:?}; it must be at 0")]
    FirstStepLate(Duration),
    /// A list of times that does not ascend.
    #[error("{list}: entry {index} is at {at:?}, which is not later than the entry before it")]
    NotAscending {
        /// `rate`, `switches` or `steps`.
        list: &'static str,
        /// Counted from 0.
        index: usize,
        /// Its time.
        at: Duration,
    },
    /// Half a period would be no time.
    #[error("a square wave's period is at least 2 ns, not {0:?}")]
    Period(Duration),
    /// A rate of zero throughout.
    #[error("the rate is 0 bit/s throughout, so nothing would ever leave")]
    NoRate,
    /// A queue that no packet fits into.
    #[error("the queue's limit is {bytes} bytes at the highest rate, less than any packet")]
    LimitBytes {
        /// At the highest rate.
        bytes: u64,
    },
    /// One setting of a queue manager.
    #[error("the queue's {setting} is {given}; it must be {expected}")]
    Setting {
        /// Its key in the specification.
        setting: &'static str,
        /// As given.
        given: String,
        /// The required value.
        expected: &'static str,
    },
    /// A queue of no packets.
    #[error("the queue's limit is 0 packets; the packet being sent counts, so give 1 or more")]
    LimitPackets,
    /// A setting out of its range.
    #[error("{key}: {given}; expected {expected}")]
    Value {
        /// The key, as in the plan.
        key: &'static str,
        /// The allowed values.
        expected: String,
        /// As given.
        given: String,
    },
}

/// Returns the error of one setting of a queue manager.
pub(crate) fn refuse<T>(
    setting: &'static str,
    given: impl ToString,
    expected: &'static str,
) -> Result<T, StageProblem> {
    Err(StageProblem::Setting { setting, given: given.to_string(), expected })
}

impl StageProblem {
    pub(crate) fn value(key: &'static str, expected: &str, given: String) -> Self {
        StageProblem::Value { key, expected: expected.to_owned(), given }
    }
}

fn name(direction: &Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    }
}
