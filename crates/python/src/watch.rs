//! Calls of the user's functions, which `streamgauge.systems.call_watch` ends if they do not return.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// The calls that are under way: the thread of each, and a number of its own.
static CALLS: Mutex<(u64, Vec<(u64, u64)>)> = Mutex::new((0, Vec::new()));

/// Returns `(thread, number)` of each call that is under way.
#[pyfunction]
pub fn function_calls() -> Vec<(u64, u64)> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
}

/// Starts the watch, and returns Python's number of this thread.
pub fn start(py: Python<'_>) -> PyResult<u64> {
    py.import("streamgauge.systems.call_watch")?.call_method0("start")?.extract()
}

/// Runs a call of this thread, known to Python as `thread`, which the watch may end.
pub fn watched<T>(thread: u64, call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        calls.0 += 1;
        let number = calls.0;
        calls.1.push((thread, number));
    }
    let done = call();
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).1.retain(|&(of, _)| of != thread);
    done
}
