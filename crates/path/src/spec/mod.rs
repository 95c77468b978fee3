//! A path as plain data, in SI units and nanoseconds: a scenario is lowered to it, and sim and the emulator read it.

mod aqm;
mod change;
mod classic;
mod delay;
mod impairment;
mod layer;
mod limit;
mod loss;
mod queue;
mod rate;
mod stage;

pub use aqm::{CodelSpec, DualScheduler, Dualpi2Spec, FqCodelSpec, L4sMarking, PieDelay, PieSpec};
pub use change::Change;
pub use classic::{DrdSpec, NistnetSpec, RedSpec};
pub use delay::{DelaySpec, Distribution, JitterSpec};
pub use impairment::{BlockSpec, BlockedProtocol, CorruptSpec, DuplicateSpec, MtuSpec, ReorderSpec};
pub use layer::Layer;
pub use limit::Limit;
pub use loss::{LossModel, LossSpec};
pub use queue::QueueSpec;
pub use rate::{CbqSpec, OpportunitiesSpec, RateSpec, ShaperSpec, SleepingSpec, TokenBucketSpec};
pub use stage::{BottleneckSpec, PathSpec, StageKind, StageSpec};
