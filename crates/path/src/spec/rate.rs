//! Rates over time.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};

/// A rate over time. A rate of zero holds everything until the next change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RateSpec {
    /// The same throughout.
    Constant(BitRate),
    /// From each time (ns, ascending, the first at 0) on, that rate.
    Steps(Vec<(Duration, BitRate)>),
    /// `first` for half a period, then `second` for the other half, and again.
    Square {
        /// The first half's rate.
        first: BitRate,
        /// The second half's rate.
        second: BitRate,
        /// Both halves together, > 0.
        period: Duration,
    },
}
