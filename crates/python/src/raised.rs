//! Exceptions of the user's functions, kept until the trial that they ran in ends.

use std::cell::RefCell;

thread_local! {
    /// The first one of the trial that this thread runs.
    static RAISED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps `what` unless something was raised before it.
pub fn keep(what: impl FnOnce() -> String) {
    RAISED.with(|raised| {
        raised.borrow_mut().get_or_insert_with(what);
    });
}

/// Returns the exception kept on this thread since the last call.
pub fn take() -> Option<String> {
    RAISED.with(|raised| raised.borrow_mut().take())
}
