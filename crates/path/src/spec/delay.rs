//! Propagation delay.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

/// Propagation delay: constant, or with jitter, or longer for some flows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// One way.
    pub delay: Duration,
    /// From each time (ns, ascending) on, that delay.
    #[serde(default)]
    pub steps: Vec<(Duration, Duration)>,
    /// The addition to it, packet by packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterSpec>,
    /// The addition to it for each packet of a flow: (the flow's index, ns), each flow at most once. Order is kept
    /// within each of these flows and among all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<(u16, Duration)>,
}

impl DelaySpec {
    /// Makes the same delay throughout, for every packet.
    pub fn constant(delay: Duration) -> Self {
        DelaySpec { delay, ..DelaySpec::default() }
    }
}

/// Delay that varies from packet to packet, on from the start unless `switches` changes that.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// Distribution of the addition, independently for each packet. The delay as a whole is never below zero.
    pub distribution: Distribution,
    /// Whether a packet that would overtake one before it leaves together with that one. The mean delay is then longer
    /// than the distribution's: each packet has the longest of its own delay and the remaining delays of those before
    /// it.
    #[serde(default = "kept")]
    pub keep_order: bool,
    /// Times (ns) at which jitter is switched on or off, ascending; on at time zero unless the first entry is
    /// at zero.
    #[serde(default)]
    pub switches: Vec<(Duration, bool)>,
}

fn kept() -> bool {
    true
}

/// Distributions of the jitter added to a delay. Times in ns, at most an hour.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Uniform between `-spread` and `spread`.
    Uniform {
        /// Half the width.
        spread: Duration,
    },
    /// Normal with mean zero.
    Normal {
        /// Standard deviation.
        deviation: Duration,
    },
    /// Pareto, moved so that it begins at zero (Lomax 1954): the delay is the least, and the mean of the addition is
    /// scale / (shape - 1).
    Pareto {
        /// Scale.
        scale: Duration,
        /// Above 1.
        shape: f64,
    },
    /// Gamma: with the delay as its shift the shifted gamma distribution, which Mukherjee (1994, "On the dynamics and
    /// significance of low frequency components of Internet load") found to fit round-trip times. The mean of the
    /// addition is shape * scale.
    Gamma {
        /// Above 0.
        shape: f64,
        /// Scale.
        scale: Duration,
    },
    /// As measured: the quantiles at equal steps of probability from 0 to 1, straight lines between them.
    Table {
        /// At least two, none less than the one before it.
        quantiles: Vec<Duration>,
    },
}
