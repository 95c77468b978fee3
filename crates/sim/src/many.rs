//! Trials side by side.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use streamgauge_plan::TrialPlan;

use crate::error::SimError;
use crate::files::simulate;
use crate::summary::Summary;

/// Runs each plan into its directory, on `threads` threads or one a core, and returns the results of [`simulate`], in
/// the order given. Trials share nothing, so their records do not depend on the number of threads.
pub fn simulate_many(
    trials: &[(TrialPlan, PathBuf)],
    threads: Option<NonZeroUsize>,
) -> Vec<Result<Summary, SimError>> {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(trials.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(trials.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((plan, directory)) = trials.get(index) else { return };
                    let result = simulate(plan, directory);
                    done.lock().expect("no thread panics while it holds this").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics while it holds this");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
