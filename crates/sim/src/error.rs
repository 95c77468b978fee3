//! Why a trial cannot be simulated.

use streamgauge_path::SpecError;
use streamgauge_record::RecordError;
use streamgauge_systems::MachineError;

/// A plan that cannot run, or a record that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The path.
    #[error(transparent)]
    Path(#[from] SpecError),
    /// A flow.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Anything else in the plan.
    #[error("{key}: {what}")]
    Plan {
        /// The key within the plan.
        key: String,
        /// The fault and the remedy.
        what: String,
    },
}

impl SimError {
    pub(crate) fn plan(key: impl Into<String>, what: impl Into<String>) -> Self {
        SimError::Plan { key: key.into(), what: what.into() }
    }
}
